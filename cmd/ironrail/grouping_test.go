// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/predict"
)

// TestManyRefusedNodes: an edited image of 512 nodes in service is one refusal, and no
// node of it is told to be erased.
func TestManyRefusedNodes(t *testing.T) {
	t.Parallel()
	p := samplePlanOf(512, "sha256:"+strings.Repeat("cd34", 16), plan.Options{Site: "s", MaxErase: 2}, func(prior *plan.Prior) {
		for i := range 512 {
			prior.Nodes[fmt.Sprintf("n%03d", i+1)] = plan.NodeState{Accepted: true}
		}
	})
	if len(p.Refusals) != 512 || len(p.Erase.Nodes) != 0 {
		t.Fatalf("%d refusals, %d nodes are told to be erased", len(p.Refusals), len(p.Erase.Nodes))
	}
	var b bytes.Buffer
	writePlan(&b, p, predict.Prediction{})
	want := "\nRefused for 512 nodes: n[001-512]\n  NODE is in service (accepted): it is not reinstalled by an edit alone\n  `ironrail rebuild NODE`, or"
	if n := strings.Count(b.String(), "\n"); n > 60 || !strings.Contains(b.String(), want) || strings.Contains(b.String(), "ERASED") {
		t.Errorf("%d lines; the end is\n%s", n, b.String()[max(0, b.Len()-1500):])
	}
}

// TestManyNodesEndAlike: BMCs that are dead for the same reason are one finding, with
// every node in its list.
func TestManyNodesEndAlike(t *testing.T) {
	t.Parallel()
	res := apply.Result{Run: "r1", Started: fixtureTime, Ended: fixtureTime.Add(time.Minute), Outcome: state.RunSomeFailed}
	for i := range 600 {
		n := apply.NodeResult{Name: fmt.Sprintf("r%dn%02d", i/60+1, i%60+1), Outcome: apply.NodeDone, Accepted: true}
		if i < 64 {
			f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BMC"}}, Step: n.Name + "/bmc.reach",
				Cause: fmt.Sprintf("%s: bmc 10.0.4.%d: no route to host", n.Name, i), Evidence: []string{"dialed 5 times"}, Action: "Check the BMC of " + n.Name + "."}
			n.Outcome, n.Accepted, n.Finding = apply.NodeQuarantined, false, &f
			res.Findings = append(res.Findings, f)
		}
		res.Nodes = append(res.Nodes, n)
	}
	var b bytes.Buffer
	writeResult(&b, res, samplePlaces, plainWidth, plainLines)
	id := ending.Fold(res.Findings[0]).ID()
	for _, want := range []string{"536 of 600 nodes accepted, 64 quarantined.\n  " + id + "  64: r1n[01-60],r2n[01-04] BMC: NODE: bmc 10.0.4.0: no route to host\n      seen: dialed 5 times (r1n01)\n",
		"1. 64: r1n[01-60],r2n[01-04] BMC: Check the BMC of NODE.\n", "`ironrail apply` tests again", "`ironrail why " + id + "`"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "\n"); n > 10 {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
}

// TestManyCausesEndInTime: the end of a run of a large site is written at once, also where all nodes have
// causes of their own, and where all have one.
func TestManyCausesEndInTime(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]func(i int) string{
		"each its own": func(i int) string { return fmt.Sprintf("broken %c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676) },
		"all the same": func(int) string { return "no answer" },
	} {
		var res apply.Result
		for i := range 12500 {
			f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Link, Name: fmt.Sprintf("leaf/%d", i)}}}, Cause: cause(i), Action: "Look.", Evidence: []string{"seen"}, Step: "all/x"}
			res.Nodes = append(res.Nodes, apply.NodeResult{Name: fmt.Sprintf("n%d", i), Outcome: apply.NodeQuarantined, Finding: &f})
			res.Findings = append(res.Findings, f)
		}
		var b bytes.Buffer
		begun := time.Now()
		writeResult(&b, res, samplePlaces, plainWidth, plainLines)
		if took := time.Since(begun); took > 10*time.Second || !strings.Contains(b.String(), "12500 quarantined") {
			t.Errorf("%s: %s:\n%.300s", name, took, b.String())
		}
	}
}
