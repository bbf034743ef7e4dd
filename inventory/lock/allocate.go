// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/natural"
)

// Pool is a part of a fabric's addresses for one use.
type Pool struct {
	What   string // for people: "rail 3"
	Prefix netip.Prefix
	Link   bool // pairs for links (RFC 3021, RFC 6164), not single addresses
	Most   int  // owners, where another pool has the end of Prefix; 0: as many as fit
}

// Want is an address that somebody needs. Of a link the lower end has the odd
// address, and the upper end the even one before it.
type Want struct {
	Owner string
	Pool  int // in the list of pools
}

// Conflict is an entry that cannot be.
type Conflict struct {
	Owner string // who wants the address; by its name of now
	Entry Address
	Why   string  // in words, of the entry: "is not in 10.0.0.0/16, rail 0"
	First Address // that has the address; zero unless it is taken
}

// Carried is an entry that goes with its owner to another name.
type Carried struct {
	Owner string // by its name of now
	Entry Address
}

// Shortage is a pool that is too small.
type Shortage struct {
	Pool       Pool
	Need, Room int // owners that want an address or keep one, and those that fit
	Stale      int // of Need, entries that nobody wants any more
}

// Allocation is who has which address. Prefixes are by the place of the want;
// invalid where the pool is full, and of the second of two wants of one owner.
type Allocation struct {
	Prefixes  []netip.Prefix
	Fresh     []int      // wants that had no entry, and now have an address
	Replaced  []Conflict // entries that cannot be, and for which there is another address
	Stale     []Address  // entries that nobody wants; their addresses stay taken
	Moved     []Carried  // entries under the name of an owner's past
	Shortages []Shortage
}

// Allocate gives every want its address: that of its entry, or of the entry of
// the name that it had before, or else the smallest that is free in its pool, in
// the natural order of the owners' names. It depends on nothing else, so that a
// new want changes no entry.
func Allocate(pools []Pool, wants []Want, entries []Address, moves Moves) Allocation {
	a := allocator{pools: pools, wants: wants, out: Allocation{Prefixes: make([]netip.Prefix, len(wants))}}
	entry := a.match(entries, moves)
	a.books(len(entries))
	missing := a.keep(entry)
	for _, e := range a.out.Stale {
		a.reserve(e)
	}
	slices.SortFunc(missing, func(x, y int) int { return natural.Compare(wants[x].Owner, wants[y].Owner) })
	a.fill(missing)
	return a.out
}

// allocator is one allocation in progress.
type allocator struct {
	pools []Pool
	wants []Want
	out   Allocation
	used  []book
	twice map[int]bool // wants whose owner has wanted before
}

// match finds the entry of each want: nil for none.
func (a *allocator) match(entries []Address, moves Moves) []*Address {
	entry := make([]*Address, len(a.wants))
	place := make(map[string]int32, len(a.wants))
	for i := len(a.wants) - 1; i >= 0; i-- { // backwards: of two the first has the place
		place[a.wants[i].Owner] = int32(i)
	}
	if len(place) < len(a.wants) {
		a.twice = map[int]bool{}
		for i, w := range a.wants {
			if place[w.Owner] != int32(i) {
				a.twice[i] = true
			}
		}
	}
	var rest []int
	for i := range entries {
		if at, ok := place[entries[i].Owner]; ok {
			entry[at] = &entries[i]
		} else {
			rest = append(rest, i)
		}
	}
	for _, i := range rest {
		at, ok := place[moves.Now(entries[i].Owner)]
		if !ok || entry[at] != nil {
			a.out.Stale = append(a.out.Stale, entries[i])
			continue
		}
		entry[at] = &entries[i]
		a.out.Moved = append(a.out.Moved, Carried{a.wants[at].Owner, entries[i]})
	}
	return entry
}

// keep takes what the entries say, the first lines first, and returns the wants
// that have no address yet.
func (a *allocator) keep(entry []*Address) (missing []int) {
	order := make([]int, 0, len(entry))
	sorted := true
	for i, e := range entry {
		if a.twice[i] {
			continue
		}
		if e == nil {
			missing = append(missing, i)
			a.out.Fresh = append(a.out.Fresh, i)
			continue
		}
		sorted = sorted && (len(order) == 0 || entry[order[len(order)-1]].At.Line <= e.At.Line)
		order = append(order, i)
	}
	if !sorted {
		slices.SortFunc(order, func(x, y int) int { return int(entry[x].At.Line - entry[y].At.Line) })
	}
	for _, i := range order {
		n, why := a.number(a.wants[i].Pool, entry[i].Prefix)
		c := Conflict{Owner: a.wants[i].Owner, Entry: *entry[i], Why: why}
		if why == "" {
			if first := a.used[a.wants[i].Pool].take(n, i); first >= 0 {
				c.First = *entry[first]
				c.Why = "is that of " + c.First.Owner + " as well"
			}
		}
		if c.Why != "" {
			a.out.Replaced = append(a.out.Replaced, c)
			missing = append(missing, i)
			continue
		}
		a.out.Prefixes[i] = entry[i].Prefix
	}
	return missing
}

// number is the place of an address in its pool, or why it cannot be there.
func (a *allocator) number(pool int, p netip.Prefix) (uint64, string) {
	of := a.pools[pool]
	n, ok := offsetIn(of.Prefix, p.Addr())
	switch {
	case !ok:
		return 0, fmt.Sprintf("is not in %s, %s", of.Prefix, of.What)
	case p.Bits() != of.length():
		return 0, fmt.Sprintf("has a network of length /%d, not /%d", p.Bits(), of.length())
	case of.Link && n&1 == 0:
		return 0, "is the address of the upper end of a link"
	case of.Link:
		n /= 2
	}
	if n >= of.Room() {
		return 0, "is not in the part of " + of.What
	}
	return n, ""
}

// reserve keeps the address of an entry that nobody wants from others.
func (a *allocator) reserve(e Address) {
	for i, p := range a.pools {
		if n, ok := offsetIn(p.Prefix, e.Prefix.Addr()); ok {
			if p.Link {
				n /= 2
			}
			if n >= p.Room() {
				continue
			}
			if a.used[i].take(n, -1) < 0 {
				a.used[i].stale++
			}
			return
		}
	}
}

// fill gives the smallest free addresses to those that have none.
func (a *allocator) fill(missing []int) {
	need := make([]int, len(a.pools))
	for _, i := range missing {
		pool := a.wants[i].Pool
		of := a.pools[pool]
		n, ok := a.used[pool].next(of.Room())
		if !ok {
			need[pool]++
			continue
		}
		a.out.Prefixes[i] = of.at(n)
	}
	for i, n := range need {
		if n > 0 {
			room := int(a.pools[i].Room())
			a.out.Shortages = append(a.out.Shortages, Shortage{Pool: a.pools[i], Need: room + n, Room: room, Stale: a.used[i].stale})
		}
	}
}

// books makes a book for each pool. No number beyond the count of wants and
// entries is ever the smallest free one.
func (a *allocator) books(entries int) {
	size := make([]int, len(a.pools))
	for _, w := range a.wants {
		size[w.Pool]++
	}
	a.used = make([]book, len(a.pools))
	for i := range a.used {
		a.used[i] = book{dense: make([]int32, size[i]+entries+1)}
	}
}

// book is which numbers of a pool are taken.
type book struct {
	dense  []int32        // by number: 0 free, else the want + 1, or -1
	sparse map[uint64]int // of numbers beyond dense
	first  uint64         // nothing below is free
	stale  int
}

// take takes a number for a want, -1 for nobody; it returns who has it already,
// and less than 0 when nobody that counts has.
func (b *book) take(n uint64, who int) int {
	if n >= uint64(len(b.dense)) {
		if first, taken := b.sparse[n]; taken {
			return first
		}
		if b.sparse == nil {
			b.sparse = map[uint64]int{}
		}
		b.sparse[n] = who
		return -1
	}
	if was := b.dense[n]; was > 0 {
		return int(was) - 1
	}
	b.dense[n] = int32(who) + 1
	if who < 0 {
		b.dense[n] = -1
	}
	return -1
}

// next takes the smallest free number below room.
func (b *book) next(room uint64) (uint64, bool) {
	for b.first < uint64(len(b.dense)) && b.dense[b.first] != 0 {
		b.first++
	}
	if b.first >= room || b.first >= uint64(len(b.dense)) {
		return 0, false
	}
	b.dense[b.first] = -1
	return b.first, true
}

// length is that of the network of one address of the pool.
func (p Pool) length() int {
	if p.Link {
		return p.Prefix.Addr().BitLen() - 1
	}
	return p.Prefix.Addr().BitLen()
}

// Room is how many owners fit into the pool, at most 2^62.
func (p Pool) Room() uint64 {
	n := p.length() - p.Prefix.Bits()
	switch {
	case n < 0:
		return 0
	case p.Most > 0:
		return min(uint64(p.Most), 1<<min(n, 62))
	}
	return 1 << min(n, 62)
}

// at is the address of a number.
func (p Pool) at(n uint64) netip.Prefix {
	if p.Link {
		n = 2*n + 1
	}
	if p.Prefix.Addr().Is4() {
		base := p.Prefix.Addr().As4()
		binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+uint32(n))
		return netip.PrefixFrom(netip.AddrFrom4(base), p.length())
	}
	base := p.Prefix.Addr().As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(base[8:]), n, 0)
	binary.BigEndian.PutUint64(base[8:], low)
	binary.BigEndian.PutUint64(base[:8], binary.BigEndian.Uint64(base[:8])+carry)
	return netip.PrefixFrom(netip.AddrFrom16(base), p.length())
}

// offsetIn returns how far an address lies into a network; false outside of it.
func offsetIn(p netip.Prefix, a netip.Addr) (uint64, bool) {
	if !p.Contains(a) {
		return 0, false
	}
	if a.Is4() {
		x, y := a.As4(), p.Addr().As4()
		return uint64(binary.BigEndian.Uint32(x[:]) - binary.BigEndian.Uint32(y[:])), true
	}
	x, y := a.As16(), p.Addr().As16()
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(x[8:]), binary.BigEndian.Uint64(y[8:]), 0)
	if high := binary.BigEndian.Uint64(x[:8]) - binary.BigEndian.Uint64(y[:8]) - borrow; high != 0 {
		return 1 << 63, true // farther than any pool is filled
	}
	return min(low, 1<<63), true
}

// Moves are the names that things had before, with those that they have now.
type Moves map[string]string

// Now is the name of an owner after the moves: of the thing itself, or of what it
// is a part of ("n1/rail/0" after n1 became n2 is "n2/rail/0"). A circle of moves
// ends where it began.
func (m Moves) Now(name string) string {
	for range len(m) {
		next := m.once(name)
		if next == "" {
			return name
		}
		name = next
	}
	return name
}

func (m Moves) once(name string) string {
	for i := len(name); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		if to, ok := m[name[:i]]; ok {
			return to + name[i:]
		}
	}
	return ""
}
