// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
)

// Role is what the nodes of a role have in common, as they were compared last.
type Role struct {
	Name  string    `json:"name"`
	Nodes int       `json:"nodes"` // that were compared
	Rows  []RoleRow `json:"rows"`
}

// RoleRow is one thing that was compared.
type RoleRow struct {
	What  string   `json:"what"`            // such as NIC firmware of MT4129
	Value string   `json:"value,omitempty"` // of most nodes; empty: there is no majority
	With  int      `json:"with"`            // nodes that have it
	Nodes int      `json:"nodes"`           // nodes that tell
	Other []string `json:"other,omitempty"` // who has what else
	// Verdict is Pass where all have the same, Fail where one that differs is taken out
	// for it, Allowed where that is no fault, NotJudged without a majority.
	Verdict string `json:"verdict,omitempty"`
}

// otherShown is how many that differ are listed in one row.
const otherShown = 8

// most is what most nodes have, in words.
func (r RoleRow) most() string {
	if r.Value == "" {
		return "no majority"
	}
	return r.Value
}

// others lists who differs.
func (r RoleRow) others() string {
	if n := len(r.Other); n > otherShown {
		return fmt.Sprintf("%s and %d more", strings.Join(r.Other[:otherShown], "; "), n-otherShown)
	}
	return strings.Join(r.Other, "; ")
}

// writeRoles writes the versions of each role.
func writeRoles(b *bytes.Buffer, in Input) {
	for _, r := range in.Roles {
		fmt.Fprintf(b, "\nRole %s: what %d nodes have in common\n", clean(r.Name), r.Nodes)
		for _, row := range r.Rows {
			fmt.Fprintf(b, "  %-24s %d of %d: %s\n", clean(row.What), row.With, row.Nodes, clean(row.most()))
			if len(row.Other) > 0 {
				fmt.Fprintf(b, "  %-24s differs: %s\n", "", clean(row.others()))
			}
		}
	}
}
