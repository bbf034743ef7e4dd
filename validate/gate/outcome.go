package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
)

// Outcome is what one gate makes of a node: it passes only where the gate had
// something to look at.
type Outcome struct {
	Gate    string  `json:"gate"`
	Verdict Verdict `json:"verdict"`
	Saw     string  `json:"saw,omitempty"` // what was looked at, in a few words
	Why     string  `json:"why,omitempty"` // of a verdict that is not pass
}

// Verdict is how a gate ended.
type Verdict string

// The verdicts.
const (
	Pass      Verdict = "pass"
	Fail      Verdict = "fail"
	Allowed   Verdict = "allowed"    // it failed, and the site says why that may be
	NotJudged Verdict = "not-judged" // nothing told how it is
)

// sight is what a gate had to look at. Both empty: the node has nothing of the kind.
type sight struct{ saw, gap string }

func saw(format string, args ...any) sight { return sight{saw: fmt.Sprintf(format, args...)} }

// outcome sums up the gate that has just looked.
func (j *judge) outcome(what sight, failed, let []string) Outcome {
	o := Outcome{Gate: j.gate, Verdict: Pass, Saw: what.saw}
	switch {
	case len(failed) > 0:
		o.Verdict, o.Why = Fail, strings.Join(failed, "; ")
	case len(let) > 0:
		o.Verdict, o.Why = Allowed, strings.Join(let, "; ")
	case what.saw == "":
		o.Verdict, o.Why = NotJudged, what.gap
	}
	return o
}

// nvidia is what a gate of NVIDIA's GPUs saw of them.
func (j *judge) nvidia(what string) sight {
	return j.ofVendor("nvidia", "nvidia-smi", j.seen.NVIDIA != nil, func() sight { return saw("%s of %d GPUs", what, len(j.seen.NVIDIA.GPUs)) })
}

// ofVendor is what was seen of a vendor's GPUs, where the node has some.
func (j *judge) ofVendor(vendor, program string, told bool, f func() sight) sight {
	if n, _ := j.declared(vendor); n == 0 {
		return sight{}
	}
	if !told {
		return sight{gap: program + " did not tell"}
	}
	return f()
}

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

func (j *judge) sawAMDMemory() sight {
	return j.ofVendor("amd", "amd-smi", j.seen.AMD != nil, func() sight {
		n := len(slices.DeleteFunc(slices.Clone(j.seen.AMD.GPUs), func(g amdsmi.GPU) bool { return g.Metric == nil && g.BadPages == nil }))
		if n == 0 {
			return sight{gap: "amd-smi told no error counts"}
		}
		return saw("ECC and bad pages of %d GPUs", n)
	})
}

func (j *judge) sawXGMI() sight {
	if _, interconnect := j.declared("amd"); interconnect != "xgmi" {
		return sight{}
	}
	if j.seen.AMD == nil || len(j.seen.AMD.Links) == 0 {
		return sight{gap: "amd-smi topology did not tell"}
	}
	return saw("%d links between GPUs", len(j.seen.AMD.Links))
}

func (j *judge) sawPCIe() sight {
	n := 0
	for _, l := range j.seen.Health.PCI {
		if l.Width != nil && l.MaxWidth != nil {
			n++
		}
	}
	if n == 0 {
		return sight{gap: "the kernel tells of no PCIe link"}
	}
	return saw("width, speed and errors of %d PCIe links", n)
}

func (j *judge) sawMemory() sight {
	if len(j.seen.Health.Memory) == 0 {
		return sight{gap: "the kernel has no EDAC driver for the memory controllers"}
	}
	return saw("errors of %d memory controllers", len(j.seen.Health.Memory))
}

func (j *judge) sawKernel() sight {
	if j.seen.Kernel == nil {
		return sight{gap: "the kernel log was not read"}
	}
	return saw("the kernel log since the boot")
}

// sawBus is what a gate of how GPUs and rails are plugged in saw.
func (j *judge) sawBus() sight {
	gpus, nics := j.onBus()
	if len(gpus) == 0 || len(nics) == 0 {
		return sight{}
	}
	return saw("%d GPUs and %d rails on the PCI bus", len(gpus), len(nics))
}

func (j *judge) sawPath() sight {
	if s := j.sawBus(); s.saw == "" || j.seen.Kernel != nil {
		return s
	}
	return sight{gap: "the kernel log was not read"}
}

func (j *judge) sawACS() sight {
	if s := j.sawBus(); s.saw == "" || !j.directNIC() {
		return s
	}
	return sight{gap: "NICs with a path of their own to the GPU need ACS at some ports: `rdma_topo check` judges it"}
}

func (j *judge) sawRails() []rail {
	return slices.DeleteFunc(j.rails(), func(r rail) bool { return !slices.Contains(j.seen.Fabrics, r.nic.Fabric.Name) })
}

func (j *judge) sawPorts() sight {
	all := j.sawRails()
	told := slices.DeleteFunc(slices.Clone(all), func(r rail) bool { p := j.rdma(r); return p == nil || p.State == "" })
	switch {
	case len(j.rails()) == 0:
		return sight{}
	case len(told) == 0:
		return sight{gap: "no rail is up, or the kernel does not tell of its port"}
	}
	return saw("link layer, state and rate of %d of %d rails", len(told), len(j.rails()))
}

func (j *judge) sawFlaps() sight {
	counted := 0
	for _, r := range j.sawRails() {
		l, p := j.link(r.port.PCI), j.rdma(r)
		if l != nil && l.Carriers != nil || p != nil && p.Downed != nil {
			counted++
		}
	}
	switch {
	case len(j.rails()) == 0:
		return sight{}
	case counted == 0:
		return sight{gap: "no port tells how often its link went down"}
	}
	return saw("how often %d of %d links went down", counted, len(j.rails()))
}

func (j *judge) sawGPUDirect() sight {
	if want, _ := j.declared("nvidia"); want == 0 || len(j.computeRails()) == 0 {
		return sight{}
	}
	if j.seen.Health.OpenGPU == nil && !j.seen.Health.PeerMem {
		return sight{gap: "which driver runs is not known"}
	}
	return saw("the modules of the driver, and the kernel's release")
}

func (j *judge) sawDisks() sight {
	n, read := len(j.seen.Health.Disks), 0
	for _, d := range j.seen.Health.Disks {
		if d.SMART != nil {
			read++
		}
	}
	switch {
	case n == 0:
		return sight{}
	case read == 0:
		return sight{gap: fmt.Sprintf("the health of none of %d NVMe disks was read", n)}
	}
	return saw("the SMART logs of %d of %d NVMe disks", read, n)
}

func (j *judge) sawClock() sight {
	switch t := j.seen.Time; {
	case t == nil:
		return sight{gap: "chronyd did not tell"}
	case !t.Synced:
		return sight{gap: "chronyd follows no time server"}
	}
	return saw("the clock against its time servers")
}

// requiredVersions is the gate of versions that the hardware block asks for.
const requiredVersions = "required-versions"

// OfVersions is the outcome of holding versions against those that the hardware
// block asks for; false where it asks for none.
func OfVersions(h *inventory.Hardware, read bool, faults []Fault) (Outcome, bool) {
	v := h.Versions
	if v.BMC.IsZero() && v.BIOS.IsZero() && v.HCA.IsZero() && v.GPU.IsZero() {
		return Outcome{}, false
	}
	j := &judge{gate: requiredVersions}
	what := saw("versions, against the firmware block of hardware.%s", h.Name)
	if !read {
		what = sight{gap: "the versions were not read"}
	}
	var failed []string
	for _, f := range faults {
		failed = append(failed, f.Cause)
	}
	return j.outcome(what, failed, nil), true
}
