// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"github.com/ironrail/ironrail/validate/gate/judge"
)

// SawMemory is how many memory controllers told their errors.
func SawMemory(j *judge.Node) judge.Sight {
	if len(j.Seen.Health.Memory) == 0 {
		return judge.Sight{Gap: "the kernel has no EDAC driver for the memory controllers"}
	}
	return judge.Saw("errors of %d memory controllers", len(j.Seen.Health.Memory))
}

// SawKernel is whether the kernel log was read.
func SawKernel(j *judge.Node) judge.Sight {
	if j.Seen.Kernel == nil {
		return judge.Sight{Gap: "the kernel log was not read"}
	}
	return judge.Saw("the kernel log since the boot")
}

// SawDisks is how many NVMe disks told how they are.
func SawDisks(j *judge.Node) judge.Sight {
	n, read := len(j.Seen.Health.Disks), 0
	for _, d := range j.Seen.Health.Disks {
		if d.SMART != nil {
			read++
		}
	}
	switch {
	case n == 0:
		return judge.Sight{}
	case read == 0:
		return judge.Sight{Gap: fmt.Sprintf("the health of none of %d NVMe disks was read", n)}
	}
	return judge.Saw("the SMART logs of %d of %d NVMe disks", read, n)
}

// SawClock is whether chronyd told the offset.
func SawClock(j *judge.Node) judge.Sight {
	switch t := j.Seen.Time; {
	case t == nil:
		return judge.Sight{Gap: "chronyd did not tell"}
	case !t.Synced:
		return judge.Sight{Gap: "chronyd follows no time server"}
	}
	return judge.Saw("the clock against its time servers")
}
