// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
)

// start serves on a free port of loopback; clients ask through a relay there.
func start(t *testing.T, src boot.Source, w boot.Recorder) (*Server, *net.UDPConn) {
	t.Helper()
	p := rules()
	p.Address = netip.MustParseAddr("127.0.0.1")
	s, err := Open(t.Context(), Config{Port: freePort(t), Policy: p, Source: src, Recorder: evidence.NewLimiter(w)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IP{127, 0, 0, 1}}, &net.UDPAddr{IP: net.IP{127, 0, 0, 1}, Port: int(s.Addr().Port())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

// source counts, can block, and can panic for one MAC.
type source struct {
	clients
	gate  chan struct{} // closed: pass
	panic addr.MAC
}

func (s *source) ByMAC(m addr.MAC) (boot.Client, bool) {
	if s.gate != nil {
		<-s.gate
	}
	if m == s.panic {
		panic("a broken source")
	}
	return s.clients.ByMAC(m)
}

// notes keeps evidence in the order it came.
type notes struct{ ch chan boot.Evidence }

func newNotes() *notes { return &notes{make(chan boot.Evidence, 1000)} }

func (n *notes) Record(e boot.Evidence) { n.ch <- e }

// await reads evidence until the word comes.
func (n *notes) await(t *testing.T, what string) boot.Evidence {
	t.Helper()
	limit := time.After(5 * time.Minute) // of a test that hangs
	for {
		select {
		case e := <-n.ch:
			if e.What == what {
				return e
			}
		case <-limit:
			t.Fatalf("no evidence %q", what)
		}
	}
}

// TestServeSurvives sends rubbish, a packet that panics, and then a good one.
func TestServeSurvives(t *testing.T) {
	t.Parallel()
	n := newNotes()
	src := &source{clients: site(), panic: addr.MAC{2, 6, 6, 6, 6, 6}}
	s, c := start(t, src, n)
	for _, b := range [][]byte{nil, make([]byte, 10), make([]byte, 1000), make([]byte, 9000), ask(dhcpv4.MessageTypeDiscover, src.panic).ToBytes()} {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if e := n.await(t, "panic"); !e.Refused {
		t.Errorf("evidence of a panic: %+v", e)
	}
	c.Write(ask(dhcpv4.MessageTypeRelease, n1mac).ToBytes())
	if e := n.await(t, eventRelease); e.Node != "n1" || e.MAC != n1mac {
		t.Errorf("evidence %+v", e)
	}
	if st := s.Stats(); st.Failed != 1 || st.Malformed < 3 {
		t.Errorf("stats %+v", st)
	}
}

// broken is a recorder, or a sender, that panics once.
type broken struct {
	boot.Recorder
	sender
	on string
}

func (b *broken) Record(e boot.Evidence) {
	if e.What == b.on {
		b.on = ""
		panic("a broken recorder")
	}
	b.Recorder.Record(e)
}

func (b *broken) send(replies []*outgoing) {
	if b.on == "send" {
		b.on = ""
		panic("a broken sender")
	}
	b.sender.send(replies)
}

// sent is a sender that counts.
type sent struct{ n int }

func (s *sent) send(replies []*outgoing) { s.n += len(replies) }

// TestFlushSurvives: a panic while replies are sent, or recorded, costs these and no more.
func TestFlushSurvives(t *testing.T) {
	t.Parallel()
	for on, wantFailed := range map[string]uint64{"send": 2, EventOffer: 1} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			n, wire := newNotes(), &sent{}
			b := &broken{Recorder: n, sender: wire, on: on}
			s := newServer(Config{Policy: rules(), Source: &source{clients: site()}, Recorder: b}, nil)
			s.wire = b
			a := newAnswers(s)
			for range 2 {
				for range 2 {
					s.answer(ask(dhcpv4.MessageTypeDiscover, n1mac).ToBytes(), netip.AddrPort{}, a)
				}
				a.flush()
			}
			if e := n.await(t, "panic"); !e.Refused {
				t.Errorf("evidence of a panic: %+v", e)
			}
			if e := n.await(t, EventOffer); e.Node != "n1" {
				t.Errorf("after it: %+v", e)
			}
			if st := s.Stats(); st.Failed != wantFailed || st.Answered+st.Failed != 4 || len(a.waiting) != 0 {
				t.Errorf("%+v, %d wait", st, len(a.waiting))
			}
		})
	}
}

// TestKept: what a client asks between two services on one port is answered by the second.
func TestKept(t *testing.T) {
	t.Parallel()
	kept := sockets.Keep(nil, nil, func(err error) { t.Error(err) })
	defer kept.Drop()
	p := rules()
	p.Address = netip.MustParseAddr("127.0.0.1")
	cfg := Config{Port: freePort(t), Policy: p, Source: &source{clients: site()}, Kept: kept}
	var client *net.UDPConn
	for round, what := range []string{EventOffer, EventAck} {
		n := newNotes()
		cfg.Recorder = n
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if client, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Address, cfg.Port))); err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Write(ask(dhcpv4.MessageTypeDiscover, n1mac).ToBytes()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		if e := n.await(t, what); e.Node != "n1" {
			t.Errorf("round %d: %+v", round, e)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := client.Write(ask(dhcpv4.MessageTypeRequest, n1mac, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IP{10, 0, 0, 11}))).ToBytes()); err != nil {
			t.Fatal(err) // nobody reads now
		}
	}
}

// silent is a segment on which nobody answers, until it is closed.
type silent struct {
	open context.Context
	end  context.CancelFunc
}

func (silent) broadcast([]byte) error { return nil }
func (s silent) receive() ([]byte, netip.Addr, addr.MAC, error) {
	<-s.open.Done()
	return nil, netip.Addr{}, addr.MAC{}, net.ErrClosed
}
func (silent) resolve(context.Context, netip.Addr) addr.MAC { return addr.MAC{} }
func (s silent) Close() error                               { s.end(); return nil }

// TestQuiet: a search that found nobody is not waited for by the one that follows it, and is by one
// that begins later.
func TestQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := sockets.Keep(nil, nil, nil)
		for round, may := range []bool{false, true, false} {
			open, end := context.WithCancel(t.Context())
			w := &Watch{cfg: WatchConfig{Every: searchEvery, Interface: "eno1", Kept: kept}, segment: silent{open, end}, others: map[netip.Addr]*Other{}}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			time.Sleep(time.Second)
			if w.mayAnswer() != may {
				t.Errorf("round %d: may answer after a second: %v", round, !may)
			}
			time.Sleep(searchTime)
			if !w.mayAnswer() {
				t.Errorf("round %d: nobody is there, and it may not answer", round)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(round) * time.Hour)
		}
	})
}

// TestServeDrops: of one client that asks faster than it can be answered most is dropped, which is
// counted and recorded, and another client behind it is answered.
func TestServeDrops(t *testing.T) {
	t.Parallel()
	n := newNotes()
	src := &source{clients: site(), gate: make(chan struct{})}
	s, c := start(t, src, n)
	b := ask(dhcpv4.MessageTypeRelease, n1mac).ToBytes()
	const sent = 4 * batch // which the socket's buffer holds without root, too
	for range sent {
		c.Write(b)
	}
	c.Write(ask(dhcpv4.MessageTypeRelease, n2mac).ToBytes())
	close(src.gate)
	if e := n.await(t, eventDropped); !e.Refused || !strings.Contains(e.Detail, "packets come faster") {
		t.Errorf("evidence %+v", e)
	}
	for e := n.await(t, eventRelease); e.Node != "n2"; e = n.await(t, eventRelease) {
	}
	if st := s.Stats(); st.Received != sent+1 || st.Dropped < 2*(batch-share) {
		t.Errorf("stats %+v", st)
	}
}

// TestKernelDrops: what the socket's buffer does not hold is counted and recorded, with the next
// packet that it holds.
func TestKernelDrops(t *testing.T) {
	t.Parallel()
	n := newNotes()
	src := &source{clients: site(), gate: make(chan struct{})}
	s, c := start(t, src, n)
	if err := s.conn.(*net.UDPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	b := ask(dhcpv4.MessageTypeRelease, n1mac).ToBytes()
	const sent = batch // the buffer holds a few, which fill no batch
	for range sent {
		c.Write(b)
	}
	close(src.gate)
	n.await(t, eventRelease)
	var dropped bool
	for more := uint64(0); !dropped; more++ {
		c.Write(b)
		select {
		case e := <-n.ch:
			dropped = e.What == eventDropped
		case <-time.After(10 * time.Millisecond):
		}
		if st := s.Stats(); dropped && (st.Dropped == 0 || st.Received+st.Dropped > sent+more+1) {
			t.Errorf("stats %+v of %d packets", st, sent+more+1)
		}
		if more > 10_000 {
			t.Fatalf("nothing is recorded: %+v", s.Stats())
		}
	}
}

// TestOpenTaken: a second server on this controller is refused and named.
func TestOpenTaken(t *testing.T) {
	t.Parallel()
	s, _ := start(t, site(), newNotes())
	_, err := Open(t.Context(), Config{Port: s.Addr().Port(), Policy: rules(), Source: site(), Recorder: newNotes()})
	if errkind.Of(err) != errkind.Refused || errkind.Action(err) == "" {
		t.Fatalf("second Open: %v (%v)", err, errkind.Of(err))
	}
	t.Log(err)
}

// TestCaptures replays what real firmware sent, where the captures are at hand.
func TestCaptures(t *testing.T) {
	t.Parallel()
	const dir = "../../../../shared/samples/pcap"
	tests := []struct {
		file  string
		class Class
		want  string // boot file
	}{
		{"ipxe-bios-dhcp.pcap", Class{Arch: ArchBIOS, HasArch: true, PXE: true, IPXE: true}, scriptN1},
		{"edk2-http-boot-dhcp.pcap", Class{Arch: ArchX64HTTP, HasArch: true, HTTP: true}, "http://10.0.0.2:80/loader/snponly.efi"},
		{"ipxe-uefi-then-edk2-pxe-tftp.pcap", Class{Arch: ArchX64, HasArch: true, PXE: true}, "snponly.efi"},
		{"ipxe-uefi-then-edk2-pxe-tftp.pcap", Class{Arch: ArchX64, HasArch: true, PXE: true, IPXE: true}, scriptN1},
		{"edk2-secureboot-shim-grub-tftp.pcap", Class{Arch: ArchX64, HasArch: true, PXE: true}, "snponly.efi"},
		{"two-nodes-ipxe-ramdisk-os.pcap", Class{Arch: ArchBIOS, HasArch: true, PXE: true, IPXE: true}, scriptN1},
		{"two-nodes-ipxe-ramdisk-os.pcap", Class{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			found := 0
			for _, in := range requestsOf(t, filepath.Join(dir, tt.file)) {
				cl := Classify(in)
				cl.UUID = [16]byte{}
				if cl != tt.class || in.MessageType() != dhcpv4.MessageTypeDiscover {
					continue
				}
				found++
				cs := site()[:1]
				cs[0].UUID, in.ClientHWAddr = "", n1mac.HardwareAddr()
				if d := rules().Decide(cs, in, now); d.Reply == nil || d.File != tt.want {
					t.Errorf("got %+v, want file %q", d, tt.want)
				}
			}
			if found == 0 {
				t.Errorf("no DISCOVER of class %+v in the capture", tt.class)
			}
		})
	}
}

// requestsOf reads the DHCP requests of a classic little-endian pcap file of
// Ethernet frames.
func requestsOf(t *testing.T, path string) (out []*dhcpv4.DHCPv4) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("needs the captures: %v", err)
	}
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		f := b[16 : 16+n]
		b = b[16+n:]
		if len(f) < 14 {
			continue
		}
		msg, _ := parseFrame(f[14:], serverPort)
		if p, err := dhcpv4.FromBytes(msg); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// BenchmarkDORA is one DISCOVER, OFFER, REQUEST, ACK: codec and decision.
func BenchmarkDORA(b *testing.B) {
	src, p := site(), rules()
	d := ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7)).ToBytes()
	r := ask(dhcpv4.MessageTypeRequest, n1mac, vendor(pxeVendor), arch(7), wants("10.0.0.11"), from("10.0.0.2")).ToBytes()
	b.ReportAllocs()
	for b.Loop() {
		for _, q := range [][]byte{d, r} {
			in, err := dhcpv4.FromBytes(q)
			if err != nil {
				b.Fatal(err)
			}
			dec := p.Decide(src, in, now)
			dec.Reply.ToBytes()
		}
	}
}
