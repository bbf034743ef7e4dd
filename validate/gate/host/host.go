// SPDX-License-Identifier: Apache-2.0

// Package host holds what is around a node's GPUs against what it must be: memory, disks,
// clock and kernel log, and power supplies, fans and event log as the BMC tells.
package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const (
	doDisk  = "Have the disk replaced."
	doClock = "Look at chronyd of the node (chronyc sources) and at time_servers of the site: the servers must be reachable and agree."

	doTimeServers = "Look at `chronyc sources` of the node: UDP port 123 of each server must be reachable from it. `time_servers` of the site names them."
)

// critical are the bits of an NVMe disk's critical warning (NVM Express Base
// Specification 2.0, figure 207). What they say ends a disk's service, new or not.
var critical = []string{"its spare blocks are below the threshold", "its temperature is out of bounds", "it is not reliable any more", "it can be read only",
	"its memory backup has failed", "its persistent memory can be read only"}

// newLife is the percent of a disk's life after which it is not a new one.
const newLife = 5

// unreadDisks notes NVMe drives of which no SMART log was asked for.
func unreadDisks(j *judge.Node) {
	for _, d := range j.Seen.Health.Drives {
		told := slices.ContainsFunc(j.Seen.Health.Disks, func(n wire.NVMe) bool { return n.Serial == d.Serial || n.PCI != "" && n.PCI == d.PCI })
		if d.Type == "nvme" && !told {
			j.Note("NVMe disk %s, serial %s: its health was not read", d.Name, d.Serial)
		}
	}
}

// CheckDisks holds what NVMe disks say of themselves against what a new one says.
func CheckDisks(j *judge.Node) {
	unreadDisks(j)
	for _, d := range j.Seen.Health.Disks {
		s := d.SMART
		part := diskName(d)
		if s == nil {
			j.Note("%s: its health was not read: %s", part, d.Why)
			continue
		}
		evidence := fmt.Sprintf("SMART log: critical warning %#02x, %d media errors, %d %% used, %d %% spare, %d hours with power", s.Critical, s.MediaErrors, s.Used, s.Spare, s.Hours)
		for bit, text := range critical {
			if s.Critical&(1<<bit) != 0 {
				j.Fail(part, doDisk, evidence, "it warns: %s", text)
			}
		}
		switch {
		case s.Critical != 0:
		case s.MediaErrors > 0 && s.Used < newLife:
			j.Fail(part, doDisk, evidence, "it is new and has met %d media errors", s.MediaErrors)
		case s.Used >= 100:
			j.Fail(part, doDisk, evidence, "it is worn out: %d %% of its life are used", s.Used)
		case s.MediaErrors > 0 || s.Used >= newLife:
			j.Note("%s is not new: %s", part, evidence)
		}
	}
}

func diskName(d wire.NVMe) string {
	s := "NVMe disk " + d.Name
	if d.PCI != "" {
		s += " at " + d.PCI
	}
	if d.Serial != "" {
		s += ", serial " + d.Serial
	}
	return s
}

// Bounds of a clock's offset in seconds. Nodes of one cluster are compared by their
// logs, which a millisecond blurs; a tenth of a second is no noise of a network.
const (
	offsetNote = 1e-3
	offsetMost = 0.1
)

// CheckClock judges what chronyd says. A node that keeps time in another way says
// nothing.
func CheckClock(j *judge.Node) {
	t := j.Seen.Time
	if t == nil {
		return
	}
	if t.Program == "" {
		j.Note("neither chronyd nor systemd-timesyncd sets the clock: it runs by itself")
		return
	}
	evidence := fmt.Sprintf("chronyc tracking: system time off by %.6f s", t.Offset)
	switch off := math.Abs(t.Offset); {
	case !t.Synced:
		j.Note("%s follows no time server: the node's clock runs by itself", t.Program)
	case off >= offsetMost:
		j.Fail("clock", doClock, evidence, "the clock is off by %.3f s", off)
	case off >= offsetNote:
		j.Note("the clock is off by %.1f ms, by what chronyd says", off*1e3)
	}
}

// CheckTimeServers judges whether the servers answer that chronyd is to ask. Where one of them
// answered lately, the clock follows it, or chronyd has its reasons not to.
func CheckTimeServers(j *judge.Node) {
	if t := j.Seen.Time; t != nil && t.Servers > 0 && t.Answering == 0 {
		j.Fail("clock", doTimeServers, fmt.Sprintf("chronyc sources: reach is 0 of all %d", t.Servers), "none of its time servers answers")
	}
}
