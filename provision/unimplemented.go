package provision

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// UnimplementedCheck is the check of settings that this ironrail does nothing with.
const UnimplementedCheck = "setting.unimplemented"

// unimplemented is a setting of the site that this ironrail does nothing with.
type unimplemented struct {
	setting string // with the kind of block that it stands in: "secure_boot of hardware"
	name    string // of the block
	at      hcl.Range
	refused bool   // a plan refuses it; else it is ignored
	text    string // what is missing, and what to do
	uses    func(*inventory.Node) bool
}

// String is the setting with the name of its block.
func (u unimplemented) String() string { return u.setting + " " + u.name }

// detail says what it is and what to do.
func (u unimplemented) detail() string {
	if u.refused {
		return fmt.Sprintf("%s is not implemented in this version: %s", u, u.text)
	}
	return fmt.Sprintf("%s is not implemented in this version; ignored: %s", u, u.text)
}

// unimplementedOf lists the settings of a site that this ironrail does nothing with.
// Those that change what the site gets in security, state or network are refused by a
// plan: without them the nodes would be others than those asked for. The others only
// tune, order or describe. check, plan and rehearse all say what this list says.
func unimplementedOf(inv *inventory.Inventory) (out []unimplemented) {
	out = append(out, ofState(inv)...)
	for _, n := range inv.Networks {
		out = append(out, ofNetwork(n)...)
	}
	for _, b := range inv.BMCs {
		out = append(out, ofBMC(inv, b)...)
	}
	for _, h := range inv.Hardware {
		out = append(out, ofHardware(h)...)
	}
	for _, h := range inv.Hosts {
		out = append(out, ofHost(h)...)
	}
	for _, r := range inv.Roles {
		out = append(out, ofRole(r)...)
	}
	return out
}

// blockSettings collects those of one block that are given.
type blockSettings struct {
	kind, name string
	ranges     map[string]hcl.Range
	decl       hcl.Range
	uses       func(*inventory.Node) bool
	list       []unimplemented
}

// refuse adds a setting that a plan refuses.
func (s *blockSettings) refuse(given bool, setting, text string) { s.add(given, true, setting, text) }

// ignore adds a setting that is ignored.
func (s *blockSettings) ignore(given bool, setting, text string) { s.add(given, false, setting, text) }

func (s *blockSettings) add(given, refused bool, setting, text string) {
	if !given {
		return
	}
	at, ok := s.ranges[setting]
	if !ok {
		at = s.decl
	}
	s.list = append(s.list, unimplemented{setting + " of " + s.kind, s.name, at, refused, text, s.uses})
}

func ofState(inv *inventory.Inventory) []unimplemented {
	if inv.State.Kind == "" || inv.State.Kind == "file" {
		return nil
	}
	all := func(*inventory.Node) bool { return true }
	return []unimplemented{{"state", inv.State.Kind, inv.State.Decl, true, "the state is a file on the controller. Write state \"file\" {}, or remove the block.", all}}
}

func ofNetwork(n *inventory.Network) []unimplemented {
	uses := func(node *inventory.Node) bool { return node.BootNetwork == n || node.BMC.Network == n }
	s := blockSettings{kind: "network", name: n.Name, ranges: n.Ranges, decl: n.Decl, uses: uses}
	s.refuse(n.CIDR6.IsValid(), "cidr6", "no node gets an address of it. Remove it.")
	s.refuse(n.VLAN != 0, "vlan", "no interface is tagged. Remove it, and make the ports of this network untagged members of the VLAN on their switches.")
	s.refuse(n.MTU != 0 && n.MTU != defaultMTU, "mtu", "interfaces of this network keep an MTU of 1500. Remove it; the mtu of a fabric is set.")
	d := blockSettings{kind: "the dhcp block of network", name: n.Name, ranges: n.DHCP.Ranges, decl: n.DHCP.Decl, uses: uses}
	d.refuse(n.DHCP.Mode == inventory.DHCPProxy, "mode", `beside another DHCP server, nothing is answered. Write mode = "authoritative" and take the other server off this network, or "off".`)
	d.refuse(n.DHCP.Pool.First.IsValid(), "pool", "only the nodes of the site get an address. Remove it.")
	return append(s.list, d.list...)
}

// defaultMTU is that of Ethernet, which interfaces of networks have.
const defaultMTU = 1500

func ofBMC(inv *inventory.Inventory, b *inventory.BMCProfile) []unimplemented {
	s := blockSettings{kind: "bmc", name: b.Name, ranges: b.Ranges, decl: b.Decl, uses: func(n *inventory.Node) bool { return n.BMC.Profile == b }}
	s.refuse(b.VLAN != 0, "vlan", "the BMC's own network settings are not changed. Set the VLAN in the BMC, and remove it here.")
	s.refuse(b.FactoryUsername != "", "factory", "nobody logs in with the account as delivered, and it is not changed. Make the account of username on the BMCs, and remove the block.")
	s.ignore(b.Attach == "shared", "attach", "the BMC is spoken to as one with a port of its own.")
	with := func(n *inventory.Node) bool { return s.uses(n) && n.BMC.FactoryPassword != "" }
	if n := count(inv, with); n > 0 && b.FactoryUsername == "" {
		s.ignore(true, "factory_password", fmt.Sprintf("it is not read; of %s.", diag.Count(n, "node", "nodes")))
	}
	return s.list
}

func ofHardware(h *inventory.Hardware) []unimplemented {
	uses := func(n *inventory.Node) bool { return n.Hardware == h }
	s := blockSettings{kind: "hardware", name: h.Name, ranges: h.Ranges, decl: h.Decl, uses: uses}
	s.refuse(h.SecureBoot, "secure_boot", "nodes are installed and booted without it, and nobody looks whether it is on. Remove it, and switch Secure Boot off in the firmware.")
	s.ignore(h.TPM != "", "tpm", "no TPM is looked for or used.")
	for _, d := range h.DPUs {
		p := blockSettings{kind: "dpu", name: d.Name + " of hardware " + h.Name, ranges: d.Ranges, decl: d.Decl, uses: uses}
		if _, given := d.Ranges["mode"]; given {
			p.refuse(true, "mode", "the mode of a DPU is neither set nor looked at. Set it by the vendor's tools, and remove it here.")
		} else {
			p.list = []unimplemented{{"dpu", p.name, d.Decl, false, "DPUs are not looked for.", uses}}
		}
		s.list = append(s.list, p.list...)
	}
	return s.list
}

func ofHost(h *inventory.HostSettings) []unimplemented {
	uses := func(n *inventory.Node) bool { return n.Host == h }
	s := blockSettings{kind: "host", name: h.Name, ranges: h.Ranges, decl: h.Decl, uses: uses}
	for _, b := range h.Bonds {
		s.list = append(s.list, unimplemented{"bond", b.Name + " of host " + h.Name, b.Decl, true, "ports are not aggregated. Remove it, and leave link aggregation to what configures the nodes after ironrail.", uses})
	}
	s.refuse(h.UserData != "", "user_data", "it is not run. Remove it, and run it in a hook, or by a hand-over of kind exec.")
	s.ignore(h.HoldKernel, "hold_kernel", "nothing holds the kernel. Where modules are built for it, hold its packages on the nodes, such as with apt-mark hold.")
	s.ignore(len(h.Sysctl) > 0, "sysctl", "it is not written to the nodes. kernel_args are.")
	s.ignore(h.Locale != "", "locale", "it is not written to the nodes.")
	a := blockSettings{kind: "the accounts of host", name: h.Name, ranges: h.Accounts.Ranges, decl: h.Accounts.Decl, uses: uses}
	a.refuse(len(h.Accounts.SudoGroups) > 0, "sudo_groups", "no group may become root by it. Remove it, and leave sudo to what configures the nodes after ironrail.")
	return append(s.list, a.list...)
}

func ofRole(r *inventory.Role) []unimplemented {
	uses := func(n *inventory.Node) bool { return n.Role == r }
	s := blockSettings{kind: "role", name: r.Name, ranges: r.Ranges, decl: r.Decl, uses: uses}
	for _, m := range r.Mounts {
		s.list = append(s.list, unimplemented{"mount", m.Path + " of role " + r.Name, m.Decl, true, "what is written there would lie on the node's own disk. Remove it, and mount it by what configures the nodes after ironrail.", uses})
	}
	s.ignore(len(r.After) > 0, "after", "nodes are brought up in any order. Bring up those that come first with --target.")
	return s.list
}

// checkUnimplemented warns of what a plan refuses or ignores.
func checkUnimplemented(inv *inventory.Inventory) (found diag.List) {
	for _, u := range unimplementedOf(inv) {
		found.Add(UnimplementedCheck, u.at, summaryOf(u), u.detail()).Warn()
	}
	for _, d := range checkControllers(inv) {
		found.Add(UnimplementedCheck, *d.Subject, d.Summary, d.Detail).Warn()
	}
	return found
}

func summaryOf(u unimplemented) string {
	if u.refused {
		return "Not implemented, and refused by plan"
	}
	return "Not implemented, and ignored"
}

// refuseUnimplemented refuses what would change what the site gets. A rehearsal goes
// on without it, and lists it.
func refuseUnimplemented(inv *inventory.Inventory) (found hcl.Diagnostics) {
	if inv.Rehearsed {
		return nil
	}
	for _, u := range unimplementedOf(inv) {
		if u.refused {
			found = append(found, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summaryOf(u), Detail: u.detail(), Subject: u.at.Ptr()})
		}
	}
	return found
}

// ignored says, with its place, what a plan goes on without.
func ignored(inv *inventory.Inventory) (out []string) {
	for _, u := range unimplementedOf(inv) {
		if !u.refused {
			out = append(out, fmt.Sprintf("%s:%d: %s", u.at.Filename, u.at.Start.Line, u.detail()))
		}
	}
	return out
}
