package validate_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// What the stages cost for each node: the fabric, then the pair test.
func TestStagesCost(t *testing.T) {
	nodes := 32
	if testing.Short() {
		nodes = 8
	}
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.Site(nodes, 8, 400e9)
		accept(inv, "47GB/s", "500MB/s")
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		began := cpu()
		rec := rails(t, r)
		fabric := cpu()
		if err := judge(t, r, rec, "all/validate.pair"); err != nil {
			t.Fatal(err)
		}
		pairs := cpu()
		if err := judge(t, r, rec, "all/validate.all_reduce"); err != nil {
			t.Fatal(err)
		}
		if causes := rec.causes(); causes != "" {
			t.Error(causes)
		}
		t.Logf("a node: %v for 8 rails, %v for the pair test, %v for the all-reduce", (fabric-began)/time.Duration(nodes), (pairs-fabric)/time.Duration(nodes), (cpu()-pairs)/time.Duration(nodes))
	})
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
