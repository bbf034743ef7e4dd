// SPDX-License-Identifier: Apache-2.0

// Package yang holds the rules of SONiC's YANG models for the CONFIG_DB tables that
// ironrail writes, and checks a configuration against them. `config apply-patch`
// validates the whole configuration against the models and refuses it as a whole, so
// that one wrong word in one table keeps a switch from taking anything.
//
// The rules are a table of leaves (tables.go): keys, types, ranges, patterns and
// references. They were taken from sonic-buildimage, src/sonic-yang-models; Instance
// writes a configuration in the form that yanglint judges by the models themselves,
// which a test does where the models are at hand.
package yang

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// DB is a CONFIG_DB as config_db.json has it: tables, keys, fields. A field is text
// or a list of texts.
type DB = map[string]any

// Extent says how much of a switch's configuration is there.
type Extent int

// The extents. A Part is merged into what the switch has, so that mandatory fields
// may be absent; references must resolve in both.
const (
	Whole Extent = iota
	Part
)

// Problem is one rule that a configuration breaks.
type Problem struct {
	Table, Key, Field string // Field is empty when the key itself is wrong
	Value             string
	Rule              string // a sentence in the words of libyang where it has them
}

// String says where the problem is and which rule is broken.
func (p Problem) String() string {
	at := p.Table
	if p.Key != "" {
		at += "|" + p.Key
	}
	if p.Field != "" {
		at += " " + p.Field
	}
	return at + ": " + p.Rule
}

// Check lists every rule that a configuration breaks, in the order of tables, keys
// and fields. Tables without rules here are not judged. It is pure.
func Check(db DB, extent Extent) []Problem {
	c := checker{db: db, extent: extent}
	for _, name := range slices.Sorted(maps.Keys(db)) {
		t, ok := tables[name]
		if !ok {
			continue
		}
		keys, ok := db[name].(DB)
		if !ok {
			c.add(Problem{Table: name, Rule: "All keys are not parsed in " + name})
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c.entry(name, t, key, keys[key])
		}
	}
	return c.found
}

type checker struct {
	db     DB
	extent Extent
	found  []Problem
}

func (c *checker) add(p Problem) { c.found = append(c.found, p) }

// entry checks one key and its fields.
func (c *checker) entry(table string, t table, key string, value any) {
	l, parts, ok := t.listOf(key)
	if !ok {
		c.add(Problem{Table: table, Key: key, Value: key, Rule: fmt.Sprintf("All keys are not parsed in %s: %q has the form of no list of the model", table, key)})
		return
	}
	for i, k := range l.keys {
		c.leaf(table, key, k, "", parts[i])
	}
	fields, ok := value.(DB)
	if !ok {
		c.add(Problem{Table: table, Key: key, Rule: "the entry is no object"})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "NULL" { // how redis holds an entry without fields
			continue
		}
		c.field(table, key, l, name, fields[name])
	}
	for _, f := range l.fields {
		if _, given := fields[f.name]; f.mandatory && !given && c.extent == Whole {
			c.add(Problem{Table: table, Key: key, Field: f.name, Rule: fmt.Sprintf("Missing required element %q", f.name)})
		}
	}
	if l.must != nil {
		for _, p := range l.must(c.db, parts, fields) {
			p.Table, p.Key = table, key
			c.add(p)
		}
	}
}

// field checks one field of an entry.
func (c *checker) field(table, key string, l list, name string, value any) {
	if l.inner != nil { // a map: every field is an entry of an inner list
		c.leaf(table, key, l.inner[0], name, name)
		c.value(table, key, l.inner[1], name, value)
		return
	}
	i := slices.IndexFunc(l.fields, func(f leaf) bool { return f.name == name })
	if i < 0 {
		c.add(Problem{Table: table, Key: key, Field: name, Rule: fmt.Sprintf("All keys are not parsed in %s: the model has no leaf %q", table, name)})
		return
	}
	c.value(table, key, l.fields[i], name, value)
}

// value checks a text or a list of texts.
func (c *checker) value(table, key string, f leaf, name string, value any) {
	switch v := value.(type) {
	case string:
		c.leaf(table, key, f, name, v)
	case []any:
		if !f.leafList {
			c.add(Problem{Table: table, Key: key, Field: name, Rule: "a list, where the model has one value"})
			return
		}
		if f.most > 0 && len(v) > f.most {
			c.add(Problem{Table: table, Key: key, Field: name, Rule: fmt.Sprintf("Too many %q elements: at most %d", name, f.most)})
		}
		for _, e := range v {
			text, ok := e.(string)
			if !ok {
				c.add(Problem{Table: table, Key: key, Field: name, Rule: "an element is no text"})
				continue
			}
			c.leaf(table, key, f, name, text)
		}
	default:
		c.add(Problem{Table: table, Key: key, Field: name, Rule: "neither a text nor a list of texts"})
	}
}

// leaf checks one value by the type of its leaf.
func (c *checker) leaf(table, key string, f leaf, name, value string) {
	if rule := f.kind.check(c.db, value); rule != "" {
		c.add(Problem{Table: table, Key: key, Field: name, Value: value, Rule: rule})
	}
}

// kind is the type of a leaf.
type kind interface {
	// check returns the broken rule, or "".
	check(db DB, value string) string
}

type (
	// text is a string that a pattern matches as a whole; nil: any.
	text struct {
		pattern *lazyregexp.Regexp
		most    int // characters; 0: no limit
	}
	// number is an unsigned integer; long ones (uint64) are texts in JSON (RFC 7951, 6.1).
	number struct {
		from, to uint64
		long     bool
	}
	boolean struct{}
	enum    []string
	// reference names a key of another table, the whole key or its first part.
	reference struct {
		table string
		path  string // as libyang prints it
	}
	// prefix is an IP prefix, address an IP address, of either family.
	prefix  struct{}
	address struct{}
	// union takes what one of its members takes.
	union []kind
)

func (k text) check(_ DB, v string) string {
	if k.pattern != nil && k.pattern.FindString(v) != v || k.pattern != nil && !k.pattern.MatchString(v) || k.most > 0 && len([]rune(v)) > k.most {
		return fmt.Sprintf("Value %q does not satisfy the constraint (range, length, or pattern).", v)
	}
	return ""
}

func (k number) check(_ DB, v string) string {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return fmt.Sprintf("Invalid value %q: an unsigned integer is wanted.", v)
	}
	if n < k.from || n > k.to {
		return fmt.Sprintf("Value %q does not satisfy the constraint \"%d..%d\" (range, length, or pattern).", v, k.from, k.to)
	}
	return ""
}

func (boolean) check(_ DB, v string) string {
	if v != "true" && v != "false" {
		return fmt.Sprintf("Invalid boolean value %q.", v)
	}
	return ""
}

func (k enum) check(_ DB, v string) string {
	if !slices.Contains(k, v) {
		return fmt.Sprintf("Invalid enumeration value %q: one of %s is wanted.", v, strings.Join(k, ", "))
	}
	return ""
}

func (k reference) check(db DB, v string) string {
	keys, _ := db[k.table].(DB)
	if _, ok := keys[v]; !ok {
		return fmt.Sprintf("Leafref %q of value %q points to a non-existing leaf.", k.path, v)
	}
	return ""
}

func (prefix) check(_ DB, v string) string {
	if _, err := netip.ParsePrefix(v); err != nil {
		return fmt.Sprintf("Value %q is no IP prefix.", v)
	}
	return ""
}

func (address) check(_ DB, v string) string {
	if _, err := netip.ParseAddr(v); err != nil {
		return fmt.Sprintf("Value %q is no IP address.", v)
	}
	return ""
}

func (k union) check(db DB, v string) string {
	var rules []string
	for _, member := range k {
		rule := member.check(db, v)
		if rule == "" {
			return ""
		}
		rules = append(rules, rule)
	}
	return rules[0]
}
