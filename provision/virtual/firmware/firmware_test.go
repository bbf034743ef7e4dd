package firmware_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/addr"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/network"
	"github.com/ironrail/ironrail/provision/virtual/chassis"
	"github.com/ironrail/ironrail/provision/virtual/firmware"
)

var (
	controller = netip.MustParseAddr("10.77.0.2")
	relayAddr  = netip.MustParseAddr("10.77.0.1")
)

// site is a boot network with the real boot services on it.
type site struct {
	t     *testing.T
	ctx   context.Context
	net   *network.Memory
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
	s := &site{t: t, net: network.NewMemory(), attempts: map[string]netboot.Attempt{}}
	s.ctx, s.stop = context.WithCancel(t.Context())
	for i := range count {
		s.clients = append(s.clients, netboot.Client{Node: fmt.Sprintf("n%d", i), MACs: []addr.MAC{macOf(i)}, Address: netip.PrefixFrom(addressOf(i), 16)})
	}
	dir := t.TempDir()
	for _, name := range []string{"undionly.kpxe", "snponly.efi"} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv, err := netboot.Open(s.ctx, netboot.Config{Network: s.net.At(controller), Address: controller, LoaderDir: dir,
		Mounts: []netboot.Mount{{Prefix: "/boot/", Handler: http.HandlerFunc(s.files)}}}, s, s)
	if err != nil {
		t.Fatal(err)
	}
	s.relay = firmware.NewRelay(firmware.RelayConfig{Net: s.net.At(relayAddr), Address: relayAddr, Server: controller, Loss: func(m addr.MAC) bool {
		return s.lose != nil && s.lose(m)
	}})
	s.wg.Go(func() { _ = srv.Serve(s.ctx) })
	s.wg.Go(func() { _ = s.relay.Run(s.ctx) })
	synctest.Wait()
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

// Saw implements netboot.Witness.
func (s *site) Saw(e netboot.Evidence) {
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
		Node: fmt.Sprintf("n%d", i), Chassis: n.chassis, Boot: how, MACs: []addr.MAC{macOf(i)}, UUID: "4c4c4544-0042-3510-8052-b4c04f4d3132", Seed: 7,
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

// TestBoot boots the ramdisk from the real boot services, by all firmwares.
func TestBoot(t *testing.T) {
	for _, how := range []inventory.Firmware{inventory.BootBIOS, inventory.BootUEFI, inventory.BootUEFIHTTP} {
		t.Run(string(how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 1, 200_000)
				defer s.close()
				s.arm("n0")
				cfg, n := s.config(0, how)
				s.powerOn(cfg, n)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if len(n.kernels) != 1 {
					t.Fatalf("%d kernels run\n%s%+v", len(n.kernels), &n.console, s.seen)
				}
				k := n.kernels[0]
				w, err := k.Boot()
				if err != nil || w.Attempt != "n0-a" || k.Cmdline != "panic=60 initrd=initrd0" || k.KernelSize != 6000 || k.Address != netip.PrefixFrom(addressOf(0), 16) {
					t.Errorf("booted %+v, %q of %d, %s: %v", w, k.Cmdline, k.KernelSize, k.Address, err)
				}
				if p := n.chassis.Phase(); p != "OS" {
					t.Errorf("phase %s", p)
				}
				if s.saw("refused")+s.saw("failed")+s.saw("uuid") > 0 {
					t.Errorf("seen by the services: %+v", s.seen)
				}
				t.Logf("\n%s", &n.console)
			})
		})
	}
}

// TestDisk: a node without an attempt ends on its disk, whatever its firmware; a
// BIOS is given it by the script.
func TestDisk(t *testing.T) {
	for _, how := range []inventory.Firmware{inventory.BootBIOS, inventory.BootUEFI, inventory.BootUEFIHTTP} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, 1, 2000)
			defer s.close()
			cfg, n := s.config(0, how)
			n.hasDisk = true
			if err := n.chassis.SetOverride(chassis.Override{Enabled: "Once", Target: chassis.BootPXE, UEFI: how != inventory.BootBIOS}); err != nil {
				t.Fatal(err)
			}
			s.powerOn(cfg, n)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if n.disks != 1 || s.saw("script") != 1 || n.chassis.Override().Enabled != "Disabled" {
				t.Errorf("%s: %d disks, %d scripts\n%s", how, n.disks, s.saw("script"), &n.console)
			}
			if san := strings.Contains(n.console.String(), "SAN device"); san != (how == inventory.BootBIOS) {
				t.Errorf("%s: booted through the script: %t", how, san)
			}
		})
	}
}

// TestOrder: without an override the disk comes first, and pending BIOS settings
// are in force after POST.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootUEFI)
		n.chassis = chassis.New(chassis.Config{BIOS: map[string]string{"SRIOV": "Disabled"}})
		cfg.Chassis = n.chassis
		n.hasDisk = true
		if err := n.chassis.SetBIOS(map[string]string{"SRIOV": "Enabled"}); err != nil {
			t.Fatal(err)
		}
		s.powerOn(cfg, n)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if now, pending := n.chassis.BIOS(); n.disks != 1 || len(s.seen) != 0 || now["SRIOV"] != "Enabled" || pending != nil {
			t.Errorf("%d disks, settings %v, %v; the services saw %v", n.disks, now, pending, s.seen)
		}
	})
}

// TestLoss: lost DHCP packets are sent again after 4, 8, 16 and 32 s.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		var mu sync.Mutex
		var at []time.Time
		s.lose = func(addr.MAC) bool {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			return len(at) <= 3
		}
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootUEFI)
		s.powerOn(cfg, n)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(n.kernels) != 1 {
			t.Fatalf("did not boot\n%s", &n.console)
		}
		for i, want := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second} {
			if got := at[i+1].Sub(at[i]); got != want {
				t.Errorf("packet %d after %v, want %v", i+2, got, want)
			}
		}
	})
}

// TestUnknown: a client that nobody knows gets nothing, tries again ever more
// rarely, and boots when it is known.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootBIOS)
		cfg.MACs = []addr.MAC{{2, 9, 9, 9, 9, 9}}
		s.powerOn(cfg, n)
		time.Sleep(time.Hour)
		synctest.Wait()
		if text := n.console.String(); len(n.kernels) > 0 || !strings.Contains(text, "PXE-E51") || s.saw("unknown") == 0 {
			t.Errorf("booted %d, unknown %d\n%s", len(n.kernels), s.saw("unknown"), text)
		}
		if tries := strings.Count(n.console.String(), "No bootable device"); tries < 9 || tries > 14 {
			t.Errorf("%d tries in an hour", tries)
		}
		cfg, n = s.config(0, inventory.BootBIOS)
		cfg.MACs = []addr.MAC{{2, 9, 9, 9, 9, 9}, macOf(0)} // the second NIC is known
		s.powerOn(cfg, n)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(n.kernels) != 1 || n.kernels[0].MAC != macOf(0) {
			t.Errorf("the second NIC did not boot\n%s", &n.console)
		}
	})
}

// TestWait: a script waits while the controller restarts, and goes on.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		fails := 3
		s.busy = func(w http.ResponseWriter, _ *http.Request) bool {
			if fails--; fails < 0 {
				return false
			}
			http.Error(w, "restarting", http.StatusServiceUnavailable)
			return true
		}
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootUEFIHTTP)
		s.powerOn(cfg, n)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if len(n.kernels) != 1 || !strings.Contains(n.console.String(), "try 3 of 60") {
			t.Errorf("\n%s", &n.console)
		}
	})
}

// TestGiveUp: where the kernel is not to be had, the script ends after five
// minutes and the disk has its turn.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		s.busy = func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "broken", http.StatusInternalServerError)
			return true
		}
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootUEFI)
		n.hasDisk = true
		_ = n.chassis.SetOverride(chassis.Override{Enabled: "Once", Target: chassis.BootPXE, UEFI: true})
		s.powerOn(cfg, n)
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if n.disks != 1 || !strings.Contains(n.console.String(), "giving up") {
			t.Errorf("%d disks\n%s", n.disks, &n.console)
		}
	})
}

// late is a cable on which a datagram takes 200 ms, so that a transfer can be cut
// in its midst.
type late struct{ network.Network }

// ListenPacket opens a socket that reads late.
func (l late) ListenPacket(ctx context.Context, network, at string) (net.PacketConn, error) {
	pc, err := l.Network.ListenPacket(ctx, network, at)
	return latePackets{pc}, err
}

type latePackets struct{ net.PacketConn }

// ReadFrom reads late.
func (l latePackets) ReadFrom(b []byte) (int, net.Addr, error) {
	time.Sleep(200 * time.Millisecond)
	return l.PacketConn.ReadFrom(b)
}

// TestPowerCut: wherever a boot is when the power goes, the board returns at once.
func TestPowerCut(t *testing.T) {
	for _, how := range []inventory.Firmware{inventory.BootBIOS, inventory.BootUEFIHTTP} {
		for after := time.Second; after < 3*time.Minute; after += 1700 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 1, 20_000)
				defer s.close()
				s.arm("n0")
				s.busy = func(_ http.ResponseWriter, r *http.Request) bool {
					select {
					case <-time.After(20 * time.Second): // a long download
					case <-r.Context().Done():
					}
					return false
				}
				cfg, n := s.config(0, how)
				cfg.Net = func(a netip.Addr) network.Network { return late{s.net.At(a)} }
				s.powerOn(cfg, n)
				time.Sleep(after)
				n.chassis.Mains(0, false)
				n.chassis.Mains(1, false)
				synctest.Wait()
				said := n.console.Len()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n.console.Len() != said {
					t.Errorf("after %v without power it says %q", after, n.console.String()[said:])
				}
			})
		}
	}
}

// TestStorm boots 4,096 nodes at once behind one relay.
func TestStorm(t *testing.T) {
	const row = 4096
	if testing.Short() {
		t.Skip("takes seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, row, 2000)
		defer s.close()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		nodes := make([]*node, row)
		for i := range nodes {
			s.arm(fmt.Sprintf("n%d", i))
			var cfg firmware.Config
			cfg, nodes[i] = s.config(i, inventory.BootUEFIHTTP)
			cfg.Console = nil
			s.powerOn(cfg, nodes[i])
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		booted := 0
		for _, n := range nodes {
			booted += len(n.kernels)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("%d booted; %d KiB a node while they run; %d goroutines", booted,
			(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/row>>10, runtime.NumGoroutine())
		if booted != row {
			t.Errorf("%d of %d booted", booted, row)
		}
	})
}
