package main

import (
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/state"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	netboot := apply.StepStatus{ID: "n1/install.netboot", Stage: "install", Text: "waits for DHCP", Since: fixtureTime, Until: now.Add(time.Minute)}
	driver := apply.StepStatus{ID: "n1/drivers.rdma", Stage: "drivers", Text: "installs", Since: fixtureTime}
	saw := func(node, text, mac string, refused bool, at time.Time) event.Event {
		e := event.Event{Type: event.Evidence, Node: node, Text: text, Time: at, Data: map[string]string{"mac": mac}}
		if refused {
			e.Data["refused"] = "true"
		}
		return e
	}
	later := fixtureTime.Add(time.Minute)
	skip := func(kind state.CauseKind) state.Record {
		return state.Record{Step: "n1/install.write", Time: later}.With(state.Cause{Kind: kind, Text: "n2/bmc failed"})
	}
	quarantine := &state.Quarantine{Finding: sampleFinding("x"), At: fixtureTime}
	for _, c := range []struct {
		name    string
		why     control.Why
		running bool
		want    string
	}{
		{"nothing done", control.Why{}, false,
			"n1 is not up: nothing was done with it yet. Next: `ironrail plan` shows what would be done, `ironrail apply` does it."},
		{"held before all else", control.Why{Node: state.Node{Hold: &state.Hold{By: "ann", Reason: "riser", At: fixtureTime}, Quarantine: quarantine}}, false,
			"n1 is not up: it is held by ann (riser), and nothing is done with it, since 15:04:05 (10m0s). Next: `ironrail release n1` lets it go, then `ironrail apply`."},
		{"quarantined", control.Why{Node: state.Node{Quarantine: quarantine}}, false,
			"n1 is not up: it is quarantined by n1/install.netboot, since 15:04:05 (10m0s). Most likely cause: no DHCP request x. Next: check the cable x."},
		{"waits, seen", control.Why{Active: []apply.StepStatus{netboot}, Evidence: []event.Event{saw("n1", "tftp loader", "m", false, later)}}, true,
			"n1 is not up: n1/install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05. Most likely cause: none yet; the last that was seen of it is tftp loader. Next: wait; the run goes on by itself."},
		{"waits, refused", control.Why{Active: []apply.StepStatus{netboot}, Evidence: []event.Event{saw("n1", "dhcp: wrong firmware", "m", true, later)}}, true,
			"n1 is not up: n1/install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05. Most likely cause: it asked and was refused (dhcp: wrong firmware). Next: correct what the refusal names in the site's files, then `ironrail apply`."},
		{"waits, a stranger asks", control.Why{Active: []apply.StepStatus{netboot}, Evidence: []event.Event{saw("", "dhcp: unknown", "m9", true, later)}}, true,
			"n1 is not up: n1/install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05. Most likely cause: A client with MAC m9, which no node has, asked 1 times and was refused: it may be this node with another boot MAC. Next: compare that MAC with the node's boot_mac in the site's files."},
		{"a stranger of before is none", control.Why{Active: []apply.StepStatus{netboot}, Evidence: []event.Event{saw("", "dhcp: unknown", "m9", true, fixtureTime.Add(-time.Hour))}}, true,
			"n1 is not up: n1/install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05. Next: wait; the run goes on by itself."},
		{"strangers mean nothing to drivers", control.Why{Active: []apply.StepStatus{driver}, Evidence: []event.Event{saw("", "dhcp: unknown", "m9", true, later)}}, true,
			"n1 is not up: n1/drivers.rdma: installs, since 15:04:05 (10m0s). Next: wait; the run goes on by itself."},
		{"waits its turn", control.Why{Node: state.Node{Run: "r"}}, true,
			"n1 is not up: it waits for steps of others. Next: `ironrail status` shows which run now."},
		{"accepted", control.Why{Node: state.Node{Accepted: true, AcceptedAt: fixtureTime}}, false,
			"n1 is up: it is accepted, since 15:04:05 (10m0s)."},
		{"adopted", control.Why{Node: state.Node{Adopted: true, AdoptedAt: fixtureTime}}, false,
			"n1 is up: it was adopted as it was found, and nothing about it is verified, since 15:04:05 (10m0s)."},
		{"died in a step", control.Why{Steps: []state.Step{{ID: "n1/install.write", State: state.StepRunning, Started: fixtureTime}}}, false,
			"n1 is not up: the last run ended in the middle of n1/install.write, since 15:04:05 (10m0s). Next: `ironrail apply` goes on from there; what was done is not repeated."},
		{"skipped by a failure", control.Why{Skipped: []state.Record{skip(state.ByFailure)}}, false,
			"n1 is not up: n1/install.write was not started, since 15:05:05 (9m0s). Most likely cause: n2/bmc failed. Next: repair what failed first, then `ironrail apply`."},
		{"skipped by a drain", control.Why{Skipped: []state.Record{skip(state.ByInterrupt)}}, false,
			"n1 is not up: n1/install.write was not started, since 15:05:05 (9m0s). Most likely cause: n2/bmc failed. Next: `ironrail apply` goes on from there."},
		{"not accepted", control.Why{Node: state.Node{Run: "r"}}, false,
			"n1 is not up: it is not accepted yet. Next: `ironrail plan` shows what is left, `ironrail apply` does it."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.why.Node.Name = "n1"
			if got := tell(c.why, c.running).Answer.text("n1", now); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRefusedStrangersAreCounted(t *testing.T) {
	t.Parallel()
	s := tell(sampleWhy("x"), false)
	if len(s.Refused) != 1 || s.Refused[0].Times != 2 || s.Refused[0].MAC != "02:00:00:00:99:99" {
		t.Errorf("refused %+v", s.Refused)
	}
	if len(s.Evidence) != 2 {
		t.Errorf("evidence of the node: %+v", s.Evidence)
	}
}
