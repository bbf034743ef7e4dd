// SPDX-License-Identifier: Apache-2.0

package wire

import "net"

// dropsDatagram draws whether a datagram is lost.
func (w *Wire) dropsDatagram() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut || w.loss > 0 && w.dice.Float64() < w.loss
}

// datagrams is a datagram socket with one partner.
type datagrams struct {
	net.Conn
	wire *Wire
}

// Read waits for a datagram that is not lost.
func (d *datagrams) Read(b []byte) (int, error) {
	for {
		n, err := d.Conn.Read(b)
		if err != nil || !d.wire.dropsDatagram() {
			return n, err
		}
	}
}

// Write sends a datagram, which may be lost.
func (d *datagrams) Write(b []byte) (int, error) {
	if d.wire.dropsDatagram() {
		return len(b), nil
	}
	return d.Conn.Write(b)
}

// packets is a datagram socket.
type packets struct {
	net.PacketConn
	wire *Wire
}

// ReadFrom waits for a datagram that is not lost.
func (p *packets) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.PacketConn.ReadFrom(b)
		if err != nil || !p.wire.dropsDatagram() {
			return n, from, err
		}
	}
}

// WriteTo sends a datagram, which may be lost.
func (p *packets) WriteTo(b []byte, to net.Addr) (int, error) {
	if p.wire.dropsDatagram() {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}
