// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"

	"github.com/ironrail/ironrail/validate/gate/judge"
)

// PCIeCoverage is how many PCIe links told their width and speed.
func PCIeCoverage(j *judge.Node) judge.Coverage {
	n := 0
	for _, l := range j.Seen.Health.PCI {
		if l.Width != nil && l.MaxWidth != nil {
			n++
		}
	}
	if n == 0 {
		return judge.Coverage{Missing: "the kernel tells of no PCIe link"}
	}
	return judge.Covered("width, speed and errors of %d PCIe links", n)
}

// BusCoverage is what a gate of how GPUs and rails are plugged in saw.
func BusCoverage(j *judge.Node) judge.Coverage {
	gpus, nics := onBus(j)
	if len(gpus) == 0 || len(nics) == 0 {
		return judge.Coverage{}
	}
	return judge.Covered("%d GPUs and %d rails on the PCI bus", len(gpus), len(nics))
}

// PathCoverage is as BusCoverage, where the kernel log was read: it names slow bridges.
func PathCoverage(j *judge.Node) judge.Coverage {
	if s := BusCoverage(j); s.Covered == "" || j.Seen.Kernel != nil {
		return s
	}
	return judge.Coverage{Missing: "the kernel log was not read"}
}

// ACSCoverage is as BusCoverage, but where NICs have a path of their own to the GPU.
func ACSCoverage(j *judge.Node) judge.Coverage {
	if s := BusCoverage(j); s.Covered == "" || !directNIC(j) {
		return s
	}
	return judge.Coverage{Missing: "NICs with a path of their own to the GPU need ACS at some ports: `rdma_topo check` judges it"}
}

func railsRead(j *judge.Node) []rail {
	return slices.DeleteFunc(listRails(j), func(r rail) bool { return !slices.Contains(j.Seen.Fabrics, r.nic.Fabric.Name) })
}

// PortsCoverage is how many rails told their ports.
func PortsCoverage(j *judge.Node) judge.Coverage {
	all := railsRead(j)
	reported := slices.DeleteFunc(slices.Clone(all), func(r rail) bool { p := rdmaPort(j, r); return p == nil || p.State == "" })
	switch {
	case len(listRails(j)) == 0:
		return judge.Coverage{}
	case len(reported) == 0:
		return judge.Coverage{Missing: "no rail is up, or the kernel does not report of its port"}
	}
	return judge.Covered("link layer, state and rate of %d of %d rails", len(reported), len(listRails(j)))
}

// FlapsCoverage is how many rails told how often they went down.
func FlapsCoverage(j *judge.Node) judge.Coverage {
	counted := 0
	for _, r := range railsRead(j) {
		l, p := linkAt(j, r.port.PCI), rdmaPort(j, r)
		if l != nil && l.Carriers != nil || p != nil && p.Downed != nil {
			counted++
		}
	}
	switch {
	case len(listRails(j)) == 0:
		return judge.Coverage{}
	case counted == 0:
		return judge.Coverage{Missing: "no port tells how often its link went down"}
	}
	return judge.Covered("how often %d of %d links went down", counted, len(listRails(j)))
}

// GPUDirectCoverage is what tells whether NICs reach the memory of GPUs.
func GPUDirectCoverage(j *judge.Node) judge.Coverage {
	if want, _ := j.Declared("nvidia"); want == 0 || len(computeRails(j)) == 0 {
		return judge.Coverage{}
	}
	if j.Seen.Health.OpenGPU == nil && !j.Seen.Health.PeerMem {
		return judge.Coverage{Missing: "which driver runs is not known"}
	}
	return judge.Covered("the modules of the driver, and the kernel's release")
}
