// SPDX-License-Identifier: Apache-2.0

package wire

import "net/netip"

// ThroughputParams is what `ironrail-agent throughput` reads from its standard input. One node
// listens, and the other connects to it; both are given the same Token, Streams and Seconds.
type ThroughputParams struct {
	Network netip.Prefix `json:"network"`          // the node's own address in it is used
	Address netip.Addr   `json:"address,omitzero"` // of the node, where it is known; else the first in Network
	Token   string       `json:"token"`            // 32 hex digits, of this measurement alone: whoever does not know it gets nothing
	Peer    string       `json:"peer,omitempty"`   // address and port of the end that listens; empty: this end listens
	Echo    uint16       `json:"echo,omitempty"`   // UDP port of that end, which answers packets of full size
	MTU     int          `json:"mtu,omitempty"`    // of that end's interface, bytes
	Streams int          `json:"streams"`          // TCP connections at once
	Seconds float64      `json:"seconds"`          // that each direction is loaded
	Wait    float64      `json:"wait"`             // seconds that the end that listens waits for the other
}

// ThroughputReady is the first line that the end prints which listens.
type ThroughputReady struct {
	Listening string      `json:"listening"` // address and port
	Echo      uint16      `json:"echo"`      // UDP port
	Link      NetworkLink `json:"link"`
}

// Throughput is what one end of a measurement has seen: `ironrail-agent throughput` prints it,
// on the last line.
type Throughput struct {
	Link     NetworkLink `json:"link"`
	Received Received    `json:"received"`       // from the other end
	Sent     Sent        `json:"sent"`           // to the other end
	Path     *PathMTU    `json:"path,omitempty"` // of the end that connects
	Error    *TaskError  `json:"error,omitempty"`
}

// NetworkLink is the interface that has the node's address in the network.
type NetworkLink struct {
	Netdev  string `json:"netdev"`
	PCI     string `json:"pci,omitempty"` // address; empty for an interface of software
	Address string `json:"address"`
	MTU     int    `json:"mtu"`  // bytes; 0: not known
	Bits    int64  `json:"bits"` // a second of its link; 0: the driver does not know
}

// Received is what came over all connections in the time that counts: the start, in which TCP
// finds out what the path carries, is left out.
type Received struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Rate is the bytes a second; 0 where nothing came.
func (r Received) Rate() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Bytes) / r.Seconds
}

// Sent is what the kernel counted of what was sent (tcp_info of tcp(7)), over all connections.
type Sent struct {
	Segments int64 `json:"segments"`
	Again    int64 `json:"again"` // segments that were sent once more
}

// PathMTU is the largest IP packet that passes from one end to the other without being cut
// into fragments, bytes.
type PathMTU struct {
	Asked    int `json:"asked"`    // what both interfaces send at once, and what has to pass
	Sent     int `json:"sent"`     // that reached the other end; 0: none did, as where UDP is filtered
	Received int `json:"received"` // that came from the other end
}
