// SPDX-License-Identifier: Apache-2.0

// Package bought holds what a node is made of against its hardware block: models of CPUs, GPUs
// and NICs, memory and PCIe generation of GPUs, speed and MTU of network ports. Tables of models say what
// a name and a PCI id stand for; what is in none of them is not judged here, and compared
// with the other nodes of its role.
package bought

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// action is what to do about a part that is not what a block says.
func action(word, block string, at hcl.Range) string {
	place := ""
	if at.Filename != "" {
		place = fmt.Sprintf(" at %s:%d", at.Filename, at.Start.Line)
	}
	return fmt.Sprintf("Compare the part's label with the order: have it exchanged; or correct %s of hardware.%s%s, and apply again.", word, block, place)
}

// Declared is what a hardware block says of parts and is compared here, in words: what a step
// that has compared them depends on.
func Declared(h *inventory.Hardware) string {
	var list []string
	if h.CPU.Model != "" {
		list = append(list, "cpu "+h.CPU.Model)
	}
	for _, g := range h.GPUs {
		if g.Memory > 0 {
			list = append(list, fmt.Sprintf("%s of %s", g.Memory, g.Model))
		}
	}
	for i := range h.NICs {
		n := &h.NICs[i]
		text := n.Model
		if n.Network != nil && n.Speed > 0 {
			text += " " + n.Speed.String()
		}
		if mtu, _ := mtuOf(n); mtu > 0 {
			text += fmt.Sprintf(" mtu %d", mtu)
		}
		if text = strings.TrimSpace(text); text != "" {
			list = append(list, n.Name+" "+text)
		}
	}
	return strings.Join(list, ", ")
}

// CheckCPU holds the CPUs' name against `model` of the cpu block.
func CheckCPU(j *judge.Node) {
	want, is := j.Hardware.CPU.Model, j.Seen.Health.CPU.Model
	if same, known := SameCPU(want, is); known && !same {
		j.Fail("CPU", action("model of cpu", j.Hardware.Name, j.Hardware.CPU.Decl), "/proc/cpuinfo: model name: "+is, "it is %s, and hardware.%s says %s", is, j.Hardware.Name, want)
	}
}

// CPUCoverage is what was read of the CPUs.
func CPUCoverage(j *judge.Node) judge.Coverage {
	want, is := j.Hardware.CPU.Model, j.Seen.Health.CPU.Model
	if want == "" {
		return judge.Coverage{}
	}
	if _, known := SameCPU(want, is); !known {
		return judge.Coverage{Missing: fmt.Sprintf("the kernel calls the CPU %q, which cannot be compared with %q", is, want)}
	}
	return judge.Covered("the CPUs, which the kernel calls %s", is)
}

// gpu is one GPU as the bus and its driver show it.
type gpu struct {
	link   wire.PCILink
	name   string  // of the driver; empty: it did not say
	memory float64 // bytes; 0: the same
}

func (g gpu) id() string { return g.link.Vendor + ":" + g.link.Device }

const mebi = 1 << 20

// gpusOf lists the GPUs of a vendor that are on the bus.
func gpusOf(j *judge.Node, vendor string) (list []gpu) {
	for _, l := range j.Seen.Health.PCI {
		if !judge.IsGPU(l.Class) || l.Vendor != judge.Vendors[vendor] {
			continue
		}
		g := gpu{link: l}
		if j.Seen.NVIDIA != nil {
			for _, n := range j.Seen.NVIDIA.GPUs {
				if n.BusID == l.Address && n.Memory.Total != nil {
					g.name, g.memory = n.Name, *n.Memory.Total*mebi
				}
			}
		}
		if j.Seen.AMD != nil {
			for _, n := range j.Seen.AMD.GPUs {
				if s := n.Static; n.BDF == l.Address && s != nil {
					g.name = cmp.Or(s.ProductName, s.Name, s.Model)
					if s.VRAM != nil {
						g.memory = *s.VRAM * mebi // amd-smi calls MiB MB
					}
				}
			}
		}
		list = append(list, g)
	}
	return list
}

// eachGPU finds what is wrong with GPUs of the only block of their vendor: where it is the same with all
// of them, one fault of the GPUs says it.
func eachGPU(j *judge.Node, wrong func(want inventory.GPU, g gpu) (cause, evidence string)) {
	of := map[string]int{}
	for _, want := range j.Hardware.GPUs {
		of[want.Vendor]++
	}
	for _, want := range j.Hardware.GPUs {
		if of[want.Vendor] > 1 { // which of them is of which block is not said
			continue
		}
		do := action("gpu", j.Hardware.Name, want.Decl)
		list := gpusOf(j, want.Vendor)
		if cause, evidence, all := ofAll(want, list, wrong); all {
			j.Fail("GPUs", do, evidence, "all %d alike: %s", len(list), cause)
			continue
		}
		for _, g := range list {
			if cause, evidence := wrong(want, g); cause != "" {
				j.Fail(j.Part(g.link.Address), do, evidence, "%s", cause)
			}
		}
	}
}

// ofAll reports whether the same is wrong with all of several GPUs, and what.
func ofAll(want inventory.GPU, list []gpu, wrong func(inventory.GPU, gpu) (cause, evidence string)) (cause, evidence string, all bool) {
	for i, g := range list {
		c, e := wrong(want, g)
		if c == "" || i > 0 && c != cause {
			return "", "", false
		}
		cause, evidence = c, e
	}
	return cause, evidence, len(list) > 1
}

// countGPUs counts the GPUs of all blocks that something is known of.
func countGPUs(j *judge.Node, known func(want inventory.GPU, g gpu) bool) (n int) {
	for _, want := range j.Hardware.GPUs {
		for _, g := range gpusOf(j, want.Vendor) {
			if known(want, g) {
				n++
			}
		}
	}
	return n
}

// otherModel is the name of another model that a GPU says that it is: to its driver, or by its
// PCI id. Empty: it is that of its block, as far as is known.
func otherModel(want inventory.GPU, g gpu) string {
	if same, known := SameGPU(want.Model, g.name); known && !same {
		return g.name
	}
	model := gpuIDs[g.id()]
	if word, _ := modelWords(want.Model); model != "" && word != "" && word != model {
		return model
	}
	return ""
}

// CheckGPUModel holds the name that the driver has for each GPU, and its PCI id, against
// `model` of the gpu block.
func CheckGPUModel(j *judge.Node) {
	eachGPU(j, func(want inventory.GPU, g gpu) (string, string) {
		switch other := otherModel(want, g); other {
		case "":
			return "", ""
		case g.name:
			return fmt.Sprintf("its driver calls it %s, and hardware.%s says %s", other, j.Hardware.Name, want.Model), "product name: " + other
		default:
			return fmt.Sprintf("its PCI id %s is that of %s, and hardware.%s says %s", g.id(), other, j.Hardware.Name, want.Model), "/sys/bus/pci/devices/" + g.link.Address + ": " + g.id()
		}
	})
}

// GPUModelCoverage is how many GPUs could be compared with their block.
func GPUModelCoverage(j *judge.Node) judge.Coverage {
	if j.Hardware.GPUCount() == 0 {
		return judge.Coverage{}
	}
	n := countGPUs(j, func(want inventory.GPU, g gpu) bool {
		word, _ := modelWords(want.Model)
		_, known := SameGPU(want.Model, g.name)
		return known || word != "" && gpuIDs[g.id()] != ""
	})
	if n == 0 {
		return judge.Coverage{Missing: "no GPU has a name or a PCI id that can be compared with its block"}
	}
	return judge.Covered("names and PCI ids of %d GPUs", n)
}

// memoryShare is the part of a GPU's memory that its driver shows at least: ECC and firmware
// take some, and makers count GB or GiB. One stack of eight is more than what is left.
const memoryShare = 0.9

// memoryOf is the memory that a GPU must have, bytes, and who says so.
func memoryOf(h *inventory.Hardware, want inventory.GPU, g gpu) (least float64, source string) {
	if want.Memory > 0 {
		return float64(want.Memory), fmt.Sprintf("hardware.%s says %s", h.Name, want.Memory)
	}
	model, memory := modelWords(want.Model)
	if memory == "" && !strings.HasPrefix(model, "G") {
		_, memory = modelWords(g.name)
	}
	var gb float64
	if _, err := fmt.Sscanf(memory, "%fGB", &gb); err == nil && gb > 0 {
		return gb * 1e9, "its name says " + memory
	}
	m := gpuModels[model]
	return m.memory, fmt.Sprintf("%s has %g GB (%s)", model, m.memory/1e9, m.source)
}

// CheckGPUSize holds the memory of each GPU against that of its block, or else of its model.
func CheckGPUSize(j *judge.Node) {
	eachGPU(j, func(want inventory.GPU, g gpu) (string, string) {
		least, source := memoryOf(j.Hardware, want, g)
		if least == 0 || g.memory == 0 || g.memory >= memoryShare*least || otherModel(want, g) != "" {
			return "", ""
		}
		return fmt.Sprintf("it has %.1f GB of memory, and %s", g.memory/1e9, source), fmt.Sprintf("memory as its driver shows it: %.0f MiB", g.memory/mebi)
	})
}

// GPUSizeCoverage is how many GPUs report their memory.
func GPUSizeCoverage(j *judge.Node) judge.Coverage {
	n := countGPUs(j, func(want inventory.GPU, g gpu) bool {
		least, _ := memoryOf(j.Hardware, want, g)
		return least > 0 && g.memory > 0
	})
	switch {
	case j.Hardware.GPUCount() == 0:
		return judge.Coverage{}
	case n == 0:
		return judge.Coverage{Missing: "no GPU reports its memory, or nothing is known to compare it with"}
	}
	return judge.Covered("memory of %d GPUs", n)
}

// CheckGeneration holds the PCIe speed that each GPU can against that of its model.
func CheckGeneration(j *judge.Node) {
	eachGPU(j, func(want inventory.GPU, g gpu) (string, string) {
		model, _ := modelWords(want.Model)
		m := gpuModels[model]
		if m.speed == 0 || otherModel(want, g) != "" || g.link.MaxSpeed == nil || *g.link.MaxSpeed >= m.speed {
			return "", ""
		}
		return fmt.Sprintf("its PCIe link can %g GT/s, and that of %s %g GT/s (%s)", *g.link.MaxSpeed, model, m.speed, m.source),
			fmt.Sprintf("/sys/bus/pci/devices/%s: max_link_speed %g GT/s", g.link.Address, *g.link.MaxSpeed)
	})
}

// GenerationCoverage is how many GPUs' links are those of models that are known.
func GenerationCoverage(j *judge.Node) judge.Coverage {
	n := countGPUs(j, func(want inventory.GPU, g gpu) bool {
		model, _ := modelWords(want.Model)
		return gpuModels[model].speed > 0 && g.link.MaxSpeed != nil
	})
	if n == 0 {
		return judge.Coverage{}
	}
	return judge.Covered("PCIe links of %d GPUs", n)
}
