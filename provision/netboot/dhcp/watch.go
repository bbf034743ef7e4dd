// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/sockets"
)

// Times of the search for other servers. Servers look whether an address is in use
// before they offer it: dnsmasq pings for 3 s, udhcpd asks by ARP for 2 s, ISC's
// pings for 1 s, and Windows for 1 s as often as it was told to. DISCOVERs that come
// meanwhile wait.
const (
	searchTime  = 8 * time.Second  // of the first search, before anything is answered
	searchEvery = 10 * time.Second // between DISCOVERs after the first search
	goneAfter   = 45 * time.Second // without an answer a server counts as gone
	resolveTime = 2 * time.Second  // for the MAC of a server that a client named
	answerTime  = 5 * time.Second  // for what such a server says of itself
)

// firstProbes is when the DISCOVERs of the first search are sent. The second and the
// third find a server that answers a repeated DISCOVER only.
func firstProbes() []time.Duration {
	return []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second}
}

// mostOthers is how many servers are remembered: who forges answers must not fill
// the memory.
const mostOthers = 16

// WatchConfig says where other servers are looked for.
type WatchConfig struct {
	Network   network.Network // nil: the operating system's
	Interface string          // of the operating system's network
	Address   netip.Addr      // ours: the server identifier of our own answers
	Every     time.Duration   // between DISCOVERs after the first search; zero: 10 s
	// BootFiles passes over servers that name no boot file: one gives the addresses, and
	// ours is beside it.
	BootFiles bool
	// Kept remembers that a search has found nobody, so that the next one that begins at once holds
	// no answer back; nil: nothing is remembered.
	Kept *sockets.Kept
}

// Watch looks for other DHCP servers on the boot network for as long as it runs: it
// sends a DISCOVER of its own now and then, from a locally administered MAC, hears
// the answers of others to anyone, and is told which server clients name in their
// REQUESTs. It is safe for concurrent use. A server that answers only clients it
// knows, by unicast, is found by the REQUEST of such a client alone.
type Watch struct {
	cfg     WatchConfig
	segment segment
	mac     addr.MAC
	xid     dhcpv4.TransactionID
	found   chan Other
	named   chan netip.Addr // by clients; their servers' MACs are looked up

	mu     sync.Mutex // guards what follows
	ends   time.Time  // of the first search; zero: not begun
	clear  bool       // there was a moment after the first search with no other server
	others map[netip.Addr]*Other
}

// segment is how a Watch reaches the boot network.
type segment interface {
	broadcast(discover []byte) error
	// receive waits for one answer of a server, whoever it is for.
	receive() (msg []byte, from netip.Addr, mac addr.MAC, err error)
	// resolve asks for the MAC of an address; zero when nobody answers in time.
	resolve(context.Context, netip.Addr) addr.MAC
	Close() error
}

// OpenWatch opens the sockets of a watch. The caller must call Run or Close. A
// network that carries no broadcasts is an error of kind Unsupported.
func OpenWatch(ctx context.Context, cfg WatchConfig) (w *Watch, err error) {
	if cfg.Every <= 0 {
		cfg.Every = searchEvery
	}
	w = &Watch{cfg: cfg, found: make(chan Other, mostOthers), named: make(chan netip.Addr, mostOthers), others: map[netip.Addr]*Other{}}
	w.mac, w.xid = probeIdentity()
	if network.IsOS(cfg.Network) {
		w.segment, err = openEther(cfg.Interface, cfg.Address)
	} else {
		w.segment, err = openBroadcast(ctx, cfg.Network, cfg.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("dhcp: look for other servers: %w", err)
	}
	return w, nil
}

// Close closes the sockets of a watch that does not run.
func (w *Watch) Close() error { return w.segment.Close() }

// Found gives each other server once, when it is heard for the first time, and again
// when it comes back after it was gone.
func (w *Watch) Found() <-chan Other { return w.found }

// Run searches until ctx is done, and then returns nil with all sockets closed and
// all goroutines ended.
func (w *Watch) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { w.segment.Close() })
	defer stop()
	defer w.segment.Close()
	w.mu.Lock()
	w.ends = time.Now().Add(searchTime)
	if w.cfg.Kept.IsQuiet(w.cfg.Interface) {
		w.ends, w.clear = time.Now(), true // others are still looked for
	}
	w.mu.Unlock()
	defer w.noteQuiet()
	var wg sync.WaitGroup
	wg.Go(func() { w.probe(ctx) })
	wg.Go(func() { w.lookUp(ctx) })
	w.listen(ctx)
	wg.Wait()
	return nil
}

// noteQuiet remembers that no other server was there when the search was ended.
func (w *Watch) noteQuiet() {
	if w.mayAnswer() && len(w.Others()) == 0 {
		w.cfg.Kept.NoteQuiet(w.cfg.Interface, time.Now())
	}
}

// probe sends the DISCOVERs. One that cannot be sent is passed over: the interface
// may come back, and what others say is heard anyway. Every second one is a PXE
// client's, which servers for those only answer.
func (w *Watch) probe(ctx context.Context) {
	began, next := time.Now(), firstProbes()
	for n := 0; ; n++ {
		wait := w.cfg.Every
		if len(next) > 0 {
			wait, next = time.Until(began.Add(next[0])), next[1:]
		}
		if !pauseFor(ctx, wait) {
			return
		}
		_ = w.segment.broadcast(probePacket(w.mac, w.xid, n%2 == 0))
	}
}

// listen hears servers until the segment is closed.
func (w *Watch) listen(ctx context.Context) {
	for ctx.Err() == nil {
		msg, from, mac, err := w.segment.receive()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !pauseFor(ctx, 100*time.Millisecond) {
				return
			}
			continue
		}
		p, err := dhcpv4.FromBytes(msg)
		if err != nil || p.OpCode != dhcpv4.OpcodeBootReply {
			continue
		}
		o, ok := otherOf(p, from, mac)
		if !ok || w.ours(p, o.Address) || w.cfg.BootFiles && o.File == "" {
			continue
		}
		o.Seen = "it answered a DISCOVER that the controller sent to look for other servers"
		if p.TransactionID != w.xid {
			o.Seen = fmt.Sprintf("it sent %s to %s", p.MessageType(), p.ClientHWAddr)
		}
		w.add(o)
	}
}

// ours reports whether an answer is our own server's, which comes back where a relay
// passes it on: under our address, or the one that the relay is seen as.
func (w *Watch) ours(p *dhcpv4.DHCPv4, server netip.Addr) bool {
	if rai := p.RelayAgentInfo(); rai != nil {
		if b := rai.Get(dhcpv4.ServerIdentifierOverrideSubOption); len(b) == 4 && netip.AddrFrom4([4]byte(b)) == server {
			return true
		}
	}
	return server == w.cfg.Address
}

// Named tells that a known client's REQUEST takes the offer of a server.
func (w *Watch) Named(server netip.Addr) {
	if server == w.cfg.Address || !server.Is4() || server.IsUnspecified() {
		return
	}
	select {
	case w.named <- server:
	default: // enough are being looked up
	}
}

// lookUp finds the MACs of servers that clients named.
func (w *Watch) lookUp(ctx context.Context) {
	for {
		select {
		case a := <-w.named:
			o := Other{Address: a, Seen: "a node took its offer"}
			if !w.heardLately(a) {
				o.MAC = w.probeServer(ctx, a)
			}
			w.add(o)
		case <-ctx.Done():
			return
		}
	}
}

// probeServer asks a server that a client named to say who it is, and who has its address. It
// returns when the server was heard, or has had its time.
func (w *Watch) probeServer(ctx context.Context, a netip.Addr) addr.MAC {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_ = w.segment.broadcast(probePacket(w.mac, w.xid, true))
	try, enough := context.WithTimeout(ctx, resolveTime)
	mac := w.segment.resolve(try, a)
	enough()
	for !w.heardLately(a) && pauseFor(ctx, 100*time.Millisecond) {
	}
	return mac
}

// heardLately reports whether a server was heard lately.
func (w *Watch) heardLately(a netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.others[a]
	return o != nil && time.Since(o.Last) <= goneAfter
}

// add takes a event over.
func (w *Watch) add(o Other) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	o.Last = now
	was := w.others[o.Address]
	switch {
	case was != nil && now.Sub(was.Last) <= goneAfter:
		was.merge(o)
		return
	case was == nil && len(w.others) >= mostOthers:
		maps.DeleteFunc(w.others, func(_ netip.Addr, o *Other) bool { return now.Sub(o.Last) > goneAfter })
		if len(w.others) >= mostOthers {
			return
		}
	}
	o.First = now
	w.others[o.Address] = &o
	select {
	case w.found <- o:
	default: // nobody has taken those before
	}
}

// Others returns the servers that are there now, by address.
func (w *Watch) Others() []Other {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present(time.Now())
}

// present lists the servers that were heard lately. Callers hold mu.
func (w *Watch) present(now time.Time) (out []Other) {
	for _, o := range w.others {
		if now.Sub(o.Last) <= goneAfter {
			out = append(out, *o)
		}
	}
	slices.SortFunc(out, func(a, b Other) int { return a.Address.Compare(b.Address) })
	return out
}

// Searching reports whether the first search goes on, and until when.
func (w *Watch) Searching() (ends time.Time, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.ends.IsZero() {
		return now.Add(searchTime), true
	}
	return w.ends, now.Before(w.ends)
}

// mayAnswer reports whether our server may answer: the first search has ended, and
// there was a moment since at which no other server was there. What has begun then
// goes on: nodes that boot are worse off with the other server alone.
func (w *Watch) mayAnswer() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !w.clear && !w.ends.IsZero() && !now.Before(w.ends) {
		w.clear = len(w.present(now)) == 0
	}
	return w.clear
}

// whyHeld says why our server does not answer yet.
func (w *Watch) whyHeld() string {
	if others := w.Others(); len(others) > 0 {
		return others[0].String() + " is on this network"
	}
	return "the controller looks whether another DHCP server is on this network"
}

// probeIdentity draws a locally administered unicast MAC and a transaction.
func probeIdentity() (mac addr.MAC, xid dhcpv4.TransactionID) {
	rand.Read(mac[:])
	mac[0] = mac[0]&0xfc | 2
	rand.Read(xid[:])
	return mac, xid
}

// probePacket is a DISCOVER with the broadcast flag, so that the answer reaches us
// whatever MAC it is for; that of a PXE client where pxe is set (RFC 4578).
func probePacket(mac addr.MAC, xid dhcpv4.TransactionID, pxe bool) []byte {
	p := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: 1, TransactionID: xid, ClientHWAddr: mac.HardwareAddr(),
		Options: dhcpv4.Options{uint8(dhcpv4.OptionDHCPMessageType): {byte(dhcpv4.MessageTypeDiscover)},
			uint8(dhcpv4.OptionParameterRequestList): {1, 3, 6, 43, 60, 66, 67}}}
	if pxe {
		p.Options[uint8(dhcpv4.OptionClassIdentifier)] = []byte("PXEClient:Arch:00007:UNDI:003000")
		p.Options[uint8(dhcpv4.OptionClientSystemArchitectureType)] = []byte{0, byte(ArchX64)}
		p.Options[uint8(dhcpv4.OptionClientNetworkInterfaceIdentifier)] = []byte{1, 3, 0}
		p.Options[uint8(optUUID)] = append([]byte{0}, strings.Repeat("\xff", 10)+string(mac[:])...)
	}
	p.SetBroadcast()
	return p.ToBytes()
}
