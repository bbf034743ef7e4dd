// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/validate/burn"
)

// crash says how many deaths the crash tests try: "some", or "all".
var crash = flag.String("crash", "some", "deaths of the controller to try: some or all")

// Steps between the records at which the controller dies when only some are tried.
const someRecords = 271

// sixteen is a site of 16 nodes in two racks.
func sixteen(t testing.TB) *inventory.Inventory {
	return load(t, "../../examples/scale", map[string]string{"nodes": "16"})
}

// broken are the faults of the crash tests: hardware, a disk and a link.
func broken(t testing.TB) []fault.Fault {
	return planted(t, "kind=missing-dimm,node=r0001-n3", "kind=disk-write-error,node=r0002-n2", "kind=degraded-link,node=r0001-n6,port=rail/3")
}

// ending is how a rehearsal that may have been killed ended.
type ending struct {
	sum    rehearsal.Summary
	text   string   // the final state that must not depend on deaths
	twice  []string // what was done more often than the state accounts for
	cycles int      // power-ons and resets of all nodes
}

// killed rehearses the 16 nodes; the controller dies once, unless k is zero.
func killed(t testing.TB, k rehearsal.Kill) ending {
	t.Helper()
	var e ending
	inv := sixteen(t)
	o := rehearsal.Options{Seed: 5, Faults: broken(t), Kill: k}
	o.OnEnd = func(w *virtual.World, s state.Reader) { e.look(t, inv, w, s) }
	sum, err := rehearsal.Run(context.Background(), inv, o)
	if err != nil {
		t.Fatalf("killed at record %d, kept %v: %v", k.At, k.Kept, err)
	}
	e.sum = sum
	e.text = verdicts(unrun(sum)) + "\n" + e.text
	return e
}

// unrun leaves the number of runs out.
func unrun(s rehearsal.Summary) rehearsal.Summary {
	s.Runs = 0
	return s
}

// look describes the final state and what is on the disks, and lists what was
// done to the hardware more often than effects of the state account for.
func (e *ending) look(t testing.TB, inv *inventory.Inventory, w *virtual.World, s state.Reader) {
	ctx := context.Background()
	nodes, err := state.ReadNodes(ctx, s)
	if err != nil {
		t.Error(err)
	}
	effects, err := state.ReadEffects(ctx, s)
	if err != nil {
		t.Error(err)
	}
	var lines []string
	for name, n := range nodes {
		cause := ""
		if n.Quarantine != nil {
			f := n.Quarantine.Finding
			cause = fmt.Sprintf("%s: %v: %s", f.Step, f.Suspects, f.Cause)
		}
		lines = append(lines, fmt.Sprintf("node %s accepted=%v quarantine=%q", name, n.Accepted, cause))
	}
	slices.Sort(lines)
	for _, n := range inv.Nodes {
		v, _ := w.Node(n.Name)
		e.twice = append(e.twice, tooOften(n.Name, v, effects)...)
		c := v.Chassis().Counters()
		e.cycles += c.PowerOns + c.Resets
		for _, d := range v.Metal().Disks() {
			lines = append(lines, fmt.Sprintf("disk %s of %s erased %d times, %d bytes written", d.Name(), n.Name, d.Counters().Erases, d.Counters().BytesWritten))
		}
	}
	e.text = strings.Join(lines, "\n")
}

// tooOften compares what one node's hardware has counted with the effects: every
// power cycle and every write has a key of its own.
func tooOften(node string, v *virtual.Node, effects map[string]state.Effect) (out []string) {
	power, writes := 0, 0
	var keys []string
	for key, e := range effects {
		if !strings.HasPrefix(key, node+"/") {
			continue
		}
		switch e.Kind {
		case plan.Power:
			power++
		case plan.Erase:
			writes++
		}
		keys = append(keys, key+" "+string(e.State))
	}
	slices.Sort(keys)
	c := v.Chassis().Counters()
	if c.PowerOns+c.Resets > power {
		out = append(out, fmt.Sprintf("%s: %d power-ons and %d resets by %d effects: %v", node, c.PowerOns, c.Resets, power, keys))
	}
	for _, d := range v.Metal().Disks() {
		if n := d.Counters(); n.Erases > writes {
			out = append(out, fmt.Sprintf("%s: disk %s was erased %d times and written %d bytes by %d effects: %v", node, d.Name(), n.Erases, n.BytesWritten, writes, keys))
		}
	}
	return out
}

// TestCrashAtRecords stops the controller of a 16-node bring-up with faults at
// records of its journal, once with the record lost and once with it kept but
// nobody told; the next one resumes. The end is the same as without a death, and
// nothing was done to a node twice.
func TestCrashAtRecords(t *testing.T) {
	t.Parallel()
	began := time.Now()
	want := killed(t, rehearsal.Kill{})
	if !want.sum.AsExpected() || len(want.twice) > 0 {
		t.Fatalf("without a death\n%s\n%v", want.text, want.twice)
	}
	step := uint64(someRecords)
	switch {
	case *crash == "all":
		step = 1
	case racing:
		step *= 4
	}
	deaths, again := 0, 0
	for at := uint64(1); at <= want.sum.Records; at += step {
		for _, kept := range []bool{false, true} {
			deaths++
			got := killed(t, rehearsal.Kill{At: at, Kept: kept})
			if got.sum.Runs != 2 {
				t.Errorf("record %d, kept %v: %d runs", at, kept, got.sum.Runs)
			}
			if got.text != want.text {
				t.Errorf("record %d, kept %v: another end\n%s", at, kept, difference(got.text, want.text))
			}
			again += got.cycles - want.cycles
			for _, l := range got.twice {
				t.Errorf("record %d, kept %v: %s", at, kept, l)
			}
		}
	}
	t.Logf("%d deaths at %d records in %v; attempts that failed cost %d power cycles", deaths, want.sum.Records, time.Since(began).Round(time.Second), again)
}

// TestCrashAtSteps stops the controller once in each stage of one bring-up, right
// after the first record of a step.
func TestCrashAtSteps(t *testing.T) {
	t.Parallel()
	steps := []string{"install.inspect", "install.write", "install.configure", "install.boot", "drivers", "validate.pair", "validate.accept"}
	var kills []string
	for _, s := range steps {
		kills = append(kills, "kind=controller-kill,at="+s)
	}
	sum := rehearse(t, rehearsal.Options{Seed: 3, Faults: planted(t, kills...)})
	if !sum.AsExpected() || len(sum.Accepted) != 8 || sum.Runs != 1+len(steps) {
		t.Errorf("%d deaths\n%s", len(steps), verdicts(sum))
	}
}

// TestCrashAmidLoad stops the controller ten minutes into a burn-in, and at the
// starts of what is around it. The load ends with its controller and begins anew,
// the whole of it; what was measured before is not measured again, and what is
// found is told once.
func TestCrashAmidLoad(t *testing.T) {
	t.Parallel()
	var began, ended, found int // only touched by the one that tells of events
	inv := load(t, "../../examples/hgx-h100", nil)
	o := rehearsal.Options{Seed: 2, Kill: rehearsal.Kill{Step: "validate.burn", After: 10 * time.Minute},
		Faults: planted(t, "kind=hot-gpu,node=r01-u17", "kind=controller-kill,at=validate.bandwidth", "kind=controller-kill,at=validate.heat")}
	o.OnEvent = func(e event.Event) {
		switch {
		case e.Type == event.StepStarted && strings.HasSuffix(e.Step, "/validate.bandwidth"):
			began++
		case e.Type == event.StepDone && strings.HasSuffix(e.Step, "/validate.burn"):
			ended++
		case e.Type == event.FindingMade && strings.HasSuffix(e.Step, "/validate.burn"):
			found++
		}
	}
	o.OnEnd = func(w *virtual.World, s state.Reader) {
		for _, n := range inv.Nodes {
			f, version, err := state.Get[fact.Fact](context.Background(), s, state.FactKey(burn.Fact.Of(subject.OfNode(n.Name))))
			if err != nil || version == state.Absent {
				t.Errorf("%s: no burn-in is known: %v", n.Name, err)
				continue
			}
			r, err := burn.Fact.Get(f)
			if err != nil || r.Seconds < 1800 || r.Looks < 350 {
				t.Errorf("%s was burnt in for %.0f s with %d looks: %v", n.Name, r.Seconds, r.Looks, err)
			}
			if v, _ := w.Node(n.Name); v.Metal().Loaded() {
				t.Errorf("%s is still under load", n.Name)
			}
		}
	}
	sum, err := rehearsal.Run(context.Background(), inv, o)
	if err != nil {
		t.Fatal(err)
	}
	if !sum.AsExpected() || len(sum.Accepted) != 3 || sum.Runs != 4 {
		t.Errorf("%s", verdicts(sum))
	}
	if began < 4 || began > 8 || ended != 4 || found != 1 {
		t.Errorf("bandwidths were begun %d times, burn-ins ended %d times, %d findings", began, ended, found)
	}
}
