// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const doXGMI = "Reboot the node; if it comes again, have the GPU's board looked at: its connectors and the GPU."

// AMDMemory is RAS counts and bad pages.
func AMDMemory(j *judge.Node) {
	if j.Seen.AMD == nil {
		return
	}
	checkSections(j)
	for _, g := range j.Seen.AMD.GPUs {
		part := j.Part(g.BDF)
		if m := g.Metric; m != nil {
			if n := m.ECC.Uncorrectable; judge.AboveZero(n) {
				j.Fail(part, doReset, fmt.Sprintf("amd-smi metric: %d uncorrectable errors", valueOf(n)), "%s since the driver was loaded", judge.FormatCount(n, "uncorrectable memory error"))
			}
			if x := m.XGMIErrors; strings.Contains(x, "ERROR") && !strings.Contains(x, "NO_ERROR") { // AMDSMI_XGMI_STATUS_NO_ERRORS, _ERROR, _MULTIPLE_ERRORS
				j.Fail(part, doXGMI, "amd-smi metric: xgmi_err: "+x, "its xGMI links had errors since they were read last")
			}
			if n := m.ECC.Deferred; judge.AboveZero(n) {
				j.Fail(part, doReset, fmt.Sprintf("amd-smi metric: %d deferred errors", valueOf(n)), "%s that the GPU found before use", judge.FormatCount(n, "memory error"))
			}
		}
		b := g.BadPages
		if b == nil {
			continue
		}
		if n := int64(len(b.Pending)); n > 0 {
			j.Fail(part, doReset, fmt.Sprintf("amd-smi bad-pages: %d pending, the first at %s", n, b.Pending[0].Address), "%s of its memory not retired before the next reset", judge.FormatCount(&n, "bad page"))
		}
		if n := int64(len(b.Unreservable)); n > 0 {
			j.Fail(part, doReplace, fmt.Sprintf("amd-smi bad-pages: %d cannot be reserved", n), "%s of its memory that cannot be taken out of use", judge.FormatCount(&n, "bad page"))
		}
		if n := int64(len(b.Retired)); n > 0 {
			j.Fail(part, doReplace, fmt.Sprintf("amd-smi bad-pages: %d retired, the first at %s", n, b.Retired[0].Address), "%s of its memory retired, and it is new", judge.FormatCount(&n, "page"))
		}
	}
}

// checkSections reports GPUs of which amd-smi leaves out what it tells of others: their driver
// cannot read them. Partitions of a GPU share its sections.
func checkSections(j *judge.Node) {
	for _, section := range []struct {
		name string
		has  func(amdsmi.GPU) bool
	}{
		{"static", func(g amdsmi.GPU) bool { return g.Static != nil }},
		{"metric", func(g amdsmi.GPU) bool { return g.Metric != nil }},
		{"bad-pages", func(g amdsmi.GPU) bool { return g.BadPages != nil }},
	} {
		if !slices.ContainsFunc(j.Seen.AMD.GPUs, section.has) { // not asked for, or not known to this release
			continue
		}
		for _, g := range j.Seen.AMD.GPUs {
			if !section.has(g) && (g.Partition == nil || *g.Partition == 0) {
				j.Fail(j.Part(g.BDF), doReset, "amd-smi "+section.name+": GPU "+g.BDF, "amd-smi %s says nothing of it, and tells of other GPUs", section.name)
			}
		}
	}
}

// CheckXGMI holds the links between GPUs against being there, each to each.
func CheckXGMI(j *judge.Node) {
	if _, interconnect := j.Declared("amd"); j.Seen.AMD == nil || interconnect != "xgmi" || len(j.Seen.AMD.Links) == 0 {
		return
	}
	for _, l := range j.Seen.AMD.Links {
		switch {
		case l.Type != "" && l.Type != "XGMI":
			j.Fail(j.Part(l.FromBDF), doXGMI, fmt.Sprintf("amd-smi topology: %s to %s: %s", l.FromBDF, l.ToBDF, l.Type), "it reaches GPU %d by %s, not by xGMI", l.To, l.Type)
		case l.Access != "" && l.Access != "ENABLED":
			j.Fail(j.Part(l.FromBDF), doXGMI, fmt.Sprintf("amd-smi topology: %s to %s: %s", l.FromBDF, l.ToBDF, l.Access), "its link to GPU %d is off", l.To)
		}
	}
}
