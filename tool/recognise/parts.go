// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bytes"
	"slices"

	"github.com/ironrail/ironrail/tool"
)

// Other is an output that stands in a file beside the one that was read, with
// what was understood of it. The lines of its problems are those of the file.
type Other struct {
	Lines    [2]int        `json:"lines"` // first and last, from 1
	Kind     string        `json:"kind"`
	Problems tool.Problems `json:"problems"` // never nil
	Content  any           `json:"content"`
}

// mostParts is how many outputs beside the first are read of one file.
const mostParts = 100

// part is a run of lines that begins with a head.
type part struct {
	kind    string
	opening string // its head
	again   bool   // its head begins another output of the kind
	from    int    // index of its first line
	to      int    // behind its last line
}

// splitParts cuts a text at its heads. Lines above the first one are in no part.
func splitParts(lines [][]byte, data []byte) []part {
	used := usedHeads(data)
	var all []part
	seen := map[string]*things{} // by kind
	for i, line := range lines {
		h := headOf(used, line)
		if h == nil {
			continue
		}
		if seen[h.kind] == nil {
			seen[h.kind] = &things{}
		}
		met, opening := seen[h.kind], string(bytes.TrimSpace(line))
		form, thing := h.form(), thingOf(h.kind, opening)
		other := met.otherForm(form)
		if n := len(all); n > 0 && all[n-1].kind == h.kind {
			other = other || met.here[thing]
			if !other && (!h.again || opening == all[n-1].opening && h.kind == "nvidia-smi-query") {
				all[n-1].again = met.meet(thing) || all[n-1].again
				continue
			}
		}
		met.begin(form, other)
		other = met.meet(thing) || other
		all = append(all, part{kind: h.kind, opening: opening, again: h.again || other, from: linesAbove(lines, max(i-h.above, 0))})
	}
	end := len(lines)
	for i, p := range slices.Backward(all) {
		all[i].to, end = end, p.from
	}
	return all
}

// form is which form of an output of its kind a head is of; empty where the kind
// has one form.
func (h head) form() string {
	names, several := formed[h.kind]
	switch {
	case !several:
		return ""
	case names[h.has] != "":
		return names[h.has]
	}
	return h.pattern.String()
}

// usedHeads returns the heads that some line of a text may have. The log of NCCL
// within the output of its tests is a part of that.
func usedHeads(data []byte) []head {
	var used []head
	tested := false
	for _, h := range heads {
		if !bytes.Contains(data, []byte(h.has)) {
			continue
		}
		used = append(used, h)
		tested = tested || h.kind == "nccl-tests" && h.has != "" && bytes.Contains(data, []byte("busbw"))
	}
	return slices.DeleteFunc(used, func(h head) bool { return tested && h.kind == "nccl-log" })
}

// headOf returns the head that a line is, or nil. Large files are logs of NCCL,
// whose lines need no look at every pattern.
func headOf(used []head, line []byte) *head {
	logged := bytes.Contains(line, []byte("NCCL INFO "))
	for i, h := range used {
		if logged && h.kind != "nccl-log" {
			continue
		}
		if (h.has == "" || bytes.Contains(line, []byte(h.has))) && h.pattern.Match(line) {
			return &used[i]
		}
	}
	return nil
}

// linesAbove returns where the output begins whose head is on a line: at most three
// lines higher, and of borders it takes one, as the other closes a table.
func linesAbove(lines [][]byte, i int) int {
	border := false
	if i > 1 && len(bytes.TrimSpace(lines[i-1])) == 0 && shell.Match(lines[i-2]) { // mlxlink begins with a blank line
		i--
	}
	for n := 0; n < 3 && i > 0 && lead.Match(lines[i-1]); n++ {
		isBorder := bytes.HasPrefix(bytes.TrimSpace(lines[i-1]), []byte("+"))
		if isBorder && border {
			break
		}
		border = border || isBorder
		i--
	}
	return i
}

// group is parts that are one output.
type group struct {
	claim
	parts []part
	again bool // its head begins another output of the kind
}

// groupParts returns the outputs that a text has, as its heads show them and as a
// format of the list confirms, in their order.
func groupParts(known []tool.Format, text []byte) []group {
	lines := bytes.Split(text, []byte("\n"))
	all := splitParts(lines, text)
	var made [][]part
	at := map[string]int{}
	for _, p := range all {
		if i, ok := at[p.kind]; ok && together[p.kind] {
			made[i] = append(made[i], p)
			continue
		}
		at[p.kind] = len(made)
		made = append(made, []part{p})
	}
	var found []group
	for _, ps := range made {
		g, ok := groupOf(known, lines, ps)
		n := len(found)
		if n > 0 && (!ok || found[n-1].Name == g.Name && !g.again && (found[n-1].parts[0].kind == ps[0].kind || merging[g.Name] && ps[0].kind != g.Name)) {
			// More of the one above; so is a matrix of rocm-smi, whose first line is also that of another program's.
			joined, ok := groupOf(known, lines, append(slices.Clone(found[n-1].parts), ps...))
			if ok && joined.Name == found[n-1].Name {
				joined.again = found[n-1].again
				found[n-1] = joined
				continue
			}
		}
		if ok {
			found = append(found, g)
		}
	}
	return found
}

// groupOf returns some parts with the format that they are of, if that is beyond
// doubt.
func groupOf(known []tool.Format, lines [][]byte, ps []part) (group, bool) {
	slices.SortFunc(ps, func(a, b part) int { return a.from - b.from })
	best := mostLike(known, listVariants(keepParts(lines, ps)))
	if len(best) != 1 {
		return group{}, false
	}
	kind := ps[0].kind
	again := ps[0].again && (best[0].Name == kind || kind == "json" && !merging[best[0].Name])
	return group{claim: best[0], parts: ps, again: again}, true
}

// merging are the kinds of whose documents several make one output: each says
// something else of the same GPUs.
var merging = map[string]bool{"amd-smi": true, "rocm-smi": true}

// keepParts returns the lines of some parts: from the first of them on, so that what
// is read of it is as many lines too high as stand above, with blank lines for
// what is not theirs.
func keepParts(lines [][]byte, ps []part) []byte {
	first := ps[0].from
	out := make([][]byte, ps[len(ps)-1].to-first)
	for _, p := range ps {
		copy(out[p.from-first:], lines[p.from:p.to])
	}
	return append(bytes.Join(out, []byte("\n")), '\n')
}

// divideClaim returns the outputs that stand beside the one that a format claims, and
// the text with blank lines in their place, and in place of what stands above it.
// Where no head is its own, nothing tells which lines are, and the text is whole.
func divideClaim(known []tool.Format, c claim) (others []group, text []byte) {
	var own *group
	all := groupParts(known, c.text.data)
	for i, g := range all {
		switch {
		case g.Name != c.Name && !(tests[c.Name] && g.Name == "nccl-log"):
			others = append(others, g)
		case g.Name == c.Name && own == nil:
			own = &all[i]
		case g.Name == c.Name && (g.again || g.parts[0].kind != own.parts[0].kind):
			others = append(others, g)
		}
	}
	if own == nil || len(others) == 0 {
		return others, c.text.data
	}
	lines := bytes.Split(c.text.data, []byte("\n"))
	for _, g := range others {
		for _, p := range g.parts {
			clear(lines[p.from:p.to])
		}
	}
	return others, bytes.Join(lines, []byte("\n"))
}

// tests are the kinds within whose output the log of NCCL may stand.
var tests = map[string]bool{"nccl-tests": true, "rccl-tests": true}

// lines are the numbers of its first and its last line that is not blank.
func (g group) lines(text [][]byte) [2]int {
	last := g.parts[len(g.parts)-1]
	to := last.to
	for to > last.from+1 && len(bytes.TrimSpace(text[to-1])) == 0 {
		to--
	}
	return [2]int{g.parts[0].from + 1, to}
}

// readOthers reads the outputs that stand beside the one of a reading, and notes
// each among its problems.
func (r *Reading) readOthers(text []byte, others []group, o origin) {
	lines := bytes.Split(text, []byte("\n"))
	for i, g := range others {
		from := g.lines(lines)
		at := [2]int{o.lineOf(from[0]), o.lineOf(from[1])}
		if i == mostParts {
			r.Problems.Add(tool.Missing, at[0], "%d more outputs stand from here on, and were not read: give the output of one program a file", len(others)-i)
			return
		}
		content, problems, err := g.Parse(g.text.data)
		if err != nil {
			r.Problems.Add(tool.Missing, at[0], "lines %d to %d look like the output of %s, and were not read: %v", at[0], at[1], g.Name, err)
			continue
		}
		if problems == nil {
			problems = tool.Problems{}
		}
		o.place(g.Name, problems, from[0])
		r.Others = append(r.Others, Other{Lines: at, Kind: g.Name, Problems: problems, Content: content})
		r.Problems.Add(tool.Missing, at[0], "the content is not all of the file: lines %d to %d are another output, of %s, which is among the others", at[0], at[1], g.Name)
	}
}
