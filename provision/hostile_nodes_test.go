// SPDX-License-Identifier: Apache-2.0

//go:build hostile

package provision

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent"
)

// hostileNode boots one node as its firmware, iPXE and ramdisk would, through its
// own interface.
type hostileNode struct {
	i      int
	marker string // of the disk
}

func (n *hostileNode) device() string { return fmt.Sprintf("m%d", n.i) }

// bound opens sockets on the node's interface only.
func (n *hostileNode) bound(_, _ string, c syscall.RawConn) error {
	var err error
	cerr := c.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, n.device()),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1))
	})
	return errors.Join(cerr, err)
}

func (n *hostileNode) dialer() *net.Dialer {
	return &net.Dialer{Control: n.bound, LocalAddr: &net.TCPAddr{IP: hostileAddr(n.i).AsSlice()}, Timeout: 5 * time.Second}
}

func (n *hostileNode) packets(ctx context.Context, at string) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: n.bound}
	return lc.ListenPacket(ctx, "udp4", at)
}

// again does what firmware does: it tries, for two minutes.
func again(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// boot is power-on to the reboot into the disk.
func (n *hostileNode) boot(ctx context.Context) error {
	var file string
	if err := again(ctx, func() (err error) { file, err = n.dhcp(ctx); return err }); err != nil {
		return fmt.Errorf("DHCP: %w", err)
	}
	if err := again(ctx, func() error { return n.tftp(ctx, file) }); err != nil {
		return fmt.Errorf("TFTP: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: n.dialer().DialContext}, Timeout: 2 * time.Minute}
	defer client.CloseIdleConnections()
	var b wire.Boot
	if err := again(ctx, func() (err error) { b, err = n.fetch(ctx, client); return err }); err != nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	fmt.Printf("%stoken %d %s %s\n", hostileMark, n.i, b.Attempt, b.Token)
	pinned, err := agent.PinnedClientOn(b.Pin, n.dialer().DialContext)
	if err != nil {
		return err
	}
	defer pinned.CloseIdleConnections()
	a, err := agent.New(agent.Config{Boot: b, BootID: fmt.Sprintf("boot-%d", n.i), Client: pinned, Poll: 5 * time.Second,
		Identity: func() wire.Identity { return wire.Identity{Product: "box", Serial: hostileSerial(n.i)} },
		Handlers: map[wire.TaskKind]agent.Handler{wire.Inspect: n.inspect, wire.Write: n.write, wire.Configure: n.configure}})
	if err != nil {
		return err
	}
	_, err = a.Run(ctx)
	return err
}

// dhcp gets an address and the name of the loader.
func (n *hostileNode) dhcp(ctx context.Context) (string, error) {
	conn, err := n.packets(ctx, "0.0.0.0:68")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	pxe := []dhcpv4.Modifier{dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003016")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7})}
	ask, err := dhcpv4.NewDiscovery(hostileMAC(n.i).HardwareAddr(), pxe...)
	if err != nil {
		return "", err
	}
	offer, err := exchange(conn, ask)
	if err != nil {
		return "", err
	}
	req, err := dhcpv4.NewRequestFromOffer(offer, pxe...)
	if err != nil {
		return "", err
	}
	ack, err := exchange(conn, req)
	if err != nil || ack.MessageType() != dhcpv4.MessageTypeAck || ack.YourIPAddr.String() != hostileAddr(n.i).String() {
		return "", fmt.Errorf("no ACK of %s: %v, %v", hostileAddr(n.i), ack, err)
	}
	return ack.BootFileName, nil
}

func exchange(conn net.PacketConn, ask *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, error) {
	if _, err := conn.WriteTo(ask.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: 67}); err != nil {
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	b := make([]byte, 2048)
	for {
		k, _, err := conn.ReadFrom(b)
		if err != nil {
			return nil, err
		}
		if p, err := dhcpv4.FromBytes(b[:k]); err == nil && p.TransactionID == ask.TransactionID && p.OpCode == dhcpv4.OpcodeBootReply {
			return p, nil
		}
	}
}

// tftp fetches a file in blocks of 512 bytes (RFC 1350).
func (n *hostileNode) tftp(ctx context.Context, file string) error {
	conn, err := n.packets(ctx, hostileAddr(n.i).String()+":0")
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.WriteTo([]byte("\x00\x01"+file+"\x00octet\x00"), &net.UDPAddr{IP: hostileController().AsSlice(), Port: 69}); err != nil {
		return err
	}
	b, want := make([]byte, 2048), uint16(1)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		k, from, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		if k < 4 || b[1] != 3 {
			return fmt.Errorf("answer %q", b[:k])
		}
		if binary.BigEndian.Uint16(b[2:]) == want {
			want++
		}
		if _, err := conn.WriteTo([]byte{0, 4, b[2], b[3]}, from); err != nil {
			return err
		}
		if k < 516 {
			return nil
		}
	}
}

var bootPath = regexp.MustCompile(`/boot/[^\s/]+/(vmlinuz|initrd)`)

// fetch gets script, kernel and initrd, and reads the boot file at its end.
func (n *hostileNode) fetch(ctx context.Context, c *http.Client) (b wire.Boot, err error) {
	mac := strings.ReplaceAll(hostileMAC(n.i).String(), ":", "-")
	script, err := get(ctx, c, "/boot/"+mac+"/script.ipxe")
	if err != nil {
		return b, err
	}
	var last []byte
	for _, name := range []string{"vmlinuz", "initrd"} {
		path := ""
		for _, p := range bootPath.FindAllString(string(script), -1) {
			if strings.HasSuffix(p, name) {
				path = p
			}
		}
		if last, err = get(ctx, c, path); err != nil {
			return b, err
		}
	}
	_, file, ok := bytes.Cut(last, []byte(hostileBootEnd))
	if !ok {
		return b, fmt.Errorf("no boot file in %d bytes; script: %s", len(last), script)
	}
	return b, json.Unmarshal(file, &b)
}

func get(ctx context.Context, c *http.Client, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+hostileController().String()+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %.200s", path, res.Status, b)
	}
	return b, err
}

func (n *hostileNode) task(kind wire.TaskKind) {
	fmt.Printf("%stask %s %s\n", hostileMark, hostileName(n.i), kind)
}

func (n *hostileNode) inspect(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
	n.task(wire.Inspect)
	return wire.Hardware{Identity: wire.Identity{Product: "box", Serial: hostileSerial(n.i)}, NICs: []wire.NIC{{MAC: hostileMAC(n.i), PCI: "0000:00:03.0"}},
		Disks: []wire.Disk{{Name: "vda", Serial: "D1", Size: 2 << 30}}}, nil
}

func (n *hostileNode) write(_ context.Context, raw json.RawMessage, _ func(wire.Progress)) (any, error) {
	n.task(wire.Write)
	var p wire.WriteParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	n.marker = p.Marker
	return wire.WriteResult{Written: 1}, nil
}

func (n *hostileNode) configure(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
	n.task(wire.Configure)
	return wire.ConfigureResult{HostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1v8tQ0uX3mVZ8m0nU0r1qJm2p9lq2b3a4c5d6e7f8g root@" + hostileName(n.i)}, nil
}

// TestHostileNodes is the process of TestHostile that boots the nodes which the
// controller switches on.
func TestHostileNodes(t *testing.T) {
	if os.Getenv("IRONRAIL_HOSTILE") != "nodes" {
		t.Skip("runs as a process of TestHostile")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	var wg sync.WaitGroup
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var name string
		if k, _ := fmt.Sscanf(lines.Text(), "power %s", &name); k != 1 {
			continue
		}
		wg.Go(func() {
			n := &hostileNode{i: hostileNumber(name)}
			if err := n.boot(ctx); err != nil {
				fmt.Printf("%sbroken %s %v\n", hostileMark, name, err)
				return
			}
			fmt.Printf("%sup %s %s\n", hostileMark, name, n.marker)
		})
	}
	cancel()
	wg.Wait()
}
