// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/services"
)

// Setting is a setting of the language that this version does nothing with. Those that
// change what the site gets in security or network are refused by a plan: without
// them the nodes would be others than those asked for. The others only tune, order or
// describe.
type Setting struct {
	Kind  Kind   // Refused or NoEffect
	Block string // kind of block that it stands in
	Name  string // of the attribute or block within, such as "dhcp.pool"; "": the block itself
	Text  string // what is missing, and what to do

	given func(*inventory.Inventory) []given
}

// given is one place where a setting is given.
type given struct {
	name   string // of the block
	phrase string // the setting with its block: "secure_boot of hardware h"
	at     hcl.Range
	uses   func(*inventory.Node) bool
	nodes  int // that it concerns, where uses is nil
}

// Settings returns the table of settings that this version does nothing with.
func Settings() []Setting {
	return []Setting{
		{NoEffect, "network", "cidr6", "no node has an address on this network, and BMCs, PDUs and switches have of it what is written alone.", networks("cidr6", func(inv *inventory.Inventory, n *inventory.Network) bool {
			return n.CIDR6.IsValid() && !slices.ContainsFunc(inv.Nodes, func(node *inventory.Node) bool {
				return node.Address6.IsValid() && node.BootNetwork == n || slices.ContainsFunc(node.Tagged, func(t inventory.TaggedNetwork) bool { return t.Network == n && t.Address6.IsValid() })
			})
		})},
		{NoEffect, "network", "mtu", "no port of a node is on this network, and BMCs, PDUs and switches keep the MTU that they have.", networks("mtu", func(inv *inventory.Inventory, n *inventory.Network) bool {
			return n.MTU != 0 && n.MTU != defaultMTU && !hasPorts(inv, n)
		})},
		{Refused, "network", "dhcp.pool", `addresses are given from a pool of IPv4 on networks with mode = "authoritative" alone. Remove it, or take the other server off this network.`, dhcp("pool", func(_ *inventory.Inventory, n *inventory.Network) bool {
			return n.DHCP.Pool.First.IsValid() && (n.DHCP.Mode != inventory.DHCPAuthoritative || !n.DHCP.Pool.First.Is4())
		})},
		// Where the files have no controller yet, nobody knows which networks it will be on.
		{NoEffect, "network", "dhcp", "this controller is not on it, and neither a gateway nor relays are given that could pass requests on.", dhcp("", func(inv *inventory.Inventory, n *inventory.Network) bool {
			return len(inv.Controllers) > 0 && n.DHCP.Mode != inventory.DHCPOff && !services.IsAnswered(inv, n)
		})},
		{Refused, "bmc", "factory", "nobody logs in with the account as delivered, and it is not changed. Make the account of username on the BMCs, and remove the block.", bmcs("factory", func(b *inventory.BMCProfile) bool { return b.FactoryUsername != "" })},
		{NoEffect, "bmc", "attach", "the BMC is spoken to as one with a port of its own.", bmcs("attach", func(b *inventory.BMCProfile) bool { return b.Attach == "shared" })},
		{NoEffect, "bmc", "factory_password", "it is not read.", factoryPasswords},
		{Refused, "hardware", "secure_boot", "signed loaders and kernels are those that packages of a distribution bring. Give these nodes an image of kind debian, ubuntu, rhel or diskless; or remove it, and switch Secure Boot off in the firmware.", unsigned},
		{NoEffect, "hardware", "dpu", "DPUs are not looked for. Give it a mode and pci to have it set.", dpus("")},
		{NoEffect, "hardware", "dpu.bmc", "the BMC of a DPU is not spoken to.", dpus("bmc")},
		{NoEffect, "role", "after", "nodes are brought up in any order. Bring up those that come first with --target.", roles("after", func(r *inventory.Role) bool { return len(r.After) > 0 })},
	}
}

// defaultMTU is that of Ethernet, which interfaces have.
const defaultMTU = 1500

// detail says what a setting is and what to do.
func (s Setting) detail(phrase string) string {
	if s.Kind == Refused {
		return fmt.Sprintf("%s is not implemented in this version: %s", phrase, s.Text)
	}
	return fmt.Sprintf("%s is not implemented in this version; ignored: %s", phrase, s.Text)
}

func (s Setting) summary() string {
	if s.Kind == Refused {
		return "Not implemented, and refused by plan"
	}
	return "Not implemented, and ignored"
}

// OfSettings are the gaps of the settings that a site gives, in the order of the table.
func OfSettings(inv *inventory.Inventory) (list List) {
	for _, s := range Settings() {
		for _, at := range s.given(inv) {
			nodes := at.nodes
			if at.uses != nil {
				nodes = count(inv, at.uses)
			}
			g := New(s.Kind, s.Block, at.name, s.Name, at.at, nodes, s.summary(), s.detail(at.phrase))
			g.phrase = at.phrase
			list = append(list, g)
		}
	}
	return list
}

// RefuseSettings are the errors of a plan of a site.
func RefuseSettings(inv *inventory.Inventory) (found hcl.Diagnostics) {
	for _, g := range OfSettings(inv).Of(Refused) {
		found = append(found, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: g.Summary, Detail: g.Detail, Subject: g.at.Ptr()})
	}
	return found
}

func everyNode(*inventory.Node) bool { return true }

func onNetwork(n *inventory.Network) func(*inventory.Node) bool {
	return func(node *inventory.Node) bool { return node.BootNetwork == n || node.BMC.Network == n }
}

// hasPorts reports whether ports of nodes are on a network.
func hasPorts(inv *inventory.Inventory, n *inventory.Network) bool {
	return slices.ContainsFunc(inv.Hardware, func(h *inventory.Hardware) bool {
		return slices.ContainsFunc(h.NICs, func(nic inventory.NIC) bool { return nic.Network == n || slices.Contains(nic.Tagged, n) })
	})
}

func networks(attribute string, has func(*inventory.Inventory, *inventory.Network) bool) func(*inventory.Inventory) []given {
	return func(inv *inventory.Inventory) (list []given) {
		for _, n := range inv.Networks {
			if has(inv, n) {
				list = append(list, given{name: n.Name, phrase: attribute + " of network " + n.Name, at: inventory.PlaceOf(n.Ranges, attribute, n.Decl), uses: onNetwork(n)})
			}
		}
		return list
	}
}

// dhcp are networks of whose dhcp block an attribute, or the whole, is given.
func dhcp(attribute string, has func(*inventory.Inventory, *inventory.Network) bool) func(*inventory.Inventory) []given {
	return func(inv *inventory.Inventory) (list []given) {
		for _, n := range inv.Networks {
			phrase := "the dhcp block of network " + n.Name
			if attribute != "" {
				phrase = attribute + " of " + phrase
			}
			if has(inv, n) {
				list = append(list, given{name: n.Name, phrase: phrase, at: inventory.PlaceOf(n.DHCP.Ranges, attribute, n.DHCP.Decl), uses: onNetwork(n)})
			}
		}
		return list
	}
}

func withBMC(b *inventory.BMCProfile) func(*inventory.Node) bool {
	return func(n *inventory.Node) bool { return n.BMC.Profile == b }
}

func bmcs(attribute string, has func(*inventory.BMCProfile) bool) func(*inventory.Inventory) []given {
	return func(inv *inventory.Inventory) (list []given) {
		for _, b := range inv.BMCs {
			if has(b) {
				list = append(list, given{name: b.Name, phrase: attribute + " of bmc " + b.Name, at: inventory.PlaceOf(b.Ranges, attribute, b.Decl), uses: withBMC(b)})
			}
		}
		return list
	}
}

// factoryPasswords are those of nodes, said once for their profile. Where the profile
// has a factory block, that is refused already.
func factoryPasswords(inv *inventory.Inventory) (list []given) {
	for _, b := range inv.BMCs {
		uses := func(n *inventory.Node) bool { return n.BMC.Profile == b && n.BMC.FactoryPassword != "" }
		if n := count(inv, uses); n > 0 && b.FactoryUsername == "" {
			list = append(list, given{name: b.Name, phrase: "factory_password of bmc " + b.Name, at: b.Decl, nodes: n})
		}
	}
	return list
}

func withHardware(h *inventory.Hardware) func(*inventory.Node) bool {
	return func(n *inventory.Node) bool { return n.Hardware == h }
}

// signedKinds are the kinds of images whose loaders and kernels are signed, as packages bring them.
var signedKinds = []string{distribution.Debian, distribution.Ubuntu, distribution.RHEL, inventory.KindDiskless}

// unsigned is hardware with Secure Boot and with images that nobody signs loaders or kernels of,
// once for each.
func unsigned(inv *inventory.Inventory) (list []given) {
	for _, h := range inv.Hardware {
		if !h.SecureBoot {
			continue
		}
		add := func(what string, uses func(*inventory.Node) bool) {
			list = append(list, given{name: h.Name, phrase: "secure_boot of hardware " + h.Name + what, at: inventory.PlaceOf(h.Ranges, "secure_boot", h.Decl), uses: uses})
		}
		for _, i := range inv.Images {
			uses := func(n *inventory.Node) bool { return n.Hardware == h && n.Image == i }
			if !slices.Contains(signedKinds, i.Kind) && slices.ContainsFunc(inv.Nodes, uses) {
				add(fmt.Sprintf(" with image %s of kind %s", i.Name, i.Kind), uses)
			}
		}
	}
	return list
}

// dpus are the dpu blocks that give an attribute; of "" those without a mode.
func dpus(attribute string) func(*inventory.Inventory) []given {
	return func(inv *inventory.Inventory) (list []given) {
		for _, h := range inv.Hardware {
			for _, d := range h.DPUs {
				name := "dpu " + d.Name + " of hardware " + h.Name
				_, mode := d.Ranges["mode"]
				at, has := d.Ranges[attribute]
				switch {
				case attribute == "" && !mode:
					list = append(list, given{name: h.Name, phrase: name, at: d.Decl, uses: withHardware(h)})
				case has && mode:
					list = append(list, given{name: h.Name, phrase: attribute + " of " + name, at: at, uses: withHardware(h)})
				}
			}
		}
		return list
	}
}

func withRole(r *inventory.Role) func(*inventory.Node) bool {
	return func(n *inventory.Node) bool { return n.Role == r }
}

func roles(attribute string, has func(*inventory.Role) bool) func(*inventory.Inventory) []given {
	return func(inv *inventory.Inventory) (list []given) {
		for _, r := range inv.Roles {
			if has(r) {
				list = append(list, given{name: r.Name, phrase: attribute + " of role " + r.Name, at: inventory.PlaceOf(r.Ranges, attribute, r.Decl), uses: withRole(r)})
			}
		}
		return list
	}
}
