package gate

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// Fault is one part that does not pass.
type Fault struct {
	Part     string   `json:"part"`     // GPU 3 at 0000:4c:00.0, serial 1650000000003
	Cause    string   `json:"cause"`    // what is wrong with it
	Evidence []string `json:"evidence"` // figures, and lines of the programs
	Action   string   `json:"action"`
}

// judge goes through the gates. Several faults of one part are one fault.
type judge struct {
	hardware *inventory.Hardware
	seen     Seen
	names    map[string]string // of parts, by PCI address
	at       map[string]int    // index into faults, by part
	faults   []Fault
	notes    []string
	gate     string            // that looks
	failed   []string          // what it found
	let      []string          // what it found and the site allows
	allowed  map[string]string // reasons, by gate
}

// newJudge returns the judge of a node, which knows what its GPUs are called.
func newJudge(h *inventory.Hardware, s Seen) *judge {
	j := &judge{hardware: h, seen: s, names: map[string]string{}, at: map[string]int{}}
	j.name()
	return j
}

// name finds out what the GPUs are called: by number, address and serial number.
// Rails are called by theirs in rails.go.
func (j *judge) name() {
	if l := j.seen.NVIDIA; l != nil {
		for _, g := range l.GPUs {
			j.names[g.BusID] = gpuName(g.Index, g.BusID, g.Serial)
		}
	}
	if r := j.seen.AMD; r != nil {
		for _, g := range r.GPUs {
			serial := ""
			if g.Static != nil {
				serial = g.Static.ProductSerial
				if serial == "" {
					serial = g.Static.Serial
				}
			}
			j.names[g.BDF] = gpuName(g.GPU, g.BDF, serial)
		}
	}
}

// gpuName is what a GPU is called: by number, address and serial number.
func gpuName(index int, bus, serial string) string {
	s := fmt.Sprintf("GPU %d at %s", index, bus)
	if serial != "" {
		s += ", serial " + serial
	}
	return s
}

// part is what to call the part at an address.
func (j *judge) part(address string) string {
	if n := j.names[address]; n != "" {
		return n
	}
	for _, l := range j.seen.Health.PCI {
		if l.Address == address {
			return kindOf(l.Class) + " at " + address
		}
	}
	return "PCI device at " + address
}

// kindOf is what a PCI class is (PCI Code and ID Assignment Specification).
func kindOf(class string) string {
	switch {
	case isGPU(class):
		return "GPU"
	case strings.HasPrefix(class, "02"):
		return "NIC"
	case strings.HasPrefix(class, "0108"):
		return "NVMe disk"
	}
	return "PCI device"
}

// isGPU reports whether a PCI class is that of a GPU.
func isGPU(class string) bool {
	return strings.HasPrefix(class, "0300") || strings.HasPrefix(class, "0302") || strings.HasPrefix(class, "1200")
}

// fail notes what is wrong with a part.
func (j *judge) fail(part, action, evidence, cause string, args ...any) {
	cause = fmt.Sprintf(cause, args...)
	if reason, ok := j.allowed[j.gate]; ok {
		j.let = append(j.let, fmt.Sprintf("%s: %s (allowed by the site: %s)", part, cause, reason))
		j.note("%s: %s (gate %q, allowed by the site: %s)", part, cause, j.gate, reason)
		return
	}
	j.failed = append(j.failed, part+": "+cause)
	i, known := j.at[part]
	if !known {
		j.at[part] = len(j.faults)
		j.faults = append(j.faults, Fault{Part: part, Cause: part + ": " + cause, Evidence: []string{evidence}, Action: action})
		return
	}
	f := &j.faults[i]
	if len(f.Evidence) < 12 {
		f.Evidence = append(f.Evidence, evidence)
	}
	if strings.Count(f.Cause, ";") < 3 {
		f.Cause += "; " + cause
	}
}

func (j *judge) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// declared is how many GPUs of a vendor the hardware has.
func (j *judge) declared(vendor string) (n int, interconnect string) {
	return declared(j.hardware, vendor)
}

// Names are what the parts of a node are called in findings, by PCI address: those
// that a program gave a number to.
func Names(h *inventory.Hardware, s Seen) map[string]string {
	j := &judge{hardware: h, seen: s, names: map[string]string{}, at: map[string]int{}}
	j.name()
	return j.names
}

// vendors are PCI vendors by the inventory's name.
var vendors = map[string]string{"nvidia": "10de", "amd": "1002"}

// over0 reports whether a counter was told and has counted.
func over0(n *int64) bool { return n != nil && *n > 0 }

// count is a number with what it counts.
func count(n *int64, what string) string {
	if *n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", *n, what)
}
