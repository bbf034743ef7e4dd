// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"

	"github.com/ironrail/ironrail/validate/gate/judge"
)

// SawPCIe is how many PCIe links told their width and speed.
func SawPCIe(j *judge.Node) judge.Sight {
	n := 0
	for _, l := range j.Seen.Health.PCI {
		if l.Width != nil && l.MaxWidth != nil {
			n++
		}
	}
	if n == 0 {
		return judge.Sight{Gap: "the kernel tells of no PCIe link"}
	}
	return judge.Saw("width, speed and errors of %d PCIe links", n)
}

// SawBus is what a gate of how GPUs and rails are plugged in saw.
func SawBus(j *judge.Node) judge.Sight {
	gpus, nics := onBus(j)
	if len(gpus) == 0 || len(nics) == 0 {
		return judge.Sight{}
	}
	return judge.Saw("%d GPUs and %d rails on the PCI bus", len(gpus), len(nics))
}

// SawPath is as sawBus, where the kernel log was read: it names slow bridges.
func SawPath(j *judge.Node) judge.Sight {
	if s := SawBus(j); s.Saw == "" || j.Seen.Kernel != nil {
		return s
	}
	return judge.Sight{Gap: "the kernel log was not read"}
}

// SawACS is as sawBus, but where NICs have a path of their own to the GPU.
func SawACS(j *judge.Node) judge.Sight {
	if s := SawBus(j); s.Saw == "" || !directNIC(j) {
		return s
	}
	return judge.Sight{Gap: "NICs with a path of their own to the GPU need ACS at some ports: `rdma_topo check` judges it"}
}

func sawRails(j *judge.Node) []rail {
	return slices.DeleteFunc(listRails(j), func(r rail) bool { return !slices.Contains(j.Seen.Fabrics, r.nic.Fabric.Name) })
}

// SawPorts is how many rails told their ports.
func SawPorts(j *judge.Node) judge.Sight {
	all := sawRails(j)
	told := slices.DeleteFunc(slices.Clone(all), func(r rail) bool { p := rdmaPort(j, r); return p == nil || p.State == "" })
	switch {
	case len(listRails(j)) == 0:
		return judge.Sight{}
	case len(told) == 0:
		return judge.Sight{Gap: "no rail is up, or the kernel does not tell of its port"}
	}
	return judge.Saw("link layer, state and rate of %d of %d rails", len(told), len(listRails(j)))
}

// SawFlaps is how many rails told how often they went down.
func SawFlaps(j *judge.Node) judge.Sight {
	counted := 0
	for _, r := range sawRails(j) {
		l, p := linkAt(j, r.port.PCI), rdmaPort(j, r)
		if l != nil && l.Carriers != nil || p != nil && p.Downed != nil {
			counted++
		}
	}
	switch {
	case len(listRails(j)) == 0:
		return judge.Sight{}
	case counted == 0:
		return judge.Sight{Gap: "no port tells how often its link went down"}
	}
	return judge.Saw("how often %d of %d links went down", counted, len(listRails(j)))
}

// SawGPUDirect is what tells whether NICs reach the memory of GPUs.
func SawGPUDirect(j *judge.Node) judge.Sight {
	if want, _ := j.Declared("nvidia"); want == 0 || len(computeRails(j)) == 0 {
		return judge.Sight{}
	}
	if j.Seen.Health.OpenGPU == nil && !j.Seen.Health.PeerMem {
		return judge.Sight{Gap: "which driver runs is not known"}
	}
	return judge.Saw("the modules of the driver, and the kernel's release")
}
