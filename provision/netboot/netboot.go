// SPDX-License-Identifier: Apache-2.0

// Package netboot is the boot services of a controller: DHCPv4, TFTP for first
// loaders, HTTP for everything else, generated iPXE scripts, and on request the
// empty router advertisement that iPXE waits for. It answers known clients
// only, never learns why a node is to boot, and keeps nothing on disk: all it
// knows comes from a Source, and all it sees goes to a Recorder.
package netboot

import (
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/httpboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// The words of the seam, as their users write them; package boot defines them.
type (
	Client   = boot.Client
	Firmware = boot.Firmware
	Kind     = boot.Kind
	Attempt  = boot.Attempt
	Source   = boot.Source
	Evidence = boot.Evidence
	Proto    = boot.Proto
	Recorder = boot.Recorder
	Mount    = httpboot.Mount
)

// The words of Client, again for its users.
const (
	BIOS     = boot.BIOS
	UEFI     = boot.UEFI
	UEFIHTTP = boot.UEFIHTTP
	Node     = boot.Node
	BMC      = boot.BMC
)

// Agent is the service of what the agent API saw, again for its users.
const Agent = boot.Agent

// Config says where the boot services listen and what they offer. Source and
// Recorder are given to Open.
type Config struct {
	// Network is where all sockets are opened. Nil: the operating system's. On
	// another one DHCP answers what comes through a relay only, and there is no
	// router advertisement.
	Network network.Network

	// Kept keeps the sockets of DHCP, TFTP and HTTP open for the next Open, where Network is the
	// operating system's; nil: they are closed with the server.
	Kept *sockets.Kept

	Interface string     // the boot interface; DHCP and RA are bound to it
	Address   netip.Addr // the controller's IPv4 address there: server identifier, siaddr and URLs

	// Relays are the relay agents that may speak for clients, beside the gateway of
	// each client's network; AnyRelay takes all, for networks where nobody can pretend
	// to be one.
	Relays   []netip.Addr
	AnyRelay bool

	// Proxy is ProxyDHCP: another server gives nodes the addresses that the Source has for
	// them, and these services give programs that boot their boot file, also on UDP 4011.
	Proxy bool

	// Networks are those that clients ask from, where they are known: a client that asks
	// on another network than that of its address is refused, and a pool is for machines
	// that the Source does not know. What one says of a proxy goes before Proxy.
	Networks []dhcp.Network

	// WrongPort says why a client that asks through a relay agent with option 82 is at a port
	// that is not its own, which is then refused; "": it is not. Nil: nobody knows.
	WrongPort func(Client, dhcp.Asked) string

	HTTPPort uint16 // zero: 80; firmware needs no port in a URL then
	TFTPPort uint16 // zero: 69
	DHCPPort uint16 // zero: 67; anything else is for tests and rehearsals

	// WatchOthers looks for other DHCP servers on the boot network while the services
	// run, and answers no DHCP before it is known that there is none, unless Proxy is set.
	// It needs root on the operating system's network, and another one to carry broadcasts.
	WatchOthers bool

	// TwoUUIDs is told of boot attempts under whose MAC two machines ask. Nil: nobody is.
	TwoUUIDs func(dhcp.TwoUUIDs)

	RouterAdvertisement string        // "empty" answers router solicitations with lifetime 0 and no prefix; "" does not
	LoaderDir           string        // folder of snponly.efi and undionly.kpxe; empty: /usr/lib/ipxe
	Loaders             loader.Set    // beside those of the folder, such as what images bring; they win
	Lease               time.Duration // zero: 24 hours; T1 and T2 are a half and 7/8 of it
	Mounts              []Mount       // what the HTTP service serves beside loaders and scripts
}
