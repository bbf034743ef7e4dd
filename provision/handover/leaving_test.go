// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

// TestLeavingNodeStaysUntilDrained: nodes that leave the site stay in the files of
// their scheduler until their own drain: one of them may have jobs, so that its drain
// has failed. One that never served goes at once.
func TestLeavingNodeStaysUntilDrained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, run := threeOfFour(t) // n1 and n3 serve, n2 is quarantined, n4 was never accepted
	inv := site(slurmBlock())
	s := handover.New(inv, map[string]handover.Kind{"slurm": slurm.New(dir, idle)}, st)
	all := steps(t, s)
	for _, n := range inv.Nodes[1:] {
		n.Retired = true
	}
	has := func() (list string) {
		b, err := os.ReadFile(filepath.Join(dir, "lab", "nodes.conf"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if rest, node := strings.CutPrefix(line, "NodeName="); node {
				list += strings.Fields(rest)[0] + " "
			}
		}
		return list
	}
	for _, c := range []struct{ step, want string }{
		{"site/handover.lab", "n1 n2 n3 "},
		{"n3/handover.drain", "n1 n2 n3 "},
		{"site/handover.lab", "n1 n2 "},
		{"n2/handover.drain", "n1 n2 "},
		{"site/handover.lab", "n1 "},
	} {
		for id, step := range all {
			if string(id) != c.step {
				continue
			}
			if err := s.Apply(t.Context(), run, step); err != nil {
				t.Fatal(err)
			}
		}
		if got := has(); got != c.want {
			t.Errorf("after %s the scheduler has %q, want %q", c.step, got, c.want)
		}
	}
}
