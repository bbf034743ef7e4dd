// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// twoLeaves is a site of two nodes, each on a leaf of its own below one spine.
func twoLeaves() (*inventory.Inventory, *inventory.Fabric) {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "rail"}, Rails: 1}
	hw := &inventory.Hardware{Name: "hw", NICs: []inventory.NIC{{Name: "rail", Fabric: f, Ports: []inventory.NICPort{{PCI: "0000:18:00.0"}}}}}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	for _, name := range []string{"leaf-1", "leaf-2", "spine-1"} {
		inv.Switches = append(inv.Switches, &inventory.Switch{Name: "net/" + name, Fabric: f})
	}
	for i, name := range []string{"n1", "n2"} {
		n := &inventory.Node{Name: name, Hardware: hw}
		inv.Nodes = append(inv.Nodes, n)
		inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: &hw.NICs[0]}, To: inventory.CableEnd{Switch: inv.Switches[i], Port: 1}, Fabric: f},
			&inventory.Cable{From: inventory.CableEnd{Switch: inv.Switches[i], Port: 33}, To: inventory.CableEnd{Switch: inv.Switches[2], Port: i + 1}, Fabric: f})
	}
	return inv, f
}

// counters are what switches answer that are not silent, and an error of the others.
func countersWithout(silent ...string) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
	all, errs := map[fabric.SwitchPort]fabric.SwitchCounters{}, []error(nil)
	for _, port := range []fabric.SwitchPort{"net/leaf-1/33", "net/leaf-2/33", "net/spine-1/1", "net/spine-1/2/1"} {
		name := strings.Join(strings.Split(port, "/")[:2], "/")
		if slices.Contains(silent, name) {
			errs = append(errs, errkind.New(errkind.Unreachable, "switch %s: no route to host", name))
			continue
		}
		all[port] = fabric.SwitchCounters{Sent: 1}
	}
	return all, errors.Join(errs...)
}

// TestUnreadAtAcceptance: what could be read before and cannot be read when nodes are accepted,
// however often it is asked for, keeps out those that it concerns and blames none of them; what
// never could be read is a note.
func TestUnreadAtAcceptance(t *testing.T) {
	t.Parallel()
	all := []string{"net/leaf-1", "net/leaf-2", "net/spine-1"}
	for _, c := range []struct {
		name          string
		before        bool     // cables were compared when the fabric was brought up
		failing       int      // sweeps that fail
		silent, later []string // switches that do not answer in the tests, and at acceptance
		answers       int      // at which try at acceptance they answer; 0: never
		refused       string   // nodes
		blamed        string
		notes         int
	}{
		{name: "all is read", before: true},
		{name: "sweep fails once", before: true, failing: 1},
		{name: "no sweep any more", before: true, failing: 9, refused: "n1 n2", blamed: "rail"},
		{name: "there never was a sweep", failing: 9, notes: 1},
		{name: "a leaf is silent", before: true, later: all[:1], refused: "n1", blamed: "net/leaf-1"},
		{name: "a leaf is silent for a minute", before: true, later: all[:1], answers: 3},
		{name: "a spine is silent", before: true, later: all[2:], refused: "n1 n2", blamed: "net/spine-1"},
		{name: "all switches are silent", before: true, later: all, refused: "n1 n2", blamed: "net/leaf-1 net/leaf-2 net/spine-1"},
		{name: "a leaf was never read", before: true, silent: all[:1], later: all[:1], notes: 1},
		{name: "none was ever read", before: true, silent: all, later: all},
		{name: "one was never read, and another is silent", before: true, silent: all[:1], later: all[:2], refused: "n2", blamed: "net/leaf-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv, f := twoLeaves()
			run := onnodetest.NewRun()
			asked, swept := 0, 0
			read := func(context.Context, *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
				if asked++; asked == 1 {
					return countersWithout(c.silent...)
				}
				if c.answers > 0 && asked > c.answers {
					return countersWithout()
				}
				return countersWithout(c.later...)
			}
			sweep := func(context.Context, stage.Run, *inventory.Fabric) (fabric.Swept, error) {
				if swept++; swept <= c.failing {
					return fabric.Swept{Before: c.before}, errkind.New(errkind.Timeout, "ibnetdiscover did not end")
				}
				return fabric.Swept{Before: c.before}, nil
			}
			l := &New(inv, nil).Counting(read).Sweeping(sweep, nil).last
			if _, err := l.counters(run)(t.Context(), f); (err != nil) != (len(c.silent) > 0) {
				t.Fatal(err)
			}
			var refused, blamed []string
			for _, n := range inv.Nodes {
				found, err := l.look(t.Context(), run, n)
				if _, blocked := errors.AsType[*stage.BlockedError](err); blocked != (err != nil) {
					t.Errorf("%s: %v", n.Name, err)
				}
				if err != nil {
					refused = append(refused, n.Name)
					if !strings.Contains(err.Error(), n.Name+" is not accepted") || !strings.Contains(err.Error(), "again, 3 times") || !strings.Contains(errkind.Action(err), "tested again") {
						t.Errorf("%v; %s", err, errkind.Action(err))
					}
				}
				for _, x := range found {
					blamed = append(blamed, x.Suspects[0].Subject.Name)
					if x.Suspects[0].Subject.Kind == subject.Node || len(x.Evidence) == 0 {
						t.Errorf("%+v", x)
					}
				}
			}
			if got := strings.Join(refused, " "); got != c.refused {
				t.Errorf("refused %q", got)
			}
			if got := strings.Join(blamed, " "); got != c.blamed || len(run.Events) != c.notes {
				t.Errorf("blamed %q, events %+v", got, run.Events)
			}
		})
	}
}

// TestSettingsUnreadAtAcceptance: a node that does not report its settings any more is not accepted.
func TestSettingsUnreadAtAcceptance(t *testing.T) {
	t.Parallel()
	inv, f := twoLeaves()
	run, tries := onnodetest.NewRun(), 0
	up, err := fabric.Ports(f.Name).New(subject.OfNode("n1"), []fabric.Port{}, "")
	if err != nil || run.Learn(t.Context(), up) != nil {
		t.Fatal(err)
	}
	l := &New(inv, nil).Sweeping(nil, func(context.Context, stage.Run, *inventory.Fabric, *inventory.Node) ([]stage.Finding, error) {
		tries++
		return nil, errkind.New(errkind.Internal, "the agent ended with status 1")
	}).last
	found, err := l.look(t.Context(), run, inv.Nodes[0])
	if err != nil || len(found) != 1 || !concerns(found[0], inv.Nodes[0]) || tries != readTries {
		t.Errorf("%v, %+v after %d tries", err, found, tries)
	}
	if found, err := l.look(t.Context(), run, inv.Nodes[1]); err != nil || len(found) > 0 { // its fabric was not brought up
		t.Errorf("%v, %+v", err, found)
	}
}

// TestManagerAtAcceptance: who manages a fabric is asked once more. One that was lost keeps all of its nodes out and blames
// none; what only weakens it is a finding; what could be asked before and cannot be now refuses,
// and what never could be asked is a note.
func TestManagerAtAcceptance(t *testing.T) {
	t.Parallel()
	of := func(cause string) []stage.Finding {
		return []stage.Finding{{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Fabric, Name: "rail"}, Part: "subnet manager"}}, Cause: cause, Evidence: []string{"seen"}, Action: "Start it."}}
	}
	silent := errkind.New(errkind.Timeout, "saquery did not end")
	for _, c := range []struct {
		name         string
		lost, weaker []stage.Finding
		before       bool
		failing      int // times that it cannot be asked
		refused      string
		causes       string
		notes        int
	}{
		{name: "as it was", before: true},
		{name: "lost", lost: of("another is the master"), before: true, refused: "n1 n2", causes: "another is the master"},
		{name: "weaker", weaker: of("no standby"), before: true, causes: "no standby"},
		{name: "cannot be asked once", before: true, failing: 1},
		{name: "cannot be asked any more", before: true, failing: 9, refused: "n1 n2", causes: "the subnet manager of fabric rail could not be asked again, 3 times"},
		{name: "never could be asked", failing: 9, notes: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv, _ := twoLeaves()
			run, asked, swept := onnodetest.NewRun(), 0, 0
			sweep := func(context.Context, stage.Run, *inventory.Fabric) (fabric.Swept, error) {
				swept++
				return fabric.Swept{Before: true, Seen: "seen"}, nil
			}
			l := &New(inv, nil).Sweeping(sweep, nil).Managing(func(_ context.Context, _ stage.Run, _ *inventory.Fabric, seen fabric.Sweep) ([]stage.Finding, []stage.Finding, bool, error) {
				if first := asked == 0; first != (seen == "seen") {
					t.Errorf("try %d is given the sweep %v", asked+1, seen)
				}
				if asked++; asked <= c.failing {
					return nil, nil, c.before, silent
				}
				return c.lost, c.weaker, c.before, nil
			}).last
			var refused, causes []string
			for _, n := range inv.Nodes {
				found, err := l.look(t.Context(), run, n)
				if _, blocked := errors.AsType[*stage.BlockedError](err); blocked != (err != nil) {
					t.Errorf("%s: %v", n.Name, err)
				}
				if err != nil {
					refused = append(refused, n.Name)
				}
				for _, x := range found {
					causes = append(causes, x.Cause)
					if concerns(x, n) || len(x.Evidence) == 0 || x.Action == "" {
						t.Errorf("%+v", x)
					}
				}
			}
			if got := strings.Join(refused, " "); got != c.refused {
				t.Errorf("refused %q, want %q", got, c.refused)
			}
			if swept != 1 {
				t.Errorf("swept %d times", swept)
			}
			if got := strings.Join(causes, "; "); !strings.HasPrefix(got, c.causes) || (c.causes == "") != (got == "") || len(run.Events) != c.notes {
				t.Errorf("causes %q, want %q; events %+v", got, c.causes, run.Events)
			}
		})
	}
}
