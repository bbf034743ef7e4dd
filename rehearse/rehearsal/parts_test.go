// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/parts"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/provision/status"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestPartsThatFailed: a DIMM that was not there any more, and a disk that did not
// take an image, are called so in the node where they come back; the disk that
// fails there again brings what was found before as evidence.
func TestPartsThatFailed(t *testing.T) {
	t.Parallel()
	const bad, next = "r01-u09", "r02-u01"
	inv, diags, _ := provision.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var mu sync.Mutex
	var notes []string
	listen := func(e event.Event) {
		if e.Type == event.Note && strings.HasPrefix(e.Text, "warning: ") {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, e.Node+" "+e.Text)
		}
	}
	_, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7, Dir: t.TempDir(), OnEvent: listen, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if err := l.Plant(fault.Fault{Kind: fault.MissingDIMM, Node: bad}); err != nil {
			return err
		}
		_, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{bad}})
		if err != nil {
			return err
		}
		if f := res.Findings; len(f) != 1 || f[0].Suspects[0].Part != "DIMM DIMM3" {
			t.Errorf("the empty slot: %+v", f)
		}
		node, _ := l.World.Node(bad)
		dimm, _ := node.Metal().DIMM(3)
		disk := node.Metal().Disks()[0].Serial()
		if err := l.World.PutDIMM(ctx, bad, 3, "SPARE-0001"); err != nil {
			return err
		}
		if err := l.Plant(fault.Fault{Kind: fault.DiskWriteError, Node: bad}); err != nil {
			return err
		}
		if _, _, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{bad}}); err != nil {
			return err
		}
		return comeBack(ctx, t, l, bad, next, dimm, disk, func() string { mu.Lock(); defer mu.Unlock(); return strings.Join(notes, "\n") })
	}})
	if err != nil {
		t.Error(err)
	}
}

// toldByStatus are the notes of nodes that status shows.
func toldByStatus(ctx context.Context, t *testing.T, l *rehearsaltest.Later) map[string][]string {
	t.Helper()
	s, err := status.ReadSite(ctx, l.Site.Inv, l.Store, time.Now())
	if err != nil {
		t.Error(err)
	}
	return s.Notes
}

// comeBack puts the bad DIMM and the bad disk into another node and rebuilds it.
func comeBack(ctx context.Context, t *testing.T, l *rehearsaltest.Later, bad, next, dimm, disk string, notes func() string) error {
	if err := l.World.ExchangeDisks(ctx, bad, next, 0); err != nil {
		return err
	}
	if err := l.World.PutDIMM(ctx, next, 5, dimm); err != nil {
		return err
	}
	before := notes()
	_, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{next}})
	if err != nil {
		return err
	}
	said := strings.TrimPrefix(notes(), before)
	for _, want := range []string{"DIMM serial " + dimm + " (DIMM5) was found bad on " + bad + " (DIMM3)", "disk serial " + disk} {
		if !strings.Contains(said, next+" warning: "+want) {
			t.Errorf("%q is not among the warnings: %s", want, said)
		}
	}
	if len(res.Findings) != 1 || !strings.Contains(fmt.Sprint(res.Findings[0].Evidence), "disk serial "+disk+" (") || !strings.Contains(fmt.Sprint(res.Findings[0].Evidence), "was found bad on "+bad) {
		t.Errorf("findings: %+v", res.Findings)
	}
	if told := toldByStatus(ctx, t, l)[next]; !strings.Contains(strings.Join(told, "\n"), "disk serial "+disk+" (") {
		t.Errorf("status has %q", told)
	}
	all, err := parts.ReadAll(ctx, l.Store)
	if err != nil {
		return err
	}
	if len(all) != 2 || all[0].Serial != dimm || all[1].Serial != disk || len(all[1].Findings) != 2 || all[1].Seen[1].Node != next {
		t.Errorf("histories: %+v", all)
	}
	return nil
}
