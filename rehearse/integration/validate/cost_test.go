// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// What the stages cost for each node: the fabric, then the pair test.
func TestLongStagesCost(t *testing.T) {
	nodes := 32
	if testing.Short() {
		nodes = 8
	}
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(nodes, 8, 400e9)
		accept(inv, "47GB/s", "500MB/s")
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		began := cputime.Used()
		rec := rails(t, r)
		fabric := cputime.Used()
		if err := judge(t, r, rec, "all/validate.pair"); err != nil {
			t.Fatal(err)
		}
		pairs := cputime.Used()
		if err := judge(t, r, rec, "all/validate.all_reduce"); err != nil {
			t.Fatal(err)
		}
		if causes := rec.causes(); causes != "" {
			t.Error(causes)
		}
		t.Logf("a node: %v for 8 rails, %v for the pair test, %v for the all-reduce", (fabric-began)/time.Duration(nodes), (pairs-fabric)/time.Duration(nodes), (cputime.Used()-pairs)/time.Duration(nodes))
	})
}
