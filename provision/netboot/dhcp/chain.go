// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/ironrail/ironrail/internal/addr"
)

// A forced chain sends undionly.kpxe to a ROM that is iPXE itself. The second
// stage cannot be told from the first by its packet: undionly.kpxe has the same
// user class, vendor class and options as the ROM. What differs is the
// transaction: a program keeps its xid from DISCOVER to ACK (RFC 2131 section
// 4.4.1) and the next program draws a new one. So the chain is remembered by
// MAC and xid, and is bounded: once undionly.kpxe has been acknowledged, the
// next transaction within chainWindow gets the script, whoever sends it. If the
// loader never arrived, the ROM that asks again gets the script as well, which
// is the best that can be done for it. A controller that forgot (restart)
// forces once more, and no more than once.

// chainWindow is the longest time from the acknowledgement of the loader to the
// first packet of the program it loaded. A node that is reset within it boots
// once without the chain.
const chainWindow = 2 * time.Minute

// maxChains bounds the memory; past it the oldest entries of other nodes go.
const maxChains = 4096

// Chain remembers which forced chain has reached its second stage. The zero
// Chain is empty; it is safe for concurrent use.
type Chain struct {
	mu   sync.Mutex
	seen map[addr.MAC]link // guarded by mu
}

type link struct {
	xid    dhcpv4.TransactionID
	at     time.Time
	loader bool // this transaction is answered with the loader
	acked  bool // and that answer has been acknowledged to the client
}

// Loader reports whether the transaction is to be answered with the loader. The
// answer stays the same for all packets of one transaction.
func (c *Chain) Loader(mac addr.MAC, xid dhcpv4.TransactionID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.seen[mac]
	if ok && l.xid == xid {
		return l.loader
	}
	second := ok && l.loader && l.acked && now.Sub(l.at) < chainWindow
	c.put(mac, link{xid: xid, at: now, loader: !second}, now)
	return !second
}

// Acked records that the transaction's answer has been acknowledged.
func (c *Chain) Acked(mac addr.MAC, xid dhcpv4.TransactionID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.seen[mac]; ok && l.xid == xid {
		l.acked, l.at = true, now
		c.put(mac, l, now)
	}
}

// put stores a link; it is called with mu held.
func (c *Chain) put(mac addr.MAC, l link, now time.Time) {
	if c.seen == nil {
		c.seen = map[addr.MAC]link{}
	}
	if _, ok := c.seen[mac]; !ok && len(c.seen) >= maxChains {
		for m, old := range c.seen {
			if now.Sub(old.at) >= chainWindow || len(c.seen) >= maxChains {
				delete(c.seen, m)
			}
		}
	}
	c.seen[mac] = l
}
