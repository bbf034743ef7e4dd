// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// TestListsOfNodes: a hostfile beside Slurm has the accepted nodes, is without a node
// while that is rebuilt, has it again afterwards, and asks for nothing more.
func TestListsOfNodes(t *testing.T) {
	t.Parallel()
	const node, address = "r01-u09", "r01-u09 slots=8\n"
	site := t.TempDir()
	if err := os.CopyFS(site, os.DirFS("../../examples/demo")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(site, "lists.hcl"), []byte("handover \"hostfile\" \"ranks\" { hosts = \"name\" }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := provision.Load(site, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	dir := t.TempDir()
	read := func() (text string) {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "hostfile/ranks/hostfile") {
				var b []byte
				b, err = os.ReadFile(path)
				text = string(b)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return text
	}
	var during []string // the list whenever a step of the node's installation began
	watch := func(e event.Event) {
		if e.Type == event.StepStarted && e.Step == node+"/install.write" {
			during = append(during, read())
		}
	}
	o := rehearsal.Options{Seed: 7, Dir: dir, OnEvent: watch, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if got := read(); strings.Count(got, " slots=8\n") != 8 || !strings.Contains(got, address) {
			t.Errorf("after the first run: %s", got)
		}
		during = nil // of the first installation
		res, err := rebuildNode(ctx, l, node, handover.DrainOptions{})
		if err != nil {
			return err
		}
		if got := read(); res.Outcome != state.RunDone || strings.Count(got, " slots=8\n") != 8 {
			t.Errorf("%s; after the rebuild: %s", res.Outcome, got)
		}
		if len(during) != 1 || strings.Contains(during[0], address) || strings.Count(during[0], " slots=8\n") != 7 {
			t.Errorf("during the rebuild: %q", during)
		}
		if p, err := l.Plan(ctx, provision.PlanOptions{}); err != nil || len(p.Steps) > 0 {
			t.Errorf("the next plan has %d steps, %v", len(p.Steps), err)
		}
		return nil
	}}
	if _, err := rehearsal.Run(context.Background(), inv, o); err != nil {
		t.Error(err)
	}
}
