// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// TestCopied: only an array that is copied is told of.
func TestCopied(t *testing.T) {
	t.Parallel()
	got := copied([]wire.Array{{Name: "md1", Level: "raid1", Disks: 2, Active: 2}, {Name: "md127", Level: "raid10", Doing: "resync", Percent: 12.3}})
	if len(got) != 1 || !strings.HasPrefix(got[0], "array md127 (raid10)") || !strings.HasSuffix(got[0], "resync at 12 %") {
		t.Errorf("%q", got)
	}
}
