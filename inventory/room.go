package inventory

import (
	"net/netip"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/addr"
	"github.com/ironrail/ironrail/provision/secret"
)

// Rack is one rack and what stands in it.
type Rack struct {
	Name        string
	Number      int // position in the site; addresses are derived from it
	Row         string
	Units       int
	MaxPower    unit.Watts // 0: not given
	Cooling     unit.Watts // 0: not given
	MaxWeight   unit.Mass  // 0: not given
	Orientation string     // "front" or "rear": which side the ports face
	PDUs        []*PDU
	Switches    []*Switch
	Shelves     []*Shelf
	Nodes       []*Node // by unit
	Decl        hcl.Range
}

// PDU is a power distribution unit of a rack.
type PDU struct {
	Name    string // scoped: "r01/a"
	Label   string // within the rack: "a"
	Rack    *Rack
	Feed    string // name of the building's feed
	Phases  int    // 1 or 3
	Voltage unit.Volts
	Current unit.Amps
	Derate  float64 // usable share of Current; default 0.8
	Outlets int     // 0: not given
	Control *PDUControl
	Decl    hcl.Range
}

// PDUControl is how a PDU is spoken to.
type PDUControl struct {
	Protocol  string // "snmp"
	Address   netip.Addr
	Model     string
	Community secret.Ref
	Username  string
	Password  secret.Ref
	Decl      hcl.Range
}

// Switch is a switch where it stands.
type Switch struct {
	Name    string // scoped: "r01/leaf-1"
	Label   string
	Rack    *Rack
	Kind    string // "", "ethernet", "infiniband" or "nvlink"
	Model   string
	Unit    int // lowest rack unit; 0 for a rack without units
	Height  int // rack units; default 1
	Ports   int
	OS      string
	Address netip.Addr // of its management port
	Power   unit.Watts // most that it draws
	Feeds   []Feed
	Airflow string // "", "front-to-back" or "back-to-front"
	Console string
	Fabric  *Fabric // the fabric that it belongs to; may be nil
	Decl    hcl.Range
}

// Shelf is a power shelf of a tray rack.
type Shelf struct {
	Name       string // scoped: "r01/power"
	Label      string
	Rack       *Rack
	Unit       int
	Height     int
	Count      int        // of supplies
	Capacity   unit.Watts // of each supply
	Redundancy string     // such as "n+1"
	Feeds      []Feed
	Decl       hcl.Range
}

// Feed is one supply on one PDU.
type Feed struct {
	Supply string // "psu1", "psu2", ...
	PDU    *PDU
	Outlet int // 0: any
}

// Node is one node, all that it takes from its role, its hardware and its
// override resolved.
type Node struct {
	Name        string // unique in the site
	Rack        *Rack
	Unit        int // lowest rack unit
	Role        *Role
	Hardware    *Hardware
	Image       *Image
	Disks       *DiskLayout
	Host        *HostSettings
	Drivers     []*Driver
	Partitions  []Partition
	Validation  *Validation
	Handover    *Handover
	Serial      string   // of the chassis; empty: not given
	UUID        string   // SMBIOS, lower case; empty: not given
	BootMAC     addr.MAC // zero: not given
	BootNetwork *Network // of the NIC that boots; nil without one
	Address     netip.Addr
	BMC         BMCTarget
	Feeds       []Feed
	Domain      string // NVLink domain; empty: none
	Protect     bool   // never erased by a plan
	Override    *Override
	Decl        hcl.Range
	Ranges      NodeRanges
}

// NodeRanges are the places of a node's attributes, for messages; where one was
// not given, that of the node's header, and of an address that follows from the
// position, that of the unit.
type NodeRanges struct {
	Name, Unit, Serial, UUID, BootMAC, BMCMAC, Address, BMCAddress, Hardware, Role, Feeds hcl.Range
}

// Height is the number of rack units that the node fills.
func (n *Node) Height() int {
	if n.Hardware == nil || n.Hardware.RackUnits == 0 {
		return 1
	}
	return n.Hardware.RackUnits
}

// BMCTarget is one BMC: its profile with what the node says otherwise.
type BMCTarget struct {
	Profile         *BMCProfile
	Protocol        string // "redfish" or "ipmi"
	Network         *Network
	Address         netip.Addr
	MAC             addr.MAC // zero: not given
	Port            uint16
	CipherSuite     int // ipmi only
	Username        string
	Password        secret.Ref
	TLS             TLSTrust
	FactoryUsername string
	FactoryPassword secret.Ref
}

// Cable is one cable that the site gives itself; topologies compute the others.
type Cable struct {
	From, To CableEnd
	Type     string // "DAC", "AOC", "fibre", "copper" or ""
	Length   unit.Length
	Decl     hcl.Range
}

// CableEnd is a port: "r01-u01/rail/0" (node, nic or hca, port index) or
// "r01/leaf-1/17" (rack, switch, port number).
type CableEnd struct {
	Text   string
	Node   *Node
	NIC    *NIC
	Switch *Switch
	Port   int
	Range  hcl.Range
}
