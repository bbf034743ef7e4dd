package gate

import "fmt"

const doXGMI = "Reboot the node; if it comes again, have the GPU's board looked at: its connectors and the GPU."

// amdMemory is RAS counts and bad pages.
func (j *judge) amdMemory() {
	if j.seen.AMD == nil {
		return
	}
	for _, g := range j.seen.AMD.GPUs {
		part := j.part(g.BDF)
		if m := g.Metric; m != nil {
			if n := m.ECC.Uncorrectable; over0(n) {
				j.fail(part, doReset, fmt.Sprintf("amd-smi metric: %d uncorrectable errors", number(n)), "%s since the driver was loaded", count(n, "uncorrectable memory error"))
			}
			if n := m.ECC.Deferred; over0(n) {
				j.fail(part, doReset, fmt.Sprintf("amd-smi metric: %d deferred errors", number(n)), "%s that the GPU found before use", count(n, "memory error"))
			}
		}
		b := g.BadPages
		if b == nil {
			continue
		}
		if n := int64(len(b.Pending)); n > 0 {
			j.fail(part, doReset, fmt.Sprintf("amd-smi bad-pages: %d pending, the first at %s", n, b.Pending[0].Address), "%s of its memory not retired before the next reset", count(&n, "bad page"))
		}
		if n := int64(len(b.Unreservable)); n > 0 {
			j.fail(part, doReplace, fmt.Sprintf("amd-smi bad-pages: %d cannot be reserved", n), "%s of its memory that cannot be taken out of use", count(&n, "bad page"))
		}
		if n := int64(len(b.Retired)); n > 0 {
			j.fail(part, doReplace, fmt.Sprintf("amd-smi bad-pages: %d retired, the first at %s", n, b.Retired[0].Address), "%s of its memory retired, and it is new", count(&n, "page"))
		}
	}
}

// xgmi holds the links between GPUs against being there, each to each.
func (j *judge) xgmi() {
	if _, interconnect := j.declared("amd"); j.seen.AMD == nil || interconnect != "xgmi" || len(j.seen.AMD.Links) == 0 {
		return
	}
	for _, l := range j.seen.AMD.Links {
		switch {
		case l.Type != "" && l.Type != "XGMI":
			j.fail(j.part(l.FromBDF), doXGMI, fmt.Sprintf("amd-smi topology: %s to %s: %s", l.FromBDF, l.ToBDF, l.Type), "it reaches GPU %d by %s, not by xGMI", l.To, l.Type)
		case l.Access == "DISABLED":
			j.fail(j.part(l.FromBDF), doXGMI, fmt.Sprintf("amd-smi topology: %s to %s: %s", l.FromBDF, l.ToBDF, l.Access), "its link to GPU %d is off", l.To)
		}
	}
}
