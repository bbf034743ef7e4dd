// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	var dead []Finding
	for i := 1; i <= 512; i++ {
		n := fmt.Sprintf("n%03d", i)
		dead = append(dead, Finding{Kind: "node", Name: n, Apart: n + "/bmc.reach", Cause: fmt.Sprintf("node %s: bmc 10.0.%d.%d: no route to host", n, i/256, i%256), Action: "Check the BMC of " + n + "."})
	}
	for _, c := range []struct {
		name string
		list []Finding
		want string
	}{
		{"none", nil, ""},
		{"one keeps its name", dead[:1], "n001 | node n001: bmc 10.0.0.1: no route to host | Check the BMC of n001."},
		{"many", dead, "512 nodes: n[001-512] | node NODE: bmc 10.0.0.1: no route to host | Check the BMC of NODE."},
		{"names that hold each other", []Finding{{Kind: "node", Name: "n1", Cause: "n1 and n12 differ"}, {Kind: "node", Name: "n12", Cause: "n12 and n12 differ"}},
			"n1 | n1 and n12 differ | \nn12 | n12 and n12 differ | "},
		{"one finding about two nodes", []Finding{{Kind: "node", Name: "n1", Cause: "PDU a of n1 is off"}, {Kind: "node", Name: "n2", Cause: "PDU a of n1 is off"}}, "2 nodes: n[1-2] | PDU a of n1 is off | "},
		{"another action", []Finding{{Kind: "node", Name: "n1", Cause: "off", Action: "a"}, {Kind: "node", Name: "n2", Cause: "off", Action: "b"}}, "n1 | off | a\nn2 | off | b"},
		{"another kind of subject", []Finding{{Kind: "node", Name: "n1", Cause: "off"}, {Kind: "switch", Name: "s1", Cause: "off"}}, "n1 | off | \ns1 | off | "},
		{"switches", []Finding{{Kind: "switch", Name: "s1", Cause: "off"}, {Kind: "switch", Name: "s2", Cause: "off"}}, "2 switches: s[1-2] | off | "},
		{"another step", []Finding{{Kind: "node", Name: "n1", Apart: "n1/a", Cause: "off"}, {Kind: "node", Name: "n2", Apart: "n2/b", Cause: "off"}}, "n1 | off | \nn2 | off | "},
		{"figures that differ are told", []Finding{{Kind: "node", Name: "n1", Cause: "GPU 3 is missing"}, {Kind: "node", Name: "n2", Cause: "GPU 5 is missing"}},
			"2 nodes: n[1-2] | GPU 3 is missing |  | n2: GPU 5 is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, g := range Findings(c.list) {
				lines = append(lines, strings.Join(slices.Concat([]string{g.Subjects(), g.Cause, g.Action}, g.Others), " | "))
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestEveryFindingIsInOneGroup: grouping loses nothing.
func TestEveryFindingIsInOneGroup(t *testing.T) {
	t.Parallel()
	var list []Finding
	for i := range 1000 {
		list = append(list, Finding{Kind: []string{"node", "switch", "link"}[i%3], Name: fmt.Sprint("n", i%50), Cause: strings.Repeat("x", i%7)})
	}
	seen := map[int]bool{}
	for _, g := range Findings(list) {
		for _, m := range g.Members {
			if seen[m] || !slices.Contains(g.Names, list[m].Name) {
				t.Errorf("finding %d is in two groups, or not named in its own", m)
			}
			seen[m] = true
		}
	}
	if len(seen) != len(list) {
		t.Errorf("%d of %d", len(seen), len(list))
	}
}
