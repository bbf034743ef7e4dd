// SPDX-License-Identifier: Apache-2.0

package lldpctl

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// documentHead is the beginning of -f json and json0, also where there is no neighbour.
var documentHead = lazyregexp.New(`(?m)^[ \t]*\{\s*"lldp"\s*:\s*[\[{]\s*(?:\{\s*)?(?:"interface"\s*:|\}|\])`)

// document reads -f json, in which a list of one is its element and names are keys, and
// -f json0, in which everything is a list.
func (r *reader) document(data []byte) error {
	text, ok := jsontext.Find(data)
	var top map[string]any
	if !ok {
		return errors.New("it has no JSON object")
	}
	if err := json.Unmarshal(text.Data, &top); err != nil {
		return err
	}
	if text.Cut {
		r.problems.Add(tool.Truncated, 0, "The object ends before its end: what it has so far was read.")
	}
	r.line = text.Line
	for _, l := range listOf(top["lldp"]) {
		for _, i := range listOf(fieldOf(l, "interface")) {
			r.interfaces(i)
		}
	}
	return nil
}

// interfaces reads an element of the list: an interface with its name among its fields,
// or by name.
func (r *reader) interfaces(v any) {
	if name, ok := fieldOf(v, "name").(string); ok {
		r.neighbor(name, v)
		return
	}
	byName, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, n := range listOf(byName[name]) {
			r.neighbor(name, n)
		}
	}
}

func (r *reader) neighbor(name string, v any) {
	n := Neighbor{Interface: name, Via: textOf(fieldOf(v, "via")), Age: textOf(fieldOf(v, "age")), line: r.line}
	chassis := firstOf(fieldOf(v, "chassis"))
	if m, ok := chassis.(map[string]any); ok && len(m) == 1 { // by name
		for k, inner := range m {
			if i, ok := inner.(map[string]any); ok && k != "id" {
				n.Name, chassis = k, i
			}
		}
	}
	if s := textOf(fieldOf(chassis, "name")); s != "" {
		n.Name = s
	}
	n.Chassis, n.Descr = idOf(fieldOf(chassis, "id")), firstLine(textOf(fieldOf(chassis, "descr")))
	for _, a := range listOf(fieldOf(chassis, "mgmt-ip")) {
		n.Addresses = append(n.Addresses, textOf(a))
	}
	port := firstOf(fieldOf(v, "port"))
	n.Port, n.PortDescr = idOf(fieldOf(port, "id")), textOf(fieldOf(port, "descr"))
	r.report.Neighbors = append(r.report.Neighbors, n)
}

// listOf returns the elements of a list; of anything else, itself as the only one.
func listOf(v any) []any {
	if v == nil {
		return nil
	}
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func firstOf(v any) any {
	if l := listOf(v); len(l) > 0 {
		return l[0]
	}
	return nil
}

func fieldOf(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

// textOf returns a text, or that of {"value": "..."}.
func textOf(v any) string {
	v = firstOf(v)
	if m, ok := v.(map[string]any); ok {
		v = m["value"]
	}
	s, _ := v.(string)
	return s
}

func idOf(v any) ID {
	v = firstOf(v)
	return ID{textOf(fieldOf(v, "type")), textOf(v)}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}
