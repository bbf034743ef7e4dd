// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// MemoryCoverage is how many memory controllers told their errors.
func MemoryCoverage(j *judge.Node) judge.Coverage {
	if len(j.Seen.Health.Memory) == 0 {
		return judge.Coverage{Missing: "the kernel has no EDAC driver for the memory controllers"}
	}
	return judge.Covered("errors of %d memory controllers", len(j.Seen.Health.Memory))
}

// KernelCoverage is whether the kernel log was read.
func KernelCoverage(j *judge.Node) judge.Coverage {
	if j.Seen.Kernel == nil {
		return judge.Coverage{Missing: "the kernel log was not read"}
	}
	return judge.Covered("the kernel log since the boot")
}

// DisksCoverage is how many NVMe disks told how they are.
func DisksCoverage(j *judge.Node) judge.Coverage {
	n, read := len(j.Seen.Health.Disks), 0
	for _, d := range j.Seen.Health.Disks {
		if d.SMART != nil {
			read++
		}
	}
	switch {
	case n == 0:
		return judge.Coverage{}
	case read == 0:
		return judge.Coverage{Missing: fmt.Sprintf("the health of none of %d NVMe disks was read", n)}
	}
	return judge.Covered("the SMART logs of %d of %d NVMe disks", read, n)
}

// ClockCoverage is whether chronyd told the offset.
func ClockCoverage(j *judge.Node) judge.Coverage {
	switch t := j.Seen.Time; {
	case t == nil || t.Program == "":
		return judge.Coverage{Missing: "nothing that sets the clock reported"}
	case !t.Synced:
		return judge.Coverage{Missing: t.Program + " follows no time server"}
	case t.Program != look.Chronyd:
		return judge.Coverage{Missing: t.Program + " does not say how far the clock is off"}
	}
	return judge.Covered("the clock against its time servers")
}

// TimeServersCoverage is how many servers chronyd is to ask.
func TimeServersCoverage(j *judge.Node) judge.Coverage {
	switch t := j.Seen.Time; {
	case t == nil || t.Program != look.Chronyd:
		return judge.Coverage{}
	case t.Servers == 0:
		return judge.Coverage{Missing: "chronyd has no time server"}
	}
	return judge.Covered("that one of %d time servers answers", j.Seen.Time.Servers)
}
