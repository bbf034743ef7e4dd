package gate

import (
	"fmt"
)

// sawMemory is how many memory controllers told their errors.
func (j *judge) sawMemory() sight {
	if len(j.seen.Health.Memory) == 0 {
		return sight{gap: "the kernel has no EDAC driver for the memory controllers"}
	}
	return saw("errors of %d memory controllers", len(j.seen.Health.Memory))
}

// sawKernel is whether the kernel log was read.
func (j *judge) sawKernel() sight {
	if j.seen.Kernel == nil {
		return sight{gap: "the kernel log was not read"}
	}
	return saw("the kernel log since the boot")
}

// sawDisks is how many NVMe disks told how they are.
func (j *judge) sawDisks() sight {
	n, read := len(j.seen.Health.Disks), 0
	for _, d := range j.seen.Health.Disks {
		if d.SMART != nil {
			read++
		}
	}
	switch {
	case n == 0:
		return sight{}
	case read == 0:
		return sight{gap: fmt.Sprintf("the health of none of %d NVMe disks was read", n)}
	}
	return saw("the SMART logs of %d of %d NVMe disks", read, n)
}

// sawClock is whether chronyd told the offset.
func (j *judge) sawClock() sight {
	switch t := j.seen.Time; {
	case t == nil:
		return sight{gap: "chronyd did not tell"}
	case !t.Synced:
		return sight{gap: "chronyd follows no time server"}
	}
	return saw("the clock against its time servers")
}
