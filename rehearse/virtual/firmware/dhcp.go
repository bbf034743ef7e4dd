// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

// program is one DHCP client of a boot: what it says about itself, and how
// long it waits.
type program struct {
	class  string // option 60
	arch   uint16 // option 93, RFC 4578
	undi   [2]byte
	ipxe   bool            // sends user class and options of iPXE
	http   bool            // takes a URL, and only from a server that says HTTPClient
	settle time.Duration   // before the first packet: the link comes up
	choose time.Duration   // from an offer to the request, for better offers
	waits  []time.Duration // for an answer, after each packet
}

// waitsPXE are the time-outs of PXE 2.1, section 2.4.1; iPXE's are those of its
// dhcp.c, doubled from one second as long as they are below ten.
func waitsPXE() []time.Duration {
	return []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}
}

func waitsIPXE() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
}

// romProgram returns the program in the firmware. The words are those seen on the wire: EDK2
// asks as UNDI 3.0, BIOS ROMs as 2.1.
func romProgram(how inventory.Firmware, processors inventory.Arch) program {
	p := program{class: "PXEClient:Arch:00000:UNDI:002001", undi: [2]byte{2, 1}, settle: 3 * time.Second, choose: time.Second, waits: waitsPXE()}
	switch {
	case how == inventory.BootBIOS:
		return p
	case how == inventory.BootUEFI && processors == inventory.ARM64:
		p.class, p.arch = "PXEClient:Arch:00011:UNDI:003000", 11
	case how == inventory.BootUEFI:
		p.class, p.arch = "PXEClient:Arch:00007:UNDI:003000", 7
	case processors == inventory.ARM64:
		p.class, p.arch, p.http = "HTTPClient:Arch:00019:UNDI:003000", 19, true
	default:
		p.class, p.arch, p.http = "HTTPClient:Arch:00016:UNDI:003000", 16, true
	}
	p.undi, p.choose = [2]byte{3, 0}, 4*time.Second
	return p
}

// ipxeProgram returns the program that the loaders are. Started by UEFI it is snponly.efi.
func ipxeProgram(how inventory.Firmware) program {
	p := program{class: "PXEClient:Arch:00000:UNDI:002001", undi: [2]byte{2, 1}, ipxe: true,
		settle: 2 * time.Second, choose: 2 * time.Second, waits: waitsIPXE()}
	if how != inventory.BootBIOS {
		p.class, p.arch, p.undi = "PXEClient:Arch:00007:UNDI:003010", 7, [2]byte{3, 10}
	}
	return p
}

// lease is what a client got.
type lease struct {
	address netip.Prefix
	server  netip.Addr // where the boot file lies
	file    string     // name or URL
}

// Why a client got nothing.
var (
	errNoOffer = errors.New("no DHCP offer was received")
	errNoFile  = errors.New("offers were received, and none with a boot file for this firmware")
	errNoAck   = errors.New("the offer was not acknowledged")
	errNak     = errors.New("the server took its offer back")
)

// acquire is DISCOVER, OFFER, REQUEST, ACK. A NAK starts over, three times.
func (b *Board) acquire(ctx context.Context, mac addr.MAC, p program) (l lease, err error) {
	if err := b.cfg.Clock.Sleep(ctx, p.settle); err != nil {
		return l, err
	}
	if b.cfg.Relay == nil {
		return l, errors.New("no link")
	}
	hear := b.cfg.Relay.plug(mac)
	defer b.cfg.Relay.unplug(mac)
	for range 3 {
		x := exchange{b: b, mac: mac, program: p, hear: hear, xid: b.xid()}
		if _, err = x.sendUntil(ctx, x.discover(), x.offered); err != nil {
			return l, err
		}
		if err := b.cfg.Clock.Sleep(ctx, p.choose); err != nil {
			return l, err
		}
		var ack *dhcpv4.DHCPv4
		if ack, err = x.sendUntil(ctx, x.request(x.offer), x.acknowledged); err == nil {
			if l = leaseOf(ack); x.offer == x.plain {
				return x.withProxy(ctx, l)
			}
			return l, nil
		}
		if !errors.Is(err, errNak) {
			return l, err
		}
	}
	return l, err
}

// exchange is one transaction.
type exchange struct {
	b   *Board
	mac addr.MAC
	program
	hear   <-chan []byte
	xid    [4]byte
	spent  time.Duration  // option secs of the next packet
	noFile bool           // offers came without a boot file
	offer  *dhcpv4.DHCPv4 // of an address, that is taken
	plain  *dhcpv4.DHCPv4 // the last offer of an address without a boot file
	proxy  *dhcpv4.DHCPv4 // an offer of a boot file without an address
}

// sendUntil sends a packet until an answer fits or the program gives up.
func (x *exchange) sendUntil(ctx context.Context, q *dhcpv4.DHCPv4, fits func(*dhcpv4.DHCPv4) error) (*dhcpv4.DHCPv4, error) {
	for _, wait := range x.waits {
		q.NumSeconds = uint16(x.spent / time.Second)
		x.b.cfg.Relay.broadcast(x.mac, q.ToBytes())
		if a, err := x.listen(ctx, wait, fits); a != nil || err != nil {
			return a, err
		}
		x.spent += wait
	}
	switch {
	case q.MessageType() == dhcpv4.MessageTypeRequest:
		return nil, errNoAck
	case x.noFile:
		return nil, errNoFile
	}
	return nil, errNoOffer
}

// errOther says that a packet is not the answer.
var errOther = errors.New("not the answer")

// listen waits for the answer to one packet; neither a packet nor an error means
// that none came.
func (x *exchange) listen(ctx context.Context, wait time.Duration, fits func(*dhcpv4.DHCPv4) error) (*dhcpv4.DHCPv4, error) {
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case raw := <-x.hear:
			a, err := dhcpv4.FromBytes(raw)
			if err != nil || a.TransactionID != x.xid || addr.MAC(raw[atMAC:atMAC+6]) != x.mac {
				continue
			}
			if err := fits(a); err == nil {
				return a, nil
			} else if !errors.Is(err, errOther) {
				return nil, err
			}
		case <-t.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// offered takes the first offer that this firmware can boot from. UEFI drops one
// for HTTP that does not name its class (UEFI 2.10, 24.7.3.1).
func (x *exchange) offered(a *dhcpv4.DHCPv4) error {
	if a.MessageType() != dhcpv4.MessageTypeOffer || a.ServerIdentifier() == nil {
		return errOther
	}
	file := fileOf(a)
	switch {
	case x.proxied(a):
	case !toAddr(a.YourIPAddr).IsValid():
	case file == "" || x.http && (!strings.HasPrefix(a.ClassIdentifier(), "HTTPClient") || !strings.HasPrefix(file, "http://")):
		x.noFile, x.plain = true, a
	default:
		x.offer = a
		return nil
	}
	if x.plain == nil || x.proxy == nil {
		return errOther
	}
	x.offer = x.plain
	return nil
}

func (x *exchange) acknowledged(a *dhcpv4.DHCPv4) error {
	switch {
	case a.MessageType() == dhcpv4.MessageTypeNak:
		return errNak
	case a.MessageType() != dhcpv4.MessageTypeAck || !toAddr(a.YourIPAddr).IsValid():
		return errOther
	}
	return nil
}

// discover makes the first packet.
func (x *exchange) discover() *dhcpv4.DHCPv4 {
	o := dhcpv4.Options{
		uint8(dhcpv4.OptionDHCPMessageType):                  {byte(dhcpv4.MessageTypeDiscover)},
		uint8(dhcpv4.OptionMaximumDHCPMessageSize):           {1472 >> 8, 1472 & 0xff},
		uint8(dhcpv4.OptionClassIdentifier):                  []byte(x.class),
		uint8(dhcpv4.OptionClientSystemArchitectureType):     binary.BigEndian.AppendUint16(nil, x.arch),
		uint8(dhcpv4.OptionClientNetworkInterfaceIdentifier): {1, x.undi[0], x.undi[1]},
		uint8(dhcpv4.OptionClientMachineIdentifier):          append([]byte{0}, x.b.uuid[:]...),
		uint8(dhcpv4.OptionParameterRequestList):             {1, 3, 6, 12, 15, 43, 60, 66, 67, 97},
	}
	if x.ipxe {
		o[uint8(dhcpv4.OptionUserClassInformation)] = []byte("iPXE") // bare, not as RFC 3004 has it
		o[uint8(dhcpv4.OptionClientIdentifier)] = append([]byte{1}, x.mac[:]...)
		o[175] = []byte{0xb1, 5, 1, 0x80, 0x86, 0x10, 0x0e, 19, 1, 1, 39, 1, 1, 21, 1, 1} // bus id, HTTP, bzImage, ...
	}
	q := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: 1, TransactionID: x.xid, ClientHWAddr: x.mac.HardwareAddr(), Options: o}
	if !x.ipxe {
		q.SetBroadcast() // EDK2 does, iPXE does not
	}
	return q
}

// request asks for what was offered (RFC 2131, table 5).
func (x *exchange) request(offer *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	q := x.discover()
	q.Options[uint8(dhcpv4.OptionDHCPMessageType)] = []byte{byte(dhcpv4.MessageTypeRequest)}
	q.Options[uint8(dhcpv4.OptionRequestedIPAddress)] = offer.YourIPAddr.To4()
	q.Options[uint8(dhcpv4.OptionServerIdentifier)] = offer.ServerIdentifier().To4()
	return q
}

// leaseOf reads an acknowledgement. Without a mask the network is that of the
// address's class, which for all of today's is taken as 24 bits.
func leaseOf(a *dhcpv4.DHCPv4) lease {
	bits := 24
	if ones, size := a.SubnetMask().Size(); size == 32 {
		bits = ones
	}
	l := lease{address: netip.PrefixFrom(toAddr(a.YourIPAddr), bits), server: toAddr(a.ServerIPAddr), file: fileOf(a)}
	if !l.server.IsValid() {
		if s, err := netip.ParseAddr(a.TFTPServerName()); err == nil {
			l.server = s
		} else {
			l.server = toAddr(a.ServerIdentifier())
		}
	}
	return l
}

// fileOf is option 67, or the field of BOOTP.
func fileOf(a *dhcpv4.DHCPv4) string {
	if f := strings.TrimRight(a.BootFileNameOption(), "\x00"); f != "" {
		return f
	}
	return a.BootFileName
}

// toAddr returns the zero Addr for what is no address of a node.
func toAddr(ip net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(ip.To4())
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// smbiosUUID turns a UUID's text into the bytes that firmware sends in option 97:
// those of SMBIOS, the first three groups little-endian. All zeros: not known.
func smbiosUUID(text string) (u [16]byte) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(u) {
		return u
	}
	copy(u[:], raw)
	slices.Reverse(u[0:4])
	slices.Reverse(u[4:6])
	slices.Reverse(u[6:8])
	return u
}

// describeError says on the console why DHCP ended, with the codes that people search
// for.
func (p program) describeError(err error) string {
	code := "PXE-E51"
	switch {
	case p.ipxe:
		return fmt.Sprintf("No configuration methods succeeded: %v (http://ipxe.org/040ee119)", err)
	case p.arch != 0:
		code = "PXE-E16"
	case errors.Is(err, errNoFile):
		code = "PXE-E53"
	}
	return fmt.Sprintf("%s: %v", code, err)
}
