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
	err := spread(len(out), func(_, a, b int) error {
		return guard("the plan", func() error {
			q := newQuick()
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
	"why", "decl", "deadline", "inputs", "version", "barrier", "only", "depth_key", "accepts", "gate"}

// planned decodes a step of a plan; false: it is to be decoded otherwise.
func (q *quick) planned(b []byte, s *plan.Step) bool {
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
func (q *quick) stepField(name string, v []byte, s *plan.Step) (ok bool) {
	switch name {
	case "id":
		return texted(q, v, &s.ID)
	case "stage":
		return texted(q, v, &s.Stage)
	case "action":
		return texted(q, v, &s.Action)
	case "subject":
		return q.subject(v, &s.Subject)
	case "title":
		return texted(q, v, &s.Title)
	case "group":
		return json.Unmarshal(v, &s.Group) == nil
	case "needs":
		return listed(q.kept.needs, v, &s.Needs, q.need)
	case "uses":
		return listed(q.kept.uses, v, &s.Uses, q.use)
	case "reads":
		return listed(q.kept.keys, v, &s.Reads, q.factKey)
	case "yields":
		return listed(q.kept.keys, v, &s.Yields, q.factKey)
	case "params":
		return kept(q.kept.params, v, &s.Params)
	case "may":
		return kept(q.kept.may, v, &s.May)
	}
	return q.lateField(name, v, s)
}

// lateField decodes one of the other fields.
func (q *quick) lateField(name string, v []byte, s *plan.Step) (ok bool) {
	switch name {
	case "erases":
		return texted(q, v, &s.Erases)
	case "why":
		return listed(q.kept.why, v, &s.Why, func(b []byte, t *string) bool { return texted(q, b, t) })
	case "decl":
		at, bad := q.decl(v, false)
		s.Decl = at
		return !bad
	case "deadline":
		return kept(q.kept.budgets, v, &s.Deadline)
	case "inputs":
		in, bad := q.list(v, false)
		s.Inputs = slices.Clip(in)
		return !bad
	case "version":
		n, err := strconv.Atoi(string(v))
		s.Version = n
		return err == nil
	case "barrier":
		return truth(v, &s.Barrier)
	case "only":
		return texted(q, v, &s.Only)
	case "depth_key":
		return texted(q, v, &s.DepthKey)
	case "accepts":
		return truth(v, &s.Accepts)
	case "gate":
		return json.Unmarshal(v, &s.Gate) == nil
	}
	return false
}

// need reads one need.
func (q *quick) need(b []byte, n *plan.Need) bool {
	w := walk{b: b}
	for w.field() {
		v, ok := w.value(), false
		switch string(w.key) {
		case "step":
			ok = texted(q, v, &n.Step)
		case "on":
			ok = texted(q, v, &n.On)
		case "renews":
			ok = truth(v, &n.Triggers)
		case "renews_if_new":
			ok = truth(v, &n.TriggersIfNew)
		}
		w.bad = w.bad || !ok
	}
	return w.whole()
}

// use reads one use of a resource.
func (q *quick) use(b []byte, u *plan.Use) bool {
	w := walk{b: b}
	for w.field() {
		v, ok := w.value(), false
		switch string(w.key) {
		case "resource":
			ok = texted(q, v, &u.Resource)
		case "units":
			n, err := strconv.Atoi(string(v))
			u.Units, ok = n, err == nil
		case "hold":
			ok = texted(q, v, &u.Hold)
		case "settles":
			n, err := strconv.ParseInt(string(v), 10, 64)
			u.Settles, ok = time.Duration(n), err == nil
		}
		w.bad = w.bad || !ok
	}
	return w.whole()
}

// subject reads a subject.
func (q *quick) subject(b []byte, s *subject.ID) bool {
	if at, ok := q.kept.subjects[string(b)]; ok {
		*s = at
		return true
	}
	var text string
	if !texted(q, b, &text) || s.UnmarshalText([]byte(text)) != nil {
		return false
	}
	remember(q.kept.subjects, b, *s)
	return true
}

// factKey reads the key of a fact.
func (q *quick) factKey(b []byte, k *fact.Key) bool {
	var text string
	return texted(q, b, &text) && k.UnmarshalText([]byte(text)) == nil
}

// place reads a place in the site's files.
func (q *quick) place(b []byte) (at plan.SourceRange, ok bool) {
	w := walk{b: b}
	for w.field() {
		v, ok := w.value(), false
		switch string(w.key) {
		case "file":
			ok = texted(q, v, &at.File)
		case "line":
			ok = small(v, &at.Line)
		case "column":
			ok = small(v, &at.Column)
		}
		w.bad = w.bad || !ok
	}
	return at, w.whole()
}

// texted reads a string into t.
func texted[T ~string](q *quick, b []byte, t *T) bool {
	s, bad := q.text(b, false)
	*t = T(s)
	return !bad
}

// small reads a number of a line or column.
func small(b []byte, n *int) bool {
	x, err := strconv.ParseUint(string(b), 10, 32)
	if err != nil || x > math.MaxInt32 {
		return false
	}
	*n = int(x)
	return true
}

// truth reads true or false.
func truth(b []byte, t *bool) bool {
	*t = string(b) == "true"
	return *t || string(b) == "false"
}

// listed reads a list that is not empty, one element after another.
func listed[T any](m map[string][]T, b []byte, to *[]T, read func([]byte, *T) bool) bool {
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
	remember(m, b, list)
	*to = list
	return true
}

// kept decodes a value as encoding/json does, once for all that have the same bytes.
func kept[T any](m map[string]T, b []byte, to *T) bool {
	if v, ok := m[string(b)]; ok {
		*to = v
		return true
	}
	if json.Unmarshal(b, to) != nil {
		return false
	}
	remember(m, b, *to)
	return true
}

// remember keeps what bytes mean, while there is room.
func remember[T any](m map[string]T, b []byte, v T) {
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

func newKept() keptValues {
	return keptValues{map[string]subject.ID{}, map[string][]plan.Need{}, map[string][]plan.Use{}, map[string][]fact.Key{},
		map[string]map[string]plan.Value{}, map[string]plan.EffectSet{}, map[string][]string{}, map[string]plan.Budget{}}
}
