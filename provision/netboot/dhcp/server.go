// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/mdlayher/packet"
	"golang.org/x/net/ipv4"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Sizes of the receive loop. One packet waits in at most one queue; what does
// not fit is dropped and counted, and the client asks again.
const (
	batch      = 64   // packets a system call
	queueLen   = 1024 // packets waiting for one worker
	packetSize = 2048 // bytes; firmware announces 1472 at most
	maxWorkers = 8
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
	Dropped   uint64 // a queue was full
	Malformed uint64 // no DHCPv4 packet
	Failed    uint64 // a reply could not be sent, or answering panicked
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
	queues []chan *datagram
	uuids  UUIDs
	free   sync.Pool // of *datagram

	received, answered, refused, dropped, malformed, failed atomic.Uint64
}

// sender sends one reply on its path; many goroutines call it.
type sender interface {
	send(p Path, dst netip.Addr, mac net.HardwareAddr, b []byte) error
}

type datagram struct {
	n    int
	from netip.AddrPort // of a request at the boot server's port; else zero
	b    [packetSize]byte
}

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
	conn, err := listenUDP(ctx, cfg.Interface, cfg.Port)
	if err != nil {
		return nil, err
	}
	s := newServer(cfg, conn)
	s.batch = ipv4.NewPacketConn(conn)
	if cfg.Interface != "" {
		// Not fatal: without CAP_NET_RAW replies are broadcast.
		s.raw, _ = openRaw(cfg.Interface)
	}
	s.probe = probeOn(cfg.Interface, cfg.Policy.Address)
	s.wire = &wire{udp: s.batch, raw: s.raw, source: netip.AddrPortFrom(cfg.Policy.Address, cfg.Port), client: cfg.Port + 1}
	return s, nil
}

// newServer returns a server on conn that cannot send yet.
func newServer(cfg Config, conn net.PacketConn) *Server {
	s := &Server{cfg: cfg, conn: conn, probes: make(chan func(), mostProbes)}
	s.free.New = func() any { return new(datagram) }
	for range min(max(runtime.GOMAXPROCS(0), 2), maxWorkers) {
		s.queues = append(s.queues, make(chan *datagram, queueLen))
	}
	return s
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
	var wg sync.WaitGroup
	for _, q := range s.queues {
		wg.Go(func() {
			for d := range q {
				s.answer(d)
			}
		})
	}
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
	for _, q := range s.queues {
		close(q)
	}
	wg.Wait()
	close(s.probes)
	looks.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receive reads batches and hands each packet to the worker of its MAC, so that
// the packets of one client are answered in order.
func (s *Server) receive(ctx context.Context) error {
	ms := make([]ipv4.Message, batch)
	ds := make([]*datagram, batch)
	for i := range ms {
		ds[i] = s.free.Get().(*datagram)
		ms[i].Buffers = [][]byte{ds[i].b[:]}
	}
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
		for i := range n {
			ds[i].n, ds[i].from = ms[i].N, netip.AddrPort{}
			if ms[i].Flags&syscall.MSG_TRUNC != 0 || ms[i].N < chaddrEnd {
				s.malformed.Add(1)
				continue
			}
			if s.enqueue(ds[i]) {
				ds[i] = s.free.Get().(*datagram)
				ms[i].Buffers[0] = ds[i].b[:]
			}
		}
	}
}

// chaddr lies at bytes 28 to 33 of a packet for Ethernet.
const chaddrEnd = 34

// queueOf is the queue of the worker of a packet's MAC.
func (s *Server) queueOf(d *datagram) chan *datagram {
	h := uint32(2166136261) // FNV-1a
	for _, c := range d.b[chaddrEnd-6 : chaddrEnd] {
		h = (h ^ uint32(c)) * 16777619
	}
	return s.queues[h%uint32(len(s.queues))]
}

func (s *Server) enqueue(d *datagram) bool {
	select {
	case s.queueOf(d) <- d:
		return true
	default:
	}
	n := s.dropped.Add(1)
	dec := Decision{}.refuse(eventDropped, "packets come faster than they can be answered: %d dropped so far", n)
	s.recordDecision(dec, time.Now())
	return false
}

// answer decides and sends. A panic costs one packet, not the service.
func (s *Server) answer(d *datagram) {
	defer s.free.Put(d)
	defer func() {
		if v := recover(); v != nil {
			s.failed.Add(1)
			s.recordDecision(Decision{}.refuse("panic", "a packet of %d bytes could not be answered: %v", d.n, v), time.Now())
		}
	}()
	in, err := dhcpv4.FromBytes(d.b[:d.n])
	if err != nil {
		s.malformed.Add(1)
		return
	}
	now := time.Now()
	dec, ok := s.decide(in, d.from, now)
	if !ok {
		return
	}
	if dec.Refused {
		s.refused.Add(1)
	}
	if dec.probe.IsValid() && s.probe != nil {
		s.offerProbed(in, dec, now)
		return
	}
	if dec.Reply != nil {
		if err := s.send(in, dec.Reply, d.from); err != nil {
			s.failed.Add(1)
			dec = dec.refuse("unsent", "%v", err)
		} else {
			s.answered.Add(1)
		}
	}
	s.recordDecision(dec, now)
}

// send sends a reply to where it belongs: what came to the boot server's port is answered
// there (PXE 2.1, section 2.2.3).
func (s *Server) send(in, reply *dhcpv4.DHCPv4, from netip.AddrPort) error {
	if from.IsValid() {
		return s.boots.send(reply.ToBytes(), from)
	}
	path, dst := PathOf(in, reply)
	return s.wire.send(path, dst, in.ClientHWAddr, reply.ToBytes())
}

// recordDecision passes a decision on to the recorder, which is to bound what it takes.
func (s *Server) recordDecision(d Decision, now time.Time) {
	if d.What != "" {
		s.cfg.Recorder.Record(d.Evidence(now))
	}
}

// decide says what to answer; false: nothing is to be told either. A relay may bring
// back what the watch sent.
func (s *Server) decide(in *dhcpv4.DHCPv4, from netip.AddrPort, now time.Time) (Decision, bool) {
	w := s.cfg.Watch
	if w != nil && string(in.ClientHWAddr) == string(w.mac[:]) {
		return Decision{}, false
	}
	if from.IsValid() {
		return s.cfg.Policy.DecideBoot(s.cfg.Source, in, from.Addr(), now), true
	}
	dec := s.cfg.Policy.Decide(s.cfg.Source, in, now)
	s.compareUUIDs(dec, now)
	if w == nil || s.cfg.Policy.Proxy { // who is beside others need not be alone
		return dec, true
	}
	if dec.What == EventOtherServer {
		w.Named(toAddr(in.ServerIdentifier()))
	}
	if _, begun := s.cfg.Source.Attempt(dec.Client.Node); dec.Reply != nil && !begun && !w.mayAnswer() {
		dec.Reply, dec.File = nil, ""
		dec = dec.withNote(eventHeld, "%s asks, and is not answered yet: %s", dec.Class, w.whyHeld())
	}
	return dec, true
}

// compareUUIDs tells when two machines ask under the MAC of an open boot attempt.
func (s *Server) compareUUIDs(d Decision, now time.Time) {
	at, open := s.cfg.Source.Attempt(d.Client.Node)
	if d.Client.Node == "" || !open {
		return
	}
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
