// SPDX-License-Identifier: Apache-2.0

// Package judge collects what is wrong with the parts of one node, and says how each gate
// ended.
package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// Fault is one part that does not pass.
type Fault struct {
	Part     string   `json:"part"`     // GPU 3 at 0000:4c:00.0, serial 1650000000003
	Cause    string   `json:"cause"`    // what is wrong with it
	Evidence []string `json:"evidence"` // figures, and lines of the programs
	Action   string   `json:"action"`
	// Unlike: the part may be well, and is not what the hardware block says. Where most of a
	// role are so, the block or the delivery is wrong, and no node.
	Unlike bool `json:"unlike,omitempty"`
	// Of is the word of the site that is at fault then, where it is not the hardware block.
	Of string `json:"of,omitempty"`
}

// Finding is what a fault says of its node, with further evidence.
func (f Fault) Finding(node string, evidence ...string) stage.Finding {
	return stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(node), Part: f.Part}}, Cause: f.Cause, Evidence: slices.Concat(f.Evidence, evidence), Action: f.Action}
}

// Node goes through the gates. Several faults of one part are one fault.
type Node struct {
	Hardware *inventory.Hardware
	Seen     look.Seen
	Names    map[string]string // of parts, by PCI address
	At       map[string]int    // index into faults, by part and whether it is unlike its block
	Faults   []Fault
	Notes    []string
	Gate     string            // that looks
	Failed   []string          // what it found
	Let      []string          // what it found and the site allows
	Allowed  map[string]string // reasons, by gate
	Unlike   bool              // the gate compares with the hardware block, or with another word of the site
	Of       string            // that word
}

// New returns the judge of a node, which knows what its GPUs are called.
func New(h *inventory.Hardware, s look.Seen) *Node {
	j := &Node{Hardware: h, Seen: s, Names: map[string]string{}, At: map[string]int{}}
	j.name()
	return j
}

// name finds out what the GPUs are called: by number, address and serial number.
// Rails are called by theirs in rails.go.
func (j *Node) name() {
	if l := j.Seen.NVIDIA; l != nil {
		for _, g := range l.GPUs {
			j.Names[g.BusID] = GPUName(g.Index, g.BusID, g.Serial)
		}
	}
	if r := j.Seen.AMD; r != nil {
		for _, g := range r.GPUs {
			serial := ""
			if g.Static != nil {
				serial = g.Static.ProductSerial
				if serial == "" {
					serial = g.Static.Serial
				}
			}
			j.Names[g.BDF] = GPUName(g.GPU, g.BDF, serial)
		}
	}
}

// GPUName is what a GPU is called: by number, address and serial number.
func GPUName(index int, bus, serial string) string {
	s := fmt.Sprintf("GPU %d at %s", index, bus)
	if serial != "" {
		s += ", serial " + serial
	}
	return s
}

// Part is what to call the part at an address.
func (j *Node) Part(address string) string {
	if n := j.Names[address]; n != "" {
		return n
	}
	for _, l := range j.Seen.Health.PCI {
		if l.Address == address {
			return kindOf(l.Class) + " at " + address
		}
	}
	return "PCI device at " + address
}

// kindOf is what a PCI class is (PCI Code and ID Assignment Specification).
func kindOf(class string) string {
	switch {
	case IsGPU(class):
		return "GPU"
	case strings.HasPrefix(class, "02"):
		return "NIC"
	case strings.HasPrefix(class, "0108"):
		return "NVMe disk"
	}
	return "PCI device"
}

// IsGPU reports whether a PCI class is that of a GPU.
func IsGPU(class string) bool {
	return strings.HasPrefix(class, "0300") || strings.HasPrefix(class, "0302") || strings.HasPrefix(class, "1200")
}

// Fail notes what is wrong with a part.
func (j *Node) Fail(part, action, evidence, cause string, args ...any) {
	cause = fmt.Sprintf(cause, args...)
	if reason, ok := j.Allowed[j.Gate]; ok {
		j.Let = append(j.Let, fmt.Sprintf("%s: %s (allowed by the site: %s)", part, cause, reason))
		j.Note("%s: %s (gate %q, allowed by the site: %s)", part, cause, j.Gate, reason)
		return
	}
	j.Failed = append(j.Failed, part+": "+cause)
	key := part
	if j.Unlike {
		key = "unlike " + part
	}
	i, known := j.At[key]
	if !known {
		j.At[key] = len(j.Faults)
		j.Faults = append(j.Faults, Fault{Part: part, Cause: part + ": " + cause, Evidence: []string{evidence}, Action: action, Unlike: j.Unlike, Of: j.Of})
		return
	}
	f := &j.Faults[i]
	if len(f.Evidence) < 12 {
		f.Evidence = append(f.Evidence, evidence)
	}
	if strings.Count(f.Cause, ";") < 3 {
		f.Cause += "; " + cause
	}
}

func (j *Node) Note(format string, args ...any) {
	j.Notes = append(j.Notes, fmt.Sprintf(format, args...))
}

// Declared is how many GPUs of a vendor the hardware has.
func (j *Node) Declared(vendor string) (n int, interconnect string) {
	return look.DeclaredGPUs(j.Hardware, vendor)
}

// PartNames returns what the parts of a node are called in findings, by PCI address: those
// that a program gave a number to.
func PartNames(h *inventory.Hardware, s look.Seen) map[string]string {
	j := &Node{Hardware: h, Seen: s, Names: map[string]string{}, At: map[string]int{}}
	j.name()
	return j.Names
}

// Vendors are PCI vendors by the inventory's name.
var Vendors = map[string]string{"nvidia": "10de", "amd": "1002"}

// AboveZero reports whether a counter was told and has counted.
func AboveZero(n *int64) bool { return n != nil && *n > 0 }

// FormatCount returns a number with what it counts.
func FormatCount(n *int64, what string) string {
	if *n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", *n, what)
}
