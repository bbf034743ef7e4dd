// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// TestBetter: of two measurements the better figure of each part counts, and a disk that failed in
// one of them has failed.
func TestBetter(t *testing.T) {
	t.Parallel()
	a, b := good(same), good(same)
	a.NUMA[0].Rate, b.NUMA[1].Rate = 100e9, 100e9
	a.Cores[3].Rate, b.Cores[4].Rate = 1e6, 1e6
	a.Disks[0].Seconds, b.Disks[1].Seconds = 9, 9
	if r := NewRecord(better(a, b), Limits{}); len(r.Faults) != 0 || r.Memory[0].Rate != 170e9 || r.Memory[1].Rate != 170e9 || r.Disks[0].Rate < 6e9 || r.Disks[1].Rate < 6e9 {
		t.Errorf("%+v", r)
	}
	if a.NUMA[0].Rate != 100e9 || a.Cores[3].Rate != 1e6 || a.Disks[0].Seconds != 9 {
		t.Error("the first measurement was changed")
	}
	for _, failed := range []*wire.Speed{&a, &b} {
		failed.Disks[2].Failed, failed.Disks[2].Why, failed.Disks[2].Seconds = true, "input/output error", 0
		if r := NewRecord(better(a, b), Limits{}); !r.hasFault(r.Disks[2].Part) {
			t.Errorf("a disk that failed once: %+v", r)
		}
		failed.Disks[2] = good(same).Disks[2]
	}
	b.Cores[3].Rate = 1e6
	if r := NewRecord(better(a, b), Limits{}); len(r.Faults) != 1 || r.Faults[0].Part != "CPU core 3" {
		t.Errorf("slow both times: %+v", r.Faults)
	}
}
