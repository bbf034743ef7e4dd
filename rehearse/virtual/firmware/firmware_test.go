// SPDX-License-Identifier: Apache-2.0

package firmware_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/firmware"
	"github.com/ironrail/ironrail/rehearse/virtual/wire"
)

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

// TestBootBeside boots from the real boot services beside a DHCP server that gives the
// addresses; one that gives the node none, or another, leaves it without a boot.
func TestBootBeside(t *testing.T) {
	for _, how := range []inventory.Firmware{inventory.BootBIOS, inventory.BootUEFI, inventory.BootUEFIHTTP} {
		for gives, want := range map[int]int{0: 1, 1: 0, -1: 0} {
			synctest.Test(t, func(t *testing.T) {
				beside := &firmware.AddressServer{Address: netip.MustParseAddr("10.77.0.3"), Of: func(addr.MAC) (netip.Prefix, bool) { return netip.PrefixFrom(addressOf(max(gives, 0)), 16), gives >= 0 }}
				s := newSiteBeside(t, network.NewMemory(), 1, 2000, beside)
				synctest.Wait()
				defer s.close()
				s.arm("n0")
				cfg, n := s.config(0, how)
				s.powerOn(cfg, n)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if len(n.kernels) != want || s.saw("ack") != 0 || (s.saw("leased") > 0) != (gives == 0) || (s.saw("address") > 0) != (gives == 1) {
					t.Errorf("%s, given %d: %d kernels\n%s%+v", how, gives, len(n.kernels), &n.console, s.seen)
				}
				if asked := s.saw("boot-server") > 0; asked != (how == inventory.BootUEFI && gives == 0) {
					t.Errorf("%s, given %d: asked the boot server: %t", how, gives, asked)
				}
			})
		}
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

// TestOverride: what each override does on a node whose disk boots, and without a
// network.
func TestOverride(t *testing.T) {
	for name, tt := range map[string]struct {
		boot  inventory.Firmware
		over  chassis.Override
		disks int
		says  string
	}{
		"setup":           {inventory.BootUEFI, chassis.Override{Enabled: "Once", Target: chassis.BootBIOSSetup}, 0, "Entering setup"},
		"disk":            {inventory.BootUEFI, chassis.Override{Enabled: "Once", Target: chassis.BootHDD}, 1, ""},
		"CD":              {inventory.BootUEFI, chassis.Override{Enabled: "Once", Target: chassis.BootCD}, 1, "Cd is not there"},
		"HTTP on a BIOS":  {inventory.BootBIOS, chassis.Override{Enabled: "Once", Target: chassis.BootUEFIHTTP}, 1, "UefiHttp is not there"},
		"PXE, no link":    {inventory.BootUEFI, chassis.Override{Enabled: "Continuous", Target: chassis.BootPXE}, 1, "PXE-E16: no link"},
		"HTTP, no server": {inventory.BootUEFI, chassis.Override{Enabled: "Continuous", Target: chassis.BootUEFIHTTP}, 1, "uefi-http"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, 1, 2000)
			defer s.close()
			cfg, n := s.config(0, tt.boot)
			cfg.Relay, n.hasDisk = nil, true
			if err := n.chassis.SetOverride(tt.over); err != nil {
				t.Fatal(err)
			}
			s.powerOn(cfg, n)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if n.disks != tt.disks || !strings.Contains(n.console.String(), tt.says) {
				t.Errorf("%s: %d disks, says %q", name, n.disks, &n.console)
			}
		})
	}
}

// TestHalt: a board that is not to try again stays as it is.
func TestHalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		cfg, n := s.config(0, inventory.BootBIOS)
		cfg.Relay, cfg.Retry = nil, -1
		s.powerOn(cfg, n)
		time.Sleep(time.Hour)
		synctest.Wait()
		if c := strings.Count(n.console.String(), "No bootable device"); c != 1 || n.chassis.Power() != chassis.On {
			t.Errorf("tried %d times, power %s", c, n.chassis.Power())
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

// slowNetwork is a cable on which a datagram takes 200 ms, so that a transfer can be cut
// in its midst.
type slowNetwork struct{ network.Network }

// ListenPacket opens a socket that reads late.
func (l slowNetwork) ListenPacket(ctx context.Context, network, at string) (net.PacketConn, error) {
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
				cfg.Net = func(a netip.Addr) network.Network { return slowNetwork{s.net.At(a)} }
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

// TestLongStorm boots 4,096 nodes at once behind one relay.
func TestLongStorm(t *testing.T) {
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

// TestForced: the chain of a ROM that the inventory calls too old goes through the
// loader twice and ends.
func TestForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 2000)
		defer s.close()
		s.clients[0].ForceUndionly = true
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootBIOS)
		s.powerOn(cfg, n)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if len(n.kernels) != 1 || s.saw("start") != 4 { // a question for the size, and the transfer, twice
			t.Errorf("%d kernels, %d transfers\n%s", len(n.kernels), s.saw("start"), &n.console)
		}
	})
}

// TestReset: a ramdisk that reboots comes back through POST; one boot takes as
// long as it did before, for the same seed.
func TestReset(t *testing.T) {
	boots := func(t *testing.T) (at []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, 1, 2000)
			defer s.close()
			s.arm("n0")
			cfg, n := s.config(0, inventory.BootUEFI)
			began := time.Now()
			cfg.Ramdisk = func(ctx context.Context, _ firmware.Kernel) chassis.Exit {
				at = append(at, time.Since(began))
				return chassis.Reset
			}
			s.powerOn(cfg, n)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if c := n.chassis.Counters(); c.Resets < 4 || c.PowerOns != 1 {
				t.Errorf("%+v", c)
			}
		})
		return at
	}
	one, two := boots(t), boots(t)
	if fmt.Sprint(one) != fmt.Sprint(two) || len(one) < 4 || one[1]-one[0] == one[2]-one[1] {
		t.Errorf("boots at %v and %v", one, two)
	}
}

// TestLoopback boots over real sockets, on a fast clock.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for _, how := range []inventory.Firmware{inventory.BootBIOS, inventory.BootUEFIHTTP} {
		lb := network.NewLoopback()
		s := newSiteOn(t, lb, 1, 20_000)
		s.arm("n0")
		cfg, n := s.config(0, how)
		cfg.Clock = clock.NewFast(1000)
		n.chassis = chassis.New(chassis.Config{Node: "n0", Clock: cfg.Clock})
		cfg.Chassis, cfg.Console = n.chassis, nil
		booted := make(chan firmware.Kernel, 1)
		cfg.Ramdisk = func(ctx context.Context, k firmware.Kernel) chassis.Exit {
			booted <- k
			<-ctx.Done()
			return chassis.Halt
		}
		s.powerOn(cfg, n)
		select {
		case k := <-booted:
			if _, err := k.Boot(); err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s: did not boot: %+v", how, s.seen)
		}
		s.close()
	}
}

// TestCable: a download over a cable takes what the cable takes; one that carries
// nothing any more is given up after a minute, and goes on when it is healed.
func TestCable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, 20_000)
		defer s.close()
		s.arm("n0")
		cfg, n := s.config(0, inventory.BootUEFI)
		cable := wire.New(s.net.At(addressOf(0)), clock.Wall{})
		cable.Rate(100_000, nil) // bits a second: the initrd takes 26 s
		cable.StallAfter(60_000, 80)
		cfg.Net = func(netip.Addr) network.Network { return cable }
		began := time.Now()
		var booted time.Duration
		cfg.Ramdisk = func(ctx context.Context, k firmware.Kernel) chassis.Exit {
			if _, err := k.Boot(); err != nil {
				t.Error(err)
			}
			booted = time.Since(began)
			<-ctx.Done()
			return chassis.Halt
		}
		s.powerOn(cfg, n)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if booted > 0 || !strings.Contains(n.console.String(), "try 1 of 60") {
			t.Errorf("over a dead cable: booted after %v\n%s", booted, &n.console)
		}
		cable.Heal()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if booted < 5*time.Minute+25*time.Second {
			t.Errorf("booted after %v\n%s", booted, &n.console)
		}
	})
}
