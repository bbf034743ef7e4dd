// SPDX-License-Identifier: Apache-2.0

package network

import (
	"io"
	"net"
	"net/netip"
	"time"
)

// streamBuffer is how many bytes may be under way in one direction.
const streamBuffer = 64 << 10

// sshBuffer is the same for SSH. Its library writes with a lock held that others
// of the process wait for, and a goroutine that waits for a lock keeps virtual
// time from passing. So a write must not wait there; SSH's own windows (RFC 4254,
// 5.2), 2 MiB for each command, bound what is under way.
const (
	sshBuffer = 64 << 20
	sshPort   = 22
)

// bufferOf is the limit for streams to a port.
func bufferOf(port uint16) int {
	if port == sshPort {
		return sshBuffer
	}
	return streamBuffer
}

// streamPair makes the two ends of a connection.
func streamPair(m *Memory, a, b net.Addr, limit int) (*streamConn, *streamConn) {
	there, back := newFlow(limit), newFlow(limit)
	return &streamConn{net: m, at: portOf(a).Addr(), in: back, out: there, local: a, remote: b},
		&streamConn{net: m, at: portOf(b).Addr(), in: there, out: back, local: b, remote: a}
}

// streamConn is one end of a connection in memory.
type streamConn struct {
	net           *Memory
	at            netip.Addr
	self          bool // both ends are on one device
	in, out       *flow
	local, remote net.Addr
}

func (c *streamConn) err(op string, err error) error {
	if err == nil || err == io.EOF {
		return err // readers compare with io.EOF itself
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Read reads what has come.
func (c *streamConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.err("read", err)
}

// Write waits for room.
func (c *streamConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.err("write", err)
}

// CloseWrite tells the other end that no more comes.
func (c *streamConn) CloseWrite() error {
	c.out.change(func(f *flow) { f.ended = true })
	return nil
}

// Close ends both directions.
func (c *streamConn) Close() error {
	if !c.in.drop() {
		return c.err("close", net.ErrClosed)
	}
	c.out.close()
	c.net.forget(c)
	return nil
}

// LocalAddr returns this end.
func (c *streamConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end.
func (c *streamConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline bounds reads and writes.
func (c *streamConn) SetDeadline(t time.Time) error {
	c.in.readBy.set(&c.in.mu, c.in.cond, t)
	c.out.writeBy.set(&c.out.mu, c.out.cond, t)
	return nil
}

// SetReadDeadline bounds reads.
func (c *streamConn) SetReadDeadline(t time.Time) error {
	c.in.readBy.set(&c.in.mu, c.in.cond, t)
	return nil
}

// SetWriteDeadline bounds writes.
func (c *streamConn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy.set(&c.out.mu, c.out.cond, t)
	return nil
}
