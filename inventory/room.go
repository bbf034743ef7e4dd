// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/natural"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Rack is one rack and what stands in it.
type Rack struct {
	Name          string
	Number        int // position in the site; addresses are derived from it
	Row           string
	Position      int // slot in the row, from 1; 0: by number among the racks of the row
	ScalableUnit  int // of its nodes, from 1; 0: not given
	Units         int
	MaxPower      unit.Watts // 0: not given
	Cooling       unit.Watts // heat that air removes; 0: not given
	LiquidCooling unit.Watts // heat that liquid removes; 0: not given
	MaxWeight     unit.Mass  // 0: not given
	Orientation   string     // "front" or "rear": which side the ports face
	PDUs          []*PDU
	Switches      []*Switch
	Shelves       []*Shelf
	Nodes         []*Node // by unit
	Decl          hcl.Range
	Ranges        RackRanges
}

// CompareWalk orders racks as somebody walks past them: row by row, those without a row last, and in a
// row by position, or else by number.
func (r *Rack) CompareWalk(o *Rack) int {
	switch {
	case r.Row == "" && o.Row != "":
		return 1
	case r.Row != "" && o.Row == "":
		return -1
	}
	return cmp.Or(natural.Compare(r.Row, o.Row), cmp.Compare(r.Position, o.Position), cmp.Compare(r.Number, o.Number), natural.Compare(r.Name, o.Name))
}

// RackRanges are the places of a rack's attributes, for messages; where one was
// not given, that of the rack's header.
type RackRanges struct {
	Position, MaxPower, Cooling, LiquidCooling, MaxWeight hcl.Range
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
	Wiring  string  // "rotating": outlet n is on phase (n-1) mod phases; "banked": each phase has an equal block of outlets
	Control *PDUControl
	Decl    hcl.Range

	FeedRange, OutletsRange hcl.Range // of these attributes; where one was not given, that of the header
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

// Switch is a switch: where it stands, or one that a topology computes and that
// has no place yet.
type Switch struct {
	Name    string // scoped: "r01/leaf-1"; of one without a place "compute/leaf-u1-r0", after its fabric
	Label   string
	Rack    *Rack  // nil: it has no place
	Kind    string // "", "ethernet", "infiniband" or "nvlink"
	Model   string
	Unit    int // lowest rack unit; 0 for a rack without units
	Height  int // rack units; default 1
	Ports   int
	OS      string
	Address netip.Addr   // of its management port
	BMC     netip.Addr   // of its BMC, where it has one beside that
	Power   unit.Watts   // most that it draws; 0: not given
	Liquid  unit.Percent // share of the heat that goes into liquid
	Feeds   []Feed
	Airflow string // "", "front-to-back" or "back-to-front"
	Console string
	Fabric  *Fabric   // the fabric that it belongs to; may be nil
	Login   *Login    // its own, else that of its fabric; nil: it is not logged in to
	HostKey string    // SHA256:..., the only key that it may show; "": that seen first
	Weight  unit.Mass // 0: not given

	// Its part in the topology of Fabric, as given, or as computed.
	Tier         Tier
	ScalableUnit int // from 1; 0: none, or not given
	Rail         int // of a leaf; -1: none, or not given
	Plane        int // from 0; -1: none, or not given
	Pod          int // of three levels, from 1; 0: none, or not given
	Decl         hcl.Range
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
	Redundancy string     // "n", "n+1", "n+2" or "n+n"
	Weight     unit.Mass
	Feeds      []Feed
	Control    *ShelfControl // nil: it is counted, and not read
	Decl       hcl.Range
}

// ShelfControl is how the management controller of a power shelf is reached, over Redfish.
type ShelfControl struct {
	Address  netip.Addr
	Username string
	Password secret.Ref
	TLS      TLSTrust
	Decl     hcl.Range
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
	Name         string // unique in the site
	Rack         *Rack
	Unit         int // lowest rack unit
	Role         *Role
	Hardware     *Hardware
	Image        *Image
	Disks        *DiskLayout
	Host         *HostSettings
	Drivers      []*Driver
	Partitions   []Partition
	Validation   *Validation
	Handover     *Handover
	Exports      []*Handover // further ones that list the node (Handover.Export)
	Serial       string      // of the chassis; empty: not given
	UUID         string      // SMBIOS, lower case; empty: not given
	BootMAC      addr.MAC    // zero: not given
	BootNetwork  *Network    // of the NIC that boots; nil without one
	Address      netip.Addr
	Address6     netip.Addr // of the second prefix of BootNetwork, by Address; invalid without one
	Tagged       []TaggedNetwork
	BMC          BMCTarget
	Console      *SSHConsole // nil: its BMC has it, or nobody
	Feeds        []Feed
	Domain       string // NVLink domain; empty: none
	InstallDisk  string // serial number or WWN of the disk that its layout is on; empty: the one that fits
	ScalableUnit int    // from 1, of the node or its rack; 0: not given, topologies count
	Protect      bool   // never erased by a plan
	Foreign      bool   // another tool installed it: nothing but checks is for it; false for all that Load returns
	Retired      bool   // in no file any more, and being decommissioned; false for all that Load returns
	Override     *Override
	Decl         hcl.Range
	Ranges       NodeRanges
}

// HandedOver reports whether anybody gets the node once it is accepted, so that it is
// drained before it is changed.
func (n *Node) HandedOver() bool { return n.Handover != nil || len(n.Exports) > 0 }

// NodeRanges are the places of a node's attributes, for messages; where one was
// not given, that of the node's header, and of an address that follows from the
// position, that of the unit.
type NodeRanges struct {
	Name, Unit, Serial, UUID, BootMAC, BMCMAC, Address, BMCAddress, Hardware, Role, Feeds, InstallDisk hcl.Range
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
	Protocol        string // "redfish", "ipmi" or "rpc"
	Network         *Network
	Address         netip.Addr
	MAC             addr.MAC // zero: not given
	Port            uint16
	CipherSuite     int    // ipmi only
	Endpoint        string // rpc only
	Username        string
	Password        secret.Ref
	TLS             TLSTrust
	FactoryUsername string
	FactoryPassword secret.Ref
}

// Tier is the level of a switch in the tree of its fabric.
type Tier string

// The tiers, from the nodes upwards.
const (
	NoTier Tier = ""
	Leaf   Tier = "leaf"
	Spine  Tier = "spine"
	Core   Tier = "core"
)

// Height orders tiers from the nodes upwards: 0 of a leaf, 2 of a core, -1 of a switch
// without a tier.
func (t Tier) Height() int { return slices.Index([]Tier{Leaf, Spine, Core}, t) }

// Cable is one cable, or one half of a splitter cable: a cable block of the site,
// or one that the topology of a fabric computes.
type Cable struct {
	From, To CableEnd // of a computed one From is the lower end: the node, the leaf, the spine
	Type     string   // "DAC", "ACC", "AEC", "AOC", "fibre", "copper" or "": not given
	Length   unit.Length
	Fabric   *Fabric      // of a computed one; nil for a cable block
	Rail     int          // of a computed one that ends in a node; else -1
	Speed    unit.BitRate // of this cable or half; 0: not known
	Splitter *Cable       // the first half of the splitter cable that this is a further part of; nil: a cable of its own, or the first half
	Decl     hcl.Range
	Ranges   *CableRanges // of a cable block; nil for a computed one
}

// NodeEnd returns the end of a cable that is at a node, From where both are, and the other
// one; near.Node is nil where neither is.
func (c *Cable) NodeEnd() (near, far *CableEnd) {
	if c.From.Node != nil {
		return &c.From, &c.To
	}
	return &c.To, &c.From
}

// CableRanges are the places of a cable block's attributes, for messages; where
// one was not given, that of the block's header.
type CableRanges struct{ From, To, Type, Length hcl.Range }

// Places are where the cable's parts are written; those of a computed one are all
// the header of its fabric.
func (c *Cable) Places() CableRanges {
	if c.Ranges == nil {
		return CableRanges{From: c.Decl, To: c.Decl, Type: c.Decl, Length: c.Decl}
	}
	return *c.Ranges
}

// Place is where an end is written; e is that of this cable, not a copy.
func (c *Cable) Place(e *CableEnd) hcl.Range {
	if e == &c.To {
		return c.Places().To
	}
	return c.Places().From
}

// Computed reports whether a topology computes the cable.
func (c *Cable) Computed() bool { return c.Fabric != nil }

// CableEnd is a port: "r01-u01/rail/0" (node, nic or hca, port index),
// "r01/leaf-1/17" (rack, switch, port number), or "r01/leaf-1/17/2": the second
// lane of a port that is split.
type CableEnd struct {
	Text   string // as written; empty for a computed one, see String
	Node   *Node
	NIC    *NIC
	Switch *Switch
	Port   int
	Lane   int // from 1, of a split port; 0: the whole port
}

// String is the name of the port, as cable blocks write it.
func (e CableEnd) String() string {
	var s string
	switch {
	case e.Text != "":
		return e.Text
	case e.Node != nil && e.NIC != nil:
		s = e.Node.Name + "/" + e.NIC.Name + "/" + strconv.Itoa(e.Port)
	case e.Switch != nil:
		s = e.Switch.Name + "/" + strconv.Itoa(e.Port)
	}
	if e.Lane > 0 {
		s += "/" + strconv.Itoa(e.Lane)
	}
	return s
}
