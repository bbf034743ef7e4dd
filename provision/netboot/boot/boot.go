// SPDX-License-Identifier: Apache-2.0

// Package boot holds the words that the boot services share: who may boot
// (Client), what an armed node gets (Attempt), where both are looked up
// (Source), and what was seen on the wire (Evidence). It is a leaf of
// provision/netboot; the protocol packages know it and not each other.
package boot

import (
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
)

// Firmware says how a node's firmware boots from the network. The text is the
// one of the inventory language.
type Firmware string

// The firmwares that the boot services know.
const (
	BIOS     Firmware = "bios"      // PXE option ROM, loader by TFTP
	UEFI     Firmware = "uefi"      // UEFI PXE, loader by TFTP
	UEFIHTTP Firmware = "uefi-http" // UEFI HTTP boot, loader by HTTP
)

// Kind says what a client is. The zero Kind is a node.
type Kind string

// The kinds of clients. A BMC gets an address only and never a boot program.
const (
	Node Kind = "node"
	BMC  Kind = "bmc"
)

// Client is one known network client: everything that the boot services say to
// it. It is a value; a Source may hand out the same one many times.
type Client struct {
	Node     string       // name of the node (for a BMC too: whose BMC it is)
	Kind     Kind         // zero is Node
	MACs     []addr.MAC   // all that may ask under this name; at least one
	UUID     string       // SMBIOS UUID by the inventory; empty is not known and not checked
	Address  netip.Prefix // the reserved IPv4 address with the length of its network
	Gateway  netip.Addr   // zero: no router is offered
	DNS      []netip.Addr // empty: none is offered
	Domain   string       // empty: none is offered
	Hostname string       // empty: none is offered
	Firmware Firmware     // used for what to say; the packet decides what is sent
	// ForceUndionly sends undionly.kpxe once a boot even to a BIOS ROM that is
	// iPXE itself, for ROMs that are too old for the boot script.
	ForceUndionly bool
	// VLAN is the ID of the VLAN that its firmware is to tag frames with (IEEE 802.1Q); 0: none.
	VLAN int
	// SecureBoot: only signed programs are offered, shim first.
	SecureBoot bool
	// Signed is the distribution whose signed programs start the node's kernel (loader.In): its shim
	// starts what it signed. "": Debian's.
	Signed string
	// MOK: MokManager is served, which shim asks for where a certificate waits to be enrolled.
	MOK bool
}

// Attempt is a boot attempt that is open for a node: it is stored elsewhere and
// only read here. A node without one is sent to its disk.
type Attempt struct {
	ID      string    // letters, digits, dot, dash and underscore
	Node    string    // name of the node
	Expires time.Time // past it the attempt counts as closed; zero never expires
	Kernel  string    // path under the HTTP root, such as /boot/ID/vmlinuz
	Initrds []string  // paths under the HTTP root; better one, already concatenated
	Args    []string  // kernel arguments, in order
}

// Source answers from memory who a client is and whether it has an attempt. It
// is called several times a boot and from many goroutines, since the protocols
// keep no state; it must be cheap and must not block.
type Source interface {
	// ByMAC returns the client that owns this MAC.
	ByMAC(addr.MAC) (Client, bool)
	// ByAddress returns the client that this address is reserved for.
	ByAddress(netip.Addr) (Client, bool)
	// Attempt returns the open attempt of a node; expired ones may be returned.
	Attempt(node string) (Attempt, bool)
}

// Proto is the service that saw something.
type Proto string

// The services that give evidence.
const (
	DHCP  Proto = "dhcp"
	TFTP  Proto = "tftp"
	HTTP  Proto = "http"
	IPXE  Proto = "ipxe" // a boot script was asked for
	RA    Proto = "ra"
	Agent Proto = "agent" // the API of the agents of install ramdisks
)

// Evidence is one thing that a boot service saw or did. What is a short fixed
// word of the service; Detail is a sentence and may hold text that a client
// sent: it is not to be trusted, and is escaped by whoever shows it.
type Evidence struct {
	Time    time.Time  `json:"time"`
	Node    string     `json:"node,omitempty"`   // empty: no known client
	MAC     addr.MAC   `json:"mac,omitzero"`     // zero: not known
	Address netip.Addr `json:"address,omitzero"` // of the client; zero: none yet
	Proto   Proto      `json:"proto"`
	What    string     `json:"what"`
	Detail  string     `json:"detail,omitempty"`
	Bytes   int64      `json:"bytes,omitempty"` // delivered, for transfers
	Refused bool       `json:"refused,omitempty"`
}

// Recorder records what the boot services see. Record is called from many
// goroutines and on the path of a packet: it must not block for long.
type Recorder interface{ Record(Evidence) }

// AddressOf is the address in the remote end of a connection or request, as package net
// writes it ("192.0.2.7:4321", "[fe80::1%eth0]:4321"): an IPv4 address is one whatever
// socket it came by, and a zone is left out. The zero Addr: there is none in it.
func AddressOf(remote string) netip.Addr {
	ap, _ := netip.ParseAddrPort(remote)
	return ap.Addr().Unmap().WithZone("")
}
