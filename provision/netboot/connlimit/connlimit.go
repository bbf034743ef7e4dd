// SPDX-License-Identifier: Apache-2.0

// Package connlimit shares the connections of a TCP server among those who call it.
// Who may have one is decided when it is accepted, by its source address, before a
// byte of it is read: unknown clients get few, each known address its share, and a part is
// kept for nodes that are expected to boot. A connection that takes its data slower
// than a minimum rate is closed.
package connlimit

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Limits are the bounds of one server. Those that are zero do not hold.
type Limits struct {
	Total   int // connections at once
	Reserve int // of Total, for nodes with an open boot attempt only
	Known   int // of one known address
	// Unknown is for one address that no node has, AllUnknown for all of these
	// together; below zero: none.
	Unknown, AllUnknown int
	// Rate is the least that a client must take of what is sent to it, in bytes a
	// second, after Grace: for each chunk of 256 KiB, or each write.
	Rate  int64
	Grace time.Duration
}

// chunk is how much of a file is sent within one deadline.
const chunk = 256 << 10

// eventRefused is the evidence of a connection that was closed unread.
const eventRefused = "connection-refused"

// eventSlow is the evidence of a connection whose client took its data too slowly.
const eventSlow = "too-slow"

// Listener accepts connections within limits. It is safe for concurrent use.
type Listener struct {
	net.Listener
	limits   Limits
	source   boot.Source
	recorder boot.Recorder
	proto    boot.Proto

	mu      sync.Mutex         // guards what follows
	open    map[netip.Addr]int // connections of each address
	total   int
	unknown int
}

// New returns a listener that accepts from ln. The recorder gets what is
// refused, as evidence of the service proto.
func New(ln net.Listener, limits Limits, source boot.Source, recorder boot.Recorder, proto boot.Proto) *Listener {
	return &Listener{Listener: ln, limits: limits, source: source, recorder: recorder, proto: proto, open: map[netip.Addr]int{}}
}

// Accept waits for the next connection that is within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := boot.AddressOf(c.RemoteAddr().String())
		client, known := l.source.ByAddress(from)
		if why := l.admit(from, client, known); why != "" {
			l.recordEvent(from, client, eventRefused, why)
			resetConn(c)
			continue
		}
		return l.wrap(c, from, client, known), nil
	}
}

// admit counts a connection in, or says why it is refused.
func (l *Listener) admit(from netip.Addr, c boot.Client, known bool) string {
	expected := false
	if known && c.Kind != boot.BMC {
		_, expected = l.source.Attempt(c.Node)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.limits.Total
	if !expected {
		most -= l.limits.Reserve
	}
	switch n := l.open[from]; {
	case !known && l.limits.Unknown < 0:
		return fmt.Sprintf("no node of the inventory has address %s", from)
	case !known && isBeyond(n, l.limits.Unknown):
		return fmt.Sprintf("%s, which no node has, holds %d connections already", from, n)
	case !known && isBeyond(l.unknown, l.limits.AllUnknown):
		return fmt.Sprintf("addresses that no node has hold %d connections already", l.unknown)
	case known && isBeyond(n, l.limits.Known):
		return fmt.Sprintf("%s of %s holds %d connections already", from, c.Node, n)
	case l.limits.Total > 0 && l.total >= most:
		return fmt.Sprintf("%d connections are open", l.total)
	}
	l.total++
	l.open[from]++
	if !known {
		l.unknown++
	}
	return ""
}

func isBeyond(n, limit int) bool { return limit != 0 && n >= limit }

// release counts a connection out.
func (l *Listener) release(from netip.Addr, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if !known {
		l.unknown--
	}
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

func (l *Listener) recordEvent(from netip.Addr, c boot.Client, what, why string) {
	e := boot.Evidence{Time: time.Now(), Node: c.Node, Address: from, Proto: l.proto, What: what, Detail: why, Refused: true}
	if len(c.MACs) == 1 {
		e.MAC = c.MACs[0]
	}
	l.recorder.Record(e)
}

// resetConn closes a connection without the goodbye that would keep it in the kernel.
func resetConn(c net.Conn) {
	if t, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// wrap returns a connection that counts itself out when it is closed. One that can
// send files by itself still does.
func (l *Listener) wrap(c net.Conn, from netip.Addr, client boot.Client, known bool) net.Conn {
	out := &conn{Conn: c, l: l, from: from, client: client, known: known}
	if s, ok := c.(socket); ok {
		return &rated{conn: out, socket: s}
	}
	return out
}

// conn is one connection that was admitted.
type conn struct {
	net.Conn
	l      *Listener
	from   netip.Addr
	client boot.Client
	known  bool
	once   sync.Once
}

// Close closes the connection; it may be called more than once.
func (c *conn) Close() error {
	c.once.Do(func() { c.l.release(c.from, c.known) })
	return c.Conn.Close()
}

// socket is a connection of the operating system.
type socket interface {
	net.Conn
	io.ReaderFrom
	CloseWrite() error
}

// rated is a connection whose client must take what is sent at the minimum rate.
type rated struct {
	*conn
	socket socket

	mu    sync.Mutex // guards until
	until time.Time  // the deadline that the server set; zero: none
}

// SetDeadline keeps the server's deadline for writing beside that of the rate.
func (r *rated) SetDeadline(t time.Time) error {
	if err := r.SetWriteDeadline(t); err != nil {
		return err
	}
	return r.socket.SetReadDeadline(t)
}

// SetWriteDeadline keeps the server's deadline beside that of the rate.
func (r *rated) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = t
	return r.socket.SetWriteDeadline(t)
}

// CloseWrite ends what is sent.
func (r *rated) CloseWrite() error { return r.socket.CloseWrite() }

// limit sets the deadline of sending n bytes; it reports whether that is the one of
// the rate.
func (r *rated) limit(n int64) bool {
	rate := r.conn.l.limits.Rate
	if rate == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := time.Now().Add(r.conn.l.limits.Grace + time.Duration(n)*time.Second/time.Duration(rate))
	byRate := r.until.IsZero() || t.Before(r.until)
	if !byRate {
		t = r.until
	}
	_ = r.socket.SetWriteDeadline(t) // an error is that of a closed connection, which the write finds
	return byRate
}

// slow tells that the client did not take its data in time.
func (r *rated) slow(limited bool, err error) {
	if ne, ok := err.(net.Error); ok && limited && ne.Timeout() {
		r.conn.l.recordEvent(r.from, r.client, eventSlow, fmt.Sprintf("%s takes less than %d bytes a second of what it asked for: its connection is closed", r.from, r.conn.l.limits.Rate))
	}
}

// Write sends b at the minimum rate or fails.
func (r *rated) Write(b []byte) (int, error) {
	limited := r.limit(int64(len(b)))
	n, err := r.socket.Write(b)
	r.slow(limited, err)
	return n, err
}

// ReadFrom sends all of src, chunk after chunk, each at the minimum rate. A file is
// sent by the kernel (sendfile), which needs to find it in at most one LimitedReader.
func (r *rated) ReadFrom(src io.Reader) (total int64, err error) {
	left := int64(-1)
	whole, bounded := src.(*io.LimitedReader)
	if bounded {
		src, left = whole.R, whole.N
	}
	for left != 0 {
		part := int64(chunk)
		if left > 0 {
			part = min(part, left)
		}
		limited := r.limit(part)
		n, err := r.socket.ReadFrom(&io.LimitedReader{R: src, N: part})
		total += n
		if bounded {
			left -= n
			whole.N -= n
		}
		if err != nil || n < part {
			r.slow(limited, err)
			return total, err
		}
	}
	return total, nil
}
