// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// speeds are those that ibnetdiscover prints, of any version.
var speeds = []string{"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR", "???"}

// ids is what stands before the line of a node, key=value.
type ids struct {
	vendor, device, slot string
	system, node, port   addr.GUID
	chassis, line        int
}

// recordLine takes a line of the topology.
func (b *builder) recordLine(text string) {
	name, value, pair := strings.Cut(text, "=")
	switch {
	case strings.HasPrefix(text, "#"):
		b.comment(text)
	case strings.HasPrefix(text, "Switch\t"), strings.HasPrefix(text, "Switch "):
		b.switchLine(text)
	case strings.HasPrefix(text, "Ca\t"), strings.HasPrefix(text, "Ca "), strings.HasPrefix(text, "Rt\t"), strings.HasPrefix(text, "Rt "):
		b.hcaLine(text)
	case len(text) > 1 && text[0] == '[' && text[1] >= '0' && text[1] <= '9':
		b.cableLine(text)
	case pair && (strings.HasSuffix(name, "id") || strings.HasSuffix(name, "guid")):
		b.idLine(name, value)
	}
}

// comment reads when and from where the output was made.
func (b *builder) comment(text string) {
	if when, found := strings.CutPrefix(text, "# Topology file: generated on"); found {
		if b.t.Generated != "" {
			b.problems.Add(tool.Inconsistent, b.line, "A second topology begins here: two outputs are in one file.")
		}
		b.t.Form, b.t.Generated = Records, strings.TrimSpace(when)
	}
	s := ibdiags.Scan(text)
	if s.Take("# Initiated from node ") {
		b.t.From, _ = ibdiags.ParseGUID(s.Word())
	}
}

// idLine reads a line such as "sysimgguid=0x2c5eab0300b87b40	# Chassis 1".
func (b *builder) idLine(name, value string) {
	value, comment, _ := strings.Cut(value, "#")
	value = strings.TrimSpace(value)
	if name == "vendid" {
		b.endRecord()
		b.id.vendor = value
	}
	b.id.line = b.line
	switch name {
	case "devid":
		b.id.device = value
	case "sysimgguid":
		b.id.system, _ = ibdiags.ParseGUID(value)
		s := ibdiags.Scan(comment)
		if s.Take("Chassis") {
			b.id.chassis, _ = s.Int()
		}
	case "switchguid", "caguid", "rtguid":
		node, port, _ := strings.Cut(strings.TrimSuffix(value, ")"), "(")
		b.id.node, _ = ibdiags.ParseGUID(node)
		b.id.port, _ = ibdiags.ParseGUID(port)
		b.id.slot = strings.TrimSpace(comment)
	}
}

// endRecord notes identifiers that no node followed.
func (b *builder) endRecord() {
	if b.id.line > 0 && b.t.Form != Ports {
		b.problems.Add(tool.Truncated, b.id.line, "The identifiers of a node are here, and the node is not.")
	}
	b.id, b.node = ids{}, node{}
}

// head reads `Switch	65 "S-2c5eab0300b87b40"` and the description in quotes.
func (b *builder) head(text string) (ports int, id, name, after string, ok bool) {
	s := ibdiags.Scan(text)
	kind := s.Word()
	ports, counted := s.Int()
	id, named := s.Between(`"`, `"`)
	if !counted || !named || len(id) < 3 {
		b.wrong("a " + kind)
		return 0, "", "", "", false
	}
	if !s.Take("#") {
		b.wrong(kind + " " + id)
		return ports, id, "", "", true
	}
	_, name, after, quoted := ibdiags.CutQuoted(s.Rest())
	if !quoted {
		b.wrong(kind + " " + id)
	} else if kind != "Switch" {
		b.whole = b.line
	}
	return ports, id, name, after, true
}

func (b *builder) switchLine(text string) {
	id := b.id
	b.id, b.node, b.t.Form = ids{}, node{}, Records
	ports, name, description, after, ok := b.head(text)
	if !ok {
		return
	}
	sw := Switch{
		GUID: b.identity(name, id), ID: name, Name: description, Ports: ports, Enhanced: strings.HasPrefix(strings.TrimSpace(after), "enhanced"),
		PortGUID: id.port, SystemGUID: id.system, VendorID: id.vendor, DeviceID: id.device, Chassis: id.chassis, Slot: id.slot, line: b.line,
	}
	var known bool
	if sw.LID, known = numberAfter(after, "lid"); !known && b.cut != b.line {
		b.wrong("switch " + name)
	}
	var ended bool
	if sw.LMC, ended = numberAfter(after, "lmc"); ended {
		b.whole = b.line
	}
	b.node = node{name, 'S', len(b.t.Switches)}
	if b.add(b.node) {
		b.t.Switches = append(b.t.Switches, sw)
	} else {
		b.node = node{}
	}
}

func (b *builder) hcaLine(text string) {
	id := b.id
	b.id, b.node, b.t.Form = ids{}, node{}, Records
	ports, name, description, _, ok := b.head(text)
	if !ok {
		return
	}
	h := HCA{
		GUID: b.identity(name, id), ID: name, Name: description, Count: ports, Ports: []Port{},
		SystemGUID: id.system, VendorID: id.vendor, DeviceID: id.device, line: b.line,
	}
	list, kind := &b.t.HCAs, byte('H')
	if strings.HasPrefix(text, "Rt") {
		list, kind = &b.t.Routers, 'R'
	}
	b.node = node{name, kind, len(*list)}
	if b.add(b.node) {
		*list = append(*list, h)
	} else {
		b.node = node{}
	}
}

// identity compares the GUID in a node's ID with the one that stands before it.
func (b *builder) identity(name string, id ids) addr.GUID {
	g := b.guidOf(name)
	if id.node != 0 && g != 0 && id.node != g {
		b.few.Add(&b.problems, "nodes with two GUIDs", tool.Inconsistent, b.line, "Node %s follows the identifiers of %s.", name, id.node)
	}
	if g == 0 {
		return id.node
	}
	return g
}

// cableLine reads a port with its peer:
//
//	[1]	"H-e09d7303007a4bd8"[1](e09d7303007a4bd8) 	# "gpu-1 mlx5_5" lid 647 4xNDR
//	[1](e09d73030023370c) 	"S-2c5eab0300c26480"[1]	# lid 38 lmc 0 "leaf" lid 119 4xNDR
func (b *builder) cableLine(text string) {
	if b.node.kind == 0 {
		return // a port of a record that is no use
	}
	l := Link{From: End{ID: b.node.id}}
	s := ibdiags.Scan(text)
	own, ok := b.portAt(s, &l.From)
	to, named := s.Between(`"`, `"`)
	l.To.ID = to
	peer, ok2 := b.portAt(s, &l.To)
	if !ok || !named || !ok2 || len(to) < 3 {
		b.wrong("port " + strconv.Itoa(l.From.Port) + " of " + b.node.id)
		return
	}
	l.From.GUID, l.To.GUID = b.guid(b.node), b.guidOf(to)
	before, name, after, quoted := "", "", "", false
	if s.Take("#") {
		before, name, after, quoted = ibdiags.CutQuoted(s.Rest())
	}
	l.To.Name, l.From.Name = name, b.name(b.node)
	lid, known := numberAfter(after, "lid")
	if !quoted || !known {
		b.wrong("port " + strconv.Itoa(l.From.Port) + " of " + b.node.id)
		lid = -1
	} else if b.speed(&l, after); l.Width == "" {
		b.few.Add(&b.problems, "cables without a width", tool.Missing, b.line, "Port %d of %s has no width and speed.", l.From.Port, l.From.ID)
	}
	if slices.Contains(speeds, l.Speed) {
		b.whole = b.line
	}
	b.ownPort(l.From.Port, own, before)
	b.connect(l, lid, peer)
}

// portAt reads a port's number in brackets, the number on the chassis and the
// GUID, where they are there.
func (b *builder) portAt(s *ibdiags.Scanner, e *End) (addr.GUID, bool) {
	text, ok := s.Between("[", "]")
	n, err := strconv.ParseUint(text, 10, 8)
	e.Port = int(n)
	s.Between("[ext", "]")
	guid := addr.GUID(0)
	if inner, found := s.Between("(", ")"); found {
		guid, _ = ibdiags.ParseGUID(inner)
	}
	return guid, ok && err == nil
}

// ownPort keeps the port of an HCA; its switch's ports are only in cables.
func (b *builder) ownPort(port int, guid addr.GUID, before string) {
	p := Port{Port: port, GUID: guid}
	p.LID, _ = numberAfter(before, "lid")
	p.LMC, _ = numberAfter(before, "lmc")
	switch b.node.kind {
	case 'H':
		b.t.HCAs[b.node.at].Ports = append(b.t.HCAs[b.node.at].Ports, p)
	case 'R':
		b.t.Routers[b.node.at].Ports = append(b.t.Routers[b.node.at].Ports, p)
	}
	if b.node.kind == 'S' && port > b.t.Switches[b.node.at].Ports {
		b.few.Add(&b.problems, "ports that a switch does not have", tool.Inconsistent, b.line, "Switch %s has %d ports, and this is its port %d.", b.node.id, b.t.Switches[b.node.at].Ports, port)
	}
}

// speed reads what follows the peer's LID: "4xNDR", and s=, w=, v=, e= of -f.
func (b *builder) speed(l *Link, after string) {
	for i, word := range strings.Fields(after) {
		width, speed, found := strings.Cut(word, "x")
		if i >= 2 && found && l.Width == "" && width != "" && strings.Trim(width, "0123456789") == "" {
			l.Width, l.Speed = width+"x", speed
		} else if strings.HasPrefix(word, "??") && l.Width == "" {
			l.Width, l.Speed = "??", strings.TrimPrefix(word, "??")
		} else if name, value, pair := strings.Cut(word, "="); pair {
			if n, err := strconv.Atoi(value); err == nil {
				if l.Codes == nil {
					l.Codes = map[string]int{}
				}
				l.Codes[name] = n
			}
		}
	}
}

func (b *builder) guid(n node) addr.GUID {
	switch n.kind {
	case 'S':
		return b.t.Switches[n.at].GUID
	case 'H':
		return b.t.HCAs[n.at].GUID
	case 'R':
		return b.t.Routers[n.at].GUID
	}
	return 0
}

func (b *builder) name(n node) string {
	switch n.kind {
	case 'S':
		return b.t.Switches[n.at].Name
	case 'H':
		return b.t.HCAs[n.at].Name
	case 'R':
		return b.t.Routers[n.at].Name
	}
	return ""
}

// numberAfter finds a word and the number after it.
func numberAfter(text, word string) (int, bool) {
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i++ {
		if fields[i] == word {
			n, err := strconv.ParseUint(fields[i+1], 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}
