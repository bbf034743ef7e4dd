// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"sync"
)

// backlogLen is how many connections wait to be accepted; who dials beyond that
// waits too.
const backlogLen = 16

// listener is a stream listener in memory.
type listener struct {
	net     *Memory
	at      netip.AddrPort
	addr    net.Addr
	backlog chan *streamConn
	once    sync.Once
	closed  chan struct{}
}

func newListener(m *Memory, at netip.AddrPort, addr net.Addr) *listener {
	return &listener{net: m, at: at, addr: addr, backlog: make(chan *streamConn, backlogLen), closed: make(chan struct{})}
}

func (l *listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	if l.isClosed() {
		return nil, opError("accept", l.addr.Network(), l.addr, net.ErrClosed)
	}
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", l.addr.Network(), l.addr, net.ErrClosed)
	}
}

// Close stops listening; connections that nobody accepted are closed.
func (l *listener) Close() error {
	err := opError("close", l.addr.Network(), l.addr, net.ErrClosed)
	l.once.Do(func() {
		err = nil
		l.net.mu.Lock()
		delete(l.net.stations[l.at.Addr()].streams, l.at.Port())
		l.net.mu.Unlock()
		close(l.closed)
		l.drain()
	})
	return err
}

// drain closes what waits to be accepted.
func (l *listener) drain() {
	for {
		select {
		case c := <-l.backlog:
			_ = c.Close()
		default:
			return
		}
	}
}

// Addr returns the address that is listened on.
func (l *listener) Addr() net.Addr { return l.addr }
