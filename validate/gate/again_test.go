// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/target"
)

// accepted is the step that accepts a node with one GPU, whose health checks were judged as before
// says. now answers what its agent says, by how often it was asked.
func accepted(t *testing.T, before []judge.Outcome, now func(try int) string) (*target.Job, *onnodetest.Run) {
	t.Helper()
	n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{Name: "h", GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 1}}},
		Drivers: []*inventory.Driver{{Block: inventory.Block{Kind: "cuda", Name: "r580"}}}}
	tries := 0
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if strings.HasSuffix(c.Line(), "health") {
			tries++
			return onnode.Output{Stdout: []byte(now(tries))}, nil, true
		}
		return onnode.Output{Exit: 127}, nil, true
	}}}
	run := onnodetest.NewRun()
	f, err := gate.Fact.New(subject.OfNode("n1"), gate.Report{Gates: before}, "")
	if err != nil || run.Learn(t.Context(), f) != nil {
		t.Fatal(err)
	}
	return &target.Job{Target: target.Target{Name: "n1", Node: n}, Nodes: nodes, Run: run}, run
}

// TestLastLookUnread: a node of which something cannot be read any more is not accepted, and none of
// its parts is named; what is read at a later try, and what never was read, keep nobody out.
func TestLastLookUnread(t *testing.T) {
	t.Parallel()
	const gpu = `"pci":[{"address":"0000:19:00.0","class":"030200","vendor":"10de","device":"2330","width":16,"max_width":16}]`
	const memory = `,"memory":[{"controller":"mc0"}]`
	for _, c := range []struct {
		name   string
		before judge.Verdict
		now    func(int) string
		out    bool
	}{
		{"read again", judge.Pass, func(int) string { return "{" + gpu + memory + "}" }, false},
		{"not any more", judge.Pass, func(int) string { return "{" + gpu + "}" }, true},
		{"at the third try", judge.Pass, func(try int) string {
			if try < 3 {
				return "{" + gpu + "}"
			}
			return "{" + gpu + memory + "}"
		}, false},
		{"nor before", judge.NotJudged, func(int) string { return "{" + gpu + "}" }, false},
	} {
		j, run := accepted(t, []judge.Outcome{{Gate: "host-memory", Verdict: c.before}}, c.now)
		err := gate.LastLook(t.Context(), j)
		if (err != nil) != c.out || len(run.Findings) > 0 != c.out {
			t.Errorf("%s: %v, %+v", c.name, err, run.Findings)
			continue
		}
		if c.out && (errkind.Of(err) != errkind.Refused || run.Findings[0].Suspects[0].Part != "" || !strings.Contains(run.Findings[0].Cause, "could not be read again, 3 times") ||
			!strings.Contains(run.Findings[0].Cause, "health check host-memory")) {
			t.Errorf("%s: %v, %+v", c.name, err, run.Findings)
		}
	}
}

// bmc tells of power supplies for some of the times that it is asked.
type bmc struct {
	chassis.BMC
	asked, told int
}

func (b *bmc) Parts(context.Context) ([]chassis.Part, error) {
	if b.asked++; b.asked > b.told {
		return nil, errkind.New(errkind.Internal, "status 503")
	}
	return []chassis.Part{{Kind: chassis.Supply, Name: "PSU1", Message: "Enabled, OK"}}, nil
}

func (b *bmc) Log(context.Context, *chassis.LogMark) (chassis.LogMark, []chassis.LogEntry, error) {
	return chassis.LogMark{}, nil, nil
}

// TestChassisUnread: a BMC that answers, and does not report any more of the power supplies that it told of
// before the tests, keeps its node out.
func TestChassisUnread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before judge.Verdict
		told   int
		out    bool
	}{{judge.Pass, 9, false}, {judge.Pass, 0, true}, {judge.NotJudged, 0, false}} {
		j, run := accepted(t, []judge.Outcome{{Gate: host.PowerSupplies, Verdict: c.before}}, func(int) string { return "{}" })
		j.BMCs = func(string) (chassis.BMC, error) { return &bmc{told: c.told}, nil }
		err := host.ChassisAgain(t.Context(), j)
		if (err != nil) != c.out || len(run.Findings) > 0 != c.out {
			t.Errorf("%+v: %v, %+v", c, err, run.Findings)
		}
		if c.out && (len(run.Findings) != 1 || run.Findings[0].Suspects[0].Part != "BMC" || !strings.Contains(strings.Join(run.Findings[0].Evidence, " "), "status 503")) {
			t.Errorf("%+v: %+v", c, run.Findings)
		}
	}
}
