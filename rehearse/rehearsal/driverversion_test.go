// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// otherExample is an example site with words of its file replaced.
func otherExample(t *testing.T, site string, words ...string) *inventory.Inventory {
	t.Helper()
	return other(t, "../../examples/"+site, words...)
}

// other is the site of a folder with words of its file replaced.
func other(t *testing.T, site string, words ...string) *inventory.Inventory {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(site)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "site.hcl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(words...).Replace(string(b))
	if text == string(b) {
		t.Fatalf("%s has none of %q", site, words)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return load(t, dir, nil)
}

// TestDriverVersionMoves: another version of a driver, later or earlier, means the
// driver's step and what depends on it, and no reinstallation; afterwards the nodes
// have it, and are accepted again.
func TestDriverVersionMoves(t *testing.T) {
	t.Parallel()
	later := []struct {
		version string
		inv     *inventory.Inventory
	}{{"580.173.02", otherExample(t, "hgx-h100", `"580.126.16"`, `"580.173.02"`)}, {"580.126.16", load(t, "../../examples/hgx-h100", nil)}}
	_, err := rehearsal.Run(context.Background(), load(t, "../../examples/hgx-h100", nil), rehearsal.Options{Seed: 5, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for i, next := range later {
			version := next.version
			if err := l.Edit(ctx, next.inv); err != nil {
				return err
			}
			if i == 0 {
				if err := halfWay(ctx, t, l); err != nil {
					return err
				}
			}
			p, err := l.Plan(ctx, provision.PlanOptions{})
			if err != nil {
				return err
			}
			kinds := map[string]bool{}
			for _, s := range p.Steps {
				_, kind, _ := strings.Cut(string(s.ID), "/")
				kinds[kind] = true
			}
			if kinds["install.write"] || kinds["drivers.doca32"] || !kinds["drivers.r580"] || !kinds["validate.accept"] {
				t.Errorf("%s: planned %v", version, kinds)
			}
			if _, err := l.Apply(ctx, p); err != nil {
				return err
			}
			for _, n := range l.Site.Inv.Nodes {
				at, err := installed(ctx, l, n.Name)
				if err != nil {
					return err
				}
				if !strings.HasPrefix(at.Packages["nvidia-fabricmanager"], version+"-") || !slices.Contains(at.Modules, "nvidia "+version) {
					t.Errorf("%s: %s has %v", version, n.Name, at)
				}
			}
		}
		return backToFormer(ctx, t, l)
	}})
	if err != nil {
		t.Error(err)
	}
}

// halfWay has the controller die when the first node has its new driver, and then
// applies to another node: the first stays drained, for nobody accepted it since, and
// the next plan has what is left to do with it.
func halfWay(ctx context.Context, t *testing.T, l *rehearsaltest.Later) error {
	const node, other = "r01-u01", "r01-u09"
	p, err := l.Plan(ctx, provision.PlanOptions{})
	if err != nil {
		return err
	}
	l.KillAt("fabric.compute", node)
	if _, err := l.Apply(ctx, p); err == nil {
		t.Error("the controller was not killed")
	}
	if p, err = l.Plan(ctx, provision.PlanOptions{Targets: []string{other}}); err != nil {
		return err
	}
	if _, err := l.Apply(ctx, p); err != nil {
		return err
	}
	if said, want := l.World.Scheduler().Changes(), []string{node + " DRAIN", other + " DRAIN", other + " UNDRAIN"}; !slices.Equal(said, want) {
		t.Errorf("slurmctld was told %q, want %q", said, want)
	}
	if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil {
		return err
	}
	planned := ids(p)
	for _, step := range []string{"fabric.compute", "fabric.storage", "validate.gates", "validate.burn", "validate.accept"} {
		if !slices.Contains(planned, node+"/"+step) {
			t.Errorf("%s of %s was forgotten: %v", step, node, planned)
		}
	}
	return nil
}

// backToFormer rolls one node back to the driver before the last, by an
// installation of its image.
func backToFormer(ctx context.Context, t *testing.T, l *rehearsaltest.Later) error {
	const node, former = "r01-u17", "580.173.02"
	o := &acceptance.Rollback{Nodes: []string{node}, By: "kim", Reason: "hangs", At: time.Now()}
	if err := l.Prepare(ctx, o); err != nil {
		return err
	}
	p, err := l.Plan(ctx, provision.PlanOptions{Replace: []string{node}, Targets: []string{node}})
	if err != nil {
		return err
	}
	if err := l.Record(ctx, o); err != nil {
		return err
	}
	if res, err := l.Apply(ctx, p); err != nil || res.Outcome != state.RunDone {
		return fmt.Errorf("outcome %s %v: %+v", res.Outcome, err, res.Findings)
	}
	at, err := installed(ctx, l, node)
	if !slices.Contains(at.Modules, "nvidia "+former) {
		t.Errorf("rolled back: %v", at)
	}
	if p, err := l.Plan(ctx, provision.PlanOptions{Targets: []string{node}}); err != nil || len(p.Steps) != 0 {
		t.Errorf("pinned: %v %v", ids(p), err)
	}
	return err
}

// installed is what the last driver step of a node learned.
func installed(ctx context.Context, l *rehearsaltest.Later, node string) (driver.Installed, error) {
	f, _, err := state.Get[fact.Fact](ctx, l.Store, state.FactKey(driver.Packages("r580").Of(subject.OfNode(node))))
	if err != nil {
		return driver.Installed{}, err
	}
	return driver.Packages("r580").Get(f)
}
