// SPDX-License-Identifier: Apache-2.0

package iblinkinfo

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// maxSame is how many problems of one sort are written out.
const maxSame = 20

// reader collects ports line by line.
type reader struct {
	info     Info
	problems tool.Problems
	few      ibdiags.Few
	line     int
	cut      int  // the last line that ended before its end
	whole    int  // the last line that was understood to its end
	failed   bool // the program said so
	differs  int  // the first line that --diff marks; 0: none
	node     Node // whose ports follow
	known    bool
	empty    int // the line of a node that no port follows yet
}

func (r *reader) read(text string) {
	if text == "" || ibdiags.IsWarning(text) {
		r.whole = r.line
		return
	}
	if ibdiags.IsFailure(text) {
		r.failed, r.whole = true, r.line
		r.few.Add(&r.problems, "lines in which a program says that it failed", tool.Failed, r.line, "iblinkinfo or a library of it failed: %s", text)
		return
	}
	if ibdiags.IsDifference(text) {
		if r.whole, r.empty = r.line, 0; r.differs == 0 {
			r.differs = r.line
		}
		return
	}
	left, right, found := strings.Cut(text, "==(")
	if !found {
		r.header(text)
		return
	}
	r.empty = 0
	p := Port{line: r.line}
	if !r.own(&p, left) {
		r.wrong()
		return
	}
	state, peer, ended := strings.Cut(right, "==>")
	ok := r.state(&p, state, ended)
	if !ok || !ended || !r.peer(&p, strings.TrimSpace(peer)) {
		r.wrong()
	}
	if ok {
		r.info.Ports = append(r.info.Ports, p)
	}
}

// wrong notes a line that could not be read to its end.
func (r *reader) wrong() {
	r.cut = r.line
	r.few.Add(&r.problems, "lines that end before their end", tool.Truncated, r.line, "The line of a port ends before its end.")
}

// header reads the node whose ports follow: "Switch: 0x0c42a10300b95bfa leaf:" or
// "CA: gpu-1 mlx5_0:".
func (r *reader) header(text string) {
	m := header.FindStringSubmatch(text)
	if m == nil {
		return
	}
	r.whole, r.known, r.empty = r.line, true, r.line
	if m[1] != "" {
		guid, _ := ibdiags.ParseGUID(m[1])
		r.node = Node{Type: Switch, GUID: guid, Name: m[2]}
		return
	}
	r.node = Node{Type: map[string]Type{"CA": HCA, "Router": Router}[m[3]], Name: m[4]}
}

// own reads what stands before the arrow:
//
//	0xb88303ffff7f61c4      6    1[  ]                  an HCA's port by node
//	         3    1[  ]                                 a switch's port by node
//	0xf452140300f55051 "   gpu-1 mlx5_0"   37    1[  ]  -l
func (r *reader) own(p *Port, left string) bool {
	rest := left
	if before, name, after, quoted := ibdiags.CutQuoted(left); quoted { // -l
		guid, err := ibdiags.ParseGUID(before)
		if err != nil {
			return false
		}
		p.GUID, p.Node, rest = guid, Node{Name: strings.TrimLeft(name, " ")}, after
	} else {
		if !r.known {
			r.few.Add(&r.problems, "ports without their node", tool.Missing, r.line, "The node of this port is not in the output: no line such as \"CA: gpu-1 mlx5_0:\" is before it.")
		}
		p.Node = r.node
		if text := strings.TrimSpace(left); strings.HasPrefix(text, "0x") {
			word, after, _ := strings.Cut(text, " ")
			guid, err := ibdiags.ParseGUID(word)
			if err != nil {
				return false
			}
			p.GUID, rest = guid, after
		} else {
			p.GUID = r.node.GUID
		}
	}
	var ok bool
	p.LID, p.Port, p.External, ok = parseNumbers(rest)
	return ok
}

// parseNumbers reads "6    1[  ]": the LID, the port, and the number of the port on a
// director's panel, which is 0 elsewhere.
func parseNumbers(text string) (lid, port, external int, ok bool) {
	s := ibdiags.Scan(text)
	lid, hasLID := s.Int()
	port, hasPort := s.Int()
	panel, bracket := s.Between("[", "]")
	external, _ = strconv.Atoi(strings.TrimSpace(panel))
	return lid, port, external, hasLID && hasPort && bracket
}

// state reads what stands within the arrow: " 4X  25.78125 Gbps Active/  LinkUp)",
// with "(HOQ:17 VL_Stall:7)" after it of -p.
func (r *reader) state(p *Port, text string, ended bool) bool {
	link, settings, closed := strings.Cut(text, "/")
	physical, more, end := strings.Cut(settings, ")")
	words := strings.Fields(link)
	if !closed || len(words) == 0 || !end && !ended {
		return false
	}
	p.State, p.Physical = words[len(words)-1], strings.TrimSpace(physical)
	p.Settings = strings.Trim(strings.TrimSpace(more), "()")
	words = words[:len(words)-1]
	if len(words) == 0 {
		return true
	}
	p.Width, p.Speed = words[0], strings.Join(words[1:], " ")
	lanes, err := strconv.Atoi(strings.TrimSuffix(p.Width, "X"))
	if len(words) < 2 || err != nil {
		return true // "undefined (32)": iblinkinfo does not know this width
	}
	if lane, err := strconv.ParseFloat(words[1], 64); err == nil && lane > 0 && lane < 1e4 {
		p.Lane, p.Rate = lane, lane*float64(lanes)
	}
	return true
}

// peer reads what stands behind the arrow:
//
//	3   41[  ] "MF0;leaf:MQM8700/U1" ( Could be 53.125 Gbps)
//	[  ] "" ( )                                          no cable, or no link
//	"Port not available"
func (r *reader) peer(p *Port, text string) bool {
	before, name, after, quoted := ibdiags.CutQuoted(text)
	if !quoted {
		return false
	}
	hint, open := strings.CutPrefix(strings.TrimSpace(after), "(")
	hint, closed := strings.CutSuffix(hint, ")")
	if open && closed {
		r.whole = r.line
	}
	for part := range strings.SplitSeq(hint, "Could be ") {
		if part = strings.TrimSpace(part); part != "" && open {
			p.CouldBe = append(p.CouldBe, part)
		}
	}
	before = strings.TrimSpace(before)
	if before == "" {
		r.whole = r.line
		r.few.Add(&r.problems, "ports whose peer did not answer", tool.Missing, r.line, "Port %d of %q is %s, and its peer is not in the output: %s.", p.Port, p.Node.Name, p.State, name)
		return true
	}
	if strings.HasPrefix(before, "[") {
		return open && closed
	}
	q := Peer{Name: name}
	if strings.HasPrefix(before, "0x") {
		word, rest, _ := strings.Cut(before, " ")
		guid, err := ibdiags.ParseGUID(word)
		if err != nil {
			return false
		}
		q.GUID, before = guid, rest
	}
	var ok bool
	if q.LID, q.Port, q.External, ok = parseNumbers(before); !ok {
		return false
	}
	p.Peer = &q
	return open && closed
}
