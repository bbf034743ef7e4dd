// Package gate holds one installed node against what its parts must be before
// anything is measured on them: the GPUs are all there, twice over; their memory
// has no errors; their links are up, at full width and clean; the rails stand where
// they were bought to stand, and reach the GPUs; the disks are new; the kernel has
// no complaint. Each gate that fails names one part. What is judged is how the parts
// are, not how fast: the tests between nodes come after.
//
// Which gates there are, and what is good, is after the node checks of Azure, OCI
// and NVIDIA (azurehpc-health-checks, oci-hpc check_gpu_setup, the data centre GPU
// health documents); counters are held against zero, since the node is new.
package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
)

// Seen is what was read off a node. A pointer is nil where the node has no
// program that could say it.
type Seen struct {
	Health  wire.Health
	Kernel  *dmesg.Log
	NVIDIA  *nvidiasmi.Log
	Links   *nvidiasmi.NVLinks // states and counters together
	AMD     *amdsmi.Report
	Time    *Time    // of chronyd
	Fabrics []string // that the node has been brought up on, by name
	// Broken are sentences of programs that ran and could not answer, each with
	// what the program said.
	Broken []Broken
	// Gaps are sentences: what could not be looked at.
	Gaps []string
}

// Broken is a program that did not answer as it must.
type Broken struct{ Program, Says string }

// Fault is one part that does not pass.
type Fault struct {
	Part     string   `json:"part"`     // GPU 3 at 0000:4c:00.0, serial 1650000000003
	Cause    string   `json:"cause"`    // what is wrong with it
	Evidence []string `json:"evidence"` // figures, and lines of the programs
	Action   string   `json:"action"`
}

// Judge returns the parts that do not pass, in the order of the gates, and
// sentences about what is worth knowing and no fault. allowed has the reasons of
// the site for gates of Allowable: what they find is such a sentence.
func Judge(h *inventory.Hardware, allowed map[string]string, s Seen) ([]Fault, []string) {
	faults, notes, _ := Verdicts(h, allowed, s)
	return faults, notes
}

// Verdicts is Judge, with what each gate made of the node, but for those that look at
// what the node does not have.
func Verdicts(h *inventory.Hardware, allowed map[string]string, s Seen) ([]Fault, []string, []Outcome) {
	j := newJudge(h, s)
	j.allowed = allowed
	var all []Outcome
	for _, g := range gates {
		j.gate, j.failed, j.let = g.name, nil, nil
		g.look(j)
		if g.saw == nil {
			continue
		}
		if what := g.saw(j); what != (sight{}) || len(j.failed)+len(j.let) > 0 {
			all = append(all, j.outcome(what, j.failed, j.let))
		}
	}
	return j.faults, append(slices.Clone(s.Gaps), j.notes...), all
}

// Names of gates that a site may allow to fail: what they look at is how a node is
// built and set, which its owner may have chosen so.
const (
	PCIePath  = "pcie-path"
	Affinity  = "affinity"
	ACS       = "acs"
	IOMMU     = "iommu"
	GPUDirect = "gpudirect"
	Flaps     = "flaps"
	Clock     = "clock"
)

// Allowable are the gates that a site may allow to fail.
func Allowable() []string {
	return []string{PCIePath, Affinity, ACS, IOMMU, GPUDirect, Flaps, Clock, OddFirmware, OddSettings, OddSystem}
}

// gates are the gates, in their order: a GPU that is not there is found before
// what a program says of the others, and a link before what flows over it. One that
// only notes has nothing that it saw.
var gates = []struct {
	name string
	look func(*judge)
	saw  func(*judge) sight
}{
	{"driver", (*judge).driver, (*judge).sawDriver},
	{"gpu-count", (*judge).count, (*judge).sawCount},
	{"gpu-memory", (*judge).nvidiaMemory, func(j *judge) sight { return j.nvidia("ECC, remapped rows and retired pages") }},
	{"gpu-state", (*judge).nvidiaState, func(j *judge) sight { return j.nvidia("recovery actions, resets and what holds clocks down") }},
	{"nvlink", (*judge).nvlinks, func(j *judge) sight { return j.sawNVLinks("state, count and rate") }},
	{"nvlink-errors", (*judge).nvlinkErrors, func(j *judge) sight { return j.sawNVLinks("error counters") }},
	{"nvlink-fabric", (*judge).fabric, (*judge).sawFabric},
	{"gpu-power", (*judge).power, func(j *judge) sight { return j.nvidia("power limits") }},
	{"gpu-memory", (*judge).amdMemory, (*judge).sawAMDMemory},
	{"xgmi", (*judge).xgmi, (*judge).sawXGMI},
	{"pcie", (*judge).pcie, (*judge).sawPCIe},
	{"host-memory", (*judge).hostMemory, (*judge).sawMemory},
	{"kernel-log", (*judge).kernel, (*judge).sawKernel},
	{PCIePath, (*judge).path, (*judge).sawPath},
	{Affinity, (*judge).affinity, (*judge).sawBus},
	{ACS, (*judge).acs, (*judge).sawACS},
	{IOMMU, (*judge).iommu, (*judge).sawBus},
	{"ports", (*judge).ports, (*judge).sawPorts},
	{Flaps, (*judge).flaps, (*judge).sawFlaps},
	{GPUDirect, (*judge).gpuDirect, (*judge).sawGPUDirect},
	{"disks", (*judge).disks, (*judge).sawDisks},
	{Clock, (*judge).clock, (*judge).sawClock},
	{"settings", (*judge).settings, nil},
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
	for _, g := range j.hardware.GPUs {
		if g.Vendor == vendor {
			n += max(g.Count, 1)
			interconnect = g.Interconnect
		}
	}
	return n, interconnect
}
