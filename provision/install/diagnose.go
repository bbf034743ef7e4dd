// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/grub"
	"github.com/ironrail/ironrail/provision/netboot/httpboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
	"github.com/ironrail/ironrail/provision/netboot/tftp"
)

// BootEvent is one thing that the boot services saw of a node.
type BootEvent struct{ netboot.Evidence }

// String says in words what was seen.
func (s BootEvent) String() string {
	text := string(s.Proto) + " " + s.What
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}

// Diagnosis is why a node that was powered did not reach its agent.
type Diagnosis struct {
	Part     string
	Cause    string
	Action   string
	Evidence []string
}

// quoted is how many events a diagnosis quotes, the last ones.
const quoted = 6

// Diagnose says how far a netbooting node came and what to look at. seen holds
// the events since its power was switched on, and console the last lines of its
// serial console where that is read; oldest first.
func Diagnose(n *inventory.Node, seen []BootEvent, console []string) Diagnosis {
	r := reachedOf(seen)
	d := r.diagnosis(n)
	if took, yes := findOtherServer(seen); yes {
		d = Diagnosis{Part: "boot network", Cause: "another DHCP server is on the boot network: the node " + took.Detail,
			Action: "Stop that DHCP server or take it off this network, then run `ironrail apply` again; nothing is wrong with this node."}
	} else if line := refusedBySecureBoot(console, r); line != "" {
		d = r.secureBoot(n, line)
	}
	for _, s := range seen[max(0, len(seen)-quoted):] {
		d.Evidence = append(d.Evidence, s.Time.UTC().Format(time.TimeOnly)+" "+s.String())
	}
	if len(seen) == 0 {
		d.Evidence = append(d.Evidence, "power was switched on by the BMC; the boot services saw nothing from "+n.BootMAC.String())
	}
	return d
}

// reached is how far a netboot was seen to come.
type reached struct {
	dhcp, loader, script                 bool
	kernel, kernelEnd, initrd, initrdEnd bool
	refused                              bool
	reason                               string // of the last refusal
	port                                 bool   // it was for the port of a switch
	leased                               bool   // by another DHCP server, beside which we give boot files
	other                                string // why its address is not the node's; "": it is
	shim, grub                           string // signed loaders that it fetched; "": not
	chain                                bool   // GRUB's configuration by TFTP, which leads to HTTP
}

func reachedOf(seen []BootEvent) (r reached) {
	for _, s := range seen {
		switch {
		case s.Proto == boot.DHCP && (!s.Refused || s.What == dhcp.EventOtherAddress):
			r.addDHCP(s)
		case s.Refused:
			r.refused, r.reason, r.port = true, s.Detail, s.Proto == boot.DHCP && s.What == dhcp.EventPort
		case s.Proto == boot.TFTP, s.Proto == boot.HTTP && s.What == httpboot.EventLoader:
			r.addLoader(s.What, s.Detail)
		case s.Proto == boot.IPXE:
			r.script = true
		case s.Proto == boot.HTTP:
			r.addHTTP(s.What)
		}
	}
	return r
}

// actionRefused is what to do about a refusal.
func (r reached) actionRefused() string {
	if r.port {
		return "Plug the cable into the port of the files, or correct its cable block; then run `ironrail apply` again."
	}
	return "Correct the inventory row of this node, then run `ironrail apply` again."
}

// addDHCP takes over what a node got by DHCP, of us or of the server beside us.
func (r *reached) addDHCP(s BootEvent) {
	r.dhcp = true
	switch s.What {
	case dhcp.EventLeased:
		r.leased, r.other = true, ""
	case dhcp.EventOtherAddress:
		r.other = s.Detail
	}
}

// addLoader takes over a loader. The signed ones are known by their names, once they were
// fetched to their end: "shimx64.efi" of TFTP, "GET shimx64.efi" of HTTP.
func (r *reached) addLoader(what, detail string) {
	r.loader = true
	name, get := strings.CutPrefix(detail, "GET ")
	r.chain = r.chain || slices.Contains(grub.Names(), strings.TrimPrefix(name, "/"))
	switch name = path.Base(name); {
	case !get && what != tftp.EventDone:
	case loader.Behind(name) != "":
		r.shim = name
	case r.shim != "" && name == loader.Behind(r.shim):
		r.grub = name
	}
}

// addHTTP takes over a transfer.
func (r *reached) addHTTP(what string) {
	r.kernel = r.kernel || what == httpboot.EventKernelStart || what == httpboot.EventKernelEnd
	r.kernelEnd = r.kernelEnd || what == httpboot.EventKernelEnd
	r.initrd = r.initrd || what == httpboot.EventInitrdStart || what == httpboot.EventInitrdEnd
	r.initrdEnd = r.initrdEnd || what == httpboot.EventInitrdEnd
}

// checkHTTP is what to look at when a transfer does not come to its end.
const checkHTTP = "Check HTTP from the node's network to this controller: a firewall, or an MTU that does not fit."

// diagnosis is what comes next after what was seen and did not.
func (r reached) diagnosis(n *inventory.Node) Diagnosis {
	d := r.untaggedDiagnosis(n)
	if t, tagged := n.BootVLAN(); tagged {
		if hint := r.vlanHint(t.Network.VLAN); hint != "" {
			d.Action = hint + " " + d.Action
		}
	} else if r == (reached{}) {
		d.Action += " The port has to be an untagged member of the boot network: of a tagged one nothing is heard."
	}
	return d
}

// vlanHint is what to look at first where the boot network is tagged; "" where the VLAN is not the
// matter. The controller's own interface shows no tags, so that it is not known whether frames had one.
func (r reached) vlanHint(id int) string {
	switch {
	case r.initrdEnd:
		return fmt.Sprintf("Look whether the switch port is a tagged member of VLAN %d: at an untagged one firmware without a VLAN boots up to here, and the ramdisk, which tags, is not heard.", id)
	case r.script || r.chain || r.refused || r.other != "":
		return ""
	case r.loader:
		return fmt.Sprintf("Look on the console whether iPXE asks on net0-%d: one that asks on net0 is too old to tag with VLAN %d.", id, id)
	case r.dhcp:
		return ""
	}
	return fmt.Sprintf("Look whether the firmware has VLAN %d for the NIC (its setup, or the BIOS settings of its BMC), and whether the switch port is a tagged member of it.", id)
}

// untaggedDiagnosis is diagnosis without the VLAN of the boot network.
func (r reached) untaggedDiagnosis(n *inventory.Node) Diagnosis {
	nic := "boot NIC " + n.BootMAC.String()
	switch {
	case r.initrdEnd:
		return Diagnosis{Part: "ramdisk", Cause: "the node fetched the install ramdisk, and its agent never called",
			Action: fmt.Sprintf("Read the serial console of %s: the kernel may have stopped, or miss the driver of the %s.", n.Name, nic)}
	case r.initrd:
		return Diagnosis{Part: nic, Cause: "the node began to fetch the initrd of the install ramdisk and did not come to its end", Action: checkHTTP}
	case r.kernelEnd:
		return Diagnosis{Part: nic, Cause: "the node fetched the kernel and never its initrd",
			Action: fmt.Sprintf("Read the serial console of %s: the loader says why it stopped. %s", n.Name, checkHTTP)}
	case r.kernel:
		return Diagnosis{Part: nic, Cause: "the node began to fetch the kernel and did not come to its end", Action: checkHTTP}
	case r.script:
		return Diagnosis{Part: nic, Cause: "the node got its boot script and never fetched the kernel", Action: checkHTTP}
	case r.chain:
		return Diagnosis{Part: nic, Cause: "GRUB got its configuration by TFTP and never the one by HTTP that it leads to", Action: checkHTTP}
	case r.shim != "":
		return r.stoppedSigned(n)
	case r.loader:
		return Diagnosis{Part: nic, Cause: "the node fetched its first loader, which never asked for the boot script",
			Action: "Read the console; the loader may not drive this NIC, or Secure Boot may refuse it, since it is not signed. Check that the switch port forwards at once (edge port, no LACP wait)."}
	case r.other != "":
		return Diagnosis{Part: "boot network", Cause: r.other, Action: "Correct that reservation, then run `ironrail apply` again; nothing is wrong with this node."}
	case r.dhcp && isProxied(n) && !r.leased:
		return Diagnosis{Part: "boot network", Cause: "the node was offered its boot file, and took no address: the DHCP server of the boot network has offered it none",
			Action: fmt.Sprintf("Reserve %s for MAC %s on the DHCP server of network %q, and look whether it is up; then run `ironrail apply` again.", n.Address, n.BootMAC, n.BootNetwork.Name)}
	case r.dhcp:
		return Diagnosis{Part: nic, Cause: "the node got an address and never fetched its loader",
			Action: "Check TFTP (UDP 69 and high ports) from the node's network to this controller."}
	case r.refused:
		return Diagnosis{Part: nic, Cause: "the node asked, and was refused: " + r.reason, Action: r.actionRefused()}
	}
	return Diagnosis{Part: nic, Cause: "the node never asked for an address: no DHCP request from " + n.BootMAC.String() + " since power-on",
		Action: fmt.Sprintf("Check the cable and the switch port of the %s, its MAC in the inventory, and that network boot is enabled for it in the firmware; the serial console of %s shows what it does instead.", nic, n.Name)}
}
