// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// A run that goes on reads its plan: 150,000 steps in a site of 12,500 nodes. Most of
// what a step says, others of its kind say in the same bytes. What is here decodes
// each of these once; what is not exactly as encoding/json writes it is left to
// encoding/json.

// decodeSteps decodes the steps of a plan on all cores; an element lies between one
// cut and the comma before the next. The steps share what is the same in them, and
// are not to be changed in place.
func decodeSteps(list []byte, cuts []int) ([]plan.Step, error) {
	out := make([]plan.Step, len(cuts)-1)
	err := runInParts(len(out), func(_, a, b int) error {
		return guardFaults("the plan", func() error {
			q := newQuickDecoder()
			for i := a; i < b; i++ {
				raw := list[cuts[i] : cuts[i+1]-1]
				if q.planned(raw, &out[i]) {
					continue
				}
				out[i] = plan.Step{}
				if err := json.Unmarshal(raw, &out[i]); err != nil {
					return fmt.Errorf("step %d: %w", i, err)
				}
			}
			return nil
		})
	})
	return out, err
}

// stepFields are the fields of a step in the order in which they are written. Any
// other order may have one twice, which encoding/json merges.
var stepFields = []string{"id", "stage", "action", "subject", "title", "group", "needs", "uses", "reads", "yields", "params", "may", "erases",
	"why", "decl", "deadline", "inputs", "version", "barrier", "only", "depth_key", "accepts", "examines", "gate"}

// planned decodes a step of a plan; false: it is to be decoded otherwise.
func (q *quickDecoder) planned(b []byte, s *plan.Step) bool {
	w := walk{b: b}
	next := 0
	for w.field() {
		v := w.value()
		i := slices.Index(stepFields[next:], string(w.key))
		if i < 0 || w.bad || !q.stepField(stepFields[next+i], v, s) {
			return false
		}
		next += i + 1
	}
	return w.whole()
}

// stepField decodes one field of a step.
func (q *quickDecoder) stepField(name string, v []byte, s *plan.Step) (ok bool) {
	switch name {
	case "id":
		return decodeText(q, v, &s.ID)
	case "stage":
		return decodeText(q, v, &s.Stage)
	case "action":
		return decodeText(q, v, &s.Action)
	case "subject":
		return q.subject(v, &s.Subject)
	case "title":
		return decodeText(q, v, &s.Title)
	case "group":
		return json.Unmarshal(v, &s.Group) == nil
	case "needs":
		return decodeList(q.kept.needs, v, &s.Needs, q.need)
	case "uses":
		return decodeList(q.kept.uses, v, &s.Uses, q.use)
	case "reads":
		return decodeList(q.kept.keys, v, &s.Reads, q.factKey)
	case "yields":
		return decodeList(q.kept.keys, v, &s.Yields, q.factKey)
	case "params":
		return decodeShared(q.kept.params, v, &s.Params)
	case "may":
		return decodeShared(q.kept.may, v, &s.May)
	}
	return q.lateField(name, v, s)
}

// lateField decodes one of the other fields.
func (q *quickDecoder) lateField(name string, v []byte, s *plan.Step) (ok bool) {
	switch name {
	case "erases":
		return decodeText(q, v, &s.Erases)
	case "why":
		return decodeList(q.kept.why, v, &s.Why, func(b []byte, t *string) bool { return decodeText(q, b, t) })
	case "decl":
		at, bad := q.decl(v, false)
		s.Decl = at
		return !bad
	case "deadline":
		return decodeShared(q.kept.budgets, v, &s.Deadline)
	case "inputs":
		in, bad := q.list(v, false)
		s.Inputs = slices.Clip(in)
		return !bad
	case "version":
		n, err := strconv.Atoi(string(v))
		s.Version = n
		return err == nil
	case "barrier":
		return decodeBool(v, &s.Barrier)
	case "only":
		return decodeText(q, v, &s.Only)
	case "depth_key":
		return decodeText(q, v, &s.DepthKey)
	case "accepts":
		return decodeBool(v, &s.Accepts)
	case "examines":
		return decodeBool(v, &s.Examines)
	case "gate":
		return json.Unmarshal(v, &s.Gate) == nil
	}
	return false
}

// need reads one need.
func (q *quickDecoder) need(b []byte, n *plan.Need) bool {
	w := walk{b: b}
	for w.field() {
		v, ok := w.value(), false
		switch string(w.key) {
		case "step":
			ok = decodeText(q, v, &n.Step)
		case "on":
			ok = decodeText(q, v, &n.On)
		case "renews":
			ok = decodeBool(v, &n.Triggers)
		case "renews_if_new":
			ok = decodeBool(v, &n.TriggersIfNew)
		}
		w.bad = w.bad || !ok
	}
	return w.whole()
}

// use reads one use of a resource.
func (q *quickDecoder) use(b []byte, u *plan.Use) bool {
	w := walk{b: b}
	for w.field() {
		v, ok := w.value(), false
		switch string(w.key) {
		case "resource":
			ok = decodeText(q, v, &u.Resource)
		case "units":
			n, err := strconv.Atoi(string(v))
			u.Units, ok = n, err == nil
		case "hold":
			ok = decodeText(q, v, &u.Hold)
		case "settles":
			n, err := strconv.ParseInt(string(v), 10, 64)
			u.Settles, ok = time.Duration(n), err == nil
		}
		w.bad = w.bad || !ok
	}
	return w.whole()
}

// subject reads a subject.
func (q *quickDecoder) subject(b []byte, s *subject.ID) bool {
	if at, ok := q.kept.subjects[string(b)]; ok {
		*s = at
		return true
	}
	var text string
	if !decodeText(q, b, &text) || s.UnmarshalText([]byte(text)) != nil {
		return false
	}
	rememberValue(q.kept.subjects, b, *s)
	return true
}

// factKey reads the key of a fact.
func (q *quickDecoder) factKey(b []byte, k *fact.Key) bool {
	var text string
	return decodeText(q, b, &text) && k.UnmarshalText([]byte(text)) == nil
}

// place reads a place in the site's files.
func (q *quickDecoder) place(b []byte) (at plan.SourceRange, ok bool) {
	w := walk{b: b}
	for w.field() {
		v, ok := w.value(), false
		switch string(w.key) {
		case "file":
			ok = decodeText(q, v, &at.File)
		case "line":
			ok = decodeSmallInt(v, &at.Line)
		case "column":
			ok = decodeSmallInt(v, &at.Column)
		}
		w.bad = w.bad || !ok
	}
	return at, w.whole()
}

// decodeText reads a string into t.
func decodeText[T ~string](q *quickDecoder, b []byte, t *T) bool {
	s, bad := q.text(b, false)
	*t = T(s)
	return !bad
}

// decodeSmallInt reads a number of a line or column.
func decodeSmallInt(b []byte, n *int) bool {
	x, err := strconv.ParseUint(string(b), 10, 32)
	if err != nil || x > math.MaxInt32 {
		return false
	}
	*n = int(x)
	return true
}

// decodeBool reads true or false.
func decodeBool(b []byte, t *bool) bool {
	*t = string(b) == "true"
	return *t || string(b) == "false"
}

// decodeList reads a list that is not empty, one element after another.
func decodeList[T any](m map[string][]T, b []byte, to *[]T, read func([]byte, *T) bool) bool {
	if list, ok := m[string(b)]; ok {
		*to = list
		return true
	}
	cuts := cutList(b)
	if len(cuts) < 2 || b[0] != '[' || b[len(b)-1] != ']' {
		return false
	}
	list := make([]T, len(cuts)-1)
	for i := range list {
		if !read(b[cuts[i]:cuts[i+1]-1], &list[i]) {
			return false
		}
	}
	rememberValue(m, b, list)
	*to = list
	return true
}

// decodeShared decodes a value as encoding/json does, once for all that have the same bytes.
func decodeShared[T any](m map[string]T, b []byte, to *T) bool {
	if v, ok := m[string(b)]; ok {
		*to = v
		return true
	}
	if json.Unmarshal(b, to) != nil {
		return false
	}
	rememberValue(m, b, *to)
	return true
}

// rememberValue keeps what bytes mean, while there is room.
func rememberValue[T any](m map[string]T, b []byte, v T) {
	if len(m) < mostShared {
		m[string(b)] = v
	}
}

// keptValues are values of steps by their bytes.
type keptValues struct {
	subjects map[string]subject.ID
	needs    map[string][]plan.Need
	uses     map[string][]plan.Use
	keys     map[string][]fact.Key
	params   map[string]map[string]plan.Value
	may      map[string]plan.EffectSet
	why      map[string][]string
	budgets  map[string]plan.Budget
}

func newKeptValues() keptValues {
	return keptValues{map[string]subject.ID{}, map[string][]plan.Need{}, map[string][]plan.Use{}, map[string][]fact.Key{},
		map[string]map[string]plan.Value{}, map[string]plan.EffectSet{}, map[string][]string{}, map[string]plan.Budget{}}
}
