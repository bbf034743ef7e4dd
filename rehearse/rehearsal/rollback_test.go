// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// onDisk is the digest of the image that stands on a node.
func onDisk(ctx context.Context, l *rehearsaltest.Later, node string) string {
	f, _, err := state.Get[fact.Fact](ctx, l.Store, state.FactKey(install.WriteFact.Of(subject.OfNode(node))))
	if err != nil {
		return err.Error()
	}
	w, err := install.WriteFact.Get(f)
	if err != nil || !w.Complete {
		return fmt.Sprint("not complete: ", err)
	}
	return w.Image
}

// TestRollback: a node gets a new image, and goes back to the one before, with its
// drivers, although a later build took the place of their packages. It stays there
// until it is released.
func TestRollback(t *testing.T) {
	t.Parallel()
	const node = "r01-u17"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		first := onDisk(ctx, l, node)
		o := &acceptance.Rollback{Nodes: []string{node}, By: "kim", Reason: "slow", At: time.Now()}
		if err := l.Prepare(ctx, o); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "no other acceptance") {
			t.Errorf("nothing to go back to: %v", err)
		}
		inv, err := edited(t, map[string]func(string) string{"site.hcl": func(text string) string {
			return strings.Replace(text, `"openssh-server", "chrony"]`, `"openssh-server", "chrony", "jq"]`, 1)
		}})
		if err != nil {
			return err
		}
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		only := provision.PlanOptions{Replace: []string{node}, Targets: []string{node}}
		if err := applied(ctx, l, only); err != nil {
			return fmt.Errorf("the new image: %w", err)
		}
		second := onDisk(ctx, l, node)
		list, err := acceptance.ReadHistory(ctx, l.Store, node)
		if err != nil || len(list) != 2 || list[0].Digest != second || list[1].Digest != first || first == second || len(list[0].Drivers) != 1 {
			t.Errorf("accepted with %+v (%v); %s, then %s", list, err, first, second)
		}
		if err := l.Prepare(ctx, o); err != nil {
			return err
		}
		p, err := l.Plan(ctx, only)
		if err != nil {
			return err
		}
		if w, _ := p.Step(install.StepOf(node, install.Write)); w.Action != plan.Replace || w.Inputs[0].Name != "image.os" || w.Inputs[0].Value != first {
			t.Errorf("%s %+v", w.Action, w.Inputs)
		}
		if err := l.Record(ctx, o); err != nil {
			return err
		}
		res, err := l.Apply(ctx, p)
		if err != nil || res.Outcome != state.RunDone {
			return fmt.Errorf("outcome %s %v: %+v", res.Outcome, err, res.Findings)
		}
		if got := onDisk(ctx, l, node); got != first {
			t.Errorf("%s is on the disk, want %s", got, first)
		}
		one := provision.PlanOptions{Targets: []string{node}}
		if p, err = l.Plan(ctx, one); err != nil {
			return err
		}
		pinned := slices.ContainsFunc(p.Warnings, func(w string) bool {
			return strings.Contains(w, node+" is pinned to image") && strings.Contains(w, "slow")
		})
		if len(p.Steps) != 0 || !pinned {
			t.Errorf("pinned: steps %v, warnings %v", ids(p), p.Warnings)
		}
		if all := toldByStatus(ctx, t, l); len(all) != 1 || len(all[node]) != 1 || !strings.Contains(all[node][0], "is pinned to image") {
			t.Errorf("status has %v", all)
		}
		if err := l.ReleasePins(ctx, node); err != nil {
			return err
		}
		if p, err = l.Plan(ctx, one); err != nil {
			return err
		}
		if !slices.Contains(ids(p), node+"/install.write") || slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "pinned") }) {
			t.Errorf("released: steps %v, warnings %v", ids(p), p.Warnings)
		}
		return nil
	})
}

// applied plans and applies; everything must end well.
func applied(ctx context.Context, l *rehearsaltest.Later, o provision.PlanOptions) error {
	p, err := l.Plan(ctx, o)
	if err != nil {
		return err
	}
	res, err := l.Apply(ctx, p)
	if err == nil && res.Outcome != state.RunDone {
		err = fmt.Errorf("outcome %s: %+v", res.Outcome, res.Findings)
	}
	return err
}
