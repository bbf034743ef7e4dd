// SPDX-License-Identifier: Apache-2.0

package ansible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// nameForm is a variable's name, and that of a group without warnings (Ansible
// documentation, "Creating valid variable names" and
// TRANSFORM_INVALID_GROUP_CHARS).
var nameForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// own are the groups that every inventory of Ansible has.
var own = []string{"all", "ungrouped"}

// Check looks at one block: what Ansible would refuse or misread is said before a node
// is up.
func Check(_ *inventory.Inventory, b inventory.Block) diag.List {
	var found diag.List
	add := func(name, attribute, summary, format string, args ...any) *diag.Diagnostic {
		return found.Add(name, b.Place(attribute), summary, fmt.Sprintf(format, args...)).In(b.Decl)
	}
	for _, g := range b.Texts("groups") {
		switch {
		case slices.Contains(own, g):
			add("ansible.name", "groups", "Group that is Ansible's own", "%q is a group of every inventory: each node is in it already, or in no other. Take another name, or remove it.", g)
		case !nameForm.MatchString(g):
			add("ansible.name", "groups", "Not a name for a group", "Ansible takes %q for a pattern or an expression: the name of a group has letters, digits and _ only, and does not start with a digit.%s", g, proposeName(g))
		}
	}
	for v := range b.Entries("variables") {
		if !nameForm.MatchString(v) {
			add("ansible.name", "variables", "Not a name for a variable", "%q cannot be the name of a variable of Ansible: it has letters, digits and _ only, and does not start with a digit.%s", v, proposeName(v))
		}
	}
	return found
}

// proposeName proposes the name with underscores, where that is one.
func proposeName(s string) string {
	if fixed := strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(s); fixed != s && nameForm.MatchString(fixed) {
		return fmt.Sprintf(" Did you mean %q?", fixed)
	}
	return ""
}
