// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// What transceivers say of themselves, those of fast ports and others.
const (
	moduleMaker = "NVIDIA"
	fastModule  = "MMA1Z00-NS400" // 400 Gb/s, 50 m
	slowModule  = "MFM1T02A-SR"   // 10 Gb/s
	fastPort    = 100e9           // bit/s, from which on a port takes the first
	monitorPage = 0x11            // light by lane (CMIS 5.0, 8.15)
	moduleLanes = 8
)

// Module is pages 0 and 11h of the memory of the transceiver in a network interface, laid out by CMIS 5.0
// (8.3, 8.2). Drivers of InfiniBand ports and of virtio do not give it.
func (k *Kernel) Module(netdev string, page byte, offset, length int) ([]byte, error) {
	i, err := k.port(netdev)
	if err != nil {
		return nil, err
	}
	p := k.node.shape.ports[i]
	if p.ib || k.node.shape.functions[p.function].vendor == emulated {
		return nil, fmt.Errorf("%s: no transceiver: %w", netdev, fs.ErrNotExist)
	}
	k.node.mu.Lock()
	part, other := k.node.delivered.optics[i]
	made := k.node.made
	k.node.mu.Unlock()
	switch {
	case other:
	case p.speed >= fastPort:
		part = fastModule
	default:
		part = slowModule
	}
	if page == monitorPage {
		return cut(netdev, k.node.lightOf(i), offset, length)
	}
	b := []byte(strings.Repeat("\x00", 128) + strings.Repeat(" ", 128))
	b[0] = 0x1e         // QSFP+ or later with CMIS
	b[39], b[40] = 2, 7 // active firmware
	copy(b[129:145], moduleMaker)
	copy(b[148:164], part)
	copy(b[166:182], serialOf(made, "module "+netdev))
	return cut(netdev, b, offset, length)
}

// cut returns some bytes of a page.
func cut(netdev string, b []byte, offset, length int) ([]byte, error) {
	if offset < 0 || length < 0 || offset+length > len(b) {
		return nil, fmt.Errorf("%s: byte %d: %w", netdev, offset+length, fs.ErrInvalid)
	}
	return b[offset : offset+length], nil
}

// lightOf is the page of the monitors of a port's module: each lane sends about 1.3 mW and
// receives about 1 mW, a little less or more by lane and port.
func (n *Node) lightOf(port int) []byte {
	at := n.shape.functions[n.shape.ports[port].function].address
	b := make([]byte, 256)
	for lane := range moduleLanes {
		spread := uint16(37 * (lane + port) % 400)
		binary.BigEndian.PutUint16(b[154+2*lane:], uint16(n.scales.Whole(quantity.LightSent, at, int64(13000-spread))))     // sent, 0.1 µW
		binary.BigEndian.PutUint16(b[186+2*lane:], uint16(n.scales.Whole(quantity.LightReceived, at, int64(10000-spread)))) // received
	}
	return b
}
