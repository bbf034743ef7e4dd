package gate

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
)

// nvidia is what a gate of NVIDIA's GPUs saw of them.
func (j *judge) nvidia(what string) sight {
	return j.ofVendor("nvidia", "nvidia-smi", j.seen.NVIDIA != nil, func() sight { return saw("%s of %d GPUs", what, len(j.seen.NVIDIA.GPUs)) })
}

// sawDriver is which programs answered.
func (j *judge) sawDriver() sight {
	var said []string
	for _, p := range []struct {
		name string
		told bool
	}{{"nvidia-smi", j.seen.NVIDIA != nil}, {"amd-smi", j.seen.AMD != nil}, {"the kernel log", j.seen.Kernel != nil}} {
		if p.told {
			said = append(said, p.name)
		}
	}
	if len(said) == 0 {
		return sight{gap: "no program of the driver told anything"}
	}
	return saw("answers of %s", strings.Join(said, ", "))
}

// sawCount is how many GPUs there were to count.
func (j *judge) sawCount() sight {
	bus, want := 0, 0
	for _, vendor := range []string{"nvidia", "amd"} {
		n, _ := j.declared(vendor)
		want += n
		for _, l := range j.seen.Health.PCI {
			if n > 0 && isGPU(l.Class) && l.Vendor == vendors[vendor] {
				bus++
			}
		}
	}
	if want == 0 {
		return sight{}
	}
	return saw("%d of %d GPUs on the PCI bus, compared with what the driver lists", bus, want)
}

// sawNVLinks is what a gate of NVLink saw.
func (j *judge) sawNVLinks(what string) sight {
	_, interconnect := j.declared("nvidia")
	if interconnect != "nvswitch" && interconnect != "nvlink" {
		return sight{}
	}
	if j.seen.Links == nil {
		return sight{gap: "nvidia-smi nvlink did not tell"}
	}
	links := 0
	for _, g := range j.seen.Links.GPUs {
		for _, l := range g.Links {
			if l.Active != nil {
				links++
			}
		}
	}
	return saw("%s of %d links of %d GPUs", what, links, len(j.seen.Links.GPUs))
}

// sawFabric is what nvidia-smi said of the NVLink fabric.
func (j *judge) sawFabric() sight {
	if _, interconnect := j.declared("nvidia"); interconnect != "nvswitch" {
		return sight{}
	}
	if l := j.seen.NVIDIA; l != nil && inFabric(l) {
		return saw("state and health of %d GPUs in the NVLink fabric", len(l.GPUs))
	}
	return sight{gap: "nvidia-smi says nothing of the NVLink fabric"}
}

func inFabric(l *nvidiasmi.Log) bool {
	return slices.ContainsFunc(l.GPUs, func(g nvidiasmi.GPU) bool { return g.Fabric.State != "" })
}

// sawAMDMemory is what amd-smi said of GPUs' memory.
func (j *judge) sawAMDMemory() sight {
	return j.ofVendor("amd", "amd-smi", j.seen.AMD != nil, func() sight {
		n := len(slices.DeleteFunc(slices.Clone(j.seen.AMD.GPUs), func(g amdsmi.GPU) bool { return g.Metric == nil && g.BadPages == nil }))
		if n == 0 {
			return sight{gap: "amd-smi told no error counts"}
		}
		return saw("ECC and bad pages of %d GPUs", n)
	})
}

// sawXGMI is what amd-smi said of XGMI links.
func (j *judge) sawXGMI() sight {
	if _, interconnect := j.declared("amd"); interconnect != "xgmi" {
		return sight{}
	}
	if j.seen.AMD == nil || len(j.seen.AMD.Links) == 0 {
		return sight{gap: "amd-smi topology did not tell"}
	}
	return saw("%d links between GPUs", len(j.seen.AMD.Links))
}
