// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OperationKind is what an operation does.
type OperationKind string

// The deeds, in the order in which a plan tells of them: what takes away first.
const (
	Removes OperationKind = "remove"
	Changes OperationKind = "change"
	Adds    OperationKind = "add"
)

var deeds = []OperationKind{Removes, Changes, Adds}

// Operation is one change that a step would make to a configuration which is kept in
// tables, such as that of a switch, by what was read of it.
type Operation struct {
	Do    OperationKind `json:"do"`
	Table string        `json:"table"`
	Key   string        `json:"key"`
	Field string        `json:"field,omitempty"` // empty: the key as a whole
	From  string        `json:"from,omitempty"`  // what is there; empty: nothing
	To    string        `json:"to,omitempty"`    // what is to be there; empty: nothing, or a key without fields
}

// String is the operation in words.
func (o Operation) String() string {
	at := strings.TrimSpace(o.Table + "|" + o.Key + " " + o.Field)
	switch {
	case o.Field == "":
		return at
	case o.Do == Adds:
		return at + " " + o.To
	case o.Do == Removes:
		return fmt.Sprintf("%s (is %s)", at, o.From)
	}
	return fmt.Sprintf("%s %s -> %s", at, o.From, o.To)
}

// countOperations counts operations by what they do.
func countOperations(ops []Operation) string {
	noun := "operations"
	if len(ops) == 1 {
		noun = "operation"
	}
	var parts []string
	for _, d := range deeds {
		if n := len(selectOperations(ops, d)); n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, d))
		}
	}
	return fmt.Sprintf("%d %s: %s", len(ops), noun, strings.Join(parts, ", "))
}

// summariseOperations is what operations do in a line for each deed: the first ones in full and
// the others counted by table. All of them are in the plan's Operations.
func summariseOperations(ops []Operation) (lines []string) {
	for _, d := range deeds {
		if of := selectOperations(ops, d); len(of) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", d, listOperations(of)))
		}
	}
	return lines
}

// listOperations names operations of one deed.
func listOperations(ops []Operation) string {
	const most = 3
	full := min(most, len(ops))
	if ops[0].Do == Adds && len(ops) > most {
		full = 0 // what is new is seen at its table; what was there, at its value
	}
	parts := make([]string, 0, full+1)
	for _, o := range ops[:full] {
		parts = append(parts, o.String())
	}
	if rest := ops[full:]; len(rest) > 0 {
		text := countByTable(rest)
		if full > 0 {
			text = fmt.Sprintf("and %d more (%s)", len(rest), text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// countByTable counts operations by their tables, the ones with most of them first.
func countByTable(ops []Operation) string {
	const most = 6
	count := map[string]int{}
	for _, o := range ops {
		count[o.Table]++
	}
	tables := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	var parts []string
	shown := 0
	for _, t := range tables[:min(most, len(tables))] {
		parts = append(parts, fmt.Sprintf("%s %d", t, count[t]))
		shown += count[t]
	}
	if more := len(tables) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d in %d more tables", len(ops)-shown, more))
	}
	return strings.Join(parts, ", ")
}

// selectOperations are the operations of one deed.
func selectOperations(ops []Operation, d OperationKind) (of []Operation) {
	for _, o := range ops {
		if o.Do == d {
			of = append(of, o)
		}
	}
	return of
}
