// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// Zone is one DNS zone as a master file (RFC 1035, 5).
type Zone struct {
	Name string // without the last dot: "dc1.example", "0.20.10.in-addr.arpa"
	Text []byte
}

// Options of Zones.
type Options struct {
	Domain string // of the forward zone
	NS     string // the name server: a name of the site, or a full name with dots
	Serial uint32 // of all zones; 0: a hash of the zone's records
}

// Zones makes the forward zone and the reverse zones of a list. A reverse zone
// ends where an octet ends, a nibble for IPv6: a network of length 20 has zones of
// length 24. A network that is smaller than a /24 has a zone of its own in the
// form of RFC 2317, with the records that the zone above needs as comments.
func Zones(inv *inventory.Inventory, list []Entry, o Options) []Zone {
	cidr := map[string][]netip.Prefix{}
	for _, n := range inv.Networks {
		cidr[n.Name] = []netip.Prefix{n.CIDR, n.CIDR6}
	}
	for _, f := range inv.Fabrics {
		cidr[f.Name] = append(cidr[f.Name], f.CIDR)
	}
	z := zoner{o: o, byZone: map[netip.Prefix]*bytes.Buffer{}, seen: map[netip.Addr]bool{}}
	for _, e := range list {
		z.forward(e)
		z.reverse(e, cidr[e.Network])
	}
	zones := []Zone{z.zone(strings.TrimSuffix(o.Domain, "."), z.names.Bytes(), "")}
	keys := make([]netip.Prefix, 0, len(z.byZone))
	for k := range z.byZone {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	for _, k := range keys {
		zones = append(zones, z.zone(reverseName(k), z.byZone[k].Bytes(), delegation(k)))
	}
	return zones
}

// zoner collects records.
type zoner struct {
	o      Options
	names  bytes.Buffer
	byZone map[netip.Prefix]*bytes.Buffer
	seen   map[netip.Addr]bool
}

func (z *zoner) forward(e Entry) {
	kind := "A"
	if e.Address.Addr().Is6() {
		kind = "AAAA"
	}
	z.names.WriteString(e.Name + "\tIN\t" + kind + "\t" + e.Address.Addr().String() + "\n")
}

// reverse adds the name of an address; of an address with several the first.
func (z *zoner) reverse(e Entry, networks []netip.Prefix) {
	a := e.Address.Addr()
	if z.seen[a] {
		return
	}
	z.seen[a] = true
	in := netip.PrefixFrom(a, 24).Masked()
	if a.Is6() {
		in = netip.PrefixFrom(a, 64).Masked()
	}
	for _, n := range networks {
		if n.IsValid() && n.Contains(a) {
			in = n
		}
	}
	key := cut(in, a)
	b := z.byZone[key]
	if b == nil {
		b = &bytes.Buffer{}
		z.byZone[key] = b
	}
	b.WriteString(owner(key, a) + "\tIN\tPTR\t" + e.Name + "." + strings.TrimSuffix(z.o.Domain, ".") + ".\n")
}

// cut is the part of a network that is the zone of one of its addresses.
func cut(network netip.Prefix, a netip.Addr) netip.Prefix {
	step := 8
	if a.Is6() {
		step = 4
	}
	length := max((network.Bits()+step-1)/step*step, step)
	switch {
	case a.Is4() && network.Bits() > 24:
		length = network.Bits()
	case a.Is6() && length == 128:
		length = 124
	}
	return netip.PrefixFrom(a, length).Masked()
}

// reverseName is the name of a reverse zone (RFC 1035, 3.5; RFC 3596, 2.5; RFC
// 2317, 4).
func reverseName(p netip.Prefix) string {
	if p.Addr().Is6() {
		return nibbles(p.Addr(), p.Bits()/4) + ".ip6.arpa"
	}
	b := p.Addr().As4()
	var parts []string
	if p.Bits() > 24 {
		parts = append(parts, strconv.Itoa(int(b[3]))+"/"+strconv.Itoa(p.Bits()))
	}
	for i := min(p.Bits(), 24)/8 - 1; i >= 0; i-- {
		parts = append(parts, strconv.Itoa(int(b[i])))
	}
	return strings.Join(parts, ".") + ".in-addr.arpa"
}

// nibbles are the first n nibbles of an IPv6 address, backwards.
func nibbles(a netip.Addr, n int) string {
	b := a.As16()
	digits := hex.EncodeToString(b[:])
	parts := make([]string, 0, n)
	for i := n - 1; i >= 0; i-- {
		parts = append(parts, digits[i:i+1])
	}
	return strings.Join(parts, ".")
}

// owner is the name of an address within its zone.
func owner(zone netip.Prefix, a netip.Addr) string {
	if a.Is6() {
		all := nibbles(a, 32)
		return all[:2*(32-zone.Bits()/4)-1]
	}
	b := a.As4()
	var parts []string
	for i := 3; i >= min(zone.Bits(), 24)/8; i-- {
		parts = append(parts, strconv.Itoa(int(b[i])))
	}
	return strings.Join(parts, ".")
}

// delegation is what the zone above a part of a /24 needs, as comments.
func delegation(p netip.Prefix) string {
	if !p.Addr().Is4() || p.Bits() <= 24 {
		return ""
	}
	first := int(p.Addr().As4()[3])
	last := first + 1<<(32-p.Bits()) - 1
	return fmt.Sprintf("; The zone of the /24 delegates this one (RFC 2317):\n;   %d/%d IN NS (the name server)\n;   $GENERATE %d-%d $ IN CNAME $.%d/%d\n", first, p.Bits(), first, last, first, p.Bits())
}

// zone puts a head before records.
func (z *zoner) zone(name string, records []byte, above string) Zone {
	domain := strings.TrimSuffix(z.o.Domain, ".") + "."
	ns := z.o.NS
	if !strings.HasSuffix(ns, ".") {
		if strings.Contains(ns, ".") {
			ns += "."
		} else {
			ns += "." + domain
		}
	}
	serial, how := z.o.Serial, "given"
	if serial == 0 {
		sum := sha256.Sum256(append([]byte(name+"\n"+ns+"\n"), records...))
		serial, how = max(binary.BigEndian.Uint32(sum[:4])>>1, 1), "hash of the records, not a count: give one where there are secondaries (RFC 1982)"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "; zone %s\n%s$ORIGIN %s.\n$TTL 3600\n@\tIN\tSOA\t%s hostmaster.%s %d 3600 600 604800 300 ; serial: %s\n@\tIN\tNS\t%s\n", name, above, name, ns, domain, serial, how, ns)
	b.Write(records)
	return Zone{Name: name, Text: b.Bytes()}
}
