// SPDX-License-Identifier: Apache-2.0

// Package link holds what joins GPUs and NICs to each other and to their rails against
// what it must be: PCIe links and bridges, NUMA nodes, ports.
package link

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

const (
	doPath  = "Look at the slot, riser and cable of the bridge that is named, and at its settings in the BIOS; then power the node off and on."
	doPlace = "Compare the node's slots with those of its maker's drawing: the NIC or the GPU is in another one, or a part of the PCIe switch board is not."
	doACS   = "Switch ACS off in the BIOS of the nodes, or clear the bits at every boot (setpci -s PORT ECAP_ACS+0x6.w=0000)."
	doIOMMU = `Add "iommu=pt" to kernel_args of the role's host block and apply, or switch the IOMMU off in the BIOS.`
)

// end is a GPU or a compute rail on the bus.
type end struct {
	*wire.PCILink
	part string
}

// onBus are the GPUs and the compute rails, each with its place on the bus.
func onBus(j *judge.Node) (gpus, nics []end) {
	for i := range j.Seen.Health.PCI {
		if l := &j.Seen.Health.PCI[i]; judge.IsGPU(l.Class) && (l.Vendor == judge.Vendors["nvidia"] || l.Vendor == judge.Vendors["amd"]) {
			gpus = append(gpus, end{l, j.Part(l.Address)})
		}
	}
	for _, r := range computeRails(j) {
		if l := linkAt(j, r.port.PCI); l != nil {
			nics = append(nics, end{l, nameOfRail(j, r)})
		}
	}
	return gpus, nics
}

// countShared returns how many bridges two paths have in common, from the root on.
func countShared(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// limited finds the bridge of a kernel's message about a slow link.
var limited = lazyregexp.New(`limited by \S+ GT/s PCIe x\d+ link at ([0-9a-f:.]+) `)

// CheckPath judges what the kernel found slow above a part's own link, which pcie judges
// as it is now. What is so for all parts of a kind is how the node was built.
func CheckPath(j *judge.Node) {
	if j.Seen.Kernel == nil {
		return
	}
	gpus, nics := onBus(j)
	for _, kind := range []struct {
		name string
		all  []end
	}{{"GPUs", gpus}, {"rails", nics}} {
		slow := map[string]string{} // the kernel's words, by address
		for _, e := range j.Seen.Kernel.Events {
			if m := limited.FindStringSubmatch(e.Text); e.Kind == "pcie-link" && m != nil && narrowAbove(j, kind.all, e.Bus, m[1]) {
				slow[e.Bus] = e.Text
			}
		}
		if len(slow) > 0 && len(slow) == len(kind.all) {
			j.Note("the PCIe path of all %d %s is narrower than they are, so that it seems built so: %s", len(slow), kind.name, slow[kind.all[0].Address])
			continue
		}
		for _, p := range kind.all {
			if text := slow[p.Address]; text != "" {
				at := limited.FindStringSubmatch(text)[1]
				j.Fail(p.part, doPath, "kernel: "+text, "its way to the CPU is narrow at the bridge %s, and that of %d other %s is not", at, len(kind.all)-len(slow), kind.name)
			}
		}
	}
}

// narrowAbove reports whether a bridge stands above the link of a part and is slower
// now than it can be.
func narrowAbove(j *judge.Node, all []end, address, above string) bool {
	i := slices.IndexFunc(all, func(p end) bool { return p.Address == address })
	if i < 0 {
		return false
	}
	if n := len(all[i].Above); n < 2 || !slices.Contains(all[i].Above[:n-1], above) {
		return false
	}
	b := findBridge(j, above)
	full := b != nil && b.Width != nil && b.MaxWidth != nil && *b.Width >= *b.MaxWidth && b.Speed != nil && b.MaxSpeed != nil && *b.Speed >= *b.MaxSpeed
	return !full
}

func findBridge(j *judge.Node, address string) *wire.PCIBridge {
	for i, b := range j.Seen.Health.Bridges {
		if b.Address == address {
			return &j.Seen.Health.Bridges[i]
		}
	}
	return nil
}

// compareNearness says which of some parts have one of others below a bridge that they
// share, and which have one on their NUMA node.
func compareNearness(of, to []end) (switched, numa []bool) {
	for _, a := range of {
		switched = append(switched, slices.ContainsFunc(to, func(b end) bool { return countShared(a.Above, b.Above) > 0 }))
		numa = append(numa, slices.ContainsFunc(to, func(b end) bool { return a.NUMA != nil && b.NUMA != nil && *a.NUMA == *b.NUMA }))
	}
	return switched, numa
}

func countTrue(list []bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// HasNearRails reports whether each GPU has a compute rail below a PCIe bridge that both
// share, so that data can go from one to the other without passing the CPU.
func HasNearRails(h *inventory.Hardware, s look.Seen) bool {
	j := judge.New(h, s)
	gpus, nics := onBus(j)
	switched, _ := compareNearness(gpus, nics)
	return len(gpus) > 0 && countTrue(switched) == len(gpus)
}

// CheckAffinity looks for the rail that has no GPU near it, and the GPU that has no rail,
// while most have: below one PCIe switch or root port, or where nodes are built
// without such switches on one NUMA node. The addresses of rails are the
// inventory's; which GPU is whose is learned from the others.
func CheckAffinity(j *judge.Node) {
	gpus, nics := onBus(j)
	findUnpaired(j, nics, gpus, "GPU", "rails")
	if len(nics) >= len(gpus) {
		findUnpaired(j, gpus, nics, "rail", "GPUs")
	}
}

// findUnpaired finds those of some parts that have none of others near.
func findUnpaired(j *judge.Node, of, to []end, other, plural string) {
	if len(of) == 0 || len(to) == 0 {
		return
	}
	near, numa := compareNearness(of, to)
	where := "below its PCIe switch or root port"
	if countTrue(near) == 0 {
		if slices.ContainsFunc(slices.Concat(of, to), func(p end) bool { return p.NUMA == nil }) {
			return // the firmware does not say where they are
		}
		near, where = numa, "on its NUMA node"
	}
	k := countTrue(near)
	if 2*k <= len(of) {
		return // no pattern to hold one against
	}
	for i, p := range of {
		if !near[i] {
			j.Fail(p.part, doPlace, fmt.Sprintf("%s: bridges above: %s", p.Address, strings.Join(p.Above, " ")), "there is no %s %s, as there is for %d of %d %s", other, where, k, len(of), plural)
		}
	}
}

// CheckACS looks for ports of PCIe switches between a GPU and a rail that send what the
// two say to each other up to the CPU. Nodes whose NIC has a PCIe path of its own
// to the GPU need some of these bits: nothing is judged there.
func CheckACS(j *judge.Node) {
	gpus, nics := onBus(j)
	var bad []string
	for _, g := range gpus {
		for _, n := range nics {
			k := countShared(g.Above, n.Above)
			if k == 0 {
				continue
			}
			for _, at := range slices.Concat(g.Above[k:], n.Above[k:]) {
				b := findBridge(j, at)
				if b != nil && b.Port == "downstream" && b.ACS != nil && *b.ACS&(wire.ACSRequestRedirect|wire.ACSCompletionRedirect) != 0 && !slices.Contains(bad, at) {
					bad = append(bad, at)
				}
			}
		}
	}
	slices.Sort(bad)
	n := int64(len(bad))
	switch {
	case n == 0:
	case directNIC(j):
		j.Note("ACS is on at %s of PCIe switches and was not judged: NICs with a path of their own to the GPU (ConnectX-8 Direct NIC) need it at some; `rdma_topo check` of rdma-core judges it", judge.FormatCount(&n, "port"))
	default:
		some := strings.Join(bad[:min(len(bad), 8)], " ")
		b := findBridge(j, bad[0])
		j.Fail("PCIe switches", doACS, fmt.Sprintf("ACS control of %s: %#04x; ports: %s", bad[0], *b.ACS, some),
			"ACS of %s sends data between GPU and NIC up to the CPU and down again: %s", judge.FormatCount(&n, "port"), some)
	}
}

// directNIC reports whether the NICs reach GPUs on a path of their own: ConnectX-8
// on the boards of B300 and GB300.
func directNIC(j *judge.Node) bool {
	if j.Seen.Health.DirectNIC {
		return true
	}
	for _, g := range j.Hardware.GPUs {
		if strings.Contains(strings.ToUpper(g.Model), "B300") {
			return true
		}
	}
	return false
}

// CheckIOMMU looks for GPUs and rails whose addresses are translated: GPUDirect RDMA
// wants them as they are (NVIDIA's GPUDirect RDMA documentation, "Supported
// systems"; ROCm's installation guide, iommu=pt). On Grace the SMMU translates, and
// is made for it.
func CheckIOMMU(j *judge.Node) {
	if slices.ContainsFunc(j.Seen.Health.IOMMUs, func(s string) bool { return strings.HasPrefix(s, "smmu") || strings.HasPrefix(s, "arm-smmu") }) {
		return
	}
	gpus, nics := onBus(j)
	var bad []end
	for _, p := range slices.Concat(gpus, nics) {
		if strings.HasPrefix(p.Domain, "DMA") {
			bad = append(bad, p)
		}
	}
	if len(bad) == 0 {
		return
	}
	if len(nics) == 0 {
		j.Note("the IOMMU translates the addresses of %d GPUs (%s): copies between them may be slow", len(bad), bad[0].Domain)
		return
	}
	j.Fail("IOMMU", doIOMMU, fmt.Sprintf("/sys/bus/pci/devices/%s/iommu_group/type: %s", bad[0].Address, bad[0].Domain),
		"it translates the addresses of %d of %d GPUs and rails (%s), and GPUDirect RDMA needs them as they are", len(bad), len(gpus)+len(nics), bad[0].Domain)
}

// GPUDirect looks whether a rail can reach the memory of NVIDIA's GPUs: by
// nvidia_peermem, or by dma-buf, which the open driver offers from Linux 5.12 on.
func GPUDirect(j *judge.Node) {
	want, _ := j.Declared("nvidia")
	h := j.Seen.Health
	if want == 0 || len(computeRails(j)) == 0 || h.OpenGPU == nil || h.PeerMem {
		return
	}
	const action = "Load nvidia_peermem (modprobe nvidia_peermem; a doca driver block before the cuda one has it loaded at every boot), or take the open driver on Linux 5.12 or later."
	const evidence = "/sys/module has no nvidia_peermem"
	var major, minor int
	_, err := fmt.Sscanf(h.Kernel, "%d.%d", &major, &minor)
	switch {
	case !*h.OpenGPU:
		j.Fail("GPUDirect RDMA", action, evidence, "no NIC can reach the memory of GPUs: nvidia_peermem is not loaded, and the driver that runs is not the open one, which could do without")
	case err == nil && (major < 5 || major == 5 && minor < 12):
		j.Fail("GPUDirect RDMA", action, evidence, "no NIC can reach the memory of GPUs: nvidia_peermem is not loaded, and Linux %s is before 5.12, which could do without", h.Kernel)
	}
}
