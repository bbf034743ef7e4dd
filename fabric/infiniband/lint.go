// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
)

// Problem is something in a file of opensm that it would take silently for
// something else.
type Problem struct {
	Line int // from 1; 0: of the whole file
	Text string
}

// String is the problem with its line.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// Statement is one definition of partitions.conf.
type Statement struct {
	Line  int
	Name  string
	PKey  uint16 // without the membership bit
	IPoIB bool
	Full  bool // membership of ports that do not say theirs
	Ports []PortSpec
}

// PortSpec is one member of a Statement: a port, or one of opensm's words.
type PortSpec struct {
	Line int
	Word string    // ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF; empty: GUID
	GUID addr.GUID // of the port
	Full bool
	Both bool // full and limited
}

// portWords are opensm's names for many ports at once.
var portWords = []string{"ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF"}

// longestLine is what opensm reads of one line, bytes (osm_prtn_config.c).
const longestLine = 4094

// parsePartitions reads partitions.conf more strictly than opensm does. After a
// syntax error opensm continues with a default configuration in which every port is
// a full member of every partition there is, and what it does not understand it
// skips: all of that is a problem here. It is pure and takes any bytes.
func parsePartitions(text []byte) ([]Statement, []Problem) {
	p := &partitionParser{}
	for i, line := range strings.Split(string(text), "\n") {
		if len(line) > longestLine {
			p.problem(i+1, "the line has %d bytes, and opensm reads %d", len(line), longestLine)
			return p.list, p.found
		}
		line, _, _ = strings.Cut(line, "#")
		for {
			part, rest, ends := strings.Cut(line, ";")
			p.feed(i+1, part)
			if !ends {
				break
			}
			p.end(i + 1)
			line = rest
		}
	}
	if strings.TrimSpace(p.text()) != "" {
		p.problem(p.pieces[0].line, "the definition has no end: a semicolon is missing")
	}
	return p.list, p.found
}

// partitionParser collects the text of a statement with the lines that it is on.
type partitionParser struct {
	pieces []piece
	list   []Statement
	found  []Problem
}

type piece struct {
	line int
	text string
}

func (p *partitionParser) problem(line int, format string, args ...any) {
	p.found = append(p.found, Problem{line, fmt.Sprintf(format, args...)})
}

func (p *partitionParser) feed(line int, text string) {
	if strings.TrimSpace(text) != "" {
		p.pieces = append(p.pieces, piece{line, text})
	}
}

func (p *partitionParser) text() string {
	var b strings.Builder
	for _, x := range p.pieces {
		b.WriteString(x.text)
	}
	return b.String()
}

// end reads the statement that is complete.
func (p *partitionParser) end(line int) {
	pieces := p.pieces
	p.pieces = nil
	if len(pieces) == 0 {
		p.problem(line, "a semicolon ends nothing")
		return
	}
	s := Statement{Line: pieces[0].line}
	header := true
	for _, x := range pieces {
		text := x.text
		if header {
			head, rest, colon := strings.Cut(text, ":")
			p.header(&s, x.line, head)
			if !colon {
				continue
			}
			header, text = false, rest
		}
		for spec := range strings.SplitSeq(text, ",") {
			if spec = strings.TrimSpace(spec); spec != "" {
				p.port(&s, x.line, spec)
			}
		}
	}
	if header {
		p.problem(s.Line, "the definition has no colon before its ports")
		return
	}
	p.list = append(p.list, s)
}

// header reads "name=0x8001, ipoib, defmember=full".
func (p *partitionParser) header(s *Statement, line int, text string) {
	for i, field := range strings.Split(text, ",") {
		field = strings.TrimSpace(field)
		if field == "" {
			continue
		}
		name, value, given := strings.Cut(field, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case i == 0 && s.Name == "" && s.PKey == 0:
			s.Name = name
			key, err := strconv.ParseUint(value, 0, 16)
			if err != nil || key&^fullMember == 0 {
				p.problem(line, "partition %q has no P_Key such as 0x0001, and opensm would make one up", name)
			}
			s.PKey = uint16(key) &^ fullMember
		case name == "ipoib" && !given:
			s.IPoIB = true
		case name == "indx0" && !given:
		case name == "defmember":
			s.Full = p.membership(line, value).Full
		case slices.Contains([]string{"rate", "mtu", "sl", "scope", "Q_Key", "TClass", "FlowLabel"}, name):
			if _, err := strconv.ParseUint(value, 0, 32); err != nil {
				p.problem(line, "%s is a number, not %q", name, value)
			}
		default:
			p.problem(line, "%q is no flag of a partition", field)
		}
	}
}

// port reads "0x946dae0300000001=full" or "ALL=limited".
func (p *partitionParser) port(s *Statement, line int, text string) {
	name, member, given := strings.Cut(text, "=")
	name, member = strings.TrimSpace(name), strings.TrimSpace(member)
	spec := PortSpec{Line: line, Full: s.Full}
	if given {
		m := p.membership(line, member)
		spec.Full, spec.Both = m.Full, m.Both
	}
	if slices.Contains(portWords, name) {
		spec.Word = name
	} else {
		v, err := strconv.ParseUint(name, 0, 64)
		if err != nil || v == 0 {
			p.problem(line, "%q is no port GUID and none of %s; opensm would drop all partitions for it", name, strings.Join(portWords, ", "))
			return
		}
		spec.GUID = addr.GUID(v)
	}
	s.Ports = append(s.Ports, spec)
}

// membership reads full, limited or both; opensm takes anything else for limited.
func (p *partitionParser) membership(line int, word string) PortSpec {
	switch word {
	case "full":
		return PortSpec{Full: true}
	case "limited":
		return PortSpec{}
	case "both":
		return PortSpec{Full: true, Both: true}
	}
	p.problem(line, "membership %q is none of full, limited and both; opensm would take it for limited", word)
	return PortSpec{}
}

// lintPartitions lists what is wrong with partitions.conf, the silent hazards of
// opensm first of all: a syntax error, one P_Key under two names, a GUID that is
// no port of the fabric (present; nil: any may be), a port whose membership is
// given twice and differs, and a default partition that isolates nobody.
func lintPartitions(text []byte, present map[addr.GUID]bool) []Problem {
	list, found := parsePartitions(text)
	names := map[uint16]Statement{}
	members := map[uint16]map[addr.GUID]PortSpec{}
	add := func(line int, format string, args ...any) {
		found = append(found, Problem{line, fmt.Sprintf(format, args...)})
	}
	for _, s := range list {
		if s.PKey == 0 {
			continue
		}
		first, known := names[s.PKey]
		if !known {
			names[s.PKey], members[s.PKey] = s, map[addr.GUID]PortSpec{}
		} else if first.Name != s.Name {
			add(s.Line, "P_Key %#04x of %q is that of %q in line %d: opensm makes one partition of both", s.PKey, s.Name, first.Name, first.Line)
		}
		for _, spec := range s.Ports {
			if spec.Word != "" {
				if len(list) > 1 && s.admitsAll(spec) {
					add(spec.Line, "all ports are full members of the default partition, so that the other partitions isolate nobody")
				}
				continue
			}
			if other, twice := members[s.PKey][spec.GUID]; twice && other.Full != spec.Full {
				add(spec.Line, "port %s has another membership in line %d", spec.GUID, other.Line)
			}
			members[s.PKey][spec.GUID] = spec
			if present != nil && !present[spec.GUID] {
				add(spec.Line, "port %s is not on the fabric; opensm would say nothing", spec.GUID)
			}
		}
	}
	if _, ok := names[defaultPKey]; !ok && len(found) == 0 {
		add(0, "the default partition 0x7fff is not defined")
	}
	slices.SortStableFunc(found, func(a, b Problem) int { return a.Line - b.Line })
	return found
}

// admitsAll reports whether a member makes every port, or every port of a node, a full
// member of the default partition.
func (s Statement) admitsAll(spec PortSpec) bool {
	return s.PKey == defaultPKey && (spec.Word == "ALL" || spec.Word == "ALL_CAS") && spec.Full
}
