// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

func TestMain(m *testing.M) { peertest.OwnMounts(m) }
