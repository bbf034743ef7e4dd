// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// letters of the list of ports, as those of an ID.
var letters = map[string]byte{"SW": 'S', "CA": 'H', "RT": 'R'}

// listed is one end in the list of ports.
type listed struct {
	kind byte
	lid  int
	port int
	guid addr.GUID
}

func (e listed) end(name string) End {
	return End{ID: string(e.kind) + "-" + strings.TrimPrefix(e.guid.String(), "0x"), GUID: e.guid, Name: name, Port: e.port}
}

// readListed reads "SW  1719 10 0x7cfe9003009ce5b0".
func readListed(s *ibdiags.Scanner) (e listed, ok bool) {
	e.kind = letters[s.Word()]
	lid, known := s.Int()
	port, numbered := s.Int()
	guid, err := ibdiags.ParseGUID(s.Word())
	e.lid, e.port, e.guid = lid, port, guid
	return e, known && numbered && err == nil && e.kind != 0
}

// portLine takes a line of the list of ports:
//
//	SW  1719 10 0x7cfe9003009ce5b0 4x EDR - CA   134  1 0x7cfe9003003b4bde ( 'leaf' - 'gpu-1 HCA-1' )
//	SW  2052 37 0x506b4b03005c2740 4x ???                                    'leaf'
func (b *builder) portLine(text string) {
	s := ibdiags.Scan(text)
	own, ok := readListed(s)
	width, speed := s.Word(), s.Word()
	if !ok || speed == "" {
		b.wrong("a port")
		return
	}
	if !s.Take("-") {
		name, whole := unquoteName(s.Rest())
		if !whole {
			b.wrong("a port")
		} else {
			b.whole = b.line
		}
		b.listPort(own, name, true)
		return
	}
	peer, ok := readListed(s)
	names, open := strings.CutPrefix(s.Rest(), "(")
	inner, closed := strings.CutSuffix(names, ")")
	name, other, both := strings.Cut(strings.TrimSpace(inner), "' - '")
	if !ok || !open || !closed || !both {
		b.wrong("a port")
		if ok {
			b.listPort(own, "", false)
		}
		return
	}
	name, other = strings.TrimPrefix(name, "'"), strings.TrimSuffix(other, "'")
	b.whole = b.line
	b.listPort(own, name, false)
	b.connect(Link{From: own.end(name), To: peer.end(other), Width: width, Speed: speed}, peer.lid, 0)
}

// unquoteName removes the quotes around a name; a name may also have none.
func unquoteName(s string) (name string, whole bool) {
	inner, open := strings.CutPrefix(s, "'")
	if !open {
		return s, s != ""
	}
	return strings.CutSuffix(inner, "'")
}

// listPort keeps one port of the list.
func (b *builder) listPort(e listed, name string, free bool) {
	end := e.end(name)
	n, known := b.nodes[end.ID]
	if !known {
		n = b.listNode(e, end)
	} else if n.kind == 'H' || n.kind == 'R' {
		b.few.Add(&b.problems, "ports with one GUID", tool.Inconsistent, b.line, "Port GUID %s is listed twice.", e.guid)
	}
	if n.kind == 'S' {
		sw := &b.t.Switches[n.at]
		sw.Ports = max(sw.Ports, e.port)
		if free {
			sw.Free = append(sw.Free, e.port)
		}
		if sw.LID != e.lid {
			b.few.Add(&b.problems, "nodes with two LIDs", tool.Inconsistent, b.line, "Switch %s has LID %d here and %d on line %d.", end.ID, e.lid, sw.LID, sw.line)
		}
	}
}

// listNode makes the node of a port that is the first of it.
func (b *builder) listNode(e listed, end End) node {
	n := node{id: end.ID, kind: e.kind}
	if e.kind == 'S' {
		n.at = len(b.t.Switches)
		b.t.Switches = append(b.t.Switches, Switch{GUID: e.guid, ID: end.ID, Name: end.Name, LID: e.lid, line: b.line})
	} else {
		list := &b.t.HCAs
		if e.kind == 'R' {
			list = &b.t.Routers
		}
		n.at = len(*list)
		*list = append(*list, HCA{GUID: e.guid, ID: end.ID, Name: end.Name, Count: 1, Ports: []Port{{Port: e.port, GUID: e.guid, LID: e.lid}}, line: b.line})
	}
	b.nodes[n.id] = n
	return n
}

// listLine takes a line of the list of nodes:
//
//	Switch	 : 0x2c5eab0300b87b40 ports 65 devid 0xd2f2 vendid 0x2c9 "MF0;leaf:MQM9700/U1"
//	Ca	: 0x0002c90300002778 ports 2 "gpu-1 mlx5_0"
func (b *builder) listLine(text string) {
	if b.t.Form == "" {
		b.t.Form = List
	}
	head, name, after, quoted := ibdiags.CutQuoted(text)
	if !quoted {
		head = text
		b.wrong("a node")
	}
	kind, rest, _ := strings.Cut(head, ":")
	s := ibdiags.Scan(rest)
	guid, err := ibdiags.ParseGUID(s.Word())
	ports, counted := numberAfter(s.Rest(), "ports")
	if err != nil || !counted {
		b.wrong("a node")
		return
	}
	b.whole = b.line
	lid, _ := numberAfter(after, "lid")
	lmc, _ := numberAfter(after, "lmc")
	digits := strings.TrimPrefix(guid.String(), "0x")
	vendor, device := wordAfter(head, "vendid"), wordAfter(head, "devid")
	switch strings.TrimSpace(kind) {
	case "Switch":
		if id := "S-" + digits; b.add(node{id, 'S', len(b.t.Switches)}) {
			b.t.Switches = append(b.t.Switches, Switch{GUID: guid, ID: id, Name: name, Ports: ports, LID: lid, LMC: lmc, Enhanced: strings.Contains(after, "enhanced"), VendorID: vendor, DeviceID: device, line: b.line})
		}
	case "Ca":
		if id := "H-" + digits; b.add(node{id, 'H', len(b.t.HCAs)}) {
			b.t.HCAs = append(b.t.HCAs, HCA{GUID: guid, ID: id, Name: name, Count: ports, Ports: []Port{}, VendorID: vendor, DeviceID: device, line: b.line})
		}
	case "Router":
		if id := "R-" + digits; b.add(node{id, 'R', len(b.t.Routers)}) {
			b.t.Routers = append(b.t.Routers, HCA{GUID: guid, ID: id, Name: name, Count: ports, Ports: []Port{}, VendorID: vendor, DeviceID: device, line: b.line})
		}
	}
}

// wordAfter finds a word and the one after it.
func wordAfter(text, before string) string {
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i++ {
		if fields[i] == before {
			return fields[i+1]
		}
	}
	return ""
}
