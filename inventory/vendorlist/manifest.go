// SPDX-License-Identifier: Apache-2.0

package vendorlist

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// node is a row of the manifest.
type node map[Field]string

// Manifest is the site's list of nodes: one row a node, by rack, unit and serial.
type Manifest struct {
	Columns []string // headers: fields, then what somebody has added by hand
	nodes   []node   // by header
}

// Len is the number of nodes.
func (m *Manifest) Len() int { return len(m.nodes) }

// Count is the number of nodes that have a value of the field.
func (m *Manifest) Count(f Field) int {
	n := 0
	for _, x := range m.nodes {
		if x[f] != "" {
			n++
		}
	}
	return n
}

// Has reports whether the manifest has a column.
func (m *Manifest) Has(f Field) bool { return slices.Contains(m.Columns, string(f)) }

// Bytes is the file.
func (m *Manifest) Bytes() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	// Errors of a bytes.Buffer: none.
	_ = w.Write(m.Columns)
	for _, n := range m.nodes {
		row := make([]string, len(m.Columns))
		for i, c := range m.Columns {
			row[i] = n[Field(c)]
		}
		_ = w.Write(row)
	}
	w.Flush()
	return b.Bytes()
}

// ReadManifest reads a manifest that was written before, and perhaps changed by
// hand since.
func ReadManifest(raw []byte) (*Manifest, error) {
	text, err := decodeText(raw)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return &Manifest{}, nil
	}
	m := &Manifest{Columns: rows[0]}
	if !m.Has(Serial) {
		return nil, errors.New("it has no column serial, so it is no manifest")
	}
	for _, row := range rows[1:] {
		n := node{}
		for i, c := range m.Columns {
			n[Field(c)] = row[i]
		}
		m.nodes = append(m.nodes, n)
	}
	return m, nil
}

// Keep takes over what a manifest from before has and lists do not: columns that
// somebody added by hand, by serial.
func (m *Manifest) Keep(before *Manifest) {
	was := before.bySerial()
	for _, c := range before.Columns {
		if slices.Contains(Fields(), Field(c)) || slices.Contains(m.Columns, c) {
			continue
		}
		m.Columns = append(m.Columns, c)
		for _, n := range m.nodes {
			if old := was[n[Serial]]; old != nil {
				n[Field(c)] = old[Field(c)]
			}
		}
	}
}

func (m *Manifest) bySerial() map[string]node {
	out := make(map[string]node, len(m.nodes))
	for _, n := range m.nodes {
		out[n[Serial]] = n
	}
	return out
}

// Change is one difference between two manifests: a node that comes, that goes,
// or a value of it that changes.
type Change struct {
	Serial string `json:"serial"`
	Kind   string `json:"kind"` // "added", "removed" or "changed"
	Field  string `json:"field,omitempty"`
	Was    string `json:"was,omitempty"` // never of a password
	Is     string `json:"is,omitempty"`
}

// String is the change in a line.
func (c Change) String() string {
	switch {
	case c.Kind == "added":
		return fmt.Sprintf("+ %s (%s)", c.Serial, c.Is)
	case c.Kind == "removed":
		return fmt.Sprintf("- %s (%s)", c.Serial, c.Was)
	case c.Field == string(FactoryPassword):
		return fmt.Sprintf("~ %s %s", c.Serial, c.Field)
	}
	return fmt.Sprintf("~ %s %s: %s -> %s", c.Serial, c.Field, orEmpty(c.Was), orEmpty(c.Is))
}

func orEmpty(s string) string {
	if s == "" {
		return "(empty)"
	}
	return s
}

// Changes lists what is different in m from a manifest before, by serial.
func (m *Manifest) Changes(before *Manifest) []Change {
	out := []Change{}
	was := before.bySerial()
	is := m.bySerial()
	for _, n := range m.nodes {
		old := was[n[Serial]]
		if old == nil {
			out = append(out, Change{Serial: n[Serial], Kind: "added", Is: n.place()})
			continue
		}
		for _, c := range unionOf(before.Columns, m.Columns) {
			if f := Field(c); old[f] != n[f] {
				change := Change{Serial: n[Serial], Kind: "changed", Field: c, Was: old[f], Is: n[f]}
				if f == FactoryPassword {
					change.Was, change.Is = "", ""
				}
				out = append(out, change)
			}
		}
	}
	for _, n := range before.nodes {
		if is[n[Serial]] == nil {
			out = append(out, Change{Serial: n[Serial], Kind: "removed", Was: n.place()})
		}
	}
	return out
}

// place says where a node stands.
func (n node) place() string {
	if n[Rack] == "" || n[Unit] == "" {
		return "no place"
	}
	return fmt.Sprintf("rack %s, unit %s", n[Rack], n[Unit])
}

// unionOf returns a, then what only b has.
func unionOf(a, b []string) []string {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}
