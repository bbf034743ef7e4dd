// SPDX-License-Identifier: Apache-2.0

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
	"github.com/ironrail/ironrail/validate/gate/bought"
	"github.com/ironrail/ironrail/validate/gate/gpu"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/link"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Judge returns the parts that do not pass, in the order of the gates, and
// sentences about what is worth knowing and no fault. allowed has the reasons of
// the site for gates of Allowable: what they find is such a sentence. What is not as the hardware
// block says, which does not change between two looks, is left to JudgeEach.
func Judge(h *inventory.Hardware, allowed map[string]string, s look.Seen) ([]judge.Fault, []string) {
	faults, notes, _ := JudgeEach(h, allowed, s)
	return withoutUnlike(faults), notes
}

// withoutUnlike leaves out what is not as the hardware block says.
func withoutUnlike(faults []judge.Fault) []judge.Fault {
	return slices.DeleteFunc(faults, func(f judge.Fault) bool { return f.Unlike })
}

// outsideOf are the faults that may be of a word of the site, such as time servers that do not answer: unlike what a node
// is made of, that changes between two looks.
func outsideOf(faults []judge.Fault) []judge.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f judge.Fault) bool { return f.Of == "" })
}

// JudgeEach is Judge, with what is not as the hardware block says, and with what each gate made
// of the node, but for those that look at what the node does not have.
func JudgeEach(h *inventory.Hardware, allowed map[string]string, s look.Seen) ([]judge.Fault, []string, []judge.Outcome) {
	j := judge.New(h, s)
	j.Allowed = allowed
	var all []judge.Outcome
	for _, g := range gates {
		j.Gate, j.Failed, j.Let, j.Unlike = g.name, nil, nil, slices.Contains(ofBlock, g.name)
		j.Of = ofSite[g.name]
		g.look(j)
		if g.coverage == nil {
			continue
		}
		if what := g.coverage(j); what != (judge.Coverage{}) || len(j.Failed)+len(j.Let) > 0 {
			all = append(all, j.Outcome(what, j.Failed, j.Let))
		}
	}
	return j.Faults, append(slices.Clone(s.Gaps), j.Notes...), all
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

	TimeServers = "time-servers"
)

// AllowableGates returns the gates that a site may allow to fail.
func AllowableGates() []string {
	return []string{PCIePath, Affinity, ACS, IOMMU, GPUDirect, Flaps, Clock, TimeServers, uniform.OddFirmware, uniform.OddSettings, uniform.OddSystem, uniform.OddModel}
}

// Gates that compare what a node is made of with its hardware block.
const (
	cpuModel       = "cpu-model"
	gpuModel       = "gpu-model"
	gpuSize        = "gpu-size"
	pcieGeneration = "pcie-generation"
	nicModel       = "nic-model"
)

// ofBlock are those whose faults may be the block's, or that of the time servers.
var ofBlock = []string{cpuModel, gpuModel, gpuSize, pcieGeneration, nicModel, TimeServers}

// ofSite are the words of the site that may be at fault in place of the hardware block.
var ofSite = map[string]string{TimeServers: "time_servers"}

// gateRow is one gate: what looks, and what it could read.
type gateRow struct {
	name     string
	look     func(*judge.Node)
	coverage func(*judge.Node) judge.Coverage
}

// gateNames are the names of all gates.
func gateNames() (list []string) {
	for _, g := range gates {
		list = append(list, g.name)
	}
	return list
}

// gates are the gates, in their order: a GPU that is not there is found before
// what a program says of the others, and a link before what flows over it. One that
// only notes has nothing that it saw.
var gates = []gateRow{
	{"driver", gpu.CheckDriver, gpu.DriverCoverage},
	{"gpu-count", gpu.CheckCount, gpu.CountCoverage},
	{"gpu-memory", gpu.NVIDIAMemory, func(j *judge.Node) judge.Coverage { return gpu.NVIDIA(j, "ECC, remapped rows and retired pages") }},
	{"gpu-state", gpu.NVIDIAState, func(j *judge.Node) judge.Coverage {
		return gpu.NVIDIA(j, "recovery actions, resets and what holds clocks down")
	}},
	{"nvlink", gpu.NVLinks, func(j *judge.Node) judge.Coverage { return gpu.NVLinksCoverage(j, "state, count and rate") }},
	{"nvlink-errors", gpu.NVLinkErrors, func(j *judge.Node) judge.Coverage { return gpu.NVLinksCoverage(j, "error counters") }},
	{"nvlink-fabric", gpu.CheckFabric, gpu.FabricCoverage},
	{"gpu-power", gpu.CheckPower, func(j *judge.Node) judge.Coverage { return gpu.NVIDIA(j, "power limits") }},
	{"gpu-memory", gpu.AMDMemory, gpu.AMDMemoryCoverage},
	{"xgmi", gpu.CheckXGMI, gpu.XGMICoverage},
	{"pcie", link.CheckPCIe, link.PCIeCoverage},
	{"pcie-speed", link.CheckGPUSpeed, link.GPUSpeedCoverage},
	{"host-memory", host.HostMemory, host.MemoryCoverage},
	{"kernel-log", host.CheckKernel, host.KernelCoverage},
	{PCIePath, link.CheckPath, link.PathCoverage},
	{Affinity, link.CheckAffinity, link.BusCoverage},
	{ACS, link.CheckACS, link.ACSCoverage},
	{IOMMU, link.CheckIOMMU, link.BusCoverage},
	{"ports", link.CheckPorts, link.PortsCoverage},
	{Flaps, link.CheckFlaps, link.FlapsCoverage},
	{GPUDirect, link.GPUDirect, link.GPUDirectCoverage},
	{"disks", host.CheckDisks, host.DisksCoverage},
	{Clock, host.CheckClock, host.ClockCoverage},
	{TimeServers, host.CheckTimeServers, host.TimeServersCoverage},
	{"page-size", host.CheckPageSize, host.PageSizeCoverage},
	{"settings", host.CheckSettings, nil},
	{cpuModel, bought.CheckCPU, bought.CPUCoverage},
	{gpuModel, bought.CheckGPUModel, bought.GPUModelCoverage},
	{gpuSize, bought.CheckGPUSize, bought.GPUSizeCoverage},
	{pcieGeneration, bought.CheckGeneration, bought.GenerationCoverage},
	{nicModel, bought.CheckNIC, bought.NICCoverage},
	{"nic-speed", bought.CheckSpeed, bought.SpeedCoverage},
	{"mtu", bought.CheckMTU, bought.MTUCoverage},
}
