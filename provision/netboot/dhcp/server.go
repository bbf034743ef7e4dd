// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/mdlayher/packet"
	"golang.org/x/net/ipv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Sizes of the receive loop. Packets wait in the socket's buffer; what does not fit
// is dropped by the kernel and counted, and the client asks again.
const (
	batch      = 64   // packets a system call
	share      = 16   // of them that one client has answered, where as many wait
	packetSize = 2048 // bytes; firmware announces 1472 at most
)

// Config is where a server listens. Policy and Source say what it answers.
type Config struct {
	// Network is where the server listens. Nil: the operating system's. On another
	// one it listens on Policy.Address and answers what comes through a relay, or
	// from a client that has its address already; Interface is not looked at.
	Network   network.Network
	Interface string // empty: all, without frames to un-numbered clients
	Port      uint16 // zero: 67; clients then have the port above
	BootPort  uint16 // of the boot server where the policy is Proxy; zero: 4011
	Policy    Policy
	Source    boot.Source
	Recorder  boot.Recorder
	Kept      *sockets.Kept // of the operating system's network: keeps the sockets open; nil: nothing does
	// Watch looks for other servers. Before it has found that there is none, only nodes
	// whose boot attempt is open are answered: an earlier run has begun it. Nil: they
	// are not looked for.
	Watch *Watch
	// TwoUUIDs is told once of each boot attempt under whose MAC two machines ask. It
	// must not block. Nil: nobody is told.
	TwoUUIDs func(TwoUUIDs)
}

// Stats counts packets since the server was opened.
type Stats struct {
	Received  uint64 // datagrams read
	Answered  uint64 // replies sent
	Refused   uint64 // known reason to send nothing
	Dropped   uint64 // the socket's buffer was full, or one client sent more than its share
	Malformed uint64 // no DHCPv4 packet
	Failed    uint64 // a reply could not be sent, or answering panicked
}

// Plus adds the counts of two servers.
func (s Stats) Plus(o Stats) Stats {
	return Stats{Received: s.Received + o.Received, Answered: s.Answered + o.Answered, Refused: s.Refused + o.Refused,
		Dropped: s.Dropped + o.Dropped, Malformed: s.Malformed + o.Malformed, Failed: s.Failed + o.Failed}
}

// Server answers DHCP on one socket. Open, then Serve once.
type Server struct {
	cfg    Config
	conn   net.PacketConn
	batch  *ipv4.PacketConn // of conn; nil where it is no socket of the operating system
	raw    *packet.Conn
	wire   sender
	boots  *bootServer // beside another server; else nil
	probe  prober      // nil: nobody can look
	probes chan func() // looks for owners of addresses that are to be offered
	uuids  UUIDs

	received, answered, refused, dropped, malformed, failed atomic.Uint64
}

// sender sends replies, each on its path, and sets the error of those that it cannot send. Several
// goroutines call it.
type sender interface{ send([]*outgoing) }

// Open opens the sockets. The caller must call Serve or Close.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Port == 0 {
		cfg.Port = serverPort
	}
	s, err := openDHCP(ctx, cfg)
	if err != nil || !cfg.Policy.anyProxy() {
		return s, err
	}
	if s.boots, err = openBootServer(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDHCP opens the sockets of the port of DHCP servers.
func openDHCP(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.plain() {
		return openOn(ctx, cfg)
	}
	conn, err := listenUDP(ctx, cfg.Kept, cfg.Interface, cfg.Port)
	if err != nil {
		return nil, err
	}
	s := newServer(cfg, conn)
	s.batch = ipv4.NewPacketConn(conn)
	w := newWire(s.batch, netip.AddrPortFrom(cfg.Policy.Address, cfg.Port))
	if cfg.Interface != "" {
		// Not fatal: without CAP_NET_RAW replies are broadcast.
		s.raw, w.frames, _ = openFrames(cfg.Interface)
	}
	s.probe = probeOn(cfg.Interface, cfg.Policy.Address)
	s.wire = w
	return s, nil
}

// newServer returns a server on conn that cannot send yet.
func newServer(cfg Config, conn net.PacketConn) *Server {
	return &Server{cfg: cfg, conn: conn, probes: make(chan func(), mostProbes)}
}

// Close closes the sockets of a server that is not served.
func (s *Server) Close() error {
	err := s.conn.Close()
	if s.raw != nil {
		err = errors.Join(err, s.raw.Close())
	}
	if s.boots != nil {
		err = errors.Join(err, s.boots.conn.Close())
	}
	return err
}

// Addr is the address that the server listens on.
func (s *Server) Addr() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Stats returns the counters; it may be called at any time.
func (s *Server) Stats() Stats {
	return Stats{s.received.Load(), s.answered.Load(), s.refused.Load(), s.dropped.Load(), s.malformed.Load(), s.failed.Load()}
}

// Serve answers until ctx is done and then returns nil, with the sockets closed
// and all goroutines ended.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	defer s.Close()
	var readers, looks sync.WaitGroup
	for range s.cfg.Policy.probers() {
		looks.Go(func() {
			for look := range s.probes {
				look()
			}
		})
	}
	if s.boots != nil {
		readers.Go(func() { s.receiveBoots(ctx) })
	}
	receive := s.receive
	if s.batch == nil {
		receive = s.receiveEach
	}
	err := receive(ctx)
	_ = s.Close() // the other reader ends
	readers.Wait()
	close(s.probes)
	looks.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receive reads batches and answers each before it reads the next, so that the packets of one
// client are answered in order. The more come, the more are read and sent at once.
func (s *Server) receive(ctx context.Context) error {
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, packetSize)}
		ms[i].OOB = make([]byte, dropsSize)
	}
	a := newAnswers(s)
	for {
		n, err := s.batch.ReadBatch(ms, 0)
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return fmt.Errorf("dhcp: socket closed: %w", net.ErrClosed)
		}
		if err != nil {
			// The interface went down, or a message of the kernel: it may come back.
			if !pauseFor(ctx, 100*time.Millisecond) {
				return nil
			}
			continue
		}
		s.received.Add(uint64(n))
		s.answerBatch(ms[:n], a)
	}
}

// answerBatch answers packets that were read at once. Where more wait than that, no client has more
// than its share.
func (s *Server) answerBatch(ms []ipv4.Message, a *answers) {
	dropped := a.dropsOf(ms)
	for i := range ms {
		b := ms[i].Buffers[0][:ms[i].N]
		switch {
		case ms[i].Flags&syscall.MSG_TRUNC != 0 || len(b) < chaddrEnd:
			s.malformed.Add(1)
		case len(ms) == batch && !a.admit(addr.MAC(b[chaddrEnd-6:chaddrEnd])):
			dropped++
		default:
			s.answer(b, netip.AddrPort{}, a)
		}
	}
	a.flush()
	if dropped > 0 {
		n := s.dropped.Add(dropped)
		s.recordDecision(Decision{}.refuse(eventDropped, "packets come faster than they can be answered: %d dropped so far", n), time.Now())
	}
}

// chaddr lies at bytes 28 to 33 of a packet for Ethernet.
const chaddrEnd = 34

// answer decides what to answer to a packet, and has it sent with the next flush of a. from is
// of a request at the boot server's port; else zero. A panic costs one packet, not the service.
func (s *Server) answer(b []byte, from netip.AddrPort, a *answers) {
	defer func() {
		if v := recover(); v != nil {
			s.recordPanic(1, "a packet of %d bytes could not be answered: %v", len(b), v)
		}
	}()
	in := &a.in
	if !decode(b, in) {
		s.malformed.Add(1)
		return
	}
	now := time.Now()
	dec, ok := s.decide(&a.policy, in, from, now)
	if !ok {
		return
	}
	if dec.Refused {
		s.refused.Add(1)
	}
	switch {
	case dec.probe.IsValid() && s.probe != nil:
		s.offerProbed(in, dec, now)
	case dec.Reply == nil:
		s.recordDecision(dec, now)
	default:
		a.add(in, dec, from, now)
	}
}

// recordPanic counts packets that were not answered for a panic, and records it, unless it is the
// recorder that panics.
func (s *Server) recordPanic(packets int, format string, args ...any) {
	defer func() { _ = recover() }()
	s.failed.Add(uint64(packets))
	s.recordDecision(Decision{}.refuse("panic", format, args...), time.Now())
}

// recordDecision passes a decision on to the recorder, which is to bound what it takes.
func (s *Server) recordDecision(d Decision, now time.Time) {
	if d.What != "" {
		s.cfg.Recorder.Record(d.Evidence(now))
	}
}

// decide says what to answer; false: nothing is to be told either. A relay may bring
// back what the watch sent.
func (s *Server) decide(p *Policy, in *dhcpv4.DHCPv4, from netip.AddrPort, now time.Time) (Decision, bool) {
	w := s.cfg.Watch
	if w != nil && string(in.ClientHWAddr) == string(w.mac[:]) {
		return Decision{}, false
	}
	if from.IsValid() {
		return p.DecideBoot(s.cfg.Source, in, from.Addr(), now), true
	}
	dec := p.Decide(s.cfg.Source, in, now)
	var at boot.Attempt
	var begun bool
	if dec.Client.Node != "" {
		at, begun = s.cfg.Source.Attempt(dec.Client.Node)
	}
	if begun {
		s.compareUUIDs(dec, at, now)
	}
	if w == nil || p.Proxy { // who is beside others need not be alone
		return dec, true
	}
	if dec.What == EventOtherServer {
		w.Named(toAddr(in.ServerIdentifier()))
	}
	if dec.Reply != nil && !begun && !w.mayAnswer() {
		dec.Reply, dec.File = nil, ""
		dec = dec.withNote(eventHeld, "%s asks, and is not answered yet: %s", dec.Class, w.whyHeld())
	}
	return dec, true
}

// compareUUIDs tells when two machines ask under the MAC of an open boot attempt.
func (s *Server) compareUUIDs(d Decision, at boot.Attempt, now time.Time) {
	two, yes := s.uuids.Observe(d.Client, d.MAC, at.ID, d.Class, now)
	if !yes {
		return
	}
	s.cfg.Recorder.Record(boot.Evidence{Time: now, Node: d.Client.Node, MAC: d.MAC, Address: d.Client.Address.Addr(), Proto: boot.DHCP, What: EventTwoUUIDs,
		Detail: fmt.Sprintf("%s says its UUID is %s, and said %s before: two machines have this MAC", two.Program, two.Second, two.First)})
	if s.cfg.TwoUUIDs != nil {
		s.cfg.TwoUUIDs(two)
	}
}

// pauseFor waits and reports whether to go on.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
