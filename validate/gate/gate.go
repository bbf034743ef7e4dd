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
	"slices"

	"github.com/ironrail/ironrail/inventory"
)

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
