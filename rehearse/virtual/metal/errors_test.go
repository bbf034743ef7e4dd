// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// TestUnderLoad: errors are counted while the GPUs are loaded and only then, on the part that
// makes them, as the agent's own code reads it; and units that do no work make a GPU slow at its
// clock.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := BuildNode(hgxNode(), Options{})
		k := n.Boot("6.1", "", nil)
		gpus := n.GPUs()
		n.DisturbPCIe(gpus[3], 400)
		n.DisturbNVLink(gpus[2], 2)
		n.FlipBits(3)
		n.IdleUnits(gpus[1], 0.2)
		n.SlowGPU(gpus[0], 0.5)
		if n.DisturbPCIe("0000:ff:00.0", 1) || n.IdleUnits("0000:ff:00.0", 1) {
			t.Error("a GPU that is not there was changed")
		}
		counted := func() (pcie map[string]int64, nvlink, memory int64) {
			seen := health.Read(sysfs.Of(k.FS()))
			pcie = map[string]int64{}
			for _, l := range seen.PCI {
				if l.Corrected != nil && *l.Corrected > 0 {
					pcie[l.Address] = *l.Corrected
				}
			}
			for _, m := range seen.Memory {
				memory += m.Corrected
			}
			if len(seen.Memory) == 0 || seen.Memory[0] == (wire.MemoryErrors{}) {
				t.Errorf("memory controllers %+v", seen.Memory)
			}
			return pcie, k.CorrectedNVLink(gpus[2]) + 1000*k.CorrectedNVLink(gpus[3]), memory
		}
		time.Sleep(time.Hour)
		if pcie, nvlink, memory := counted(); len(pcie) != 0 || nvlink != 0 || memory != 0 {
			t.Errorf("at rest: %v, %d, %d", pcie, nvlink, memory)
		}
		n.LoadGPUs(true)
		time.Sleep(10 * time.Minute)
		if h := k.Heat(gpus[1]); math.Abs(h.Pace-0.8) > 0.01 {
			t.Errorf("a GPU of which a fifth does no work: %+v", h)
		}
		if slow, good := k.Heat(gpus[0]), k.Heat(gpus[4]); math.Abs(slow.Pace-0.5) > 0.01 || math.Abs(good.Pace-1) > 0.01 || slow.Clock >= good.Clock {
			t.Errorf("at half the clock: %+v, good: %+v", slow, good)
		}
		n.LoadGPUs(false)
		time.Sleep(time.Hour)
		n.LoadGPUs(true)
		time.Sleep(20 * time.Minute)
		pcie, nvlink, memory := counted()
		if len(pcie) != 1 || pcie[gpus[3]] != 12000 || nvlink != 60 || memory != 90 {
			t.Errorf("after half an hour of load: %v, %d, %d", pcie, nvlink, memory)
		}
	})
}
