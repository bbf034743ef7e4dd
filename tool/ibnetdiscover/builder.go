// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// maxSame is how many problems of one sort are written out.
const maxSame = 20

// key is a port of a node.
type key struct {
	id   string
	port int
}

// seen is what lines said about one cable, by the index of the link.
type seen struct {
	both     bool // each end named the other
	reported bool // that the ends contradict each other is a problem already
	peer     struct {
		lid  int
		guid addr.GUID // of the peer's port, where the line has it
	}
}

// builder collects a topology line by line.
type builder struct {
	t        Topology
	problems tool.Problems
	few      ibdiags.Few
	line     int
	failed   bool // the program said so
	differs  int  // the first line that --diff marks; 0: none

	id    ids  // of the record that is read
	node  node // the record whose ports are read
	cut   int  // the last line that ended before its end; 0: none
	whole int  // the last line that was understood to its end

	nodes map[string]node
	ends  map[key]int // index of the link whose one end this is
	links []seen      // beside t.Links
}

// node is where a record lies: in Switches, HCAs or Routers.
type node struct {
	id   string
	kind byte // S, H, R; 0: no record is open
	at   int
}

func newBuilder() *builder {
	return &builder{
		t:     Topology{Switches: []Switch{}, HCAs: []HCA{}, Routers: []HCA{}, Links: []Link{}},
		few:   ibdiags.Few{Limit: maxSame},
		nodes: map[string]node{}, ends: map[key]int{},
	}
}

// read takes one line of any form.
func (b *builder) read(line string) {
	text := strings.TrimSpace(line)
	switch {
	case text == "":
		b.whole = b.line
	case ibdiags.IsFailure(text):
		b.failed = true
		b.whole = b.line
		b.few.Add(&b.problems, "lines in which a program says that it failed", tool.Failed, b.line, "ibnetdiscover or a library of it failed: %s", text)
	case ibdiags.IsWarning(text):
	case ibdiags.IsDifference(text):
		b.whole = b.line
		if b.differs == 0 {
			b.differs = b.line
		}
	case len(text) > 2 && letters[text[:2]] != 0 && portsLine.MatchString(text):
		b.t.Form = Ports
		b.portLine(text)
	case strings.Contains(text, " ports ") && listLine.MatchString(text):
		b.listLine(text)
	default:
		b.recordLine(text)
	}
}

// wrong notes a line that could not be read to its end.
func (b *builder) wrong(what string) {
	b.cut = b.line
	b.few.Add(&b.problems, "lines that end before their end", tool.Truncated, b.line, "The line of %s ends before its end.", what)
}

// add keeps a node; one that was there before is a contradiction.
func (b *builder) add(n node) bool {
	if _, again := b.nodes[n.id]; again {
		b.few.Add(&b.problems, "nodes with two records", tool.Inconsistent, b.line, "Node %s has a second record: two nodes have one GUID, or two outputs are in one file.", n.id)
		return false
	}
	b.nodes[n.id] = n
	return true
}

// connect notes what one line says about a cable: this end, the other, and how
// they are connected.
func (b *builder) connect(l Link, peerLID int, peerGUID addr.GUID) {
	l.Line = b.line
	from, to := key{l.From.ID, l.From.Port}, key{l.To.ID, l.To.Port}
	if i, known := b.ends[from]; known {
		b.confirm(i, l, from, to, peerGUID)
		return
	}
	var s seen
	if i, taken := b.ends[to]; taken {
		s.reported, b.links[i].reported = true, true
		b.few.Add(&b.problems, "ports that two others claim", tool.Inconsistent, b.line, "Port %d of %s names port %d of %s as its peer, and line %d has another cable there.", from.port, from.id, to.port, to.id, b.t.Links[i].Line)
	} else {
		b.ends[to] = len(b.t.Links)
	}
	b.ends[from] = len(b.t.Links)
	s.peer.lid, s.peer.guid = peerLID, peerGUID
	b.t.Links, b.links = append(b.t.Links, l), append(b.links, s)
}

// confirm compares the line of a cable's second end with that of its first.
func (b *builder) confirm(i int, l Link, from, to key, peerGUID addr.GUID) {
	first := b.t.Links[i]
	if (key{first.From.ID, first.From.Port} != to) || (key{first.To.ID, first.To.Port} != from) || b.links[i].both {
		b.links[i].reported = true
		b.few.Add(&b.problems, "ports that are told twice", tool.Inconsistent, b.line, "Port %d of %s is connected with port %d of %s here, and with another on line %d.", from.port, from.id, to.port, to.id, first.Line)
		return
	}
	b.links[i].both = true
	if first.To.Name == "" {
		b.t.Links[i].To.Name = l.From.Name
	}
	if (first.Width != l.Width || first.Speed != l.Speed) && first.Width != "" && l.Width != "" {
		b.few.Add(&b.problems, "cables whose ends differ", tool.Inconsistent, b.line, "The ends of the cable between port %d of %s and port %d of %s say %s%s and %s%s.", to.port, to.id, from.port, from.id, first.Width, first.Speed, l.Width, l.Speed)
	}
	b.checkPeerPort(peerGUID, to, b.line)
}

// checkPeerPort compares a port's GUID with the one that its peer gives it.
func (b *builder) checkPeerPort(peer addr.GUID, k key, line int) {
	p := b.port(k)
	if peer != 0 && p != nil && p.GUID != 0 && p.GUID != peer {
		b.few.Add(&b.problems, "ports with two GUIDs", tool.Inconsistent, line, "Port %d of %s has GUID %s, and its peer names it %s.", k.port, k.id, p.GUID, peer)
	}
}

// port finds a port of an HCA or router by its record.
func (b *builder) port(k key) *Port {
	n := b.nodes[k.id]
	var h *HCA
	switch n.kind {
	case 'H':
		h = &b.t.HCAs[n.at]
	case 'R':
		h = &b.t.Routers[n.at]
	default:
		return nil
	}
	if i := slices.IndexFunc(h.Ports, func(p Port) bool { return p.Port == k.port }); i >= 0 {
		return &h.Ports[i]
	}
	return nil
}

// finish checks what can only be known at the end.
func (b *builder) finish(newline bool) {
	b.endRecord()
	if !newline && b.cut != b.line && b.whole != b.line {
		b.problems.Add(tool.Truncated, b.line, "The output ends within its last line.")
	}
	absent := map[string]bool{}
	for i := range b.t.Links {
		b.finishLink(i, absent)
	}
	if len(absent) > 0 && b.t.Form == Records && b.differs == 0 {
		b.problems.Add(tool.Truncated, 0, "%d nodes are named as peers and have no record: ibnetdiscover writes one of each node that it finds, so that a part of the output is not here.", len(absent))
	}
	b.alone()
	b.few.Rest(&b.problems)
}

// finishLink completes a cable's far end from its record, and notes a far end
// that is unknown or silent.
func (b *builder) finishLink(i int, absent map[string]bool) {
	l, s := &b.t.Links[i], b.links[i]
	n, known := b.nodes[l.To.ID]
	if !known {
		if !absent[l.To.ID] {
			b.few.Add(&b.problems, "peers without a record", tool.Missing, l.Line, "Node %s (%q) is a peer and has no record of its own.", l.To.ID, l.To.Name)
		}
		absent[l.To.ID] = true
		return
	}
	if !s.both && !s.reported {
		b.few.Add(&b.problems, "cables that one end names", tool.Inconsistent, l.Line, "Port %d of %s names port %d of %s as its peer, whose record does not name it.", l.From.Port, l.From.ID, l.To.Port, l.To.ID)
	}
	lid := s.peer.lid
	if p := b.port(key{l.To.ID, l.To.Port}); p != nil {
		b.checkPeerPort(s.peer.guid, key{l.To.ID, l.To.Port}, l.Line)
		b.checkLID(lid, p.LID, l)
	} else if n.kind == 'S' {
		b.checkLID(lid, b.t.Switches[n.at].LID, l)
		if l.To.Port > b.t.Switches[n.at].Ports && b.t.Form == Records {
			b.few.Add(&b.problems, "ports that a switch does not have", tool.Inconsistent, l.Line, "Switch %s has %d ports, and a cable ends in port %d.", l.To.ID, b.t.Switches[n.at].Ports, l.To.Port)
		}
	}
}

func (b *builder) checkLID(peer, is int, l *Link) {
	if peer >= 0 && peer != is {
		b.few.Add(&b.problems, "nodes with two LIDs", tool.Inconsistent, l.Line, "Node %s has LID %d, and its peer %s says %d: the subnet manager changed it in between, or two nodes have one GUID.", l.To.ID, is, l.From.ID, peer)
	}
}

// alone notes that no node was found, or only the one that looked: its cable is
// not up.
func (b *builder) alone() {
	if b.differs > 0 {
		b.problems.Add(tool.Missing, b.differs, "This is what differs between two times (--diff), and not the subnet: marked lines, from this one on, are not read.")
		return
	}
	if b.t.Form == Records && len(b.nodes) == 0 && !b.failed && b.cut == 0 {
		b.problems.Add(tool.Truncated, 0, "It begins as a topology does, and has no node.")
	}
	if b.t.Form == Records && len(b.nodes) == 1 && len(b.t.Links) == 0 {
		for id := range b.nodes {
			b.problems.Add(tool.Missing, 0, "Only %s was found, the node that looked: no port of it has a link, or the output ends here.", id)
		}
	}
}

// guidOf reads the GUID within the ID of a node, such as S-2c5eab0300b87b40.
func (b *builder) guidOf(id string) addr.GUID {
	g, err := ibdiags.ParseGUID(id[min(2, len(id)):])
	if err != nil {
		b.few.Add(&b.problems, "IDs without a GUID", tool.Missing, b.line, "%s", fmt.Sprintf("ID %q of a node has no GUID.", id))
	}
	return g
}
