// SPDX-License-Identifier: Apache-2.0

package plan

import "strings"

// Kind returns the id without its subject and its wave: install.write.
func (id StepID) Kind() string {
	id = id.Base()
	return string(id[strings.LastIndexByte(string(id), '/')+1:]) // a PDU's own name has a slash
}

// Treatment says what steps do to the node of this name, and why, without the name: nodes
// with the same treatment are shown once. Which very disks are erased is no part of it.
func Treatment(name string, steps []Step) string {
	var b strings.Builder
	for i := range steps {
		s := &steps[i]
		erases, _, _ := strings.Cut(s.Erases, ": ") // whose disks follow are listed
		b.WriteString(string(s.Action) + " " + s.ID.Kind() + " " + erases)
		for _, why := range s.Why {
			b.WriteString("\x00" + why)
		}
		b.WriteString("\n")
	}
	return strings.ReplaceAll(b.String(), name, "\x01")
}
