// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == maker {
		beMaker()
	}
	peertest.OwnMounts(m)
}
