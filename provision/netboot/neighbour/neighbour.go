// SPDX-License-Identifier: Apache-2.0

// Package neighbour reads which MAC answers for an address on this controller's own
// networks: the kernel's ARP table (RFC 826). What a machine says in its packets can
// be anything; a connection that stands was made with the MAC of this table.
package neighbour

import (
	"bufio"
	"bytes"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// arpTable is where Linux shows the table of the network namespace that a process
// is in.
const arpTable = "/proc/net/arp"

// fresh is how long a read of the table is used again: thousands of nodes may call
// within a second.
const fresh = 100 * time.Millisecond

// complete is the flag of an entry whose MAC is known (linux/if_arp.h, ATF_COM).
const complete = "0x2"

// Table is the ARP table. The zero Table is that of the kernel. It is safe for
// concurrent use.
type Table struct {
	// Routers are addresses behind which other networks lie, beside the gateways of
	// clients: relays. What their MACs answer for is routed, and says nothing.
	Routers []netip.Addr

	read func() ([]byte, error) // nil: arpTable

	mu   sync.Mutex // guards what follows
	at   time.Time
	macs map[netip.Addr]addr.MAC
}

// MAC returns the MAC that answers for an address; false when that is not known,
// as of addresses that are not on a network of this controller.
func (t *Table) MAC(a netip.Addr) (addr.MAC, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.at) > fresh {
		b, err := t.load()
		if err != nil {
			b = nil // nothing is known
		}
		t.at, t.macs = now, parseTable(b)
	}
	m, ok := t.macs[a]
	return m, ok
}

func (t *Table) load() ([]byte, error) {
	if t.read != nil {
		return t.read()
	}
	return os.ReadFile(arpTable)
}

// OtherOwner returns the MAC that answers for a client's address when it is none of
// the client's, nor that of a router.
func (t *Table) OtherOwner(c boot.Client) (addr.MAC, bool) {
	m, ok := t.MAC(c.Address.Addr())
	if !ok || slices.Contains(c.MACs, m) {
		return addr.MAC{}, false
	}
	for _, r := range append(slices.Clone(t.Routers), c.Gateway) {
		if of, ok := t.MAC(r); ok && of == m {
			return addr.MAC{}, false
		}
	}
	return m, true
}

// parseTable reads the table: address, hardware type, flags, MAC, mask, device. Lines of
// other forms are left out.
func parseTable(b []byte) map[netip.Addr]addr.MAC {
	out := map[netip.Addr]addr.MAC{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[1] != "0x1" || f[2] != complete && f[2] != "0x6" { // 0x6: set by hand
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		if m, err := addr.ParseMAC(f[3]); err == nil {
			out[a] = m
		}
	}
	return out
}
