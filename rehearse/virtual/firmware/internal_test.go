// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
	"github.com/ironrail/ironrail/provision/netboot/tftp"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

var (
	here  = netip.MustParseAddr("10.77.0.11")
	there = netip.MustParseAddr("10.77.0.2")
	nic   = addr.MAC{2, 0, 0, 0, 0, 1}
)

// instant is a clock on which no wait takes time.
type instant struct{}

func (instant) Now() time.Time                                   { return time.Unix(0, 0) }
func (instant) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (instant) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// bench is a shell without a network.
func bench(how inventory.Firmware) (*shell, *bytes.Buffer) {
	var console bytes.Buffer
	b := New(Config{Node: "n1", Chassis: chassis.New(chassis.Config{}), Clock: instant{}, Boot: how, Console: &console, Ramdisk: func(context.Context, Kernel) chassis.Exit { return chassis.Reset }})
	return &shell{b: b, mac: nic, how: how, net: network.NewMemory().At(here)}, &console
}

func TestScript(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, says string }{
		"no script":         {"<html>", "exec format error"},
		"unknown command":   {"#!ipxe\nshell\necho further", "Could not boot: line 2: \"shell\": shell: command not found"},
		"unknown, caught":   {"#!ipxe\nshell || echo caught\nexit 1", "caught"},
		"skipped":           {"#!ipxe\niseq a b && echo wrong || echo right\nexit 1", "right"},
		"both":              {"#!ipxe\niseq a a && echo one || echo wrong\necho two\nexit 1", "one\r\ntwo"},
		"failure ends it":   {"#!ipxe\niseq a b\necho wrong", "not so"},
		"failure forgotten": {"#!ipxe\niseq a b && goto no ||\necho right\nexit 1\n:no\necho wrong", "right"},
		"semicolon":         {"#!ipxe\niseq a b ; echo right\nexit 1", "right"},
		"settings":          {"#!ipxe\nset n:int32 4\ninc n\necho n is ${n}, ${platform}, ${mac}, ${none}.\nexit 1", "n is 5, pcbios, 02:00:00:00:00:01, ."},
		"no label":          {"#!ipxe\ngoto nowhere", "no label nowhere"},
		"a loop":            {"#!ipxe\n:again\ngoto again", "the script never ends"},
		"no kernel":         {"#!ipxe\nboot kernel", "no kernel"},
		"no server":         {"#!ipxe\nkernel http://10.77.0.99/k || echo caught\nexit 1", "caught"},
		"a name":            {"#!ipxe\nkernel http://boot.example/k", "is not the address of a server"},
		"TLS":               {"#!ipxe\nkernel https://10.77.0.2/k", "is not an HTTP URL"},
		"no disk":           {"#!ipxe\nsanboot --no-describe --drive 0x80 || echo caught\nexit 1", "caught"},
	} {
		s, console := bench(inventory.BootBIOS)
		s.net = nowhere{}
		r, err := s.run(t.Context(), tt.script)
		if text := console.String() + fmt.Sprint(err); r.booted || !strings.Contains(text, tt.says) || strings.Contains(text, "wrong") {
			t.Errorf("%s: %+v, says %q", name, r, text)
		}
	}
}

// TestMenu: a script that ends well leaves UEFI in its menu, and a BIOS at its
// next device.
func TestMenu(t *testing.T) {
	for how, waits := range map[inventory.Firmware]bool{inventory.BootUEFI: true, inventory.BootBIOS: false} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := bench(how)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			r, err := s.run(ctx, "#!ipxe\nexit 0\n")
			if took := time.Since(began); r.booted || err != nil || (took == time.Hour) != waits {
				t.Errorf("%s: %+v, %v after %v", how, r, err, took)
			}
		})
	}
}

func FuzzScript(f *testing.F) {
	f.Add("#!ipxe\nset a:int32 3\n:l\ninc a\niseq ${a} 5 && goto e ||\ngoto l\n:e\nkernel --name k http://10.77.0.2/k a b || exit 1\nboot k")
	f.Add("#!ipxe\necho ${a${b}} }{ || && ;\nimgfree\nsanboot --drive 0x80\nsleep 5\n")
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, _ := bench(inventory.BootBIOS)
		s.net = nowhere{}
		if r, _ := s.run(ctx, text); r.booted {
			t.Error("booted without a server")
		}
	})
}

// nowhere is a network that refuses everything at once.
type nowhere struct{ network.Network }

func (nowhere) Dial(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }

// lossy loses every fifth datagram, both ways.
type lossy struct {
	net.PacketConn
	mu sync.Mutex
	n  int // guarded by mu
}

func (l *lossy) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return l.n%5 == 0
}

func (l *lossy) WriteTo(b []byte, to net.Addr) (int, error) {
	if l.lost() {
		return len(b), nil
	}
	return l.PacketConn.WriteTo(b, to)
}

func (l *lossy) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := l.PacketConn.ReadFrom(b)
		if err != nil || !l.lost() {
			return n, from, err
		}
	}
}

type lossyNet struct{ network.Network }

func (n lossyNet) ListenPacket(ctx context.Context, proto, at string) (net.PacketConn, error) {
	pc, err := n.Network.ListenPacket(ctx, proto, at)
	return &lossy{PacketConn: pc}, err
}

// everybody is a Source that knows every address.
type everybody struct{}

func (everybody) ByMAC(addr.MAC) (boot.Client, bool)       { return boot.Client{}, false }
func (everybody) ByAddress(netip.Addr) (boot.Client, bool) { return boot.Client{Node: "n1"}, true }
func (everybody) Attempt(string) (boot.Attempt, bool)      { return boot.Attempt{}, false }
func (everybody) Record(boot.Evidence)                     {}

// TestLossyTFTP: a loader arrives whole from the real server where one datagram in
// five is lost, and with sizes around the ends of blocks.
func TestLossyTFTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		pc, err := m.At(there).ListenPacket(ctx, "udp4", there.String()+":69")
		if err != nil {
			t.Fatal(err)
		}
		set := loader.Set{}
		sizes := []int{1, 1455, 1456, 1457, 2 * 1456, 100_000}
		for _, n := range sizes {
			set[fmt.Sprint(n)] = make([]byte, n)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = tftp.New(tftp.Config{Loaders: set, Source: everybody{}, Recorder: everybody{}}).Serve(ctx, pc)
		})
		for _, n := range sizes {
			got, err := loadFile(ctx, lossyNet{m.At(here)}, here, there, fmt.Sprint(n), 1456, 1)
			if err != nil || got != int64(n) {
				t.Errorf("%d of %d bytes: %v", got, n, err)
			}
			time.Sleep(10 * time.Second) // the server may not have heard of the end, and counts transfers
		}
		if _, err := loadFile(ctx, m.At(here), here, there, "none", 1456, 1); err == nil || !strings.Contains(err.Error(), "no first-stage loader") {
			t.Errorf("a file that is not there: %v", err)
		}
		cancel()
		wg.Wait()
	})
}

// TestWindow: blocks in windows of four, one of them lost (RFC 7440).
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		pc, err := m.At(there).ListenPacket(t.Context(), "udp4", there.String()+":69")
		if err != nil {
			t.Fatal(err)
		}
		var acks []uint16
		done := make(chan struct{})
		go func() {
			defer close(done)
			acks = window(pc)
		}()
		got, err := readFile(t.Context(), m.At(here), here, there, "f", 512, 4, false, io.Discard)
		if err != nil || got != 9*512+7 {
			t.Errorf("%d bytes, %v", got, err)
		}
		<-done
		if want := "[0 4 5 9 10]"; fmt.Sprint(acks) != want {
			t.Errorf("acknowledged %v, want %s", acks, want)
		}
		_ = pc.Close()
	})
}

// window serves nine blocks and a piece in windows of four, and loses block 6
// once. It returns what was acknowledged.
func window(pc net.PacketConn) (acks []uint16) {
	b := make([]byte, 600)
	lost := false
	for {
		_, from, err := pc.ReadFrom(b)
		if err != nil {
			return acks
		}
		op, have, _ := parsePacket(b)
		if op == opRead {
			_, _ = pc.WriteTo([]byte("\x00\x06blksize\x00512\x00windowsize\x004\x00"), from)
			continue
		}
		if acks = append(acks, have); have == 10 {
			return acks
		}
		for i := have + 1; i <= min(have+4, 10); i++ {
			if i == 6 && !lost {
				lost = true
				continue
			}
			size := 512
			if i == 10 {
				size = 7
			}
			_, _ = pc.WriteTo(append([]byte{0, opData, byte(i >> 8), byte(i)}, make([]byte, size)...), from)
		}
	}
}

// FuzzTFTP: no answer of a server makes the client panic or go on forever.
func FuzzTFTP(f *testing.F) {
	f.Add([]byte("\x00\x06blksize\x00512\x00windowsize\x004\x00"), []byte("\x00\x03\x00\x01data"))
	f.Add([]byte("\x00\x05\x00\x01not found\x00"), []byte("\x00\x03\x00\x02"))
	f.Add([]byte("\x00\x03\x00\x01"), []byte{})
	f.Fuzz(func(t *testing.T, first, then []byte) {
		synctest.Test(t, func(t *testing.T) {
			m := network.NewMemory()
			pc, err := m.At(there).ListenPacket(t.Context(), "udp4", there.String()+":69")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				b, answer := make([]byte, 2000), first
				for {
					_, from, err := pc.ReadFrom(b)
					if err != nil {
						return
					}
					_, _ = pc.WriteTo(answer, from)
					answer = then
				}
			}()
			_, _ = loadFile(t.Context(), m.At(here), here, there, "f", 1456, 4)
			_ = pc.Close()
			<-done
		})
	})
}

// FuzzReply: no packet makes the relay or a client panic, and nothing that is not
// an offer with an address is taken.
func FuzzReply(f *testing.F) {
	f.Add(offer().ToBytes())
	f.Fuzz(func(t *testing.T, p []byte) {
		r := NewRelay(RelayConfig{Address: there})
		hear := r.plug(nic)
		r.hand(p)
		select {
		case raw := <-hear:
			if addr.MAC(raw[atMAC:atMAC+6]) != nic {
				t.Error("a reply for somebody else")
			}
		default:
		}
		a, err := dhcpv4.FromBytes(p)
		if err != nil {
			return
		}
		x := exchange{program: romProgram(inventory.BootUEFIHTTP, inventory.AMD64)}
		if x.offered(a) == nil && !leaseOf(a).address.Addr().Is4() {
			t.Error("an offer without an address was taken")
		}
		_ = x.acknowledged(a)
	})
}

func offer() *dhcpv4.DHCPv4 {
	return &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootReply, HWType: 1, TransactionID: [4]byte{1, 2, 3, 4}, ClientHWAddr: nic.HardwareAddr(),
		YourIPAddr: here.AsSlice(), GatewayIPAddr: there.AsSlice(), BootFileName: "http://10.77.0.2/x",
		Options: dhcpv4.Options{53: {2}, 54: there.AsSlice(), 60: []byte("HTTPClient"), 1: {255, 255, 255, 0}}}
}

// TestOffers: what each firmware takes and what it passes over.
func TestOffers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*dhcpv4.DHCPv4)
		http   bool
		ok     bool
	}{
		"good":               {func(*dhcpv4.DHCPv4) {}, true, true},
		"without the class":  {func(o *dhcpv4.DHCPv4) { delete(o.Options, 60) }, true, false},
		"PXE needs no class": {func(o *dhcpv4.DHCPv4) { delete(o.Options, 60) }, false, true},
		"a name for HTTP":    {func(o *dhcpv4.DHCPv4) { o.BootFileName = "snponly.efi" }, true, false},
		"option 67":          {func(o *dhcpv4.DHCPv4) { o.BootFileName = ""; o.Options[67] = []byte("x.efi\x00") }, false, true},
		"no file":            {func(o *dhcpv4.DHCPv4) { o.BootFileName = "" }, false, false},
		"no address":         {func(o *dhcpv4.DHCPv4) { o.YourIPAddr = nil }, false, false},
		"no server":          {func(o *dhcpv4.DHCPv4) { delete(o.Options, 54) }, false, false},
		"an acknowledgement": {func(o *dhcpv4.DHCPv4) { o.Options[53] = []byte{5} }, false, false},
	} {
		o := offer()
		tt.change(o)
		x := exchange{program: program{http: tt.http}}
		if err := x.offered(o); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSegment: the node's segment is found behind whatever comes before it, and of
// two the last counts.
func TestSegment(t *testing.T) {
	t.Parallel()
	var tl tail
	for _, attempt := range []string{"old", "new"} {
		_, _ = tl.Write(bytes.Repeat([]byte("070701070701 packed"), 5000))
		own, err := ramdisk.NodeSegment(wire.Boot{Attempt: attempt})
		if err != nil {
			t.Fatal(err)
		}
		tl.pad()
		_, _ = tl.Write(own)
	}
	k := Kernel{Initrd: tl.last(), InitrdSize: tl.n}
	if w, err := k.Boot(); err != nil || w.Attempt != "new" || len(k.Initrd) > tailSize || tl.n%4 != 0 {
		t.Errorf("%+v, %v of %d bytes", w, err, len(k.Initrd))
	}
	if _, err := (Kernel{Initrd: []byte("nothing")}).Boot(); err == nil {
		t.Error("found in nothing")
	}
}

// TestGrubWords: a line is split as GRUB's shell splits it.
func TestGrubWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                "[]",
		"  # nothing":                     "[]",
		"echo 'a  b$x' c":                 `["echo" "a  b$x" "c"]`,
		`echo "try $try of 60"`:           `["echo" "try 7 of 60"]`,
		"for try in 1 2; do":              `["for" "try" "in" "1" "2" "do"]`,
		"if linux (http,a)/k 'x=1'; then": `["if" "linux" "(http,a)/k" "x=1" "then"]`,
		"chainloader ($disk)/E":           `["chainloader" "(hd0)/E"]`,
		"echo ''":                         `["echo" ""]`,
		"echo 'open":                      "error",
	} {
		words, err := grubWords(line, map[string]string{"try": "7", "disk": "hd0"})
		got := fmt.Sprintf("%q", words)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
