// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/lock"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Inventory is one site as its files say it, every reference resolved. Lists are
// sorted by name. It is complete only when Load reported no error; it is never
// changed after Load and may be read by many goroutines.
type Inventory struct {
	Dir string // the folder that was read
	// Sources are the files and folders in Dir that Load looked for: those of modules and those
	// that functions read too, and those that were not there. nil without Load.
	Sources     *Sources
	Site        Site
	Variables   []*Variable
	Controllers []*Controller
	State       StateStore
	Networks    []*Network
	BMCs        []*BMCProfile
	Logins      []*Login // to switches
	Hardware    []*Hardware
	Images      []*Image
	DiskLayouts []*DiskLayout
	Hosts       []*HostSettings
	Drivers     []*Driver
	Fabrics     []*Fabric
	Validations []*Validation
	Handovers   []*Handover
	Roles       []*Role
	Feeds       []*BuildingFeed
	Racks       []*Rack
	Nodes       []*Node   // of all racks
	Switches    []*Switch // of all racks, and those that a topology computes and that stand in none
	Cables      []*Cable  // the given ones by their ends, then those that topologies compute, by fabric
	Overrides   []*Override
	Hooks       []*Hook
	Notifies    []*Notify
	Allows      []*Allow
	Moves       []*Move
	Lock        *lock.Lock // what ironrail.lock says; nil when it cannot be read
}

// Node returns the node of that name.
func (inv *Inventory) Node(name string) (*Node, bool) {
	i := sort.Search(len(inv.Nodes), func(i int) bool { return inv.Nodes[i].Name >= name })
	if i < len(inv.Nodes) && inv.Nodes[i].Name == name {
		return inv.Nodes[i], true
	}
	return nil, false
}

// Planned returns the node that a step of a plan is about. The files may have changed since the plan was
// made: then it is NotFound.
func (inv *Inventory) Planned(name string) (*Node, error) {
	n, ok := inv.Node(name)
	if !ok {
		return nil, errkind.New(errkind.NotFound, "%s is planned for but not in the inventory", name).Do("Make a new plan: `ironrail plan`.")
	}
	return n, nil
}

// Diskless reports whether the node keeps its system in memory.
func (n *Node) Diskless() bool { return n.Image != nil && n.Image.Diskless() }

// Site is what holds for the whole site.
type Site struct {
	Name        string
	Domain      string   // DNS domain of the nodes, without a leading dot
	TimeServers []string // NTP servers, addresses or names
	MaxErase    int      // most nodes one run erases without the number given; default 1
	Geometry    Geometry
	Prices      *Prices // nil: none are given
	Decl        hcl.Range
}

// Prices is what things and energy cost, in one currency.
type Prices struct {
	Currency string
	KWh      float64 // of electricity; 0: not given
	PUE      float64 // energy of the building for each of its racks (ISO/IEC 30134-2); 1 where it is not given
	Each     map[string]float64
	Names    []string             // of Each, in the order of the files
	Places   map[string]hcl.Range // of their names
}

// Geometry is what cable routes are computed from; zero lengths are not given.
type Geometry struct {
	RackWidth, RowPitch, TrayHeight, Slack unit.Length
}

// Variable is an input of the site. Its value is in the scope of expressions
// only: one that is sensitive holds a secret reference, never a secret.
type Variable struct {
	Name        string
	Description string
	Sensitive   bool
	Decl        hcl.Range
}

// Controller is where ironrail itself runs.
type Controller struct {
	Name      string
	Address   netip.Addr
	Interface string // network interface that serves the boot network
	Decl      hcl.Range
}

// StateStore says where state is kept.
type StateStore struct {
	Kind string // "file" (the default) or "etcd"

	// Of "etcd" only.
	Endpoints []string // https URLs of the members for clients
	Prefix    string   // of every key: a slash first and none at the end
	// Authority, Certificate and Key are PEM files: of the members' authority, and of the
	// controller itself. A relative path begins at the site's folder.
	Authority, Certificate, Key string

	Decl hcl.Range
}

// DHCPMode is how ironrail behaves as DHCP server on a network.
type DHCPMode string

// The DHCP modes. Off is also that of a network without a dhcp block.
const (
	DHCPOff           DHCPMode = "off"
	DHCPAuthoritative DHCPMode = "authoritative"
	DHCPProxy         DHCPMode = "proxy"
)

// Network is one IP network of the site.
type Network struct {
	Name    string
	CIDR    netip.Prefix // IPv4 or IPv6, masked
	CIDR6   netip.Prefix // a second, IPv6 prefix; may be invalid (not given)
	Gateway netip.Addr   // invalid when not given
	// Gateway6 is that of the second prefix: an address of it, or one of a link (fe80::/10);
	// invalid when not given.
	Gateway6 netip.Addr
	DNS      []netip.Addr
	VLAN     int // 1..4094; 0: untagged
	MTU      int // bytes; 0: not given, means 1500
	DHCP     DHCP
	Decl     hcl.Range
	Ranges   map[string]hcl.Range // the places of the attributes that were given
}

// DHCP is a network's dhcp block.
type DHCP struct {
	Mode                DHCPMode
	Pool                Pool                 // for clients that are not in the inventory
	Relays              []netip.Addr         // relay agents that may speak for clients
	RouterAdvertisement string               // "off" or "empty" (lifetime 0, no prefix)
	Decl                hcl.Range            // zero when there is no block
	Ranges              map[string]hcl.Range // the places of the attributes that were given
}

// Pool is an inclusive range of addresses; the zero Pool is empty.
type Pool struct{ First, Last netip.Addr }

// Contains reports whether a lies in the pool.
func (p Pool) Contains(a netip.Addr) bool {
	return p.First.IsValid() && p.First.Compare(a) <= 0 && a.Compare(p.Last) <= 0
}

// BMCProfile is how a kind of BMC is reached.
type BMCProfile struct {
	Name            string
	Protocol        string   // "redfish", "ipmi" or "rpc"
	Network         *Network // where these BMCs live
	Port            uint16   // default 443 (redfish) or 623 (ipmi); of no meaning for rpc
	CipherSuite     int      // ipmi only; default 17
	Username        string
	Password        secret.Ref
	Endpoint        string   // rpc only: the URL of the service that answers for these BMCs
	TLS             TLSTrust // redfish and rpc
	FactoryUsername string   // the account as delivered; its password comes with the node
	Attach          string   // "dedicated" (default) or "shared" (NC-SI)
	VLAN            int      // of a shared BMC; 0: untagged
	Decl            hcl.Range
	Ranges          map[string]hcl.Range // the places of the attributes that were given
}

// TLSMode is how a BMC's certificate is trusted.
type TLSMode string

// The ways of trust.
const (
	TLSPinFirstSeen TLSMode = "pin-first-seen" // remember the key of the first contact
	TLSFingerprint  TLSMode = "fingerprint"    // only the certificate with this SHA-256
	TLSAuthority    TLSMode = "ca"             // only certificates of this authority
	TLSInsecure     TLSMode = "insecure"       // any; shown in every plan
)

// TLSTrust is a trust in certificates.
type TLSTrust struct {
	Mode        TLSMode
	Fingerprint string // lower-case hex SHA-256 of the certificate, 64 digits
	CA          string // PEM text of the authority's certificates
}

// Role is what a node is for.
type Role struct {
	Name       string
	Hardware   *Hardware // may be nil: then each node says its own
	BMC        *BMCProfile
	Image      *Image
	Disks      *DiskLayout // nil for diskless images
	Host       *HostSettings
	Drivers    []*Driver // in the order of installation
	Partitions []Partition
	Validation *Validation
	Handover   *Handover
	Mounts     []Mount
	Rollout    Rollout
	Protect    bool    // never erased by a plan
	After      []*Role // roles whose nodes come first
	Decl       hcl.Range
	Ranges     map[string]hcl.Range // the places of the attributes that were given
}

// Partition is membership of a fabric's partition.
type Partition struct {
	Fabric *Fabric
	Name   string
	PKey   uint16 // without the membership bit
}

// Mount is a file system that the nodes of a role mount.
type Mount struct {
	Path, Type, Source string
	Options            []string
	Decl               hcl.Range
}

// Rollout is how changes reach accepted nodes.
type Rollout struct {
	Canary    int          // nodes first; default 1
	Batch     unit.Percent // share of the role's nodes at a time; default 25%
	StopAfter int          // failures that stop the rollout; default 1
	Decl      hcl.Range    // zero when there is no block
}

// Override is how one node differs from its role, with a reason and an end. Its
// attributes are already applied to the Node; Allow lowers checks for it.
type Override struct {
	Node    string
	Reason  string
	Expires time.Time // midnight UTC at the end of that day; zero: never
	Allow   []string  // names of checks
	Sets    []string  // names of the attributes that it replaces, sorted
	Decl    hcl.Range
}

// Lowers reports whether the override lowers checks of an area such as "driver."
// Nil lowers none.
func (o *Override) Lowers(areas ...string) bool {
	return o != nil && slices.ContainsFunc(o.Allow, func(check string) bool {
		return slices.ContainsFunc(areas, func(area string) bool { return strings.HasPrefix(check, area) })
	})
}

// Allow lowers a check to a warning for the whole site.
type Allow struct {
	Check   string
	Reason  string
	Expires time.Time
	Decl    hcl.Range
}

// Move says that a node has another name now: what is known of From is kept for
// To.
type Move struct {
	From, To string
	Decl     hcl.Range
}

// BuildingFeed is one of the building's feeds, which the PDUs name.
type BuildingFeed struct {
	Name     string
	Capacity unit.Watts // of the feed; 0: not given
	Derate   float64    // usable share of Capacity; default 1
	Decl     hcl.Range
}

// NotifyOn are what a Notify block may ask for: findings, holds with their releases, and
// ends of runs.
var NotifyOn = []string{"finding", "hold", "run"}

// Notify is who hears of what happens in runs.
type Notify struct {
	Kind, Name string // "webhook" or "alertmanager"; unique names
	URL        NotifyURL
	Token      secret.Ref     // sent as Bearer; empty: none
	Headers    []NotifyHeader // in the order of the file
	CA         string         // see package tlstrust; empty: the system's authorities
	On         []string       // of NotifyOn
	Timeout    time.Duration  // of one try
	Lasts      time.Duration  // alertmanager: of the alert of a finding
	Decl       hcl.Range
}

// NotifyURL is a URL, or where one lies.
type NotifyURL struct {
	Text   string
	Secret secret.Ref
}

// NotifyHeader is a header of the requests.
type NotifyHeader struct {
	Name  string
	Value secret.Ref
}

// Hook is a site's own step before or after a stage. JSON of the node is on its
// standard input; a non-zero status fails the stage.
type Hook struct {
	When    string // "before" or "after"
	Stage   string
	Command []string // argument vector, no shell
	Timeout time.Duration
	Decl    hcl.Range
}
