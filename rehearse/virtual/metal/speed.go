// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"hash/fnv"
	"path"
	"strconv"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// Speeds of a host's parts. Belief, but for the bus: 64 bits of a channel.
const (
	busBytes     = 8
	triadShare   = 0.55  // of what the modules could carry that a triad reaches
	coreRounds   = 480e6 // rounds a second of a core: six clocks each, at 2.9 GHz
	nvmeRate     = 6.6e9 // bytes a second
	sataRate     = 540e6
	virtioRate   = 2e9
	unlikeShare  = 0.01 // by which parts that are well differ, to either side
	mostChannels = 12   // of a socket
)

// hampered is by which share parts of a host do less than they should.
type hampered struct {
	channels map[int]int     // of memory that carry nothing, by socket
	cores    float64         // the share of its clock that every core is held to; 0: all of it
	disks    map[int]float64 // the share that a disk reads, by place
}

// LoseChannel lets a channel of memory of a socket carry nothing, as one does that the firmware
// has left out of the interleaving: its modules are listed. False if there is no such socket.
func (n *Node) LoseChannel(socket int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if socket < 0 || socket >= n.shape.sockets {
		return false
	}
	if n.hampered.channels == nil {
		n.hampered.channels = map[int]int{}
	}
	n.hampered.channels[socket]++
	return true
}

// CapCores holds the clock of every core to a share of what it should be under load.
func (n *Node) CapCores(share float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hampered.cores = share
}

// ThrottleDisk lets the disk in a bay read only a share of what its model does; false if there
// is none.
func (n *Node) ThrottleDisk(bay int, share float64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if bay < 0 || bay >= len(n.shape.disks) {
		return false
	}
	if n.hampered.disks == nil {
		n.hampered.disks = map[int]float64{}
	}
	n.hampered.disks[bay] = share
	return true
}

// differs is by how much a part that is well differs from others: 1 and a bit. Called with or
// without mu.
func (n *Node) differs(part string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.name + "\x00speed\x00" + part)) // never fails
	return 1 + unlikeShare*(float64(h.Sum32()%2001)/1000-1)
}

// TriadRate is what a core reaches in its own memory while all others do, bytes a second.
func (k *Kernel) TriadRate(cpu int) float64 {
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	socket := min(cpu%n.shape.cores/n.perSocket(), n.shape.sockets-1)
	modules := 0
	for i := range n.shape.dimm {
		if !n.pulled[i] {
			modules++
		}
	}
	channels := max(1, modules/n.shape.sockets)
	if channels > mostChannels { // two modules a channel
		channels /= 2
	}
	carry := max(channels-n.hampered.channels[socket], 0)
	rate := triadShare * float64(carry) * moduleSpeed * 1e6 * busBytes
	return n.scales.Of(quantity.MemoryRate, "") * rate / float64(n.perSocket()) * n.differs("memory "+strconv.Itoa(socket))
}

// perSocket is how many cores a socket has. Called with mu held.
func (n *Node) perSocket() int { return (n.shape.cores + n.shape.sockets - 1) / n.shape.sockets }

// RoundRate is what a core computes while all others do, rounds a second.
func (k *Kernel) RoundRate(cpu int) float64 {
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	rate := n.scales.Of(quantity.CoreRate, "") * coreRounds * n.differs("core "+strconv.Itoa(cpu))
	if n.hampered.cores > 0 {
		rate *= n.hampered.cores
	}
	return rate
}

// ReadRate is how fast the disk of a path is read, bytes a second; 0: there is none.
func (k *Kernel) ReadRate(name string) float64 {
	n := k.node
	for i, d := range n.disks {
		if path.Join("/dev", d.slot.name) != name || n.missing(d.slot.function) {
			continue
		}
		rate, known := map[string]float64{"nvme": nvmeRate, "virtio": virtioRate}[d.slot.kind]
		if !known {
			rate = sataRate
		}
		rate *= n.differs(d.slot.name) * n.scales.Of(quantity.DiskRate, n.shape.functions[d.slot.function].address)
		n.mu.Lock()
		defer n.mu.Unlock()
		if share, slow := n.hampered.disks[i]; slow {
			rate *= share
		}
		return rate
	}
	return 0
}
