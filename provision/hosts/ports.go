// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory/unit"
)

// railSet is the RDMA ports of one link layer and speed that most hosts of a cohort have
// up.
type railSet struct {
	name  string
	layer string // InfiniBand or Ethernet
	speed unit.BitRate
	pci   []string // addresses, in their order: rail 0, 1, ...
}

// pciAddress is an address that the language takes.
var pciAddress = lazyregexp.New(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// kind is the kind of fabric that the ports are on.
func (r railSet) kind() string {
	if r.layer == "InfiniBand" {
		return "infiniband"
	}
	return "roce"
}

// portSeen is how an RDMA port is on one host.
type portSeen struct {
	layer string
	speed unit.BitRate
}

// seenPorts are the RDMA ports of a host that are up, by PCI address: of a function with
// several the first.
func seenPorts(s survey) map[string]portSeen {
	ports := map[string]portSeen{}
	for _, p := range s.seen.Health.Ports {
		if _, dup := ports[p.PCI]; dup || !pciAddress.MatchString(p.PCI) || p.State != "ACTIVE" {
			continue
		}
		ports[p.PCI] = portSeen{p.Layer, speedOf(s.seen.Health, p)}
	}
	return ports
}

// speedOf is what a port carries: of Ethernet the network interface says it.
func speedOf(h wire.Health, p wire.InfiniBandPort) unit.BitRate {
	if p.Layer != "InfiniBand" {
		for _, l := range h.PCI {
			if l.Address == p.PCI && l.Bits != nil {
				return unit.BitRate(max(0, *l.Bits))
			}
		}
		return 0
	}
	number, _, _ := strings.Cut(p.Rate, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v < 0 || v > 1e6 {
		return 0
	}
	return unit.BitRate(v * 1e9)
}

// rails are the sets of ports that most hosts have.
func (c cohort) rails() []railSet {
	count := map[string]map[portSeen]int{} // by address
	for _, s := range c.members {
		for at, p := range seenPorts(s) {
			if count[at] == nil {
				count[at] = map[portSeen]int{}
			}
			count[at][p]++
		}
	}
	sets := map[portSeen][]string{}
	for _, at := range slices.Sorted(maps.Keys(count)) {
		for p, n := range count[at] {
			if c.most(n) {
				sets[p] = append(sets[p], at)
			}
		}
	}
	var list []railSet
	for p, at := range sets {
		list = append(list, railSet{name: railName(p), layer: p.layer, speed: p.speed, pci: at})
	}
	slices.SortFunc(list, func(a, b railSet) int {
		return cmp.Or(cmp.Compare(len(b.pci), len(a.pci)), strings.Compare(a.name, b.name))
	})
	return list
}

func railName(p portSeen) string {
	if p.speed == 0 {
		return slug(p.layer)
	}
	return slug(fmt.Sprintf("%s-%dg", p.layer, int64(p.speed)/1e9))
}

// otherNICs are the addresses of network functions that most hosts have, and that are no
// rails.
func (c cohort) otherNICs(rails []railSet) []string {
	count := map[string]int{}
	for _, s := range c.members {
		for _, p := range s.hw.PCI {
			if strings.HasPrefix(p.Class, "02") && pciAddress.MatchString(p.Address) {
				count[p.Address]++
			}
		}
	}
	for _, r := range rails {
		for _, at := range r.pci {
			delete(count, at)
		}
	}
	var list []string
	for _, at := range slices.Sorted(maps.Keys(count)) {
		if c.most(count[at]) {
			list = append(list, at)
		}
	}
	return list
}
