// SPDX-License-Identifier: Apache-2.0

package recognise

import "strings"

// things are what an output of a kind has once, such as the devices of lspci, and
// its form: they tell where another output of the kind begins, and whether a part
// below lines of another program continues with the output above it.
type things struct {
	form  string          // of the part that is read; empty where the kind has one form
	here  map[string]bool // of the part that is read
	above map[string]bool // of the parts above that it may go on with
}

// thingOf is what a line of a kind names; empty for a kind without such things.
func thingOf(kind, line string) string {
	pattern := unique[kind]
	if pattern == nil {
		return ""
	}
	return strings.TrimPrefix(pattern.FindString(line), "0000:") // lspci leaves this domain out
}

// otherForm reports whether a head is of another form than the part that is read.
func (t *things) otherForm(form string) bool {
	return form != "" && t.form != "" && form != t.form
}

// begin starts a part, of another output or maybe of the one above.
func (t *things) begin(form string, another bool) {
	t.form = form
	if t.above == nil || another {
		t.above = map[string]bool{}
	}
	if !another {
		for thing := range t.here {
			t.above[thing] = true
		}
	}
	t.here = map[string]bool{}
}

// meet notes a thing of the part, and reports whether the output above had it: then
// the part is another output.
func (t *things) meet(thing string) bool {
	if thing == "" {
		return false
	}
	t.here[thing] = true
	again := t.above[thing]
	if again {
		t.above = map[string]bool{}
	}
	return again
}
