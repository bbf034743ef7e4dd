// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/ironrail/ironrail/engine/plan"
)

// A plan reads the last end of every step that was ever done: 125,000 in a site of
// 12,500 nodes. Nearly all ended well, and of those planning needs the inputs, the
// version and the time. What is here reads these and walks over the rest, ten times
// as fast as encoding/json. Whatever is not exactly as encoding/json writes it is
// left to encoding/json.

// newStepDecoder makes a decoder of steps for one goroutine. Of a step that ended well
// without a finding it decodes the id, the state, the version, the inputs, the plan,
// the times and whether it was observed only; of every other all.
func newStepDecoder() func(raw, *Step) error { return newQuickDecoder().decode }

// newEndDecoder is steps without the inputs.
func newEndDecoder() func(raw, *Step) error {
	q := newQuickDecoder()
	q.endsOnly = true
	return q.decode
}

// decode decodes a step, quickly where that can be.
func (q *quickDecoder) decode(o raw, s *Step) error {
	if q.step(o, s) {
		return nil
	}
	*s = Step{}
	return json.Unmarshal(o.value, s)
}

// step decodes a step that ended well; false: it is to be decoded otherwise.
func (q *quickDecoder) step(o raw, s *Step) bool {
	*s = Step{ID: plan.StepID(o.name)}
	w := walk{b: o.value}
	for w.field() {
		v := w.value()
		switch string(w.key) {
		case "state":
			s.State = StepIsDone
			w.expect(string(v) == `"done"`)
		case "version":
			n, err := strconv.Atoi(string(v))
			s.Version = n
			w.expect(err == nil)
		case "inputs":
			if !q.endsOnly {
				s.Inputs, w.bad = q.list(v, w.bad)
			}
		case "plan":
			s.Plan, w.bad = q.text(v, w.bad)
		case "started":
			w.expect(s.Started.UnmarshalJSON(v) == nil)
		case "ended":
			w.expect(s.Ended.UnmarshalJSON(v) == nil)
		case "observed":
			s.Observed = string(v) == "true"
		case "blamed":
			w.bad = true
		case "id":
			w.expect(len(v) == len(o.name)+2 && string(v[1:len(v)-1]) == o.name)
		}
	}
	return w.whole() && s.State == StepIsDone
}

// quickDecoder shares what is the same in many steps: most of the inputs of a role are,
// from node to node. What it returns is not to be changed. It is for one goroutine.
type quickDecoder struct {
	texts map[string]string
	decls map[string]plan.SourceRange
	lists map[string][]plan.Input
	kept  keptValues
	// endsOnly leaves out the inputs of steps.
	endsOnly bool
	// read is where a list is read before it is known how long it is.
	read []plan.Input
}

func newQuickDecoder() *quickDecoder {
	return &quickDecoder{texts: map[string]string{}, decls: map[string]plan.SourceRange{}, lists: map[string][]plan.Input{}, kept: newKeptValues()}
}

// mostShared bounds what is kept of each sort: what is shared at all is found among
// the first nodes, and the addresses of thousands need no table.
const mostShared = 1 << 12

// list reads the inputs of a step.
func (q *quickDecoder) list(b []byte, bad bool) ([]plan.Input, bool) {
	if in, ok := q.lists[string(b)]; ok || bad {
		return in, bad
	}
	if len(b) < 2 || b[0] != '[' {
		return nil, true
	}
	list := q.read[:0]
	for rest := b[1:]; ; {
		n := skipValue(rest, 0)
		if n <= 0 || n >= len(rest) {
			return nil, true
		}
		in, ok := q.input(rest[:n])
		if !ok {
			return nil, true
		}
		list = append(list, in)
		if rest[n] == ']' {
			if n+1 != len(rest) {
				return nil, true
			}
			break
		}
		rest = rest[n+1:]
	}
	q.read = list
	list = slices.Clone(list)
	if len(q.lists) < mostShared {
		q.lists[string(b)] = list
	}
	return list, false
}

// input reads one input.
func (q *quickDecoder) input(b []byte) (in plan.Input, ok bool) {
	w := walk{b: b}
	for w.field() {
		v := w.value()
		switch string(w.key) {
		case "name":
			in.Name, w.bad = q.text(v, w.bad)
		case "value":
			in.Value, w.bad = q.text(v, w.bad)
		case "decl":
			in.Decl, w.bad = q.decl(v, w.bad)
		}
	}
	return in, w.whole()
}

// text reads a string.
func (q *quickDecoder) text(b []byte, bad bool) (string, bool) {
	if s, ok := q.texts[string(b)]; ok || bad {
		return s, bad
	}
	if len(b) < 2 || b[0] != '"' {
		return "", true
	}
	s := string(b[1 : len(b)-1])
	if bytes.IndexByte(b, '\\') >= 0 || !utf8.Valid(b) {
		if err := json.Unmarshal(b, &s); err != nil {
			return "", true
		}
	}
	if len(q.texts) < mostShared {
		q.texts[string(b)] = s
	}
	return s, false
}

// decl reads a place in the site's files.
func (q *quickDecoder) decl(b []byte, bad bool) (plan.SourceRange, bool) {
	if at, ok := q.decls[string(b)]; ok || bad {
		return at, bad
	}
	at, ok := q.place(b)
	if !ok {
		return at, true
	}
	if len(q.decls) < mostShared {
		q.decls[string(b)] = at
	}
	return at, false
}

// walk goes over the fields of one object of compact JSON.
type walk struct {
	b   []byte
	at  int
	key []byte
	bad bool // it is not as encoding/json writes it
}

// field goes to the next field; false at the end, or when it is bad.
func (w *walk) field() bool {
	open := byte(',')
	if w.at == 0 {
		open = '{'
	}
	if w.bad || w.at >= len(w.b) || w.b[w.at] != open {
		w.bad = w.bad || w.at == 0
		return false
	}
	w.at++
	end := skipString(w.b, w.at)
	if end < 0 || end >= len(w.b) || w.b[end] != ':' {
		w.bad = true
		return false
	}
	w.key = w.b[w.at+1 : end-1]
	w.at = end + 1
	for _, c := range w.key { // others might be read as this one: encoding/json does not mind capitals
		w.bad = w.bad || c != '_' && (c < 'a' || c > 'z')
	}
	return !w.bad
}

// value takes the value of the field.
func (w *walk) value() []byte {
	end := skipValue(w.b, w.at)
	if end < 0 {
		w.bad = true
		return nil
	}
	v := w.b[w.at:end]
	w.at, w.bad = end, w.bad || len(v) == 0
	return v
}

// expect notes when something about the object is not as it must be.
func (w *walk) expect(ok bool) { w.bad = w.bad || !ok }

// whole reports whether the object ended where its bytes do.
func (w *walk) whole() bool { return !w.bad && w.at == len(w.b)-1 && w.b[w.at] == '}' }

// skipValue returns where the value that begins at i ends; negative when it does not.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == ',' || c == '}' || c == ']':
			return i
		case c <= ' ':
			return -1 // not compact
		}
	}
	return i
}

// skipNested returns where the object or list that begins at i ends.
func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch nesting[b[i]] {
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				return i + 1
			}
		case quotes:
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		}
		i++
	}
	return -1
}

// What a byte means between strings; nothing for most.
const (
	opens = iota + 1
	closes
	quotes
)

var nesting = [256]uint8{'{': opens, '[': opens, '}': closes, ']': closes, '"': quotes}

// skipString returns where the string that begins at i ends: at the first quote
// before which there is an even number of backslashes.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for from := i + 1; ; {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		first := end
		for first > from && b[first-1] == '\\' {
			first--
		}
		if (end-first)%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
}
