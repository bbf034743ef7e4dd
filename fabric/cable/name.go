// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// partKey is what the name of a part depends on.
type partKey struct {
	p        *product
	halves   int
	splitter bool
}

// part names the product of a run: "DAC 400Gbps", "fibre multimode 400Gbps",
// "DAC splitter 800Gbps to 2x400Gbps".
func (b *builder) part(p *product, r *Run, splitter bool) string {
	k := partKey{p, len(r.Cables), splitter}
	if s, ok := b.parts[k]; ok {
		return s
	}
	words := []string{p.typ}
	if p.medium != "" {
		words = append(words, p.medium)
	}
	switch n := len(r.Cables); {
	case n > 1 && splitter:
		words = append(words, "splitter", r.Speed.String(), "to", strconv.Itoa(n)+"x"+(r.Speed/unit.BitRate(n)).String())
	case splitter:
		words = append(words, "splitter", (2 * r.Speed).String(), "to", "2x"+r.Speed.String())
	default:
		words = append(words, r.Speed.String())
	}
	s := strings.Join(words, " ")
	b.parts[k] = s
	return s
}

// labeller gives every run a label of its own. It belongs to one goroutine.
type labeller struct {
	taken  map[uint64]struct{}
	prefix map[labelKey]string
	buf    []byte
}

type labelKey struct {
	fabric *inventory.Fabric
	tier   int
}

func newLabeller(n int) *labeller {
	return &labeller{taken: make(map[uint64]struct{}, n), prefix: map[labelKey]string{}}
}

// crockford is the alphabet of labels: no I, L, O and U, which are misread
// (Douglas Crockford's Base32).
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// symbols are the characters of a label that follow from the ends: 50 bits.
const symbols = 10

// label makes a label such as "compute-r3-4KQ07ZT1XM": the fabric, the rail or
// tier, and what follows from the names of both ends. It stays the same whatever
// else changes in the site.
func (l *labeller) label(r *Run) string {
	c := r.Cables[0]
	a, b := l.hash(&c.From), l.hash(&c.To)
	if b < a {
		a, b = b, a
	}
	code := mixBits(a ^ mixBits(b))
	for {
		if _, again := l.taken[code>>14]; !again {
			break
		}
		code = mixBits(code + 1)
	}
	l.taken[code>>14] = struct{}{}
	l.buf = append(l.buf[:0], l.head(r)...)
	for i := range symbols {
		l.buf = append(l.buf, crockford[code>>(59-5*i)&31])
	}
	return string(l.buf)
}

// head is what stands before the code: at most 7 characters of the fabric or
// network, and the rail or tier.
func (l *labeller) head(r *Run) string {
	k := labelKey{r.Fabric, tierRank(r.Cables[0])}
	if s, ok := l.prefix[k]; ok && r.Fabric != nil {
		return s
	}
	name := "cable"
	if r.Fabric != nil {
		name = r.Fabric.Name
	} else if n := networkOf(r.Cables[0]); n != nil {
		name = n.Name
	}
	tags := map[int]string{toNode: "n", leafSpine: "ls", spineCore: "sc", elsewhere: "x"}
	tag, ok := tags[k.tier]
	if !ok {
		tag = "r" + strconv.Itoa(k.tier)
	}
	s := name[:min(7, len(name))] + "-" + tag + "-"
	if r.Fabric != nil {
		l.prefix[k] = s
	}
	return s
}

// networkOf returns the network that a cable outside of fabrics belongs to.
func networkOf(c *inventory.Cable) *inventory.Network {
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.NIC != nil && e.NIC.Network != nil {
			return e.NIC.Network
		}
	}
	return nil
}

// hash is FNV-1a of the name of a port, without making it.
func (l *labeller) hash(e *inventory.CableEnd) uint64 {
	h := uint64(14695981039346656037)
	add := func(s string) {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	switch {
	case e.Text != "":
		add(e.Text)
		return h
	case e.Node != nil && e.NIC != nil:
		add(e.Node.Name)
		add("/")
		add(e.NIC.Name)
	case e.Switch != nil:
		add(e.Switch.Name)
	}
	l.buf = strconv.AppendInt(append(l.buf[:0], '/'), int64(e.Port), 10)
	if e.Lane > 0 {
		l.buf = strconv.AppendInt(append(l.buf, '/'), int64(e.Lane), 10)
	}
	for _, c := range l.buf {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// mixBits spreads the bits of a hash (the finalizer of MurmurHash3).
func mixBits(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
