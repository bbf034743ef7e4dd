// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/parts"
)

// The samples of this file hold every kind of line that is shown; text is what
// stands where text comes from outside.

func samplePlan(text string) *plan.Plan {
	n1, all, img := subject.OfNode("n1"), subject.ID{Kind: subject.Group, Name: "all"}, subject.ID{Kind: subject.Site, Name: "image.os"}
	disk := fact.Key{Subject: n1, Name: "install.disk"}
	return &plan.Plan{
		Format: plan.Format, ID: "p1", Site: "lab", Created: fixtureTime,
		Steps: []plan.Step{
			{ID: "site/image.os", Action: plan.Read, Subject: img, Title: "verify image os", Why: []string{"what depends on it is about to run"}, Deadline: plan.Budget{Expected: 10 * time.Second}},
			{ID: "n1/bmc", Action: plan.Read, Subject: n1, Title: "reach the BMC " + text, Why: []string{text}},
			{ID: "n1/install.inspect", Action: plan.Create, Subject: n1, Title: "identify the node", Why: []string{"not done yet"},
				Needs: []plan.Need{{Step: "n1/bmc", On: plan.Success}}, Yields: []fact.Key{disk}, Deadline: plan.Budget{Expected: time.Minute}},
			{ID: "n1/install.write", Action: plan.Replace, Subject: n1, Title: "write image os", Why: []string{"image.os a -> b (site.hcl:3)", "asked for by --replace n1"},
				Needs: []plan.Need{{Step: "n1/install.inspect", On: plan.Success}, {Step: "site/image.os", On: plan.Success}}, Reads: []fact.Key{disk},
				May: plan.Effects(plan.Erase), Erases: "EVERYTHING on disk " + text, Deadline: plan.Budget{Expected: 2 * time.Minute}},
			{ID: "all/validate.pair", Action: plan.Create, Subject: all, Title: "RDMA writes", Why: []string{"not done yet"},
				Group: &plan.Group{Set: "all", Members: []subject.ID{n1, subject.OfNode("n2")}}, Needs: []plan.Need{{Step: "n1/install.write", On: plan.Success}}},
		},
		Erase:    plan.Erasure{Nodes: []string{"n1"}, Budget: 2},
		Warnings: []string{"n3 is on hold (" + text + ")"},
		Offers:   []plan.Offer{{Cause: "n4 runs: " + text, Command: "ironrail adopt n4"}},
		Refusals: []plan.Refusal{{Cause: "n5 is protected " + text, Action: "remove protect " + text}},
	}
}

func sampleFinding(text string) stage.Finding {
	return stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n1"), Part: "boot NIC " + text}, {Subject: subject.OfNode("n2")}},
		Cause: "no DHCP request " + text, Evidence: []string{"seen " + text, "nothing else"}, Action: "check the cable " + text, Step: "n1/install.netboot"}
}

func sampleResult(text string) apply.Result {
	f := sampleFinding(text)
	group := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Fabric, Name: "rail"}}}, Cause: "rail 0 is slow " + text, Action: "look", Step: "all/validate.pair"}
	return apply.Result{Run: "r1", Plan: "p1", Started: fixtureTime, Ended: fixtureTime.Add(3 * time.Minute), Outcome: state.RunSomeFailed, Unmanaged: []plan.Unmanaged{{Reason: plan.RunsUnknown, Nodes: []string{"n8", "n9" + text}, Action: "Adopt them."}},
		Nodes: []apply.NodeResult{
			{Name: "n1", Outcome: apply.NodeQuarantined, Finding: &f},
			{Name: "n2", Outcome: apply.NodeDone, Accepted: true},
			{Name: "n4", Outcome: apply.NodeQuarantined, Finding: &f},
			{Name: "n3", Outcome: apply.NodeSkipped, Cause: &state.Cause{Kind: state.ByHold, Text: "held " + text}},
		},
		Findings: []stage.Finding{f, group}}
}

func sampleStatus(text string) siteStatus {
	active := []apply.StepStatus{
		{ID: "n1/install.write", Stage: "install", Node: "n1", State: "running", Text: "writing " + text, Since: fixtureTime, Until: fixtureTime.Add(time.Hour), Done: 1 << 30, Total: 3 << 30},
		{ID: "n2/install.netboot", Stage: "install", Node: "n2", State: "ready", Text: "waits for inrush/" + text},
		{ID: "all/validate.pair", Stage: "validate", State: "running", Text: "round 1 of 3", Since: fixtureTime, Members: []string{"n6", "n7" + text}, Done: 1, Total: 3},
	}
	nodes := []state.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}, {Name: "n4", Accepted: true, AcceptedAt: fixtureTime},
		{Name: "n5", Hold: &state.Hold{By: "ann" + text, Reason: "riser " + text, At: fixtureTime}},
		{Name: "n6", Quarantine: &state.Quarantine{Finding: sampleFinding(text), At: fixtureTime}},
		{Name: "n7", Adopted: true, AdoptedAt: fixtureTime}, {Name: "n8", Run: "r0"}, {Name: "n9"}}
	approvals := []state.Approval{{By: "ann" + text, Host: "head1" + text, At: fixtureTime, How: state.ByTyping, Erase: 4, MaxErase: new(2)}}
	run := &apply.Status{Run: "r1", Plan: "p1", Started: fixtureTime, Draining: true, Active: active, Approvals: approvals, Nodes: []apply.NodeStatus{
		{NodeResult: apply.NodeResult{Name: "n1", Outcome: apply.NodeActive}, Done: 3, Total: 9},
		{NodeResult: apply.NodeResult{Name: "n2", Outcome: apply.NodeActive}, Done: 1, Total: 9},
		{NodeResult: apply.NodeResult{Name: "n3", Outcome: apply.NodeActive}, Total: 9},
		{NodeResult: apply.NodeResult{Name: "n4", Outcome: apply.NodeDone}, Done: 9, Total: 9},
	}}
	for _, from := range []string{"10.0.0.12", "10.0.0.99"} {
		run.Findings = append(run.Findings, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Site, Name: "network.boot"}, Part: "address " + from}},
			Cause: "boot files of n1 were asked for from " + from, Evidence: []string{"refused " + text}, Action: "find " + from})
	}
	waits := map[string]apply.Waiting{"n3": {Node: "n3", Step: "all/validate.pair", Needs: []plan.StepID{"n2/install.boot"}}}
	paces := map[plan.StepID]plan.Budget{"n1/install.write": {Expected: time.Minute, Slow: 2 * time.Minute, Samples: 30}}
	return newSiteStatus(why.Site{Run: run, Nodes: nodes, Waits: waits, Paces: paces, Notes: sampleNotes(text), Findings: run.Findings, Now: now}, &control.Identity{PID: 7, Command: "apply" + text, Started: fixtureTime})
}

// sampleNotes is what the state knows of two nodes.
func sampleNotes(text string) map[string][]string {
	return map[string][]string{"n4": {"n4 is pinned to image sha256:ab12 by rollback (" + text + ")"}, "n6": {"its chassis was replaced", "DIMM serial " + text + " was found bad on n2"}}
}

// sampleCard is a node that was inspected.
func sampleCard(text string) nodeCard {
	return nodeCard{Node: "n6", Status: why.Quarantined, State: "it is quarantined " + text, Place: sampleWhy(text).Place, Image: "os", Drivers: []string{"rdma", "cuda"},
		Validation: "v", Handover: "lab", Notes: sampleNotes(text)["n6"],
		Parts: []parts.Fit{{Part: parts.Part{Kind: parts.DIMM, Serial: "V8A" + text}, Slot: "DIMM3"}, {Part: parts.Part{Kind: parts.Disk, Serial: "S4EV"}, Slot: "nvme0n1 " + text}}}
}

func sampleWhy(text string) control.Why {
	at := func(s int) time.Time { return fixtureTime.Add(time.Duration(s) * time.Second) }
	return control.Why{
		Node: state.Node{Name: "n1", Run: "r1", Quarantine: &state.Quarantine{Finding: sampleFinding(text), At: at(300), Run: "r1"}},
		Steps: []state.Step{{ID: "n1/bmc", State: state.StepIsDone, Started: fixtureTime, Ended: at(1)},
			{ID: "n1/install.netboot", State: state.StepIsFailed, Started: at(2), Ended: at(300)}},
		Effects: []state.Effect{{Kind: plan.Power, State: state.EffectIsDone, Does: "power on n1 " + text, At: at(3)}},
		Skipped: []state.Record{
			state.Record{Kind: state.StepSkipped, Time: at(301), Step: "n1/install.write"}.With(state.Cause{Kind: state.ByFinding, Text: "no DHCP request " + text}),
			state.Record{Kind: state.StepSkipped, Time: at(301), Step: "n1/install.boot"}.With(state.Cause{Kind: state.ByFinding, Text: "no DHCP request " + text}),
			state.Record{Kind: state.StepSkipped, Time: at(302), Step: "all/validate.pair"}.With(state.Cause{Kind: state.NotJudged, Text: "not judged " + text})},
		Evidence: []event.Event{
			{Type: event.Evidence, Time: at(10), Node: "n1", Text: "dhcp discover " + text},
			{Type: event.Evidence, Time: at(11), Node: "n1", Text: "tftp refused " + text, Data: map[string]string{"refused": "true"}},
			{Type: event.Evidence, Time: at(20), Text: "dhcp discover: no node has this MAC " + text, Data: map[string]string{"mac": "02:00:00:00:99:99", "refused": "true"}},
			{Type: event.Evidence, Time: at(30), Text: "dhcp discover: no node has this MAC " + text, Data: map[string]string{"mac": "02:00:00:00:99:99", "refused": "true"}},
			{Type: event.Evidence, Time: at(31), Text: "tftp: bytes of somebody"},
		},
		Place: &control.Place{Rack: "r1" + text, Unit: 3, Role: "w", Hardware: "h", BMC: "10.0.0.1", Protocol: "redfish", PDUs: []string{"r1/a"},
			Ports: []control.Port{{Port: "rail/0", To: "leaf/1", Heard: text}, {Port: "rail/1", To: "leaf/2"}}},
		Console: &control.Console{Step: "n1/install.netboot", At: at(300), Lines: []string{"Booting " + text, "PXE-E61: Media test failure"}, Ref: "sha256:" + strings.Repeat("ab", 32) + "/console.txt"},
		Look:    &control.Look{At: at(310), Power: "on", Progress: text, Log: []control.LogEntry{{Time: at(40), Severity: "Critical", Text: text}}, Errors: []string{text}},
		Alike:   &control.SimilarNodes{Nodes: []string{"n2"}, Text: "n2 has it too " + text}}
}

// sampleEvents are a run of samplePlan in which n1 is being written.
func sampleEvents(text string) []event.Event {
	at := func(s int) time.Time { return fixtureTime.Add(time.Duration(s) * time.Second) }
	return []event.Event{
		{Time: at(0), Type: event.RunStarted, Text: "plan p1"},
		{Time: at(0), Type: event.Approved, Text: "ann" + text + " on head1 (typed), erases 4 nodes (max_erase is 2)"},
		{Time: at(0), Type: event.StepStarted, Step: "site/image.os", Text: "verify image os", Until: at(60)},
		{Time: at(1), Type: event.StepStarted, Node: "n1", Step: "n1/bmc", Text: "reach the BMC " + text, Until: at(31)},
		{Time: at(2), Type: event.StepDone, Node: "n1", Step: "n1/bmc", Text: "already so: " + text},
		{Time: at(2), Type: event.StepReady, Node: "n1", Step: "n1/install.inspect", Text: "waits for inrush/" + text},
		{Time: at(3), Type: event.StepStarted, Node: "n1", Step: "n1/install.inspect", Text: "identify the node", Until: at(63)},
		{Time: at(4), Type: event.Evidence, Node: "n1", Text: "dhcp " + text},
		{Time: at(5), Type: event.Note, Node: "n1", Step: "n1/install.inspect", Text: "note " + text},
		{Time: at(6), Type: event.StepDone, Node: "n1", Step: "n1/install.inspect", Text: "identify the node"},
		{Time: at(7), Type: event.StepDone, Step: "site/image.os", Text: "verify image os"},
		{Time: at(8), Type: event.StepStarted, Node: "n1", Step: "n1/install.write", Text: "write image os", Until: at(600)},
		{Time: at(9), Type: event.StepProgress, Node: "n1", Step: "n1/install.write", Text: "writing " + text, Done: 1 << 30, Total: 4 << 30},
		{Time: at(10), Type: event.StepProgress, Node: "n1", Step: "n1/install.write", Text: "writing " + text, Done: 2 << 30, Total: 4 << 30},
	}
}

// samplePlaces has n1 to n9 in two racks, the later nodes in the first one, and PDUs in theirs.
func samplePlaces(s subject.ID) (ending.Place, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(s.Name, "n"))
	switch {
	case s.Kind == subject.PDU:
		return ending.Place{Rack: "r02", Order: 2}, true
	case err == nil && n <= 3:
		return ending.Place{Rack: "r02", Order: 2, Unit: n}, true
	case err == nil:
		return ending.Place{Rack: "r01", Order: 1, Unit: n}, true
	}
	return ending.Place{}, false
}
