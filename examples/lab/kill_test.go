// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/provision/install"
)

// kill is a moment of a run at which its process is killed: what the journal
// holds then, and how a second process sees that it has come.
type kill struct {
	name    string
	journal string // the record that must be there, as kind and step
	at      func(event.Event) bool
	after   func(*testing.T, *labtest.Lab) // what is asked of the accepted site, if anything
}

func kills() []kill {
	return []kill{
		{"dhcp", "effect-outcome n1/install.netboot", func(e event.Event) bool {
			return e.Type == event.EffectDone && e.Step == "n1/install.netboot" && e.Data["kind"] == "power" && e.Data["state"] == "done"
		}, nil},
		{"write", "effect-intent n1/install.write", func(e event.Event) bool {
			return writing("n1")(e) && 10*e.Done > 6*e.Total
		}, afterwards},
		{"drivers", "step-started n1/drivers.rdma", func(e event.Event) bool {
			return e.Type == event.StepProgress && e.Step == "n1/drivers.rdma" && e.Text != "reading the package lists"
		}, nil},
	}
}

// TestKill kills apply and runs it again. The end must be that of a run which
// nobody killed: the same facts and verdicts, each disk written and verified
// once, each node switched on once. A data disk that stands before the system disk
// keeps every byte.
func TestKill(t *testing.T) {
	for _, k := range kills() {
		t.Run(k.name, func(t *testing.T) {
			l := labtest.Up(t, withData(labtest.Options{Name: k.name}))
			unchanged := fillData(l)
			run := l.Start("apply", "--auto-approve", "--replace", "n1,n2") // new nodes, whose disks may be erased whatever is on them
			run.Until(k.name, k.at)
			run.Kill()
			before := l.Journal()
			killedAfter(t, before, k.journal)
			res := l.Ironrail("apply", "--auto-approve")
			l.Want(labtest.ExitDone, res)
			l.Accepted("n1", "n2")
			unchanged()
			firmwareStarted(t, l, "n2")
			l.SamePicture("testdata/accepted.txt")
			for _, n := range []string{"n1", "n2"} {
				once(t, l, n)
			}
			t.Logf("killed after record %d (%s %s); the second run added %d records", len(before),
				before[len(before)-1].Kind, before[len(before)-1].Step, len(l.Journal())-len(before))
			if k.after != nil {
				k.after(t, l)
			}
		})
	}
}

// killedAfter fails the test when the journal lacks the record, or when the run
// had ended before it was killed.
func killedAfter(t *testing.T, records []state.Record, want string) {
	t.Helper()
	found := false
	for _, r := range records {
		found = found || string(r.Kind)+" "+r.Step == want
		if r.Kind == state.RunEnded {
			t.Fatal("the run had ended before it was killed")
		}
	}
	if !found {
		t.Fatalf("the journal has no record %q when the run is killed", want)
	}
}

// once fails the test unless the node was switched on once and its disk written
// and verified once, as the BMC, the disk and the journal say.
func once(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	s := l.Stats(node)
	if s.Commands["power on"] != 1 || s.Commands["power off"] != 0 || s.Commands["reset"] != 0 || s.Starts != 1 || s.Boots.Net != 1 {
		t.Errorf("%s: its BMC counted %v, %d starts, %d boots from the network; want one power on and one of each", node, s.Commands, s.Starts, s.Boots.Net)
	}
	w := labtest.Fact(l, install.WriteFact, node)
	if !w.Complete || w.Result.Already || w.Result.Retried != 0 {
		t.Errorf("%s: the write is %+v", node, w)
	}
	// The ramdisk writes the image's data, zeroes the rest, and the settings.
	if got := l.FirstBootWritten(node); got < w.Result.Written || got > w.Result.Size+w.Result.Size/8 {
		t.Errorf("%s: %d bytes were written in the ramdisk for %d bytes of data in an image of %d", node, got, w.Result.Written, w.Result.Size)
	}
	done := 0
	for _, e := range l.Effects() {
		if e.Kind == plan.Erase && e.Step == install.StepOf(node, install.Write) && e.State == state.EffectIsDone {
			done++
		}
	}
	if done != 1 {
		t.Errorf("%s: %d writes are journaled as done, want 1", node, done)
	}
}
