// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/language"
)

// TaggedNetwork is a network that a node is on by a VLAN interface.
type TaggedNetwork struct {
	Network *Network
	// Over is the port, mgmt/0, or the bond that the interface is on; "": the port that the
	// node boots from, whichever of its NIC that is.
	Over              string
	Address, Address6 netip.Addr // of Network; Address6 is invalid without cidr6
}

// Interface is the name of the interface of a tagged network: VLANs are unique on a node.
func (t TaggedNetwork) Interface() string { return vlanInterface(t.Network.VLAN) }

func vlanInterface(id int) string { return fmt.Sprintf("vlan%d", id) }

// TaggedOn are the networks that are tagged on a NIC: its own, if that has a vlan and the node
// does not boot from it, and further ones.
func (n *NIC) TaggedOn() []*Network {
	var list []*Network
	if n.Network != nil && n.Network.VLAN != 0 && !n.Boot {
		list = append(list, n.Network)
	}
	return append(list, n.Tagged...)
}

// BootVLAN is the VLAN interface with the node's own address: its boot network has a vlan, and is
// tagged on the port that it boots from, or on the bond over it. False: it is untagged there.
func (n *Node) BootVLAN() (t TaggedNetwork, ok bool) {
	if n.Hardware == nil || n.BootNetwork == nil || n.BootNetwork.VLAN == 0 {
		return t, false
	}
	nic, ok := n.Hardware.BootNIC()
	if !ok {
		return t, false
	}
	over, ok := parentOf(nic, n.Host)
	return TaggedNetwork{Network: n.BootNetwork, Over: over, Address: n.Address, Address6: n.Address6}, ok
}

// vlanCheck is the check of VLAN interfaces that cannot be made.
const vlanCheck = "nic.tagged"

// taggedNetworks gives a node its addresses of tagged networks: of the same number as on the
// network that it boots from.
func (l *loader) taggedNetworks(n *Node, given bool) {
	if n.Hardware == nil || n.BootNetwork == nil || !n.BootNetwork.CIDR.Contains(n.Address) {
		return
	}
	for i := range n.Hardware.NICs {
		nic := &n.Hardware.NICs[i]
		for _, net := range nic.TaggedOn() {
			over, ok := parentOf(nic, n.Host)
			if !ok || net.VLAN == 0 || !net.CIDR.IsValid() {
				continue // reported with the NIC
			}
			t := TaggedNetwork{Network: net, Over: over}
			t.Address, _ = sameHost(n.BootNetwork.CIDR, net.CIDR, n.Address)
			l.inNetwork(t.Address, net, n, "node", n.Ranges.Address, given && t.Address.IsValid())
			if !t.Address.IsValid() || !net.CIDR.Contains(t.Address) {
				continue
			}
			if net.CIDR6.IsValid() && net.CIDR6.Addr().Is6() {
				t.Address6 = l.numberIn6(n, net, t.Address)
			}
			who := fmt.Sprintf("node %s on network %s", n.Name, net.Name)
			l.addresses.add(t.Address, who, n.Ranges.Address, n.Name)
			l.addresses.add(t.Address6, who, n.Ranges.Address, n.Name)
			n.Tagged = append(n.Tagged, t)
		}
	}
}

// parentOf is what VLAN interfaces of a NIC are made on: a bond of its ports, its only port, or the
// port that boots (""); false: it is not known on which port.
func parentOf(nic *NIC, host *HostSettings) (string, bool) {
	bond := ""
	for i := range nic.Ports {
		in := ""
		if host != nil {
			port := fmt.Sprintf("%s/%d", nic.Name, i)
			if at := slices.IndexFunc(host.Bonds, func(b Bond) bool { return slices.Contains(b.Members, port) }); at >= 0 {
				in = host.Bonds[at].Name
			}
		}
		if i > 0 && in != bond {
			return "", false
		}
		bond = in
	}
	switch {
	case bond != "":
		return bond, true
	case len(nic.Ports) == 1:
		return nic.Name + "/0", true
	}
	return "", nic.Boot
}

// onNIC is a network as a nic block names it.
type onNIC struct {
	nic    *NIC
	net    *Network
	at, in hcl.Range
	tagged bool
}

// networksOn are the networks of the nic blocks of a hardware block, in the order of the file.
func networksOn(h *Hardware, b *language.Body) (list []onNIC) {
	for _, nb := range b.Blocks("nic") {
		nic, ok := h.NIC(nb.Name)
		if !ok || nic.Decl != nb.Decl {
			continue
		}
		if net := nic.Network; net != nil {
			list = append(list, onNIC{nic, net, nb.Range("network"), nb.Decl, net.VLAN != 0})
		}
		for i, net := range nic.Tagged {
			list = append(list, onNIC{nic, net, nb.ElementRange("tagged", i), nb.Decl, true})
		}
	}
	return list
}

// checkTagged looks at the tagged networks of the NICs of a hardware block.
func (l *loader) checkTagged(h *Hardware, b *language.Body) {
	l.checkTaggedBoot(h, b)
	all := networksOn(h, b)
	for i, x := range all {
		if !x.tagged {
			continue
		}
		wrong := func(summary, format string, args ...any) {
			l.diags.Add(vlanCheck, x.at, summary, fmt.Sprintf(format, args...)).In(x.in)
		}
		again := slices.IndexFunc(all, func(o onNIC) bool { return o.net == x.net })
		twin := slices.IndexFunc(all[:i], func(o onNIC) bool { return o.tagged && o.net.VLAN == x.net.VLAN })
		switch {
		case x.nic.Fabric != nil:
			wrong("Tagged network on a fabric", "NIC %q is on fabric %q, whose ports are rails of their own. Tag networks on a NIC with a network.", x.nic.Name, x.nic.Fabric.Name)
		case x.net.VLAN == 0:
			wrong("Tagged network without a VLAN", "Network %q has no vlan to be tagged with. Give it one, as its switches have it.", x.net.Name)
		case again != i:
			wrong("Network on two interfaces", "Network %q is on NIC %q already, and a node has one address on a network. Remove one of the two.", x.net.Name, all[again].nic.Name)
		case twin >= 0:
			wrong("VLAN twice on a node", "Networks %q and %q both have VLAN %d, and a node has one interface of it. Tag one of them.", all[twin].net.Name, x.net.Name, x.net.VLAN)
		case x.nic.Network != nil && mtuOf(x.net) > mtuOf(x.nic.Network):
			wrong("VLAN with a larger MTU than its port", "Network %q has an mtu of %d, and the ports of NIC %q have that of network %q, %d: a port sends no larger packets for its VLANs. Raise that, or lower this.", x.net.Name, mtuOf(x.net), x.nic.Name, x.nic.Network.Name, mtuOf(x.nic.Network))
		}
	}
}

// checkTaggedBoot looks whether what boots the nodes of a hardware block can send tagged frames, where
// the network that they boot from has a vlan.
func (l *loader) checkTaggedBoot(h *Hardware, b *language.Body) {
	nic, ok := h.BootNIC()
	if !ok || nic.Network == nil || nic.Network.VLAN == 0 {
		return
	}
	const untagged = "Make their ports untagged members (native, PVID) of the VLAN on the switches, and remove vlan."
	add := func(at, why, do string) {
		l.diags.Add(vlanCheck, b.Range(at), "Tagged network that cannot be booted from",
			fmt.Sprintf("Nodes of hardware %q boot from network %q, which has vlan = %d, and %s. %s", h.Name, nic.Network.Name, nic.Network.VLAN, why, do)).
			Also("the VLAN", l.place(nic.Network, "vlan")).In(b.Decl)
	}
	switch {
	case h.Boot != BootUEFI:
		add("boot", fmt.Sprintf("boot is %q: frames are tagged by boot = \"uefi\" alone, PXE of UEFI with a VLAN in its settings", h.Boot), untagged)
	case h.SecureBoot:
		add("secure_boot", "with secure_boot GRUB boots them, which sends nothing on a VLAN", untagged)
	case h.Arch != AMD64:
		add("arch", fmt.Sprintf("processors of %s are booted by GRUB, which sends nothing on a VLAN", h.Arch), untagged)
	}
	for _, name := range slices.Sorted(maps.Keys(h.BIOS)) {
		if do := vlanOfBIOS(h.BIOS, name, nic.Network.VLAN); do != "" {
			add("bios", fmt.Sprintf("bios says %s = %q", name, h.BIOS[name]), do)
		}
	}
}

// vlanOfBIOS is what to do about a BIOS setting by which firmware would not be on the VLAN of the
// boot network; "": it is none. Settings of a device that is switched off say nothing.
func vlanOfBIOS(all map[string]string, name string, id int) string {
	found := vlanSetting.FindStringSubmatch(name)
	if found == nil || found[1] != "" && all[found[1]+"EnDis"] == "Disabled" {
		return ""
	}
	switch device := found[1]; {
	case found[2] == "Id" && all[name] != strconv.Itoa(id):
		return "Give both one number."
	case found[2] == "EnDis" && device != "" && all[name] == "Disabled":
		return `Write "Enabled" there, with the VLAN in ` + device + "VlanId."
	}
	return ""
}

// vlanSetting are the names that vendors give the VLAN of a boot NIC among their BIOS settings:
// PxeDev1VlanId and PxeDev1VlanEnDis of Dell, whose PxeDev1EnDis is of the device itself; VlanId of HPE.
var vlanSetting = lazyregexp.New(`^(PxeDev[0-9]+)?Vlan(Id|EnDis)$`)

// mtuOf is the MTU of interfaces on a network, bytes; nil has the usual one.
func mtuOf(n *Network) int {
	if n == nil || n.MTU == 0 {
		return 1500
	}
	return n.MTU
}

// checkTaggedPorts looks whether it is known on which port the VLAN interfaces of nodes are, for
// each hardware and host that go together.
func (l *loader) checkTaggedPorts() {
	type pair struct {
		h *Hardware
		s *HostSettings
	}
	seen, said := map[pair]bool{}, map[*NIC]bool{}
	for _, n := range l.inv.Nodes {
		p := pair{n.Hardware, n.Host}
		if n.Hardware == nil || seen[p] {
			continue
		}
		seen[p] = true
		for i := range n.Hardware.NICs {
			nic := &n.Hardware.NICs[i]
			tagged := nic.TaggedOn()
			if len(tagged) == 0 {
				continue
			}
			if _, ok := parentOf(nic, n.Host); !ok && !said[nic] {
				said[nic] = true
				l.diags.Add(vlanCheck, nic.Decl, "Tagged network on several ports", fmt.Sprintf("NIC %q has %d ports, and network %q is tagged on one interface: make a bond of all of them, or give the port a nic block of its own.", nic.Name, len(nic.Ports), tagged[0].Name)).In(n.Hardware.Decl)
			}
			if n.Host != nil {
				l.checkBondNames(n.Host, tagged)
			}
		}
		if t, ok := n.BootVLAN(); ok && n.Host != nil {
			l.checkBondNames(n.Host, []*Network{t.Network})
		}
	}
}

// checkBondNames reports bonds that have the name of a VLAN interface.
func (l *loader) checkBondNames(s *HostSettings, tagged []*Network) {
	for _, net := range tagged {
		if slices.ContainsFunc(s.Bonds, func(b Bond) bool { return b.Name == vlanInterface(net.VLAN) }) {
			l.diags.Add(vlanCheck, s.Decl, "Name of a bond that a VLAN has", fmt.Sprintf("Bond %q of host %q has the name of the interface of network %q. Give the bond another one, such as bond0.", vlanInterface(net.VLAN), s.Name, net.Name)).In(s.Decl)
		}
	}
}
