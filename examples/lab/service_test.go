// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// counting is a hand-over that notes what it is asked for.
const counting = "#!/bin/sh\necho \"$1 $(sed 's/.*\"name\":\"\\([^\"]*\\)\".*/\\1/')\" >>\"$(dirname \"$0\")/handover.log\"\n"

// slurmHandover is the handover block of site.hcl.
const slurmHandover = "handover \"slurm\" \"lab\" {\n  controller = \"head\"\n  partition  = \"lab\"\n  topology   = \"tree\"\n}"

// TestInService takes a site from power-off through what an operator does with
// it afterwards: a second terminal, hold and release, changes, a lost state, a
// node that netboots by itself, a rebuild.
func TestInService(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "service"})
	program := l.Program("handover.sh", counting)
	l.Edit(labtest.Edit{Old: slurmHandover,
		New: fmt.Sprintf("handover \"exec\" \"lab\" {\n  command = [%q]\n}", program)})

	steps := []struct {
		name string
		do   func(*testing.T, *labtest.Lab)
	}{
		{"second terminal", secondTerminal},
		{"release", release},
		{"nothing to do", nothingToDo},
		{"changed MTU", changedMTU},
		{"changed image", changedImage},
		{"lost state", lostState},
		{"rebuild", rebuild},
	}
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) { s.do(t, l.For(t)) }) {
			t.FailNow() // what follows rests on it
		}
	}
}

// secondTerminal asks and holds while apply runs.
func secondTerminal(t *testing.T, l *labtest.Lab) {
	run := l.Start("apply", "--auto-approve")
	run.Until("the write of n2", writing("n2"))
	s := l.Status()
	if s.Run == nil || len(s.Run.Active) == 0 || s.Owner.Command != "apply" {
		t.Errorf("status while apply runs: %+v", s)
	}
	if w := l.Why("n1"); len(w.Steps) == 0 || len(w.Evidence) == 0 {
		t.Errorf("why n1 knows %d steps and %d boot events", len(w.Steps), len(w.Evidence))
	}
	for _, p := range l.Power() {
		if p.State != "on" {
			t.Errorf("power of %s is %q (%s)", p.Node, p.State, p.Error)
		}
	}
	l.Want(labtest.ExitOwned, l.Ironrail("apply", "--auto-approve"))
	l.Want(labtest.ExitDone, l.Ironrail("hold", "n2", "--reason", "under test"))
	run.Until("the hold", func(e event.Event) bool { return e.Type == event.Held && e.Node == "n2" })
	l.Want(labtest.ExitSomeFailed, run.Wait())
	l.Accepted("n1")
	if w := l.Why("n2"); w.Node.Hold == nil || w.Node.Hold.Reason != "under test" || w.Node.Accepted {
		t.Errorf("n2 is not on hold: %+v", w.Node)
	}
}

// release lets the held node go: the next run finishes it.
func release(t *testing.T, l *labtest.Lab) {
	l.Want(labtest.ExitDone, l.Ironrail("release", "n2"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n1", "n2")
	if got := l.File("handover.log"); got != "join n1\njoin n2\n" {
		t.Errorf("the scheduler was told %q", got)
	}
}

func nothingToDo(t *testing.T, l *labtest.Lab) {
	res := l.Ironrail("plan", "--detailed-exitcode")
	l.Want(labtest.ExitDone, res)
	if p := l.Plan(); len(p.Steps) != 0 {
		t.Errorf("a second plan has %d steps", len(p.Steps))
	}
}

// changedMTU plans the fabric and what rests on it.
func changedMTU(t *testing.T, l *labtest.Lab) {
	l.Edit(labtest.Edit{Old: "mtu        = 1500", New: "mtu        = 1400"})
	defer l.Edit(labtest.Edit{Old: "mtu        = 1400", New: "mtu        = 1500"})
	p := l.Plan()
	changed := map[string]int{}
	for _, s := range p.Steps {
		if s.Action != plan.Read {
			changed[s.Stage]++
		}
		if s.May.Has(plan.Erase) || s.May.Has(plan.Power) {
			t.Errorf("%s may %s", s.ID, s.May)
		}
	}
	if changed["fabric"] != 2 || changed["install"]+changed["drivers"]+changed["bmc"] != 0 || len(p.Erase.Nodes) != 0 {
		t.Errorf("changed stages %v, erased %v", changed, p.Erase.Nodes)
	}
	t.Logf("changed by stage: %v", changed)
}

// changedImage plans a reinstall that nobody may do without naming the nodes.
func changedImage(t *testing.T, l *labtest.Lab) {
	pin := "  packages = [\"openssh-server\", \"chrony\"]\n"
	other := pin + "  digest   = \"sha256:" + strings.Repeat("1", 64) + "\"\n"
	l.Edit(labtest.Edit{Old: pin, New: other})
	defer l.Edit(labtest.Edit{Old: other, New: pin})
	if p := l.Plan(); len(p.Refusals) == 0 {
		t.Errorf("a changed image is not refused: %d steps, erased %v", len(p.Steps), p.Erase.Nodes)
	}
	before := len(l.Journal())
	res := l.Ironrail("apply", "--auto-approve", "--erase", "2")
	l.Want(labtest.ExitFailed, res)
	t.Logf("%s", res.Stderr)
	for _, r := range l.Journal()[before:] {
		if r.Kind == state.StepStarted || r.Kind == state.EffectIntent {
			t.Errorf("%s %s after a refusal", r.Kind, r.Step)
		}
	}
}

// lostState has running nodes beside an empty state.
func lostState(t *testing.T, l *labtest.Lab) {
	restore := l.LoseState()
	defer restore()
	p := l.Plan()
	offered := map[string]bool{}
	for _, o := range p.Offers {
		offered[o.Subject.Name] = true
		t.Logf("offer: %+v", o)
	}
	for _, s := range p.Steps {
		if s.Subject.Name == "n1" || s.Subject.Name == "n2" || s.Erases != "" {
			t.Errorf("step %s is planned for a node that runs", s.ID)
		}
	}
	if !offered["n1"] || !offered["n2"] || len(p.Erase.Nodes) != 0 {
		t.Errorf("offers %v, erased %v", p.Offers, p.Erase.Nodes)
	}
}

// rebuild drains first, and ends accepted. Meanwhile n2 netboots by itself and
// is sent to its disk.
func rebuild(t *testing.T, l *labtest.Lab) {
	bmc := []string{"ipmitool", "-I", "lanplus", "-C", "3", "-H", "10.77.1.12", "-U", "admin", "-E"}
	written := l.Stats("n2").Boots.Net
	run := l.Start("rebuild", "n1", "--auto-approve")
	run.Until("the write of n1", writing("n1"))
	l.Want(labtest.ExitDone, l.Inside(append(bmc, "chassis", "bootdev", "pxe")...))
	l.Want(labtest.ExitDone, l.Inside(append(bmc, "power", "cycle")...))
	e := run.Until("n2 is sent to its disk", func(e event.Event) bool {
		return e.Type == event.Evidence && e.Node == "n2" && strings.Contains(e.Text, "disk")
	})
	t.Logf("n2: %s", e.Text)
	l.Want(labtest.ExitDone, run.Wait())
	l.Accepted("n1", "n2")
	if got := l.File("handover.log"); got != "join n1\njoin n2\ndrain n1\nresume n1\n" {
		t.Errorf("the scheduler was told %q", got)
	}
	if n := l.Stats("n2").Boots.Net - written; n != 1 {
		t.Errorf("n2 netbooted %d times, want 1", n)
	}
	drained := false
	for _, r := range l.Journal() {
		drained = drained || r.Kind == state.StepDone && r.Step == "n1/handover.drain"
		if drained && r.Kind == state.EffectIntent && r.Step == "n1/install.write" {
			return
		}
	}
	t.Error("the journal has no drain of n1 before its disk was written")
}

// TestUEFIHTTP boots a third machine by UEFI HTTP up to the ramdisk; Ctrl-C
// then ends the run in good order.
func TestUEFIHTTP(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "http", Machines: []string{"n3"}})
	run := l.Start("apply", "--auto-approve")
	seen := map[string]bool{}
	run.Until("the ramdisk of n3", func(e event.Event) bool {
		if e.Type == event.Evidence && e.Node == "n3" {
			seen[e.Data["proto"]] = true
			t.Log(e.Text)
		}
		return e.Type == event.StepDone && e.Step == "n3/install.inspect"
	})
	if seen["tftp"] || !seen["http"] {
		t.Errorf("n3 used %v; want HTTP and no TFTP", seen)
	}
	run.Interrupt()
	run.Interrupt() // at once
	l.Want(130, run.Wait())
}
