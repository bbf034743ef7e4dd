// SPDX-License-Identifier: Apache-2.0

package firmware_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/firmware"
)

var (
	controller = netip.MustParseAddr("10.77.0.2")
	relayAddr  = netip.MustParseAddr("10.77.0.1")
)

// nodeUUID is every node's; the boot services compare it with option 97.
const nodeUUID = "4c4c4544-0042-3510-8052-b4c04f4d3132"

// site is a boot network with the real boot services on it.
type site struct {
	t     *testing.T
	ctx   context.Context
	net   network.Board
	relay *firmware.Relay
	lose  func(addr.MAC) bool
	wg    sync.WaitGroup
	stop  context.CancelFunc

	mu       sync.Mutex
	clients  []netboot.Client
	attempts map[string]netboot.Attempt
	seen     []netboot.Evidence
	busy     func(http.ResponseWriter, *http.Request) bool // answers instead of the files
}

func macOf(i int) addr.MAC {
	return addr.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}
}

func addressOf(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, byte(16 + i>>8), byte(i)}) }

// newSite serves count nodes, with loaders of size bytes. It is to be called in a
// bubble.
func newSite(t *testing.T, count, size int) *site {
	t.Helper()
	s := newSiteOn(t, network.NewMemory(), count, size)
	synctest.Wait()
	return s
}

func newSiteOn(t *testing.T, on network.Board, count, size int) *site {
	t.Helper()
	return newSiteBeside(t, on, count, size, nil)
}

// newSiteBeside is newSiteOn beside a DHCP server that gives the addresses.
func newSiteBeside(t *testing.T, on network.Board, count, size int, beside *firmware.AddressServer) *site {
	t.Helper()
	s := &site{t: t, net: on, attempts: map[string]netboot.Attempt{}}
	s.ctx, s.stop = context.WithCancel(t.Context())
	for i := range count {
		s.clients = append(s.clients, netboot.Client{Node: fmt.Sprintf("n%d", i), MACs: []addr.MAC{macOf(i)}, UUID: nodeUUID, Address: netip.PrefixFrom(addressOf(i), 16)})
	}
	dir := t.TempDir()
	for _, name := range []string{"undionly.kpxe", "snponly.efi", "shimaa64.efi", "grubaa64.efi", "shimx64.efi", "grubx64.efi"} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv, err := netboot.Open(s.ctx, netboot.Config{Network: s.net.At(controller), Address: controller, LoaderDir: dir, Relays: []netip.Addr{relayAddr}, Proxy: beside != nil,
		Mounts: []netboot.Mount{{Prefix: "/boot/", Handler: http.HandlerFunc(s.files)}}}, s, s)
	if err != nil {
		t.Fatal(err)
	}
	s.relay = firmware.NewRelay(firmware.RelayConfig{Net: s.net.At(relayAddr), Address: relayAddr, Server: controller, Beside: beside, Loss: func(m addr.MAC) bool {
		return s.lose != nil && s.lose(m)
	}})
	s.wg.Go(func() { _ = srv.Serve(s.ctx) })
	s.wg.Go(func() { _ = s.relay.Run(s.ctx) })
	return s
}

// close ends everything; a bubble wants it.
func (s *site) close() {
	s.stop()
	s.wg.Wait()
}

// files serves a kernel, and an initrd that ends with the node's segment.
func (s *site) files(w http.ResponseWriter, r *http.Request) {
	if s.busy != nil && s.busy(w, r) {
		return
	}
	attempt, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/boot/"), "/")
	body := bytes.Repeat([]byte("kernel"), 1000)
	if file == "initrd" {
		own, err := ramdisk.NodeSegment(wire.Boot{Version: wire.Version, Attempt: attempt, Address: "10.77.16.0/16"})
		if err != nil {
			s.t.Error(err)
		}
		body = append(bytes.Repeat([]byte("070701 nonsense "), 20000), own...)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// arm opens a boot attempt.
func (s *site) arm(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[node] = netboot.Attempt{ID: node + "-a", Node: node, Kernel: "/boot/" + node + "-a/vmlinuz", Initrds: []string{"/boot/" + node + "-a/initrd"}, Args: []string{"panic=60"}}
}

// ByMAC implements netboot.Source.
func (s *site) ByMAC(m addr.MAC) (netboot.Client, bool) {
	i := int(m[4])<<8 | int(m[5])
	if m != macOf(i) || i >= len(s.clients) {
		return netboot.Client{}, false
	}
	return s.clients[i], true
}

// ByAddress implements netboot.Source.
func (s *site) ByAddress(a netip.Addr) (netboot.Client, bool) {
	b := a.As4()
	i := (int(b[2])-16)<<8 | int(b[3])
	if i < 0 || i >= len(s.clients) || a != addressOf(i) {
		return netboot.Client{}, false
	}
	return s.clients[i], true
}

// Attempt implements netboot.Source.
func (s *site) Attempt(node string) (netboot.Attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.attempts[node]
	return a, ok
}

// Record implements netboot.Recorder.
func (s *site) Record(e netboot.Evidence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, e)
}

func (s *site) saw(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.seen {
		if e.What == what {
			n++
		}
	}
	return n
}

// node is a board under test with what it booted.
type node struct {
	chassis *chassis.Chassis
	console bytes.Buffer
	kernels []firmware.Kernel
	disks   int
	hasDisk bool
}

// config is a node's mainboard.
func (s *site) config(i int, how inventory.Firmware) (firmware.Config, *node) {
	n := &node{}
	n.chassis = chassis.New(chassis.Config{Node: fmt.Sprintf("n%d", i)})
	return firmware.Config{
		Node: fmt.Sprintf("n%d", i), Chassis: n.chassis, Boot: how, MACs: []addr.MAC{macOf(i)}, UUID: nodeUUID, Seed: 7,
		Relay: s.relay, Net: func(a netip.Addr) network.Network { return s.net.At(a) }, Console: &n.console,
		Ramdisk: func(ctx context.Context, k firmware.Kernel) chassis.Exit {
			n.kernels = append(n.kernels, k)
			<-ctx.Done()
			return chassis.Halt
		},
		Disk: func(ctx context.Context) (chassis.Exit, bool) {
			if !n.hasDisk {
				return chassis.Halt, false
			}
			n.disks++
			<-ctx.Done()
			return chassis.Halt, true
		},
	}, n
}

// powerOn runs the chassis with the board and presses the button.
func (s *site) powerOn(cfg firmware.Config, n *node) {
	n.chassis.SetBoard(firmware.New(cfg))
	s.wg.Go(func() { _ = n.chassis.Run(s.ctx) })
	if err := n.chassis.Press(chassis.PressOn); err != nil {
		s.t.Error(err)
	}
}
