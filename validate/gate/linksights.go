package gate

import (
	"slices"
)

// sawPCIe is how many PCIe links told their width and speed.
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

// sawBus is what a gate of how GPUs and rails are plugged in saw.
func (j *judge) sawBus() sight {
	gpus, nics := j.onBus()
	if len(gpus) == 0 || len(nics) == 0 {
		return sight{}
	}
	return saw("%d GPUs and %d rails on the PCI bus", len(gpus), len(nics))
}

// sawPath is as sawBus, where the kernel log was read: it names slow bridges.
func (j *judge) sawPath() sight {
	if s := j.sawBus(); s.saw == "" || j.seen.Kernel != nil {
		return s
	}
	return sight{gap: "the kernel log was not read"}
}

// sawACS is as sawBus, but where NICs have a path of their own to the GPU.
func (j *judge) sawACS() sight {
	if s := j.sawBus(); s.saw == "" || !j.directNIC() {
		return s
	}
	return sight{gap: "NICs with a path of their own to the GPU need ACS at some ports: `rdma_topo check` judges it"}
}

func (j *judge) sawRails() []rail {
	return slices.DeleteFunc(j.rails(), func(r rail) bool { return !slices.Contains(j.seen.Fabrics, r.nic.Fabric.Name) })
}

// sawPorts is how many rails told their ports.
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

// sawFlaps is how many rails told how often they went down.
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

// sawGPUDirect is what tells whether NICs reach the memory of GPUs.
func (j *judge) sawGPUDirect() sight {
	if want, _ := j.declared("nvidia"); want == 0 || len(j.computeRails()) == 0 {
		return sight{}
	}
	if j.seen.Health.OpenGPU == nil && !j.seen.Health.PeerMem {
		return sight{gap: "which driver runs is not known"}
	}
	return saw("the modules of the driver, and the kernel's release")
}
