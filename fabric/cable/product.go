// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"slices"

	"github.com/ironrail/ironrail/inventory/unit"
)

// The kinds of link that cables are sold for.
const (
	infiniband = "infiniband"
	ethernet   = "ethernet"
)

// The speeds of links, in bits per second.
const (
	g1   = unit.BitRate(1e9)
	g10  = unit.BitRate(10e9)
	g25  = unit.BitRate(25e9)
	g40  = unit.BitRate(40e9)
	g50  = unit.BitRate(50e9)
	g100 = unit.BitRate(100e9)
	g200 = unit.BitRate(200e9)
	g400 = unit.BitRate(400e9)
	g800 = unit.BitRate(800e9)
)

// lengths are what a product is sold in, ascending, in metres.
type lengths []unit.Length

// The lengths that are sold: passive and active copper as NVIDIA lists them
// (MCP4Y10 0.5-2 m, MCP7Y00 1-3 m, LACC 3-5 m and, while they last, LACC splitters 4-5 m), fibre jumpers as MFP7E10 and
// MFP7E30; above 150 m single-mode fibre is made to order, here in round steps.
var (
	dac2     = lengths{0.5, 1, 1.5, 2}
	dac3     = lengths{0.5, 1, 1.5, 2, 2.5, 3}
	dacSplit = lengths{1, 1.5, 2, 2.5, 3}
	dac5     = lengths{0.5, 1, 1.5, 2, 2.5, 3, 4, 5}
	dac7     = lengths{0.5, 1, 1.5, 2, 2.5, 3, 5, 7}
	acc5     = lengths{3, 4, 5}
	accSplit = lengths{4, 5}
	aoc30    = lengths{3, 5, 7, 10, 15, 20, 30}
	aoc100   = lengths{3, 5, 7, 10, 15, 20, 30, 50, 100}
	multi50  = lengths{3, 5, 7, 10, 15, 20, 25, 30, 35, 40, 50}
	multi100 = append(slices.Clone(multi50), 70, 100)
	multi150 = append(slices.Clone(multi100), 150)
	multi400 = append(slices.Clone(multi150), 200, 300, 400)
	multi550 = append(slices.Clone(multi400), 550)
	single50 = lengths{1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50}
	singleK5 = append(slices.Clone(single50), 60, 70, 100, 150, 200, 300, 400, 500)
	single2K = append(slices.Clone(singleK5), 1000, 1500, 2000)
	single10 = append(slices.Clone(single2K), 5000, 10000)
	copper   = lengths{0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100}
)

// product is a type of cable at one speed of one kind of link.
type product struct {
	kind   string
	speed  unit.BitRate // of the end that is not split
	typ    string       // as of inventory.Cable
	medium string       // of fibre: what the transceivers are made for
	sold   lengths
	split  lengths // as a splitter; nil: not sold
	asked  bool    // only where a cable block asks for it: not the usual choice
	source string
}

const (
	multimode  = "multimode"
	singleMode = "single-mode"
)

// Where the reaches come from. LinkX: NVIDIA's cable guides at docs.nvidia.com
// (400g100gpam4ovpub, 800g200gpam4list). The IEEE clauses promise at least these
// reaches.
const (
	linkXNDR  = "NVIDIA LinkX, 100G-PAM4 guide: DAC to 2 m, splitters to 3 m, LACC 3-5 m, multimode to 50 m, single-mode to 500 m (2xFR4 2 km); no AOC"
	linkXXDR  = "NVIDIA LinkX, 200G-PAM4 list: linear active copper and single-mode only; no passive DAC, no multimode, no AOC. The list gives no lengths of copper: 2 m is assumed, for who asks for it"
	linkXHDR  = "NVIDIA LinkX MCP1650-H (DAC to 2 m, others to 2.5 m), MFS1S00-H (AOC to 100 m), MMA1T00 (multimode transceiver to 100 m)"
	linkXEDR  = "NVIDIA LinkX MCP1600-E (DAC to 5 m), MFA1A00-E (AOC to 100 m), MMA1B00-E (multimode transceiver to 100 m)"
	ieee802df = "IEEE 802.3df-2024: 800GBASE-CR8 2 m, VR8 50 m, DR8 500 m, DR8-2 2 km"
	ieee802ck = "IEEE 802.3ck-2022: 400GBASE-CR4 2 m; 400GBASE-CR8 of QSFP-DD is sold to 3 m"
	ieee802db = "IEEE 802.3db-2022: 400GBASE-VR4 50 m, SR4 100 m of OM4"
	ieee802bs = "IEEE 802.3bs-2017: 200GBASE-DR4 and 400GBASE-DR4 500 m, FR4 2 km"
	ieee802cd = "IEEE 802.3cd-2018: 50GBASE-CR and 200GBASE-CR4 3 m, SR and SR4 100 m of OM4"
	ieee802bj = "IEEE 802.3bj-2014: 100GBASE-CR4 5 m"
	ieee802bm = "IEEE 802.3bm-2015: 100GBASE-SR4 100 m and 40GBASE-SR4 150 m of OM4"
	ieee802ba = "IEEE 802.3ba-2010: 40GBASE-CR4 7 m, 100GBASE-LR4 10 km"
	ieee802by = "IEEE 802.3by-2016: 25GBASE-CR 5 m, SR 100 m of OM4; 802.3cc: LR 10 km"
	sff8431   = "SFF-8431: passive SFP+ copper to 7 m"
	ieee802ae = "IEEE 802.3ae: 10GBASE-SR 400 m of OM4, LR 10 km; 802.3an: 10GBASE-T 100 m"
	ieee802ab = "IEEE 802.3ab: 1000BASE-T 100 m; 802.3z: SX 550 m, LX 5 km"
	aecUsual  = "active electrical cables of QSFP-DD and OSFP are sold to 7 m at 400G and 3 m at 800G; makers differ, so none is chosen unasked"
)

// products is what is sold, by kind and speed, in the order in which it is
// chosen: the first that reaches.
var products = []product{
	{kind: infiniband, speed: g800, typ: "ACC", sold: lengths{1, 1.5, 2}, asked: true, source: linkXXDR},
	{kind: infiniband, speed: g800, typ: "DAC", split: dacSplit, asked: true, source: linkXNDR}, // 2x400G: twin-port NDR
	{kind: infiniband, speed: g800, typ: "fibre", medium: singleMode, sold: singleK5, split: single50, source: linkXXDR},
	{kind: infiniband, speed: g400, typ: "DAC", sold: dac2, split: dacSplit, source: linkXNDR},
	{kind: infiniband, speed: g400, typ: "ACC", sold: acc5, split: accSplit, source: linkXNDR},
	{kind: infiniband, speed: g400, typ: "fibre", medium: multimode, sold: multi50, split: multi50, source: linkXNDR},
	{kind: infiniband, speed: g400, typ: "fibre", medium: singleMode, sold: single2K, split: single50, source: linkXNDR},
	{kind: infiniband, speed: g200, typ: "DAC", sold: lengths{0.5, 1, 1.5, 2, 2.5}, split: lengths{1, 1.5, 2}, source: linkXHDR},
	{kind: infiniband, speed: g200, typ: "AOC", sold: aoc100, split: aoc30, source: linkXHDR},
	{kind: infiniband, speed: g200, typ: "fibre", medium: multimode, sold: multi100, split: multi100, asked: true, source: linkXHDR},
	{kind: infiniband, speed: g100, typ: "DAC", sold: dac5, source: linkXEDR},
	{kind: infiniband, speed: g100, typ: "AOC", sold: aoc100, source: linkXEDR},
	{kind: infiniband, speed: g100, typ: "fibre", medium: multimode, sold: multi100, asked: true, source: linkXEDR},

	{kind: ethernet, speed: g800, typ: "DAC", sold: dac2, split: dacSplit, source: ieee802df},
	{kind: ethernet, speed: g800, typ: "ACC", sold: acc5, asked: true, source: linkXNDR},
	{kind: ethernet, speed: g800, typ: "AEC", sold: dac3, split: dac3, asked: true, source: aecUsual},
	{kind: ethernet, speed: g800, typ: "fibre", medium: multimode, sold: multi50, split: multi50, source: ieee802df},
	{kind: ethernet, speed: g800, typ: "fibre", medium: singleMode, sold: single2K, split: singleK5, source: ieee802df},
	{kind: ethernet, speed: g400, typ: "DAC", sold: dac3, split: dac3, source: ieee802ck},
	{kind: ethernet, speed: g400, typ: "ACC", sold: acc5, asked: true, source: linkXNDR},
	{kind: ethernet, speed: g400, typ: "AEC", sold: dac7, split: dac7, asked: true, source: aecUsual},
	{kind: ethernet, speed: g400, typ: "AOC", sold: aoc100, split: aoc30, asked: true, source: ieee802db},
	{kind: ethernet, speed: g400, typ: "fibre", medium: multimode, sold: multi50, split: multi50, source: ieee802db},
	{kind: ethernet, speed: g400, typ: "fibre", medium: singleMode, sold: single2K, split: singleK5, source: ieee802bs},
	{kind: ethernet, speed: g200, typ: "DAC", sold: dac3, split: dac3, source: ieee802cd},
	{kind: ethernet, speed: g200, typ: "AOC", sold: aoc100, split: aoc30, source: ieee802cd},
	{kind: ethernet, speed: g200, typ: "fibre", medium: multimode, sold: multi100, asked: true, source: ieee802cd},
	{kind: ethernet, speed: g200, typ: "fibre", medium: singleMode, sold: single2K, split: singleK5, source: ieee802bs},
	{kind: ethernet, speed: g100, typ: "DAC", sold: dac5, split: dac3, source: ieee802bj},
	{kind: ethernet, speed: g100, typ: "AOC", sold: aoc100, split: aoc30, source: ieee802bm},
	{kind: ethernet, speed: g100, typ: "fibre", medium: multimode, sold: multi100, split: multi100, asked: true, source: ieee802bm},
	{kind: ethernet, speed: g100, typ: "fibre", medium: singleMode, sold: single10, source: ieee802ba},
	{kind: ethernet, speed: g50, typ: "DAC", sold: dac3, source: ieee802cd},
	{kind: ethernet, speed: g50, typ: "fibre", medium: multimode, sold: multi100, source: ieee802cd},
	{kind: ethernet, speed: g40, typ: "DAC", sold: dac7, split: dac5, source: ieee802ba},
	{kind: ethernet, speed: g40, typ: "AOC", sold: aoc100, asked: true, source: ieee802bm},
	{kind: ethernet, speed: g40, typ: "fibre", medium: multimode, sold: multi150, source: ieee802bm},
	{kind: ethernet, speed: g40, typ: "fibre", medium: singleMode, sold: single10, source: ieee802ba},
	{kind: ethernet, speed: g25, typ: "DAC", sold: dac5, source: ieee802by},
	{kind: ethernet, speed: g25, typ: "AOC", sold: aoc30, asked: true, source: ieee802by},
	{kind: ethernet, speed: g25, typ: "fibre", medium: multimode, sold: multi100, source: ieee802by},
	{kind: ethernet, speed: g25, typ: "fibre", medium: singleMode, sold: single10, source: ieee802by},
	{kind: ethernet, speed: g10, typ: "DAC", sold: dac7, source: sff8431},
	{kind: ethernet, speed: g10, typ: "AOC", sold: aoc30, asked: true, source: sff8431},
	{kind: ethernet, speed: g10, typ: "copper", sold: copper, asked: true, source: ieee802ae},
	{kind: ethernet, speed: g10, typ: "fibre", medium: multimode, sold: multi400, source: ieee802ae},
	{kind: ethernet, speed: g10, typ: "fibre", medium: singleMode, sold: single10, source: ieee802ae},
	{kind: ethernet, speed: g1, typ: "copper", sold: copper, source: ieee802ab},
	{kind: ethernet, speed: g1, typ: "fibre", medium: multimode, sold: multi550, source: ieee802ab},
	{kind: ethernet, speed: g1, typ: "fibre", medium: singleMode, sold: single10, source: ieee802ab},
}

// shelf is what is sold for one kind of link at one speed.
type shelf []*product

// shelfOf lists what is sold; empty for a speed that no table knows.
func shelfOf(kind string, speed unit.BitRate) shelf {
	var s shelf
	for i := range products {
		if p := &products[i]; p.kind == kind && p.speed == speed {
			s = append(s, p)
		}
	}
	return s
}

// lengths are those of the product, or of its splitters.
func (p *product) lengths(splitter bool) lengths {
	if splitter {
		return p.split
	}
	return p.sold
}

// last is the longest that is sold; 0 for none.
func (l lengths) last() unit.Length {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1]
}

// fit is the shortest length of at least need; 0 when none is that long.
func (l lengths) fit(need unit.Length) unit.Length {
	for _, x := range l {
		if x >= need {
			return x
		}
	}
	return 0
}

// want is what a cable has to be.
type want struct {
	typ      string      // "": whatever reaches
	medium   string      // of fibre; "": either
	need     unit.Length // way to cover, in metres
	splitter bool
	shared   bool // an end's cage serves other cables too, so copper cannot end in it
}

// choose returns the first product that does, and the length to order; nil when
// none does. Fibre that is usually not chosen is, before nothing.
func (s shelf) choose(w want) (*product, unit.Length) {
	for _, resort := range []bool{false, true} {
		for _, p := range s {
			if !w.takes(p, resort) {
				continue
			}
			if l := p.lengths(w.splitter).fit(w.need); l > 0 {
				return p, l
			}
		}
	}
	return nil, 0
}

// takes reports whether a product may be the cable, its length apart; resort
// allows fibre that is not the usual choice.
func (w want) takes(p *product, resort bool) bool {
	switch {
	case w.medium != "" && p.medium != w.medium:
		return false
	case w.typ != "":
		return p.typ == w.typ
	case w.shared && p.typ != "fibre" && p.typ != "copper":
		return false
	}
	return !p.asked || resort && p.typ == "fibre"
}

// reach is the longest that a wanted cable is sold in; 0 when there is none.
func (s shelf) reach(w want) unit.Length {
	var most unit.Length
	for _, p := range s {
		if w.takes(p, true) {
			most = max(most, p.lengths(w.splitter).last())
		}
	}
	return most
}

// types lists the types that are sold, as splitters or not.
func (s shelf) types(splitter bool) []string {
	var out []string
	for _, p := range s {
		if len(p.lengths(splitter)) > 0 && !slices.Contains(out, p.typ) {
			out = append(out, p.typ)
		}
	}
	return out
}
