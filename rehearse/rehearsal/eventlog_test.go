// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// TestFullEventLog: BMCs whose clock is wrong, and whose event log is full and keeps its
// oldest entries, are made able to say what is new before the bring-up begins, by Redfish
// and by IPMI. What the log said is kept as evidence, and a BMC where all is well is left
// as it is.
func TestFullEventLog(t *testing.T) {
	t.Parallel()
	inv := load(t, "../../examples/mixed", nil)
	protocols, troubled := map[string]string{}, map[string]bool{}
	for _, n := range inv.Nodes { // the first node of each protocol
		if p := n.BMC.Protocol; !troubled[protocols[p]] {
			protocols[p], troubled[n.Name] = n.Name, true
		}
	}
	if len(protocols) < 2 {
		t.Fatalf("the example has BMCs of %v alone", protocols)
	}
	dir := t.TempDir()
	o := rehearsal.Options{Seed: 7, Dir: dir, OnRack: func(_ context.Context, w *virtual.World) error {
		for name := range troubled {
			n, _ := w.Node(name)
			c := n.Chassis()
			c.SetTime(time.Unix(0, 0))
			c.KeepOldLog()
			size, _, _ := c.LogState()
			for i := range size + 1 {
				c.Log("Critical", "Memory", fmt.Sprintf("old entry %d", i))
			}
		}
		return nil
	}}
	after := map[string]string{}
	o.Then = func(_ context.Context, r *rehearsal.Rehearsal) error {
		world := rehearsaltest.Of(r).World
		for _, n := range inv.Nodes {
			v, _ := world.Node(n.Name)
			_, _, dropped := v.Chassis().LogState()
			old := 0
			for _, e := range v.Chassis().Entries() {
				if strings.HasPrefix(e.Message, "old entry") {
					old++
				}
			}
			after[n.Name] = fmt.Sprint(dropped, old, time.Until(v.Chassis().Time()).Abs() < time.Minute)
		}
		return nil
	}
	sum, err := rehearsal.Run(context.Background(), inv, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != len(inv.Nodes) {
		t.Errorf("accepted %d of %d, quarantined %+v", len(sum.Accepted), len(inv.Nodes), sum.Quarantined)
	}
	for name, state := range after {
		if state != "false 0 true" {
			t.Errorf("%s: entries dropped, old entries, clock right: %s", name, state)
		}
	}
	kept := 0
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), "Memory") && strings.Count(string(b), "\n") == 512 {
				kept++
			}
		}
		return nil
	})
	if kept != len(troubled) {
		t.Errorf("%d event logs are kept, want %d", kept, len(troubled))
	}
}
