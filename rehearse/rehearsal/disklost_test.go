// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

var (
	losses     = flag.Int("losses", 2, "records at which the disk of the controller is lost")
	lossNodes  = flag.String("loss-nodes", "16", "nodes of the site whose controller loses its disk")
	lossesSeed = flag.Uint64("losses-seed", 212, "seed of the records at which the disk is lost")
)

// afterLoss is how the nodes of a site ended whose controller lost its disk.
type afterLoss struct {
	accepted, adopted, quarantined, others int
	commands                               int      // beside restore and apply
	twice                                  []string // disks that were erased more than once
}

// look reads the end of a rehearsal.
func (a *afterLoss) look(t *testing.T, inv *inventory.Inventory, w *virtual.World, s state.Reader) {
	nodes, err := state.ReadNodes(context.Background(), s)
	if err != nil {
		t.Error(err)
	}
	for _, n := range inv.Nodes {
		switch is := nodes[n.Name]; {
		case is.Quarantine != nil:
			a.quarantined++
			t.Logf("%s is quarantined: %s", n.Name, is.Quarantine.Finding.Cause)
		case is.Accepted:
			a.accepted++
		case is.Adopted:
			a.adopted++
		default:
			a.others++
			t.Logf("%s is neither accepted nor adopted", n.Name)
		}
		v, _ := w.Node(n.Name)
		for _, d := range v.Metal().Disks() {
			if c := d.Counters(); c.Erases > 1 {
				a.twice = append(a.twice, fmt.Sprintf("%s of %s: %d times", d.Name(), n.Name, c.Erases))
			}
		}
	}
}

// goOn is what an operator does after the first apply: what runs is adopted, once, and applied
// again.
func (a *afterLoss) goOn(ctx context.Context, l *rehearsaltest.Later) error {
	p, err := l.Plan(ctx, provision.PlanOptions{})
	if err != nil {
		return err
	}
	if len(p.Offers) > 0 {
		a.commands++
		if _, err := l.Adopt(ctx, adopt.Options{All: true}); err != nil {
			return err
		}
		if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil {
			return err
		}
	}
	if p.Empty() {
		return nil
	}
	_, err = l.Apply(ctx, p)
	return err
}

// TestDiskLost: the disk of the controller is lost in the middle of a bring-up, with the state of up
// to the last copy. Once that is put back no node is in quarantine because of it, every one
// is accepted or can be adopted by one command, and nothing is erased a second time.
func TestDiskLost(t *testing.T) {
	t.Parallel()
	whole, err := rehearsal.Run(context.Background(), load(t, "../../examples/scale", map[string]string{"nodes": *lossNodes}), rehearsal.Options{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(*lossesSeed, 0))
	for i := range *losses {
		at := 1 + r.Uint64N(whole.Records)
		age := time.Hour
		if i%2 == 1 { // the copy is of the middle of the run
			age = time.Duration(whole.SimulatedTime) / 4
		}
		inv := load(t, "../../examples/scale", map[string]string{"nodes": *lossNodes})
		var end afterLoss
		o := rehearsal.Options{Seed: 5, Kill: rehearsal.Kill{At: at, Disk: age}}
		o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error { return end.goOn(ctx, rehearsaltest.Of(r)) }
		o.OnEnd = func(w *virtual.World, s state.Reader) { end.look(t, inv, w, s) }
		sum, err := rehearsal.Run(context.Background(), inv, o)
		if err != nil {
			t.Errorf("record %d, a copy of %v ago: %v", at, age, err)
		}
		t.Logf("record %d of %d, a copy of %v ago: %d accepted, %d adopted, %d in quarantine, %d commands, %v", at, whole.Records, age.Round(time.Second),
			end.accepted, end.adopted, end.quarantined, end.commands, time.Duration(sum.WallTime).Round(time.Second))
		if end.quarantined > 0 || end.others > 0 || end.commands > 1 || len(end.twice) > 0 || sum.Runs != 2 {
			t.Errorf("record %d, a copy of %v ago: %d runs, %+v", at, age, sum.Runs, end)
		}
	}
}
