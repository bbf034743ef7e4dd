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

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// gone is the node that is taken out of the demo site's list.
const gone = "r01-u09"

// edited is the demo site with edited files.
func edited(t *testing.T, edit map[string]func(string) string) (*inventory.Inventory, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"site.hcl", "manifest.csv"} {
		b, err := os.ReadFile(filepath.Join("../../examples/demo", name))
		if err != nil {
			return nil, err
		}
		text := string(b)
		if f := edit[name]; f != nil {
			if text = f(text); text == string(b) {
				return nil, fmt.Errorf("%s was not changed", name)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		return nil, fmt.Errorf("%v", diags)
	}
	return inv, nil
}

// without is the demo site without the node that is gone.
func without(t *testing.T) (*inventory.Inventory, error) {
	return edited(t, map[string]func(string) string{"manifest.csv": func(text string) string {
		var kept []string
		for _, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "r01,9,") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "\n")
	}})
}

func ids(p *plan.Plan) (out []string) {
	for _, s := range p.Steps {
		out = append(out, string(s.ID))
	}
	return out
}

// left lists the objects that the state has of a node.
func left(ctx context.Context, r state.Reader, node string) (out []string) {
	for _, kind := range []string{"node", "step", "fact", "effect", "declared", "accepted", "pin"} {
		os, err := r.Objects(ctx, kind)
		if err != nil {
			return []string{err.Error()}
		}
		for _, o := range os {
			if strings.Contains(o.Key.Name, node) {
				out = append(out, o.Key.String())
			}
		}
	}
	return out
}

// schedulerNodes reads what the scheduler of the demo site knows of its nodes.
func schedulerNodes(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "state", "handover", "slurm", "prod", "nodes.conf"))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestDecommission: a node that is taken out of the files is only said to be gone, and
// stays with its scheduler, until it is asked for: then it is drained, wiped, switched off and forgotten, and
// nothing else is touched, however often the controller dies meanwhile.
func TestDecommission(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := rehearsal.Run(context.Background(), load(t, demo, nil), rehearsal.Options{Seed: 7, Dir: dir, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		time.Sleep(time.Minute) // the site is in service
		if _, err := l.Plan(ctx, provision.PlanOptions{Decommission: []string{gone}}); errkind.Of(err) != errkind.Refused || !strings.Contains(errkind.Action(err), "manifest") && !strings.Contains(errkind.Action(err), "site.hcl:") {
			t.Errorf("a node of the site: %v; %s", err, errkind.Action(err))
		}
		inv, err := without(t)
		if err != nil {
			return err
		}
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if len(p.Orphaned) != 1 || p.Orphaned[0].Node != gone || strings.Contains(strings.Join(ids(p), " "), gone+"/") || len(p.Erase.Nodes) != 0 {
			t.Errorf("not asked for: gone %v, steps %v", p.Orphaned, ids(p))
		}
		was := schedulerNodes(t, dir)
		if res, err := l.Apply(ctx, p); err != nil || res.Outcome != state.RunDone {
			t.Errorf("outcome %s: %v", res.Outcome, err)
		}
		if is := schedulerNodes(t, dir); is != was || !strings.Contains(is, "NodeName="+gone+" ") {
			t.Errorf("nobody asked to take it from the scheduler, which may run jobs on it:\n%s\nwas\n%s", is, was)
		}
		if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil || len(p.Steps) != 0 {
			t.Errorf("a second time: %v, %v", ids(p), err)
		}
		p, err = l.Plan(ctx, provision.PlanOptions{Decommission: []string{gone}, Targets: []string{gone}})
		if err != nil {
			return err
		}
		if len(p.Refusals) > 0 || !slices.Equal(p.Erase.Nodes, []string{gone}) || len(p.Orphaned) != 0 {
			t.Errorf("refusals %+v, erased %v, gone %v", p.Refusals, p.Erase.Nodes, p.Orphaned)
		}
		want := []string{gone + "/bmc", gone + "/handover.drain", gone + "/install.leave", gone + "/install.wipe", gone + "/install.off", gone + "/retire.forget", "site/handover.prod"}
		got := ids(p)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("planned %v, want %v", got, want)
		}
		for _, step := range []string{"install.wipe", "install.off", "retire.forget"} { // the controller dies there, three times
			l.KillAt(step, gone)
			if _, err := l.Apply(ctx, p); err == nil {
				t.Errorf("the controller did not die at %s", step)
			}
		}
		res, err := l.Apply(ctx, p)
		if err != nil || res.Outcome != state.RunDone {
			return fmt.Errorf("outcome %s %v: %+v", res.Outcome, err, res.Findings)
		}
		blank(t, l, true)
		if n, _ := l.World.Node(gone); n.Chassis().Power() != chassis.Off {
			t.Errorf("power is %v", n.Chassis().Power())
		}
		if x := left(ctx, l.Store, gone); len(x) > 0 {
			t.Errorf("not forgotten: %v", x)
		}
		if n, out := accepted(ctx, l); n != 7 {
			t.Errorf("%d accepted; %v", n, out)
		}
		if strings.Contains(schedulerNodes(t, dir), gone) {
			t.Error("the scheduler's files still have it")
		}
		p, err = l.Plan(ctx, provision.PlanOptions{})
		if err == nil && (len(p.Steps) != 0 || len(p.Orphaned) != 0) {
			t.Errorf("afterwards: %v, gone %v", ids(p), p.Orphaned)
		}
		return err
	}})
	if err != nil {
		t.Error(err)
	}
}

// blank reports whether the disks of the node that is gone hold nothing.
func blank(t *testing.T, l *rehearsaltest.Later, want bool) {
	t.Helper()
	n, _ := l.World.Node(gone)
	for _, d := range n.Metal().Disks() {
		b := make([]byte, 4<<20)
		if _, err := d.ReadAt(b, 0); err != nil {
			t.Error(err)
		}
		if empty := !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }); !empty && want {
			t.Errorf("disk %s is not blank", d.Name())
		} else if empty && !want && strings.HasPrefix(d.Name(), "nvme0") {
			t.Errorf("disk %s is blank", d.Name())
		}
	}
}

// TestDecommissionWrongChassis: what answers at the BMC is another node's chassis:
// nothing is erased, nothing is switched off, and the node is still known.
func TestDecommissionWrongChassis(t *testing.T) {
	t.Parallel()
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		inv, err := without(t)
		if err != nil {
			return err
		}
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		if err := l.World.Exchange(ctx, gone, "r02-u01"); err != nil {
			return err
		}
		time.Sleep(bmcStart)
		p, err := l.Plan(ctx, provision.PlanOptions{Decommission: []string{gone}, Targets: []string{gone}})
		if err != nil {
			return err
		}
		res, err := l.Apply(ctx, p)
		if err != nil {
			return err
		}
		if res.Outcome == state.RunDone || len(res.Findings) == 0 {
			t.Errorf("outcome %s, findings %+v", res.Outcome, res.Findings)
		}
		blank(t, l, false)
		if len(left(ctx, l.Store, gone)) == 0 {
			t.Error("it was forgotten")
		}
		return nil
	})
}
