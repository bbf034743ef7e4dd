// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

// TestFindingsAboutTheLock: the site of testdata/lock/base.hcl with a fabric and a
// lock file.
func TestFindingsAboutTheLock(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/lock", inventory.Options{Checks: []inventory.Check{CheckLock}})
}
