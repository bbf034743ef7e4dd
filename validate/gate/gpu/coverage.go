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
func NVIDIA(j *judge.Node, what string) judge.Coverage {
	return j.OfVendor("nvidia", "nvidia-smi", j.Seen.NVIDIA != nil, func() judge.Coverage { return judge.Covered("%s of %d GPUs", what, len(j.Seen.NVIDIA.GPUs)) })
}

// DriverCoverage is which programs answered.
func DriverCoverage(j *judge.Node) judge.Coverage {
	var notes []string
	for _, p := range []struct {
		name     string
		answered bool
	}{{"nvidia-smi", j.Seen.NVIDIA != nil}, {"amd-smi", j.Seen.AMD != nil}, {"the kernel log", j.Seen.Kernel != nil}} {
		if p.answered {
			notes = append(notes, p.name)
		}
	}
	if len(notes) == 0 {
		return judge.Coverage{Missing: "no program of the driver reported anything"}
	}
	return judge.Covered("answers of %s", strings.Join(notes, ", "))
}

// CountCoverage is how many GPUs there were to count.
func CountCoverage(j *judge.Node) judge.Coverage {
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
		return judge.Coverage{}
	}
	return judge.Covered("%d of %d GPUs on the PCI bus, compared with what the driver lists", bus, want)
}

// NVLinksCoverage is what a gate of NVLink saw.
func NVLinksCoverage(j *judge.Node, what string) judge.Coverage {
	_, interconnect := j.Declared("nvidia")
	if interconnect != "nvswitch" && interconnect != "nvlink" {
		return judge.Coverage{}
	}
	if j.Seen.Links == nil {
		return judge.Coverage{Missing: "nvidia-smi nvlink did not report"}
	}
	links := 0
	for _, g := range j.Seen.Links.GPUs {
		for _, l := range g.Links {
			if l.Active != nil {
				links++
			}
		}
	}
	return judge.Covered("%s of %d links of %d GPUs", what, links, len(j.Seen.Links.GPUs))
}

// FabricCoverage is what nvidia-smi said of the NVLink fabric.
func FabricCoverage(j *judge.Node) judge.Coverage {
	if _, interconnect := j.Declared("nvidia"); interconnect != "nvswitch" {
		return judge.Coverage{}
	}
	if l := j.Seen.NVIDIA; l != nil && inFabric(l) {
		return judge.Covered("state and health of %d GPUs in the NVLink fabric", len(l.GPUs))
	}
	return judge.Coverage{Missing: "nvidia-smi says nothing of the NVLink fabric"}
}

func inFabric(l *nvidiasmi.Log) bool {
	return slices.ContainsFunc(l.GPUs, func(g nvidiasmi.GPU) bool { return g.Fabric.State != "" })
}

// AMDMemoryCoverage is what amd-smi said of GPUs' memory.
func AMDMemoryCoverage(j *judge.Node) judge.Coverage {
	return j.OfVendor("amd", "amd-smi", j.Seen.AMD != nil, func() judge.Coverage {
		n := len(slices.DeleteFunc(slices.Clone(j.Seen.AMD.GPUs), func(g amdsmi.GPU) bool { return g.Metric == nil && g.BadPages == nil }))
		if n == 0 {
			return judge.Coverage{Missing: "amd-smi reported no error counts"}
		}
		return judge.Covered("ECC and bad pages of %d GPUs", n)
	})
}

// XGMICoverage is what amd-smi said of XGMI links.
func XGMICoverage(j *judge.Node) judge.Coverage {
	if _, interconnect := j.Declared("amd"); interconnect != "xgmi" {
		return judge.Coverage{}
	}
	if j.Seen.AMD == nil || len(j.Seen.AMD.Links) == 0 {
		return judge.Coverage{Missing: "amd-smi topology did not report"}
	}
	return judge.Covered("%d links between GPUs", len(j.Seen.AMD.Links))
}
