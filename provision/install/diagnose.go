package install

import (
	"fmt"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Sighting is one thing that the boot services saw of a node.
type Sighting struct{ netboot.Evidence }

// String says in words what was seen.
func (s Sighting) String() string {
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

// quoted is how many sightings a diagnosis quotes, the last ones.
const quoted = 6

// Diagnose says how far a netbooting node came and what to look at. seen holds
// the sightings since its power was switched on, oldest first.
func Diagnose(n *inventory.Node, seen []Sighting) Diagnosis {
	d := furthest(n, seen)
	for _, s := range seen[max(0, len(seen)-quoted):] {
		d.Evidence = append(d.Evidence, s.Time.UTC().Format(time.TimeOnly)+" "+s.String())
	}
	if len(seen) == 0 {
		d.Evidence = []string{"power was switched on by the BMC; the boot services saw nothing from " + n.BootMAC.String()}
	}
	return d
}

// furthest finds the last stage of a netboot that was seen, and with it what
// comes next and did not.
func furthest(n *inventory.Node, seen []Sighting) Diagnosis {
	var dhcp, loader, script, kernel, refused bool
	var reason string
	for _, s := range seen {
		switch {
		case s.Refused:
			refused, reason = true, s.Detail
		case s.Proto == boot.DHCP:
			dhcp = true
		case s.Proto == boot.TFTP:
			loader = true
		case s.Proto == boot.IPXE:
			script = true
		case s.Proto == boot.HTTP:
			kernel = true
		}
	}
	nic := "boot NIC " + n.BootMAC.String()
	if took, yes := tookOther(seen); yes {
		return Diagnosis{Part: "boot network", Cause: "another DHCP server is on the boot network: the node " + took.Detail,
			Action: "Stop that DHCP server or take it off this network, then run `ironrail apply` again; nothing is wrong with this node."}
	}
	switch {
	case kernel:
		return Diagnosis{Part: "ramdisk", Cause: "the node fetched the install ramdisk, and its agent never called",
			Action: fmt.Sprintf("Read the serial console of %s: the kernel may have stopped, or miss the driver of the %s.", n.Name, nic)}
	case script:
		return Diagnosis{Part: nic, Cause: "the node got its boot script and never fetched the kernel",
			Action: "Check HTTP from the node's network to this controller: a firewall, or an MTU that does not fit."}
	case loader:
		return Diagnosis{Part: nic, Cause: "the node fetched its first loader, which never asked for the boot script",
			Action: "Read the console; the loader may not drive this NIC. Check that the switch port forwards at once (edge port, no LACP wait)."}
	case dhcp:
		return Diagnosis{Part: nic, Cause: "the node got an address and never fetched its loader",
			Action: "Check TFTP (UDP 69 and high ports) from the node's network to this controller."}
	case refused:
		return Diagnosis{Part: nic, Cause: "the node asked, and was refused: " + reason,
			Action: "Correct the inventory row of this node, then run `ironrail apply` again."}
	}
	return Diagnosis{Part: nic, Cause: "the node never asked for an address: no DHCP request from " + n.BootMAC.String() + " since power-on",
		Action: fmt.Sprintf("Check the cable and the switch port of the %s, its MAC in the inventory, and that network boot is enabled for it in the firmware; the serial console of %s shows what it does instead.", nic, n.Name)}
}
