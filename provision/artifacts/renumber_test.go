// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/lock"
	"github.com/ironrail/ironrail/provision/addresses"
)

// changing is what every site of the test has: one fabric whose addresses follow
// from positions, and one whose addresses are allocated.
const changing = `
site "t" {}
network "boot" {
  cidr = "10.0.0.0/16"
  dhcp { mode = "authoritative" }
}
network "oob" { cidr = "10.1.0.0/16" }
bmc "b" {
  protocol = "ipmi"
  network  = network.oob
  username = "admin"
  password = secret("env:PW")
}
hardware "h" {
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  hca "g" {
    fabric    = fabric.compute
    speed     = "400Gbps"
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:00:04.0" }, { rail = 1, pci = "0000:00:05.0" }]
  }
  nic "s" {
    fabric = fabric.storage
    ports  = [{ rail = 0, pci = "0000:00:06.0" }]
  }
}
image "debian" "os" { release = "bookworm" }
fabric "roce" "compute" {
  rails      = 2
  link       = "400Gbps"
  topology   = "rail-optimized"
  unit_size  = 8
  addressing = "point-to-point"
  cidr       = "10.200.0.0/16"
  switch {
    ports = 16
    speed = "400Gbps"
  }
}
fabric "roce" "storage" {
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.201.0.0/16"
}
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
}
`

// place is where a node stands.
type spot struct{ rack, unit int }

// hall is a site that changes: racks by number, nodes by name.
type hall struct {
	racks map[int]string
	nodes map[string]spot
	next  int // number of the next name
}

// change adds, removes and moves racks and nodes. It returns the nodes that stand
// elsewhere now.
func (h *hall) change(r *rand.Rand) map[string]bool {
	moved := map[string]bool{}
	for range 1 + r.IntN(4) {
		names := slices.Sorted(maps.Keys(h.nodes))
		racks := slices.Sorted(maps.Keys(h.racks))
		switch r.IntN(6) {
		case 0:
			if n := 1 + r.IntN(40); h.racks[n] == "" && len(racks) < 12 {
				h.racks[n] = fmt.Sprintf("k%c%d", 'a'+rune(r.IntN(26)), n) // another order by name than by number
			}
		case 1:
			if len(racks) > 2 && r.IntN(3) == 0 {
				gone := racks[r.IntN(len(racks))]
				delete(h.racks, gone)
				maps.DeleteFunc(h.nodes, func(_ string, s spot) bool { return s.rack == gone })
			}
		case 2:
			if len(names) > 3 {
				delete(h.nodes, names[r.IntN(len(names))])
			}
		case 3:
			if to := (spot{racks[r.IntN(len(racks))], 1 + r.IntN(20)}); len(names) > 0 && h.free(to) {
				name := names[r.IntN(len(names))]
				h.nodes[name], moved[name] = to, true
			}
		default:
			for range 1 + r.IntN(4) {
				if to := (spot{racks[r.IntN(len(racks))], 1 + r.IntN(20)}); h.free(to) && len(names) < 60 {
					h.nodes[fmt.Sprintf("%c-n%d", 'a'+rune(r.IntN(26)), h.next)] = to
					h.next++
				}
			}
		}
	}
	return moved
}

func (h *hall) free(s spot) bool {
	for _, at := range h.nodes {
		if at == s {
			return false
		}
	}
	return h.racks[s.rack] != ""
}

// files writes the site, in another order each time.
func (h *hall) files(r *rand.Rand, locked []byte) fstest.MapFS {
	var blocks []string
	for number, name := range h.racks {
		var b strings.Builder
		fmt.Fprintf(&b, "rack %q {\n  number = %d\n  units = 48\n", name, number)
		var nodes []string
		for n, at := range h.nodes {
			if at.rack == number {
				nodes = append(nodes, fmt.Sprintf("  node %q {\n    role = role.w\n    unit = %d\n  }\n", n, at.unit))
			}
		}
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		blocks = append(blocks, b.String()+strings.Join(nodes, "")+"}\n")
	}
	fsys := fstest.MapFS{"site.hcl": {Data: []byte(changing)}, lock.File: {Data: locked}}
	for i, b := range blocks {
		name := fmt.Sprintf("racks%d.hcl", (i+r.IntN(3))%4)
		if fsys[name] == nil {
			fsys[name] = &fstest.MapFile{}
		}
		fsys[name].Data = append(fsys[name].Data, b...)
	}
	return fsys
}

// ofNodes are the addresses of each node, by name: "n1 boot", "n1/g/0".
func ofNodes(inv *inventory.Inventory, links []*roce.Links) map[string]map[string]netip.Prefix {
	all := map[string]map[string]netip.Prefix{}
	for _, e := range addresses.List(inv, links) {
		if e.Node == "" {
			continue
		}
		if all[e.Node] == nil {
			all[e.Node] = map[string]netip.Prefix{}
		}
		all[e.Node][string(e.Kind)+" "+e.Port] = e.Address
	}
	return all
}

// TestNodesAreNeverRenumbered: nodes and racks come, go and move, files are
// written in other orders; no address of any other node changes, those of links
// not even of the node that moves, none is there twice, and each is in its part.
func TestNodesAreNeverRenumbered(t *testing.T) {
	t.Parallel()
	kinds := inventory.DefaultKinds()
	spec := kinds.Fabric[roce.Name]
	spec.Design, spec.Check = roce.Design, roce.Check
	kinds.Fabric[roce.Name] = spec
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		h := &hall{racks: map[int]string{1: "k1", 7: "k7"}, nodes: map[string]spot{"n1": {1, 1}, "n2": {1, 3}, "n3": {7, 1}}}
		text := (&lock.Lock{}).Bytes()
		before := map[string]map[string]netip.Prefix{}
		for step := range 12 {
			moved := map[string]bool{}
			if step > 0 {
				moved = h.change(r)
			}
			inv, diags, _ := inventory.LoadFS(h.files(r, text), inventory.Options{Kinds: &kinds, Checks: []inventory.Check{CheckLock}})
			for _, d := range diags {
				if strings.HasPrefix(d.Check, "lock.") && d.Check != "lock.missing" && d.Check != "lock.stale" || !inventory.Complete(diags) {
					t.Fatalf("seed %d step %d: %+v", seed, step, d)
				}
			}
			links := roce.Addresses(inv)
			now := ofNodes(inv, links)
			for node, has := range now {
				if len(has) != 5 {
					t.Fatalf("seed %d step %d: %s has %v", seed, step, node, has)
				}
				for what, a := range has {
					was, known := before[node][what]
					stays := !moved[node] || strings.HasPrefix(what, "rail ") && strings.Contains(what, "/g/")
					if known && stays && was != a {
						t.Fatalf("seed %d step %d: %s of %s was %s and is %s", seed, step, what, node, was, a)
					}
				}
				before[node] = has
			}
			once(t, inv, links)
			u := LockUpdate{Lock: &lock.Lock{}}
			u.addresses(inv, links, LockOptions{})
			text = u.Lock.Bytes()
		}
	}
}

// once reports addresses that two things have, and those outside of their part.
func once(t *testing.T, inv *inventory.Inventory, links []*roce.Links) {
	t.Helper()
	seen := map[netip.Addr]string{}
	for _, e := range addresses.List(inv, links) {
		if other, twice := seen[e.Address.Addr()]; twice {
			t.Fatalf("%s is of %s and of %s", e.Address, other, e.Name)
		}
		seen[e.Address.Addr()] = e.Name
	}
	for _, l := range links {
		for i, w := range l.Wants {
			if p := l.Allocation.Prefixes[i]; !l.Pools[w.Pool].Prefix.Contains(p.Addr()) {
				t.Fatalf("%s of %s is not in %s", p, w.Owner, l.Pools[w.Pool].Prefix)
			}
		}
	}
}
