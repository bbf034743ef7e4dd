// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/binary"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// bridge is a root port or a port of a PCIe switch.
type bridge struct {
	dir  string // in sysfs
	kind byte   // device type of its PCIe capability: 4 root port, 5 upstream, 6 downstream
}

// Device types of bridges (PCI Express Base Specification, 7.5.3.2).
const (
	rootPort       = 4
	upstreamPort   = 5
	downstreamPort = 6
)

// partsOfSwitch is how many GPUs, and as many rails, stand below one PCIe switch: as
// on HGX boards.
const partsOfSwitch = 2

// addSwitches puts GPUs and the rails that they speak over below PCIe switches, each
// GPU beside a rail, as HGX boards and those of MI300X have them. Grace has none.
// Switches take addresses that are left; their buses are not in the order in which a
// firmware counts.
func (s *shape) addSwitches(a *addresses) {
	var gpus []int
	for i, f := range s.functions {
		if isGPU(f) {
			gpus = append(gpus, i)
		}
	}
	rails := s.computeRails(len(gpus))
	if len(rails) == 0 || strings.Contains(s.hardware.CPU.Model, "Grace") {
		return
	}
	beside := func(i int) []int { // the rails that are nearest to a GPU, each once
		var list []int
		for r := range rails {
			if r*len(gpus)/len(rails) == i {
				list = append(list, rails[r])
			}
		}
		return list
	}
	for first := 0; first < len(gpus); first += partsOfSwitch {
		root := pciDir(siblingAddress(a.next(), 1))
		up := path.Join(root, a.next())
		s.bridges = append(s.bridges, bridge{root, rootPort}, bridge{up, upstreamPort})
		bus, slot := a.next(), 0
		for i := first; i < min(first+partsOfSwitch, len(gpus)); i++ {
			for _, f := range append([]int{gpus[i]}, beside(i)...) {
				down := path.Join(up, siblingAddress(bus, slot))
				slot++
				s.bridges = append(s.bridges, bridge{down, downstreamPort})
				s.parent[s.functions[f].address], s.numa[s.functions[f].address] = down, i*s.sockets/len(gpus)
			}
		}
	}
}

// siblingAddress returns the address of another device on the bus of one.
func siblingAddress(address string, device int) string {
	bus, _, _ := cutLast(address, ":")
	return fmt.Sprintf("%s:%02x.0", bus, device)
}

// computeRails are the functions of the ports that GPUs speak over: of the one block
// on a fabric that has most of them, and one for every two GPUs.
func (s *shape) computeRails(gpus int) []int {
	of := map[string][]int{}
	most := ""
	for _, p := range s.ports {
		n, _ := s.hardware.NIC(p.nic)
		if n == nil || n.Fabric == nil || p.soft {
			continue
		}
		of[p.nic] = append(of[p.nic], p.function)
		if len(of[p.nic]) > len(of[most]) {
			most = p.nic
		}
	}
	if gpus == 0 || 2*len(of[most]) < gpus {
		return nil
	}
	return of[most]
}

// dirOf is where a function stands in sysfs.
func (s *shape) dirOf(address string) string {
	if up := s.parent[address]; up != "" {
		return path.Join(up, address)
	}
	return pciDir(address)
}

// addBridges adds what the kernel shows of bridges.
func (s *shape) addBridges(t *tree) {
	for _, x := range s.bridges {
		b := branch{tree: t, dir: x.dir}
		b.text("class", "0x060400")
		b.text("vendor", "0x1000") // Broadcom, PEX89000
		b.text("device", "0xc030")
		for _, what := range []string{"current", "max"} {
			b.text(what+"_link_width", "16")
			b.text(what+"_link_speed", "32.0 GT/s PCIe")
		}
		b.attr("config", func(k *Kernel) (string, error) { return string(x.config(k.node.redirects())), nil })
		branch{tree: t, dir: "sys/bus/pci/devices"}.link(path.Base(x.dir), x.dir)
	}
}

// config is the configuration space of a bridge, as far as anything is in it: the
// PCIe capability, and ACS, which sends what goes between ports to the CPU when it
// is on.
func (x bridge) config(redirects bool) []byte {
	const first, pcie, acs = 0x34, 0x68, 0x100
	b := make([]byte, 4096)
	b[first], b[pcie], b[pcie+2] = pcie, 0x10, x.kind<<4|2
	if x.kind != upstreamPort {
		binary.LittleEndian.PutUint32(b[acs:], 1<<16|0x000d)
	}
	if redirects && x.kind == downstreamPort {
		binary.LittleEndian.PutUint16(b[acs+6:], 0x001d) // as Linux sets it for an IOMMU
	}
	return b
}

// redirects reports whether ACS is on.
func (n *Node) redirects() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acs
}

// RedirectPCI turns ACS on at the ports of the PCIe switches, or off: a setting of
// the BIOS.
func (n *Node) RedirectPCI(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acs = on
}

// numaOf is the NUMA node of a function, as sysfs has it.
func (s *shape) numaOf(address string) string { return strconv.Itoa(s.numa[address]) }
