// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestDriftPage: what the pages about drift, adoption and BIOS settings show is what
// the program says of the same events on the virtual rack.
func TestDriftPage(t *testing.T) {
	t.Parallel()
	load := func(bios map[string]string) *inventory.Inventory {
		inv, diags, _ := inventory.Load("../../examples/demo", inventory.Options{Now: time.Now()})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, h := range inv.Hardware {
			h.BIOS = bios
		}
		return inv
	}
	swap, err := fault.Parse("kind=cable-swap,node=r01-u01,with=r01-u17,port=rail/2")
	if err != nil {
		t.Fatal(err)
	}
	var shown, planned, taken bytes.Buffer
	_, err = rehearsal.Run(context.Background(), load(map[string]string{"SR-IOVSupport#0074": "Disabled"}), rehearsal.Options{Seed: 2, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		w := l.World
		for _, err := range []error{w.SetBIOS("r01-u09", "Hyper-Threading#0018", "Disable"), w.SetPackage("r01-u09", "rdma-core", "50.0-2"), w.AddKernelArgument("r01-u09", "iommu=off"),
			w.SetLanes("r02-u01", "rail/3", 1), l.Plant(swap)} {
			if err != nil {
				return err
			}
		}
		d, err := l.Drift(ctx, observe.DriftOptions{})
		if err != nil {
			return err
		}
		a := &app{out: &shown, now: time.Now}
		writeDrift(a, d)
		if err := l.Edit(ctx, load(map[string]string{"SR-IOVSupport#0074": "Enabled"})); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{Targets: []string{"r02-u25"}})
		if err != nil {
			return err
		}
		guess, err := l.Site.Predict(p, nil, nil)
		if err != nil {
			return err
		}
		writePlan(&planned, p, guess)
		l.LoseState()
		list, err := l.Adopt(ctx, adopt.Options{Words: []string{"r01-u09"}})
		if err != nil {
			return err
		}
		writeAdopted(&app{out: &taken, err: &taken, now: time.Now}, list, true)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ page, text string }{{"drift.md", shown.String()}, {"drift.md", taken.String()}, {"bios.md", between(planned.String(), "  ~   bmc.bios ", "  ~   drivers.rdma")}} {
		b, err := os.ReadFile("../../docs/" + c.page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(dateless(string(b)), dateless(c.text)) {
			t.Errorf("docs/%s does not show\n%s", c.page, c.text)
		}
	}
}

// between cuts out the lines from one that begins so to one that begins so.
func between(s, from, to string) string {
	i, j := strings.Index(s, from), strings.Index(s, to)
	if i < 0 || j < i {
		return "no lines from " + from + " to " + to
	}
	return s[i:j]
}

// moments are times and host keys, which no two runs have in common.
var moments = regexp.MustCompile(`(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d|SHA256:\S+|p\d{8}T\d{6}-\w+`)

func dateless(s string) string { return moments.ReplaceAllString(s, "WHEN") }
