// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
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
	finding := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n1"), Part: "boot NIC"}},
		Cause: "no DHCP request x", Evidence: []string{"seen x"}, Action: "check the cable x", Step: "n1/install.netboot"}
	quarantine := &state.Quarantine{Finding: finding, At: fixtureTime}
	fast, slow := plan.Budget{Expected: 20 * time.Minute, Slow: 25 * time.Minute, Samples: 40}, plan.Budget{Expected: 3 * time.Minute, Slow: 4 * time.Minute}
	pace := func(b plan.Budget) map[plan.StepID]plan.Budget { return map[plan.StepID]plan.Budget{netboot.ID: b} }
	place := &control.Place{Hardware: "hgx", BMC: "10.0.0.9", Protocol: "redfish"}
	guess := &control.Guess{Cause: "it never asked", Action: "Check its cable."}
	behind := []apply.Holder{{Step: "n2/install.write", Node: "n2", Since: fixtureTime}, {Step: "n3/install.boot", Node: "n3"}}
	for _, c := range []struct {
		name    string
		why     control.Why
		running bool
		want    string
	}{
		{"nothing done", control.Why{}, false,
			"n1 is not up: nothing was done with it yet.|Next: `ironrail plan` shows what would be done, `ironrail apply` does it."},
		{"held before all else", control.Why{Node: state.Node{Hold: &state.Hold{By: "ann", Reason: "riser", At: fixtureTime}, Quarantine: quarantine}}, false,
			"n1 is not up: it is on hold (ann: riser); automation is paused for this node, since 15:04:05 (10m0s).|Next: `ironrail release n1`, then `ironrail apply`."},
		{"quarantined", control.Why{Node: state.Node{Quarantine: quarantine}}, false,
			"n1 is not up: it is quarantined by step install.netboot, since 15:04:05 (10m0s).|Most likely cause: no DHCP request x.|Next: check the cable x. Then `ironrail apply` takes the node up again."},
		{"waits, not late", control.Why{Active: []apply.StepStatus{netboot}, Paces: pace(fast), Guess: guess, Place: place}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest. P50 of such steps: 20m, P95: 25m (40 measured here): it is not late yet.|Next: Nothing yet: the run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"waits, longer than most", control.Why{Active: []apply.StepStatus{netboot}, Paces: pace(plan.Budget{Expected: 9 * time.Minute, Slow: 12 * time.Minute, Samples: 22}), Guess: guess}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest. P50 of such steps: 9m, P95: 12m (22 measured here): it is not late yet.|Most likely cause: too early to say; if it stays so: it never asked.|Next: Nothing yet: the run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"the image does not come", control.Why{Active: []apply.StepStatus{{ID: "n1/install.write", Stage: "install", Text: "chunk 0: nothing came for 30s; trying again", Since: fixtureTime, Until: now.Add(time.Hour)}}}, true,
			"n1 is not up: install.write: chunk 0: nothing came for 30s; trying again, since 15:04:05 (10m0s), until 16:14:05 at the latest.|Most likely cause: what the node fetches does not come through to it.|Next: Check the cable and the switch port of its boot NIC, and what stands between it and this controller (MTU, firewall). It tries again by itself. The run goes on by itself, and waits for this until 16:14:05 at the latest."},
		{"waits, late", control.Why{Active: []apply.StepStatus{onNode(netboot)}, Paces: pace(slow), Guess: guess, Place: place}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest. P50 of hgx nodes: 3m, P95: 4m (by the table: too few measured here): it is late.|Most likely cause: it never asked.|Next: Check its cable. The run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"waits, refused", control.Why{Active: []apply.StepStatus{netboot}, Evidence: []event.Event{saw("n1", "dhcp: wrong firmware", "m", true, later)}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest.|Most likely cause: it asked and was refused (dhcp: wrong firmware).|Next: Correct what the refusal names in the site's files, then `ironrail apply`."},
		{"waits, an unknown client asks", control.Why{Active: []apply.StepStatus{netboot}, Evidence: []event.Event{saw("", "dhcp: unknown", "m9", true, later)}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest.|Most likely cause: a client with MAC m9, which no node has, asked 1 times and was refused: it may be this node with another boot MAC.|Next: Compare that MAC with the node's boot_mac in the site's files."},
		{"an unknown client of before does not count", control.Why{Active: []apply.StepStatus{netboot}, Paces: pace(fast), Evidence: []event.Event{saw("", "dhcp: unknown", "m9", true, fixtureTime.Add(-time.Hour))}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest. P50 of such steps: 20m, P95: 25m (40 measured here): it is not late yet.|Next: Nothing yet: the run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"its power is off", control.Why{Active: []apply.StepStatus{netboot}, Look: &control.Look{Power: "off", Outlets: []string{"PDU r1/a: breaker 1 is open"}}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest.|Most likely cause: its power is off, though the run switched it on.|Next: Look at the node's power supplies, its outlets and the BMC's event log. The run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"its BMC is silent", control.Why{Active: []apply.StepStatus{netboot}, Look: &control.Look{Errors: []string{"no answer"}}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest.|Most likely cause: its BMC cannot be read: the node may be without mains, or its BMC off the network.|Next: Look at the node's power supplies and at the BMC's network port. The run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"its BMC has another certificate", control.Why{Active: []apply.StepStatus{netboot}, Look: &control.Look{Answered: true, Do: "Pin the new one.", Errors: []string{"another certificate"}}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest.|Most likely cause: its BMC answers, and cannot be read: another certificate.|Next: Pin the new one. The run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"it booted its disk", control.Why{Active: []apply.StepStatus{netboot}, Look: &control.Look{Power: "on", Progress: "OSRunning"}}, true,
			"n1 is not up: install.netboot: waits for DHCP, since 15:04:05 (10m0s), until 15:15:05 at the latest.|Most likely cause: it has booted something else than the network: the BMC says OSRunning, and the boot services saw nothing of it.|Next: Look at its boot order, and that network boot is enabled for its boot NIC. The run goes on by itself, and waits for this until 15:15:05 at the latest."},
		{"the run drains", control.Why{Active: []apply.StepStatus{driver}, Draining: true}, true,
			"n1 is not up: drivers.rdma: installs, since 15:04:05 (10m0s).|Next: Nothing yet: the run goes on by itself. It drains: after this step nothing more is started, and `ironrail apply` goes on from there."},
		{"unknown clients mean nothing to drivers", control.Why{Active: []apply.StepStatus{driver}, Evidence: []event.Event{saw("", "dhcp: unknown", "m9", true, later)}}, true,
			"n1 is not up: drivers.rdma: installs, since 15:04:05 (10m0s).|Next: Nothing yet: the run goes on by itself."},
		{"waits its turn", control.Why{Node: state.Node{Run: "r"}}, true,
			"n1 is not up: it waits for steps of others.|Next: `ironrail status` shows which run now."},
		{"waits for inrush", control.Why{Waiting: &apply.Waiting{Node: "n1", Step: netboot.ID, Resource: "inrush/r1/a/L1", InUse: "14.4 of 15.2 kW in use", Holders: behind, HoldersAll: 5}}, true,
			"n1 is not up: install.netboot waits for its turn to be switched on at r1/a/L1: 14.4 of 15.2 kW in use, by n2 (install.write, since 15:04:05), n3 (install.boot, not started) and 3 more.|Next: Nothing: its turn comes when one of those is through or out."},
		{"waits for others", control.Why{Waiting: &apply.Waiting{Node: "n1", Step: "n1/drivers.rdma", Needs: []plan.StepID{"site/cabling.check"}, Behind: behind, BehindAll: 7}}, true,
			"n1 is not up: drivers.rdma waits for site/cabling.check; it is now up to n2 (install.write, since 15:04:05), n3 (install.boot, not started) and 5 more.|Next: Nothing: its turn comes when those are done or out."},
		{"behind a gate, in service", control.Why{Node: state.Node{Accepted: true, AcceptedAt: fixtureTime},
			Waiting: &apply.Waiting{Node: "n1", Step: "n1/install.netboot", Needs: []plan.StepID{"site/rollout.w@canary"}, Gate: &plan.Gate{Of: "w", Wave: "canary"}}}, true,
			"n1 is up: it is accepted, and install.netboot waits until wave canary of the rollout to w has ended well, since 15:04:05 (10m0s)."},
		{"accepted", control.Why{Node: state.Node{Accepted: true, AcceptedAt: fixtureTime}}, false,
			"n1 is up: it is accepted, since 15:04:05 (10m0s)."},
		{"adopted", control.Why{Node: state.Node{Adopted: true, AdoptedAt: fixtureTime}}, false,
			"n1 is up: it was adopted as it was found, and nothing about it is verified, since 15:04:05 (10m0s)."},
		{"died in a step", control.Why{Steps: []state.Step{{ID: "n1/install.write", State: state.StepRunning, Started: fixtureTime}}}, false,
			"n1 is not up: the last run ended in the middle of install.write, since 15:04:05 (10m0s).|Most likely cause: the controller's process ended without a word: killed, or its machine went down.|Next: `ironrail apply` goes on from there; what was done is not repeated."},
		{"of a copy of a run", control.Why{Last: &state.Run{ID: "r", Restored: true}, Steps: []state.Step{{ID: "n1/install.write", State: state.StepRunning, Started: fixtureTime}}}, false,
			"n1 is not up: the state is that of a copy that was made in the middle of install.write, since 15:04:05 (10m0s).|Next: `ironrail plan` looks whether the node runs, and shows what is left: the state was restored from a copy, and its last run is not resumed."},
		{"skipped by a failure", control.Why{Skipped: []state.Record{skip(state.ByFailure)}}, false,
			"n1 is not up: install.write was not started, since 15:05:05 (9m0s).|Most likely cause: n2/bmc failed.|Next: Repair what failed first, then `ironrail apply`."},
		{"its group went on without it", control.Why{Skipped: []state.Record{skip(state.ByStraggler)}}, false,
			"n1 is not up: install.write was not started, since 15:05:05 (9m0s).|Most likely cause: n2/bmc failed.|Next: `ironrail apply` tests it, alone with two nodes in service."},
		{"skipped by a drain", control.Why{Skipped: []state.Record{skip(state.ByInterrupt)}}, false,
			"n1 is not up: install.write was not started: the run was stopped before it, since 15:05:05 (9m0s).|Next: `ironrail apply` goes on from there; what was done is not repeated."},
		{"not accepted", control.Why{Node: state.Node{Run: "r"}}, false,
			"n1 is not up: it is not accepted yet.|Next: `ironrail plan` shows what is left, `ironrail apply` does it."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.why.Node.Name = "n1"
			s := ExplainNode(c.why, c.running, now)
			var p page
			p.answer(s.Answer, "n1", now)
			if got := strings.ReplaceAll(strings.TrimSpace(p.String()), "\n", "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func onNode(x apply.StepStatus) apply.StepStatus { x.Node = "n1"; return x }

// fixtureTime and now are when things began and when they are asked about.
var (
	fixtureTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	now         = fixtureTime.Add(10 * time.Minute)
)

func TestLinesJoinAllSources(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return fixtureTime.Add(time.Duration(s) * time.Second) }
	seen := func(s int, text string) event.Event { return event.Event{Time: at(s), Node: "n1", Text: text} }
	y := control.Why{Node: state.Node{Name: "n1"},
		Journal: []state.Record{
			{Time: at(0), Kind: state.StepStarted, Step: "n1/bmc"},
			state.Record{Time: at(1), Kind: state.StepDone, Step: "n1/bmc"}.With(state.Step{State: state.StepIsDone, Started: at(0), Ended: at(1)}),
			{Time: at(2), Kind: state.StepStarted, Step: "n1/install.netboot"},
			state.Record{Time: at(3), Kind: state.EffectIntent, Step: "n1/install.netboot"}.With(state.Effect{Kind: plan.Power, Key: "k", State: state.EffectIntended, Does: "power on n1"}),
			state.Record{Time: at(3), Kind: state.EffectOutcome, Step: "n1/install.netboot"}.With(state.Effect{Kind: plan.Power, Key: "k", State: state.EffectIsDone, Does: "power on n1"}),
			state.Record{Time: at(70), Kind: state.EffectIntent}.With(state.Effect{Kind: plan.Power, Key: "l", State: state.EffectIntended, Does: "cycle n1"}),
			state.Record{Time: at(80), Kind: state.EffectOutcome}.With(state.Effect{Kind: plan.Power, Key: "m", State: state.EffectInDoubt, Does: "reset n1"}),
			state.Record{Time: at(85), Kind: state.Held}.With(state.Hold{By: "ann", Reason: "riser"}),
			state.Record{Time: at(86), Kind: state.FindingMade}.With(stage.Finding{Cause: "a lane is lost"}),
			state.Record{Time: at(86), Kind: state.StepFailed, Step: "n1/fabric.rail"}.With(state.Step{State: state.StepIsFailed, Finding: &stage.Finding{Cause: "a lane is lost"}}),
			{Time: at(90), Kind: state.Accepted},
		},
		Evidence: []event.Event{seen(10, "dhcp discover"), seen(14, "dhcp discover"), seen(20, "dhcp request")},
		Look:     &control.Look{Log: []control.LogEntry{{Time: at(12), Severity: "Critical", Text: "PSU1 input lost"}}}}
	var got []string
	for _, l := range ExplainNode(y, true, now).Lines {
		got = append(got, fmt.Sprintf("%d %s %s x%d", l.Time.Unix()-fixtureTime.Unix(), l.From, l.Text, l.Times))
	}
	want := []string{"1 journal bmc done after 1s x0", "2 journal install.netboot began x0", "3 journal power on n1 x0", "10 boot dhcp discover x2",
		"12 BMC event log: Critical PSU1 input lost x0", "20 boot dhcp request x0", "70 journal cycle n1: begun, and no outcome was recorded x0",
		"80 journal reset n1: nobody knows whether it happened x0", "85 operator held by ann: riser x0", "86 journal fabric.rail failed: a lane is lost x0", "90 journal accepted x0"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAlikeNodesNameWhatTheyShare(t *testing.T) {
	t.Parallel()
	node := func(name, cause string, after time.Duration) state.Node {
		return state.Node{Name: name, Quarantine: &state.Quarantine{At: fixtureTime.Add(after), Finding: stage.Finding{Cause: cause}}}
	}
	s := Site{Now: now, Nodes: []state.Node{node("n1", "no DHCP from 02:00:01", 2*time.Minute), node("n2", "no DHCP from 02:00:02", time.Minute),
		node("n3", "no DHCP from 02:00:03", 0), node("n4", "the disk of n4 is bad", 0), {Name: "n5"}, {Name: "n6", Accepted: true}}}
	traits := Traits{"n1": {"rack r1", "PDU r1/a"}, "n2": {"rack r1", "PDU r1/a"}, "n3": {"rack r1", "PDU r1/a"}, "n4": {"rack r1", "PDU r1/b"}, "n5": {"rack r2"}, "n6": {"rack r2"}}
	all := SummariseNodes(s)
	a := FindSimilarNodes("n1", all, traits, now)
	if a == nil || a.Text != "n2 and n3 have it too, the first since 15:04:05; those are all nodes of PDU r1/a: look at what they share" {
		t.Errorf("n1: %+v", a)
	}
	if a := FindSimilarNodes("n4", all, traits, now); a != nil {
		t.Errorf("n4: %+v", a)
	}
	gs := GroupNodes(all, traits)
	var got []string
	for _, g := range gs {
		got = append(got, fmt.Sprint(g.Status, g.Nodes))
	}
	if want := []string{"quarantined[n1 n2 n3]", "quarantined[n4]", "untouched[n5]"}; !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
	if gs[0].Finding == "" || gs[1].Finding == "" || gs[0].Finding == gs[1].Finding || gs[2].Finding != "" {
		t.Errorf("the findings of the groups are called %q, %q and %q", gs[0].Finding, gs[1].Finding, gs[2].Finding)
	}
}

func TestRefusedUnknownClientsAreCounted(t *testing.T) {
	t.Parallel()
	no := event.Event{Time: fixtureTime, Text: "dhcp: unknown", Data: map[string]string{"mac": "m9", "refused": "true"}}
	s := ExplainNode(control.Why{Evidence: []event.Event{no, {Text: "tftp", Node: "n1"}, no, {Text: "bytes of somebody"}}}, false, now)
	if len(s.Refused) != 1 || s.Refused[0].Times != 2 || s.Refused[0].MAC != "m9" || len(s.Evidence) != 1 {
		t.Errorf("refused %+v, evidence %+v", s.Refused, s.Evidence)
	}
}
