// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/validate/result"
)

// TestProvisional: what is left of a group that has lost its quorum is accepted
// provisionally where the site allows it, and with the others' return all of it is
// tested again and accepted for good.
func TestProvisional(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/demo")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "site.hcl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Replace(text, []byte("  quorum = \"75%\"\n"), []byte("  quorum      = \"100%\"\n  provisional = true\n"), 1)
	if bytes.Equal(whole, text) {
		t.Fatal("the site has no quorum to replace")
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	swap, err := fault.Parse("kind=cable-swap,node=r01-u09,with=r02-u01,port=rail/3")
	if err != nil {
		t.Fatal(err)
	}
	var second apply.Result
	var provisional [2]int // nodes, after each apply
	var tested string      // the title of the second test
	playThen(t, inv, []fault.Fault{swap}, func(ctx context.Context, r *Rehearsal, w *virtual.World, read state.Reader) {
		provisional[0] = countProvisional(ctx, t, inv, read)
		if err := w.Plant(swap); err != nil { // and so back
			t.Error(err)
		}
		var planned []plan.Step
		second, planned = applyAgain(ctx, t, r)
		for _, st := range planned {
			if strings.HasSuffix(string(st.ID), "/validate.all_reduce") {
				tested = st.Title
			}
		}
		provisional[1] = countProvisional(ctx, t, inv, read)
	})
	if want := len(inv.Nodes) - 2; provisional != [2]int{want, 0} {
		t.Errorf("%v nodes accepted provisionally, want %d and then none", provisional, want)
	}
	for _, n := range second.Nodes {
		if !n.Accepted || n.Outcome != apply.NodeDone {
			t.Errorf("%s: %s", n.Name, n.Outcome)
		}
	}
	if strings.Contains(tested, "against") || !strings.Contains(tested, "nodes") {
		t.Errorf("the second test is about some of them: %q", tested)
	}
}

// countProvisional counts the nodes that are accepted provisionally.
func countProvisional(ctx context.Context, t *testing.T, inv *inventory.Inventory, read state.Reader) (n int) {
	t.Helper()
	facts, err := state.ReadPrior(ctx, read)
	if err != nil {
		t.Error(err)
		return 0
	}
	for _, node := range inv.Nodes {
		f, ok := facts.Fact(result.AcceptedFact.Of(subject.OfNode(node.Name)))
		if !ok {
			continue
		}
		a, err := result.AcceptedFact.Get(f)
		if err != nil {
			t.Error(err)
		}
		if len(a.Provisional) > 0 {
			n++
		}
	}
	return n
}
