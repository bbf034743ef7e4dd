// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// NVIDIA is what a gate of NVIDIA's GPUs saw of them.
func NVIDIA(j *judge.Node, what string) judge.Sight {
	return j.OfVendor("nvidia", "nvidia-smi", j.Seen.NVIDIA != nil, func() judge.Sight { return judge.Saw("%s of %d GPUs", what, len(j.Seen.NVIDIA.GPUs)) })
}

// SawDriver is which programs answered.
func SawDriver(j *judge.Node) judge.Sight {
	var said []string
	for _, p := range []struct {
		name     string
		answered bool
	}{{"nvidia-smi", j.Seen.NVIDIA != nil}, {"amd-smi", j.Seen.AMD != nil}, {"the kernel log", j.Seen.Kernel != nil}} {
		if p.answered {
			said = append(said, p.name)
		}
	}
	if len(said) == 0 {
		return judge.Sight{Gap: "no program of the driver told anything"}
	}
	return judge.Saw("answers of %s", strings.Join(said, ", "))
}

// SawCount is how many GPUs there were to count.
func SawCount(j *judge.Node) judge.Sight {
	bus, want := 0, 0
	for _, vendor := range []string{"nvidia", "amd"} {
		n, _ := j.Declared(vendor)
		want += n
		for _, l := range j.Seen.Health.PCI {
			if n > 0 && judge.IsGPU(l.Class) && l.Vendor == judge.Vendors[vendor] {
				bus++
			}
		}
	}
	if want == 0 {
		return judge.Sight{}
	}
	return judge.Saw("%d of %d GPUs on the PCI bus, compared with what the driver lists", bus, want)
}

// SawNVLinks is what a gate of NVLink saw.
func SawNVLinks(j *judge.Node, what string) judge.Sight {
	_, interconnect := j.Declared("nvidia")
	if interconnect != "nvswitch" && interconnect != "nvlink" {
		return judge.Sight{}
	}
	if j.Seen.Links == nil {
		return judge.Sight{Gap: "nvidia-smi nvlink did not tell"}
	}
	links := 0
	for _, g := range j.Seen.Links.GPUs {
		for _, l := range g.Links {
			if l.Active != nil {
				links++
			}
		}
	}
	return judge.Saw("%s of %d links of %d GPUs", what, links, len(j.Seen.Links.GPUs))
}

// SawFabric is what nvidia-smi said of the NVLink fabric.
func SawFabric(j *judge.Node) judge.Sight {
	if _, interconnect := j.Declared("nvidia"); interconnect != "nvswitch" {
		return judge.Sight{}
	}
	if l := j.Seen.NVIDIA; l != nil && inFabric(l) {
		return judge.Saw("state and health of %d GPUs in the NVLink fabric", len(l.GPUs))
	}
	return judge.Sight{Gap: "nvidia-smi says nothing of the NVLink fabric"}
}

func inFabric(l *nvidiasmi.Log) bool {
	return slices.ContainsFunc(l.GPUs, func(g nvidiasmi.GPU) bool { return g.Fabric.State != "" })
}

// SawAMDMemory is what amd-smi said of GPUs' memory.
func SawAMDMemory(j *judge.Node) judge.Sight {
	return j.OfVendor("amd", "amd-smi", j.Seen.AMD != nil, func() judge.Sight {
		n := len(slices.DeleteFunc(slices.Clone(j.Seen.AMD.GPUs), func(g amdsmi.GPU) bool { return g.Metric == nil && g.BadPages == nil }))
		if n == 0 {
			return judge.Sight{Gap: "amd-smi told no error counts"}
		}
		return judge.Saw("ECC and bad pages of %d GPUs", n)
	})
}

// SawXGMI is what amd-smi said of XGMI links.
func SawXGMI(j *judge.Node) judge.Sight {
	if _, interconnect := j.Declared("amd"); interconnect != "xgmi" {
		return judge.Sight{}
	}
	if j.Seen.AMD == nil || len(j.Seen.AMD.Links) == 0 {
		return judge.Sight{Gap: "amd-smi topology did not tell"}
	}
	return judge.Saw("%d links between GPUs", len(j.Seen.AMD.Links))
}
