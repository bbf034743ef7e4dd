// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/provision/status"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// bmcStart is how long the BMC of a chassis takes that was just plugged in.
const bmcStart = 2 * time.Minute

// after brings the demo site up and continues with then. An error of then, or of
// the rehearsal, is one of the test.
func after(t *testing.T, then func(context.Context, *rehearsaltest.Later) error) {
	t.Helper()
	inv, diags, _ := provision.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	o := rehearsal.Options{Seed: 7, Dir: t.TempDir(), Then: func(ctx context.Context, r *rehearsal.Rehearsal) error { return then(ctx, rehearsaltest.Of(r)) }}
	if _, err := rehearsal.Run(context.Background(), inv, o); err != nil {
		t.Error(err)
	}
}

// accepted counts the nodes that are, and tells of the others.
func accepted(ctx context.Context, l *rehearsaltest.Later) (n int, out []string) {
	nodes, err := state.ReadNodes(ctx, l.Store)
	if err != nil {
		return 0, []string{err.Error()}
	}
	for name, x := range nodes {
		if x.Accepted && x.Quarantine == nil {
			n++
		} else {
			out = append(out, fmt.Sprintf("%s: %+v", name, x.Quarantine))
		}
	}
	slices.Sort(out)
	return n, out
}

// onlyOf reports the steps that a plan has for others than a node, in its own or
// in a group that is not about it.
func onlyOf(p *plan.Plan, node string) (others []string) {
	me := subject.OfNode(node)
	for _, s := range p.Steps {
		switch {
		case s.Subject == me, s.Subject.Kind != subject.Node && s.Group == nil:
		case s.Group != nil && slices.Contains(s.Group.Members, me) && (len(s.Group.Focus) == 0 || slices.Equal(s.Group.Focus, []subject.ID{me})):
		default:
			others = append(others, string(s.ID))
		}
	}
	return others
}

func newSerial(l *rehearsaltest.Later, node string) string {
	n, _ := l.World.Node(node)
	return n.Metal().Identity().Serial
}

// TestRebuildNewChassis: another chassis stands in an accepted node's place. Its
// serial number is typed, everything else is learned; nothing but this node is
// worked on, and in the end all are accepted and the plan is empty.
func TestRebuildNewChassis(t *testing.T) {
	t.Parallel()
	const node = "r01-u09"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		if err := l.World.Replace(ctx, node, "spare 1"); err != nil {
			return err
		}
		time.Sleep(bmcStart)
		was, _ := l.Site.Inv.Node(node)
		old := overrides.ChassisOf(was)
		o := &rebuild.Request{Nodes: []string{node}, Serial: newSerial(l, node), Reason: "the board is dead", By: "kim"}
		p, res, err := l.Rebuild(ctx, o)
		if err != nil {
			return err
		}
		story, err := status.ReadNode(ctx, l.Site.Inv, l.Store, node)
		if err != nil || len(story.Notes) != 1 || !strings.Contains(story.Notes[0], o.Serial) || !strings.Contains(story.Notes[0], old.Serial) || !strings.Contains(story.Notes[0], "the board is dead, by kim") {
			t.Errorf("notes %q, %v", story.Notes, err)
		}
		if all := toldByStatus(ctx, t, l); len(all) != 1 || !slices.Equal(all[o.Nodes[0]], story.Notes) {
			t.Errorf("status has %v", all)
		}
		if others := onlyOf(p, node); len(others) > 0 {
			t.Errorf("others are worked on: %s", strings.Join(others, " "))
		}
		if res.Outcome != state.RunDone {
			t.Errorf("outcome %s: %+v", res.Outcome, res.Findings)
		}
		if n, out := accepted(ctx, l); n != 8 {
			t.Errorf("%d are accepted; %s", n, out)
		}
		now, _ := l.World.Node(node)
		id := now.Metal().Identity()
		if n := desiredNode(ctx, t, l, node); n.Serial != id.Serial || n.BootMAC != id.BootMAC || !strings.EqualFold(n.UUID, id.UUID) || n.Serial == old.Serial || n.BootMAC == old.BootMAC {
			t.Errorf("learned %s %s %s; the chassis is %+v", n.Serial, n.UUID, n.BootMAC, id)
		}
		next, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if len(next.Steps) > 0 || len(next.Warnings) != 1 || !strings.Contains(next.Warnings[0], `write serial = "`+id.Serial+`"`) || !strings.Contains(next.Warnings[0], "the board is dead, by kim") {
			t.Errorf("%d steps are left; warnings %q", len(next.Steps), next.Warnings)
		}
		return filesCaughtUp(ctx, t, l, node, id.Serial, id.UUID)
	})
}

// desiredNode is a node as it is desired now.
func desiredNode(ctx context.Context, t *testing.T, l *rehearsaltest.Later, node string) *inventory.Node {
	t.Helper()
	site, err := l.Desired(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n, ok := site.Inv.Node(node)
	if !ok {
		t.Fatalf("no node %s", node)
	}
	return n
}

// filesCaughtUp: once the files name the new chassis, nothing stands in for them.
func filesCaughtUp(ctx context.Context, t *testing.T, l *rehearsaltest.Later, node, serial, uuid string) error {
	inv, diags, _ := provision.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		return errors.New(diags[0].Detail)
	}
	n, _ := inv.Node(node)
	now := desiredNode(ctx, t, l, node)
	n.Serial, n.BootMAC = serial, now.BootMAC
	if n.UUID != "" {
		n.UUID = strings.ToLower(uuid)
	}
	if err := l.Edit(ctx, inv); err != nil {
		return err
	}
	p, err := l.Plan(ctx, provision.PlanOptions{})
	if err != nil {
		return err
	}
	if len(p.Steps) > 0 || len(p.Warnings) > 0 {
		t.Errorf("after the files were edited: %d steps, %q", len(p.Steps), p.Warnings)
	}
	n.Host.KernelArgs = append(n.Host.KernelArgs, "quiet") // of all nodes
	if err := l.Edit(ctx, inv); err != nil {
		return err
	}
	if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil {
		return err
	}
	if len(p.Steps) > 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], `kernel_args "iommu=pt" -> "iommu=pt quiet"`) || !strings.Contains(p.Warnings[0], "--replace role.") {
		t.Errorf("after host settings were edited: %d steps, %q", len(p.Steps), p.Warnings)
	}
	return nil
}

// TestRebuildWrongChassis: a serial number that is typed wrong, or a chassis in
// another slot, is found before anything is touched.
func TestRebuildWrongChassis(t *testing.T) {
	t.Parallel()
	const node, other = "r01-u09", "r02-u01"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		if err := l.World.Replace(ctx, node, "spare 1"); err != nil {
			return err
		}
		time.Sleep(bmcStart)
		for name, o := range map[string]*rebuild.Request{
			"typed wrong":           {Nodes: []string{node}, Serial: newSerial(l, node) + "X"},
			"still the old one":     {Nodes: []string{node}, Serial: oldSerial(l, node)},
			"another slot":          {Nodes: []string{other}, Serial: newSerial(l, node)},
			"two nodes":             {Nodes: []string{node, other}, Serial: newSerial(l, node)},
			"a MAC without serial":  {Nodes: []string{node}, UUID: "00112233-4455-6677-8899-aabbccddeeff"},
			"another UUID is typed": {Nodes: []string{node}, Serial: newSerial(l, node), UUID: "00112233-4455-6677-8899-aabbccddeeff"},
		} {
			p, _, err := l.Rebuild(ctx, o)
			if p != nil || err == nil || errkind.Action(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n, _ := accepted(ctx, l); n != 8 {
			t.Errorf("%d are accepted still", n)
		}
		fence, err := l.Store.Claim(ctx, "hold")
		if err != nil {
			return err
		}
		if err := state.HoldNode(ctx, l.Store, fence, other, state.Hold{By: "kim", Reason: "riser"}); err != nil {
			return err
		}
		if _, _, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{other}}); err == nil || !strings.Contains(errkind.Action(err), "ironrail release "+other) {
			t.Errorf("held: %v", err)
		}
		// Without a serial number the old chassis is expected: the BMC says otherwise.
		_, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}})
		if err != nil {
			return err
		}
		for _, f := range res.Findings {
			if f.Cause == "this is the BMC of another node" || strings.Contains(f.Cause, "certificate") {
				return untouched(l, t, node)
			}
		}
		t.Errorf("findings %+v", res.Findings)
		return untouched(l, t, node)
	})
}

func oldSerial(l *rehearsaltest.Later, node string) string {
	n, _ := l.Site.Inv.Node(node)
	return n.Serial
}

// untouched: the disks of the new chassis are as blank as they came.
func untouched(l *rehearsaltest.Later, t *testing.T, node string) error {
	n, _ := l.World.Node(node)
	for _, d := range n.Metal().Disks() {
		if c := d.Counters(); c.Writes > 0 || c.Erases > 0 {
			t.Errorf("disk %s: %+v", d.Name(), c)
		}
	}
	return nil
}

// TestRebuildExchanged: two chassis stand in each other's place, and each is
// rebuilt where it is.
func TestRebuildExchanged(t *testing.T) {
	t.Parallel()
	const one, two = "r01-u09", "r02-u01"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		if err := l.World.Exchange(ctx, one, two); err != nil {
			return err
		}
		time.Sleep(bmcStart)
		for _, node := range []string{one, two} {
			o := &rebuild.Request{Nodes: []string{node}, Serial: newSerial(l, node)}
			_, res, err := l.Rebuild(ctx, o)
			if err != nil {
				return err
			}
			// The other's system is data here until its disk is named.
			n, _ := l.World.Node(node)
			disk := n.Metal().Disks()[0].Serial()
			if text := findingOf(res, node); done(res, node) || !strings.Contains(text, "rebuild "+node+" --disk "+disk) || !strings.Contains(text, "install marker") {
				t.Errorf("%s: not refused: %s", node, text)
			}
			if _, res, err = l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}, Disk: disk}); err != nil {
				return err
			}
			if !done(res, node) {
				t.Errorf("%s: %+v", node, res.Findings)
			}
		}
		if n, out := accepted(ctx, l); n != 8 {
			t.Errorf("%d are accepted; %s", n, out)
		}
		return nil
	})
}

// done reports whether a node came through a run.
func done(res apply.Result, node string) bool {
	for _, n := range res.Nodes {
		if n.Name == node {
			return n.Accepted && n.Outcome == apply.NodeDone
		}
	}
	return false
}
