// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
	"github.com/ironrail/ironrail/provision/services"
)

// The network of DHCP: servers on one end of a pair of veth interfaces, clients on the other.
const (
	serverEnd, clientEnd = "srv0", "cli0"
	dhcpClients          = 20_000 // known to both servers, and each asks once in a measurement
	dhcpAtOnce           = 128    // clients that wait for an answer
)

var (
	dhcpServer = netip.MustParseAddr("10.99.0.2")
	dhcpRelay  = netip.MustParseAddr("10.99.0.3")
	dhcpNet    = netip.MustParsePrefix("10.99.0.0/16")
)

// clientOf is the i-th client.
func clientOf(i int) boot.Client {
	name := fmt.Sprintf("n%05d", i)
	return boot.Client{Node: name, Hostname: name, Domain: "cluster.example", MACs: []addr.MAC{macOf(i)}, UUID: fmt.Sprintf("00000000-0000-4000-8000-%x", macOf(i)),
		Address: netip.PrefixFrom(addressOf(i), dhcpNet.Bits()), Gateway: dhcpRelay, DNS: []netip.Addr{dhcpServer}, Firmware: boot.UEFI}
}

func macOf(i int) addr.MAC {
	return addr.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}
}

func addressOf(i int) netip.Addr {
	i += 256
	return netip.AddrFrom4([4]byte{10, 99, byte(i >> 8), byte(i)})
}

// serveDHCP answers clients as a run does: by its memory of nodes, with what it records of them.
func serveDHCP(ctx context.Context, clients string) error {
	n, err := strconv.Atoi(clients)
	if err != nil {
		return err
	}
	var known []boot.Client
	for i := range n {
		known = append(known, clientOf(i))
	}
	boots := install.NewBoots(make([]byte, 32), known, nil)
	for _, c := range known {
		boots.Set(install.Attempt{ID: c.Node + "-0123456789abcdef", Node: c.Node, Phase: install.Open, Power: install.PowerOn, Opened: time.Now(), Expires: time.Now().Add(time.Hour)})
	}
	limiter := evidence.NewLimiter(services.NewBootLog(event.NewBus(4096)))
	defer limiter.Close()
	s, err := dhcp.Open(ctx, dhcp.Config{Interface: serverEnd, Source: boots, Recorder: limiter,
		Policy: dhcp.Policy{Address: dhcpServer, HTTPPort: 80, Lease: 86400, Loaders: map[string]bool{"snponly.efi": true}, Chain: &dhcp.Chain{},
			Networks: []dhcp.Network{{Name: "boot", Prefix: dhcpNet, Relays: []netip.Addr{dhcpRelay}, Local: true}}}})
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}

// measureDHCP compares the servers, for clients that ask by broadcast
// and for clients behind a relay agent.
func measureDHCP(ctx context.Context, rounds int, work, self string) error {
	if err := makeNetwork(ctx); err != nil {
		return err
	}
	for _, relayed := range []bool{false, true} {
		what := "DHCP, DISCOVER to ACK, " + strconv.Itoa(dhcpClients) + " clients by broadcast"
		if relayed {
			what = "DHCP, DISCOVER to ACK, " + strconv.Itoa(dhcpClients) + " clients behind a relay agent"
		}
		ask := func(ctx context.Context) (int64, error) { return exchangeAll(ctx, relayed) }
		peers := []*peer{
			{name: "kea, as shipped", fetch: ask},
			{name: "kea, nothing on disk", fetch: ask},
			{name: "ironrail", argv: []string{self, "dhcp", strconv.Itoa(dhcpClients)}, fetch: ask},
		}
		for i, shipped := range []bool{true, false} {
			dir := filepath.Join(work, fmt.Sprintf("kea%v%d", relayed, i))
			conf, err := makeKeaConfig(dir, relayed, shipped)
			if err != nil {
				return err
			}
			peers[i].argv = []string{"kea-dhcp4", "-c", conf}
			peers[i].env = []string{"KEA_PIDFILE_DIR=" + dir, "KEA_LOCKFILE_DIR=" + dir}
		}
		if err := compare(ctx, rounds, what, perExchange, peers); err != nil {
			return err
		}
	}
	return nil
}

// makeNetwork makes the pair of interfaces, unless it is there.
func makeNetwork(ctx context.Context) error {
	if _, err := net.InterfaceByName(clientEnd); err == nil {
		return nil
	}
	for _, words := range []string{
		"link add " + serverEnd + " type veth peer name " + clientEnd, "addr add " + dhcpServer.String() + "/16 dev " + serverEnd,
		"link set " + serverEnd + " up", "link set " + clientEnd + " up arp off",
	} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", words, err, out)
		}
	}
	ifi, err := net.InterfaceByName(clientEnd)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "ip", "neigh", "add", dhcpRelay.String(), "lladdr", ifi.HardwareAddr.String(), "dev", serverEnd).CombinedOutput(); err != nil {
		return fmt.Errorf("ip neigh: %w: %s", err, out)
	}
	return nil
}

// makeKeaConfig writes Kea's configuration: a reservation for each client, and what ours answers. As
// shipped, leases are written to a file and each is a line of a log; else neither is.
func makeKeaConfig(dir string, relayed, shipped bool) (string, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	type object = map[string]any
	var hosts []object
	for i := range dhcpClients {
		c := clientOf(i)
		hosts = append(hosts, object{"hw-address": c.MACs[0].String(), "ip-address": c.Address.Addr().String(), "hostname": c.Hostname})
	}
	socket, severity := "raw", "WARN" // raw is Kea's default, udp its advice where all clients are behind relay agents
	if relayed {
		socket = "udp"
	}
	leases := object{"type": "memfile", "persist": false}
	if shipped {
		leases = object{"type": "memfile", "lfc-interval": 3600, "name": filepath.Join(dir, "leases.csv")}
		severity = "INFO"
	}
	b, err := json.Marshal(object{"Dhcp4": object{
		"interfaces-config":            object{"interfaces": []string{serverEnd}, "dhcp-socket-type": socket},
		"lease-database":               leases,
		"valid-lifetime":               86400,
		"host-reservation-identifiers": []string{"hw-address"},
		"reservations-in-subnet":       true, "reservations-out-of-pool": true,
		"next-server": dhcpServer.String(), "boot-file-name": "snponly.efi",
		"option-data": []object{{"name": "domain-name-servers", "data": dhcpServer.String()}, {"name": "domain-name", "data": "cluster.example"}, {"name": "routers", "data": dhcpRelay.String()}},
		"subnet4":     []object{{"subnet": dhcpNet.String(), "reservations": hosts}},
		"loggers":     []object{{"name": "kea-dhcp4", "severity": severity, "output_options": []object{{"output": filepath.Join(dir, "log")}}}},
	}})
	conf := filepath.Join(dir, "kea.json")
	return conf, errors.Join(err, os.WriteFile(conf, b, 0o644))
}

// asker is the clients' end of the network: frames, since clients have no address yet.
type asker struct {
	conn     *packet.Conn
	to       net.HardwareAddr
	discover []byte // of client 0
	request  []byte
	sid, own int // where request has the server identifier and the address that it asks for
	relayed  bool

	state []state // of the clients that have asked
	done  int     // clients that have their address
}

// state is how far a client is.
type state byte

const (
	asks state = iota
	has        // its address
)

// Offsets in a frame of Ethernet, IPv4 and UDP, and in a message behind them (RFC 2131, section 2).
const (
	frameHead = 14 + 20 + 8
	xidAt     = frameHead + 4
	yiaddrAt  = frameHead + 16
	chaddrAt  = frameHead + 28
)

func newAsker(relayed bool) (*asker, error) {
	ifi, err := net.InterfaceByName(clientEnd)
	if err != nil {
		return nil, err
	}
	server, err := net.InterfaceByName(serverEnd)
	if err != nil {
		return nil, err
	}
	conn, err := packet.Listen(ifi, packet.Raw, unix.ETH_P_IP, nil)
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	bufErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	})
	if err := errors.Join(err, bufErr); err != nil {
		return nil, err
	}
	a := &asker{conn: conn, to: net.HardwareAddr{255, 255, 255, 255, 255, 255}, relayed: relayed}
	if relayed {
		a.to = server.HardwareAddr
	}
	a.discover = a.frameOf(discover)
	a.request = a.frameOf(request, 54, 4, 1, 2, 3, 4, 50, 4, 5, 6, 7, 8)
	a.sid, a.own = bytes.Index(a.request, []byte{54, 4, 1, 2, 3, 4})+2, bytes.Index(a.request, []byte{50, 4, 5, 6, 7, 8})+2
	return a, nil
}

// uuidHead is option 97 up to what is different in the UUID of each client, which is its MAC.
var uuidHead = []byte{97, 17, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0}

// Types of messages, RFC 2132 section 9.6.
const (
	discover = 1
	offer    = 2
	request  = 3
	ack      = 5
)

// firmware is what EDK2 says of itself when it boots by PXE: options 60, 93, 94 and 57 (RFC 4578,
// RFC 2132), and what it asks for.
const firmware = "\x3c\x20PXEClient:Arch:00007:UNDI:003000\x5d\x02\x00\x07\x5e\x03\x01\x03\x00\x39\x02\x05\xc0\x37\x07\x01\x03\x06\x0f\x0c\x42\x43"

// frameOf makes a message of a type from client 0, with further options.
func (a *asker) frameOf(t byte, more ...byte) []byte {
	src, dst := netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{255, 255, 255, 255})
	sport := uint16(68)
	body := make([]byte, 240)
	body[0], body[1], body[2] = 1, 1, 6 // a request, Ethernet
	if a.relayed {
		src, dst, sport = dhcpRelay, dhcpServer, 67
		body[3] = 1
		copy(body[24:], dhcpRelay.AsSlice())
	}
	copy(body[236:], []byte{99, 130, 83, 99})
	body = append(append(body, 53, 1, t), firmware...)
	body = append(append(body, uuidHead...), make([]byte, 6)...)
	body = append(append(body, more...), 255)
	b := make([]byte, frameHead, frameHead+len(body))
	copy(b, a.to)
	copy(b[6:], net.HardwareAddr{2, 0, 0, 0, 0, 0})
	b[12], b[13] = 8, 0
	ip := b[14:34]
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(28+len(body)))
	copy(ip[12:], src.AsSlice())
	copy(ip[16:], dst.AsSlice())
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum>>16+sum&0xffff))
	binary.BigEndian.PutUint16(b[34:], sport)
	binary.BigEndian.PutUint16(b[36:], 67)
	binary.BigEndian.PutUint16(b[38:], uint16(8+len(body)))
	return append(b, body...)
}

// send sends a frame in the name of a client.
func (a *asker) send(b []byte, i int) error { return a.sendAs(b, macOf(i), uint32(i)+1) }

func (a *asker) sendAs(b []byte, mac addr.MAC, xid uint32) error {
	if !a.relayed {
		copy(b[6:], mac[:])
	}
	copy(b[chaddrAt:], mac[:])
	binary.BigEndian.PutUint32(b[xidAt:], xid)
	copy(b[bytes.LastIndex(b, uuidHead)+len(uuidHead):], mac[:])
	_, err := a.conn.WriteTo(b, &packet.Addr{HardwareAddr: a.to})
	return err
}

// exchangeAll has every client ask once, some at a time, until all have their address. It returns
// how many do.
func exchangeAll(ctx context.Context, relayed bool) (int64, error) {
	a, err := newAsker(relayed)
	if err != nil {
		return 0, err
	}
	defer a.conn.Close()
	for range dhcpAtOnce {
		if err := a.begin(); err != nil {
			return 0, err
		}
	}
	b := make([]byte, 2048)
	for silent := 0; a.done < dhcpClients && ctx.Err() == nil; {
		_ = a.conn.SetReadDeadline(time.Now().Add(time.Second))
		n, _, err := a.conn.ReadFrom(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && silent < 3:
			silent++
			err = a.again()
		case err == nil:
			silent = 0
			err = a.take(b[:n])
		}
		if err != nil {
			return 0, fmt.Errorf("%d of %d clients have an address: %w", a.done, dhcpClients, err)
		}
	}
	return int64(a.done), ctx.Err()
}

// begin has the next client ask; nothing where all did.
func (a *asker) begin() error {
	if len(a.state) == dhcpClients {
		return nil
	}
	a.state = append(a.state, asks)
	return a.send(a.discover, len(a.state)-1)
}

// take reads a frame, and has the next client ask for each that has its address.
func (a *asker) take(b []byte) error {
	i, got, err := a.answer(b)
	if err != nil || !got || a.state[i] != asks {
		return err
	}
	a.state[i] = has
	a.done++
	return a.begin()
}

// again has all clients ask that wait.
func (a *asker) again() error {
	for i, s := range a.state {
		if s != asks {
			continue
		}
		if err := a.send(a.discover, i); err != nil {
			return err
		}
	}
	return nil
}

// answer reads a frame: an offer is taken, and an acknowledgement is the client's address. It
// returns the client; below zero: the frame is no answer.
func (a *asker) answer(b []byte) (client int, got bool, err error) {
	if len(b) < frameHead+240 || b[23] != 17 || b[34] != 0 || b[35] != 67 || b[frameHead] != 2 {
		return -1, false, nil
	}
	i := int(binary.BigEndian.Uint32(b[xidAt:])) - 1
	if i < 0 || i >= len(a.state) {
		return -1, false, nil
	}
	own := netip.AddrFrom4([4]byte(b[yiaddrAt:]))
	if own != addressOf(i) {
		return i, false, fmt.Errorf("client %d is given %s instead of %s", i, own, addressOf(i))
	}
	t, server := optionOf(b[frameHead+240:], 53), optionOf(b[frameHead+240:], 54)
	switch {
	case len(t) == 1 && t[0] == ack:
		return i, true, nil
	case len(t) == 1 && t[0] == offer && len(server) == 4:
		copy(a.request[a.sid:], server)
		copy(a.request[a.own:], b[yiaddrAt:yiaddrAt+4])
		return i, false, a.send(a.request, i)
	}
	return i, false, fmt.Errorf("client %d is answered a message of type %v by the server %v", i, t, server)
}

// optionOf finds an option; nil: it is not there.
func optionOf(b []byte, code byte) []byte {
	for len(b) > 1 && b[0] != 255 {
		switch n := 2 + int(b[1]); {
		case b[0] == 0:
			b = b[1:]
		case n > len(b):
			return nil
		case b[0] == code:
			return b[2:n]
		default:
			b = b[n:]
		}
	}
	return nil
}
