// SPDX-License-Identifier: Apache-2.0

// Package mutation changes evidence, one field at a time, and holds the list of what no
// check notices: each field of what nodes show is lowered and raised by 20 %, emptied,
// and made another's, on one node of four, and the checks judge it. A change that they do
// not find stands in the list with a reason, which docs/not-judged.md shows.
//
// The fields are found by reflection, so that a new one is in neither list, and fails a
// test.
package mutation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// Change is a way to change a field.
type Change byte

// The changes. A number that is 0 is raised to 1, and cannot be lowered.
const (
	Lowered   Change = '-' // by 20 %, a whole number by 1 at least
	Raised    Change = '+' // by 20 %, a whole number by 1 at least
	Emptied   Change = '0' // nothing, 0, or the list without the element
	Swapped   Change = 'x' // the value of another part or node; else one that no part has
	Valueless Change = 'n' // the evidence of a node that is well has no value that can be changed
)

// changes are those that are tried, in their order.
var changes = []Change{Lowered, Raised, Emptied, Swapped}

// field is one field of evidence that has a value.
type field struct {
	path string
	get  reflect.Value // the value
	set  func(reflect.Value)
	drop func() // takes the element away; nil: it is no element
}

// fieldsOf returns the fields of a value that can be addressed, in a fixed order. Elements
// of a list or a map have their kind in the path, and of each kind the last one stands
// for all.
func fieldsOf(root reflect.Value) []field {
	w := walker{at: map[string]int{}}
	w.walk("", root, root.Set, nil)
	return w.all
}

type walker struct {
	all []field
	at  map[string]int // index by path
	put []func()       // put the elements of maps that are walked back into these
}

func (w *walker) add(f field) {
	if put := slices.Clone(w.put); len(put) > 0 {
		set, drop := f.set, f.drop
		back := func() {
			for _, p := range slices.Backward(put) {
				p()
			}
		}
		if set != nil {
			f.set = func(x reflect.Value) { set(x); back() }
		}
		if drop != nil {
			f.drop = func() { drop(); back() }
		}
	}
	if i, known := w.at[f.path]; known {
		w.all[i] = f
		return
	}
	w.at[f.path] = len(w.all)
	w.all = append(w.all, f)
}

var timeType = reflect.TypeFor[time.Time]()

func (w *walker) walk(path string, v reflect.Value, set func(reflect.Value), drop func()) {
	switch {
	case v.Type() == timeType || v.Type() == reflect.TypeFor[[]byte]():
		w.add(field{path, v, set, nil})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if drop != nil {
			w.add(field{path, reflect.Value{}, nil, drop})
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				w.walk(join(path, f), v.Field(i), v.Field(i).Set, nil)
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Elem().Kind() != reflect.Struct {
			w.add(field{path, v, set, nil})
			return
		}
		w.add(field{path, reflect.Value{}, nil, func() { set(reflect.Zero(v.Type())) }})
		w.walk(path, v.Elem(), v.Elem().Set, nil)
	case reflect.Slice:
		for i := range v.Len() {
			i, e := i, v.Index(i)
			w.walk(path+"["+labelOf(e)+"]", e, e.Set, func() { set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, v.Len()))) })
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			at := path + "{" + fmt.Sprint(k) + "}"
			if e.Kind() != reflect.Struct {
				w.walk(at, e, func(x reflect.Value) { v.SetMapIndex(k, x) }, nil)
				continue
			}
			w.add(field{at, reflect.Value{}, nil, func() { v.SetMapIndex(k, reflect.Value{}) }})
			w.put = append(w.put, func() { v.SetMapIndex(k, e) })
			w.walk(at, e, e.Set, nil)
			w.put = w.put[:len(w.put)-1]
		}
	default:
		w.add(field{path, v, set, nil})
	}
}

func join(path string, f reflect.StructField) string {
	if f.Anonymous {
		return path
	}
	if path == "" {
		return f.Name
	}
	return path + "." + f.Name
}

// labelOf is the kind of an element of a list, where elements of a list are of several
// kinds.
func labelOf(v reflect.Value) string {
	switch e := v.Interface().(type) {
	case wire.PCILink:
		switch {
		case judge.IsGPU(e.Class):
			return "GPU"
		case strings.HasPrefix(e.Class, "0207"):
			return "HCA"
		case strings.HasPrefix(e.Class, "02"):
			return "NIC"
		}
		return "disk"
	case wire.Item:
		part := "node"
		switch {
		case strings.Contains(e.Part, ":"):
			part = "function"
		case strings.Contains(e.Part, " "):
			part, _, _ = strings.Cut(e.Part, " ")
		case e.Part != "":
			part = "part"
		}
		return e.Kind + " " + part + " " + e.Name
	case chassis.Part:
		return string(e.Kind)
	case bandwidth.Figure:
		return e.Measure
	}
	return ""
}

// change makes a change of a field; false: there is no such change of it. others are the
// values of the same field on other nodes and parts.
func (f field) change(c Change, others []reflect.Value) bool {
	if f.drop != nil {
		if c == Emptied {
			f.drop()
		}
		return c == Emptied
	}
	v := f.get
	pointer := v.Kind() == reflect.Pointer
	if pointer {
		v = v.Elem()
	}
	x := reflect.New(v.Type()).Elem()
	x.Set(v)
	switch c {
	case Emptied:
		if pointer {
			f.set(reflect.Zero(f.get.Type()))
			return true
		}
		if v.IsZero() || v.Kind() == reflect.Bool {
			return false
		}
		x.SetZero()
	case Swapped:
		if !swap(x, others) {
			return false
		}
	default:
		if !scale(x, c) {
			return false
		}
	}
	if pointer {
		p := reflect.New(x.Type())
		p.Elem().Set(x)
		x = p
	}
	f.set(x)
	return true
}

// scale lowers or raises a number by 20 %; false: it is none, or cannot be lowered.
func scale(x reflect.Value, c Change) bool {
	sign := 1.0
	if c == Lowered {
		sign = -1
	}
	switch x.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := x.Int()
		step := max(n, -n) / 5
		x.SetInt(n + int64(sign)*max(step, 1))
		return n != 0 || c == Raised
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := x.Uint()
		if n == 0 && c == Lowered {
			return false
		}
		if c == Lowered {
			x.SetUint(n - max(n/5, 1))
		} else {
			x.SetUint(n + max(n/5, 1))
		}
		return true
	case reflect.Float32, reflect.Float64:
		n := x.Float()
		if n == 0 {
			x.SetFloat(1)
			return c == Raised
		}
		x.SetFloat(n * (1 + 0.2*sign))
		return true
	}
	return false
}

// swap sets another's value: the first that differs, else for texts one that no part has.
func swap(x reflect.Value, others []reflect.Value) bool {
	if x.Kind() == reflect.Bool {
		x.SetBool(!x.Bool())
		return true
	}
	for _, o := range others {
		if o.Kind() == reflect.Pointer {
			if o.IsNil() {
				continue
			}
			o = o.Elem()
		}
		if o.Type() == x.Type() && !reflect.DeepEqual(o.Interface(), x.Interface()) {
			x.Set(o)
			return true
		}
	}
	if x.Kind() == reflect.String && x.Len() > 0 {
		x.SetString("other than " + x.String())
		return true
	}
	return false
}

// copyOf returns a copy that shares nothing with a value.
func copyOf(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == timeType {
			out.Set(v)
			break
		}
		out.Set(v) // fields that are not exported
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copyOf(v.Field(i)))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copyOf(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(copyOf(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMap(v.Type()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(k, copyOf(v.MapIndex(k)))
			}
		}
	default:
		out.Set(v)
	}
	return out
}

// typePaths returns the fields that a type can have, without the kinds of elements.
func typePaths(t reflect.Type) []string {
	var all []string
	var walk func(path string, t reflect.Type, within []reflect.Type)
	walk = func(path string, t reflect.Type, within []reflect.Type) {
		switch {
		case t == timeType || t == reflect.TypeFor[[]byte]() || slices.Contains(within, t):
			all = append(all, path)
		case t.Kind() == reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); f.IsExported() {
					walk(join(path, f), f.Type, append(within, t))
				}
			}
		case t.Kind() == reflect.Pointer:
			walk(path, t.Elem(), within)
		case t.Kind() == reflect.Slice:
			walk(path+"[]", t.Elem(), within)
		case t.Kind() == reflect.Map:
			walk(path+"{}", t.Elem(), within)
		default:
			all = append(all, path)
		}
	}
	walk("", t, nil)
	return all
}

// plain is a path without the kinds of elements.
func plain(path string) string {
	var b strings.Builder
	depth := 0
	for _, r := range path {
		switch {
		case (r == '[' || r == '{') && depth == 0:
			depth++
			b.WriteRune(r)
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			if depth--; depth == 0 {
				b.WriteRune(r)
			}
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}
