// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// withBIOS is the site of eight nodes with BIOS settings.
func withBIOS(t *testing.T, settings map[string]string) *inventory.Inventory {
	inv := load(t, demo, nil)
	for _, h := range inv.Hardware {
		h.BIOS = maps.Clone(settings)
	}
	return inv
}

// TestBIOSSettings brings a site up with settings of its firmware, changes one,
// and holds the change to a drained reboot and new tests, with nothing installed.
func TestBIOSSettings(t *testing.T) {
	t.Parallel()
	var steps []string
	var why string
	var res apply.Result
	var boots, after []string
	sum, err := rehearsal.Run(context.Background(), withBIOS(t, map[string]string{"SR-IOVSupport#0074": "Enabled", "NPS": "NPS4"}), rehearsal.Options{Seed: 5, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, n := range l.Site.Inv.Nodes {
			boots = append(boots, l.World.BIOS(n.Name)["SR-IOVSupport#0074"]+" "+l.World.BIOS(n.Name)["NPS"])
		}
		if p, err := l.Plan(ctx, provision.PlanOptions{}); err != nil || !p.Empty() {
			t.Errorf("a second plan: %v, %v", ids(p), err)
		}
		if err := l.Edit(ctx, withBIOS(t, map[string]string{"SR-IOVSupport#0074": "Enabled", "NPS": "NPS1"})); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		steps = ids(p)
		if s, ok := p.Step("r01-u09/bmc.bios"); ok {
			why = fmt.Sprint(s.Why)
		}
		if res, err = l.Apply(ctx, p); err != nil {
			return err
		}
		for _, n := range l.Site.Inv.Nodes {
			after = append(after, l.World.BIOS(n.Name)["NPS"])
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Outcome != "done" {
		t.Errorf("bring-up: %s, %+v", sum.Outcome, sum.Findings)
	}
	for _, b := range boots {
		if b != "Enabled NPS4" {
			t.Errorf("in force after the bring-up: %q", boots)
			break
		}
	}
	if all := strings.Join(steps, " "); strings.Contains(all, "install.") || !strings.Contains(all, "r01-u09/bmc.bios_check") || !strings.Contains(all, "validate.accept") || !strings.Contains(all, "handover.drain") {
		t.Errorf("planned: %s", all)
	}
	if !strings.Contains(why, "NPS NPS4 -> NPS1") {
		t.Errorf("why: %s", why)
	}
	for i, n := range res.Nodes {
		if !n.Accepted || after[i] != "NPS1" {
			t.Errorf("%s: accepted %v, NPS %s; %+v", n.Name, n.Accepted, after[i], n.Finding)
		}
	}
}
