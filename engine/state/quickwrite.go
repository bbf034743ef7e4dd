// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// A run stores each step twice and its node with it, and a journal line each time:
// 500,000 values in a site of 12,500 nodes. What is here writes these as
// encoding/json does, byte for byte and several times as fast. Whatever is not
// plain is left to encoding/json.

// quickJSON encodes a value of the kinds that are stored most; false: it is to be
// encoded otherwise.
func quickJSON(v any) ([]byte, bool) {
	const rest = 192 // bytes beside what is long: times, names of fields
	var w jsonWriter
	switch v := v.(type) {
	case Step:
		w.b = make([]byte, 0, rest+len(v.ID)+len(v.Plan)+len(v.Run)+len(v.Evidence)+64*len(v.Inputs))
		w.step(&v)
	case Node:
		w.b = make([]byte, 0, rest/2+len(v.Name)+len(v.AcceptedRun)+len(v.Run))
		w.node(&v)
	default:
		return nil, false
	}
	return w.b, !w.bad
}

// jsonWriter writes compact JSON.
type jsonWriter struct {
	b   []byte
	bad bool // something is not plain
}

// name begins a field; the first of an object comes after its brace.
func (w *jsonWriter) name(s string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, s...)
	w.b = append(w.b, '"', ':')
}

// text writes a field of a string.
func (w *jsonWriter) text(name, s string) {
	w.name(name)
	w.quote(s)
}

// textIf writes a field of a string unless it is empty.
func (w *jsonWriter) textIf(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

// quote writes a string in which nothing has to be escaped.
func (w *jsonWriter) quote(s string) {
	for i := range len(s) {
		if !plainByte[s[i]] {
			w.bad = true
			return
		}
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, s...)
	w.b = append(w.b, '"')
}

// plainByte holds what encoding/json writes as it is, of ASCII.
var plainByte = func() (is [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		is[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return is
}()

// time writes a field of a time.
func (w *jsonWriter) time(name string, t time.Time) {
	w.name(name)
	w.b = append(w.b, '"')
	b, err := t.AppendText(w.b)
	if err != nil { // a year of five digits, or an offset of a day
		w.bad = true
		return
	}
	w.b = append(b, '"')
}

// timeIf writes a field of a time unless it is the zero time.
func (w *jsonWriter) timeIf(name string, t time.Time) {
	if !t.IsZero() {
		w.time(name, t)
	}
}

// number writes a field of a number.
func (w *jsonWriter) number(name string, n int) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

// truth writes a field that is true, and none that is false.
func (w *jsonWriter) truth(name string, is bool) {
	if is {
		w.name(name)
		w.b = append(w.b, "true"...)
	}
}

// step writes a step without a failure or a finding.
func (w *jsonWriter) step(s *Step) {
	w.bad = s.Kind != 0 || s.Finding != nil || len(s.Blamed) > 0
	if w.bad {
		return
	}
	w.b = append(w.b, '{')
	w.text("id", string(s.ID))
	w.text("state", string(s.State))
	w.number("version", s.Version)
	if len(s.Inputs) > 0 {
		w.name("inputs")
		w.b = append(w.b, '[')
		for i := range s.Inputs {
			w.input(&s.Inputs[i])
		}
		w.b[len(w.b)-1] = ']' // in place of the last comma
	}
	w.text("plan", s.Plan)
	w.text("run", s.Run)
	w.time("started", s.Started)
	w.timeIf("ended", s.Ended)
	w.truth("observed", s.Observed)
	w.textIf("evidence", s.Evidence)
	w.textIf("error", s.Error)
	w.b = append(w.b, '}')
}

// input writes an input and a comma.
func (w *jsonWriter) input(in *plan.Input) {
	w.b = append(w.b, '{')
	w.text("name", in.Name)
	w.text("value", in.Value)
	if in.Decl != (plan.SourceRange{}) {
		w.name("decl")
		w.b = append(w.b, '{')
		w.text("file", in.Decl.File)
		w.number("line", in.Decl.Line)
		w.number("column", in.Decl.Column)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, '}', ',')
}

// node writes a node that is neither held nor out.
func (w *jsonWriter) node(n *Node) {
	w.bad = n.Hold != nil || n.Quarantine != nil
	if w.bad {
		return
	}
	w.b = append(w.b, '{')
	w.text("name", n.Name)
	w.truth("accepted", n.Accepted)
	w.timeIf("accepted_at", n.AcceptedAt)
	w.textIf("accepted_run", n.AcceptedRun)
	w.truth("adopted", n.Adopted)
	w.timeIf("adopted_at", n.AdoptedAt)
	w.textIf("doubt", n.Doubt)
	w.textIf("run", n.Run)
	w.b = append(w.b, '}')
}

// line encodes a record of a batch as the journal stores it, with number 0.
func (b *Batch) line(r Record) ([]byte, error) {
	r.Seq = 0
	if len(r.Data) == 0 || b.encoded(r.Data) {
		w := jsonWriter{b: make([]byte, 0, 192+len(r.Data))}
		w.record(&r)
		if !w.bad {
			return w.b, nil
		}
	}
	return json.Marshal(r)
}

// encoded reports whether the data of a record is the value of an object of the same
// batch that was made here: nothing is to be checked in it.
func (b *Batch) encoded(data []byte) bool {
	for i := range b.Puts {
		p := &b.Puts[i]
		if p.encoded && len(p.Value) == len(data) && len(data) > 0 && &p.Value[0] == &data[0] {
			return true
		}
	}
	return false
}

// record writes a record whose data encoding/json would write as it is.
func (w *jsonWriter) record(r *Record) {
	w.b = append(w.b, '{')
	w.number("seq", 0)
	w.time("time", r.Time)
	w.textIf("run", r.Run)
	w.text("kind", string(r.Kind))
	w.textIf("step", r.Step)
	if r.Subject.Kind != "" || r.Subject.Name != "" {
		w.text("subject", r.Subject.String())
	}
	if r.Fence > 0 {
		w.name("fence")
		w.b = strconv.AppendUint(w.b, r.Fence, 10)
	}
	w.textIf("append", r.Append)
	if len(r.Data) > 0 {
		w.name("data")
		w.b = append(w.b, r.Data...)
	}
	w.b = append(w.b, '}')
}
