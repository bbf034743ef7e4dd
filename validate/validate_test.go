// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/result"
)

var update = flag.Bool("update", false, "write golden files")

func TestPlanGolden(t *testing.T) {
	t.Parallel()
	list, diags := validate.New(site(3, 1), nil).Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "plan.json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("plan differs from %s (%v); got:\n%s", file, err, got)
	}
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		quorum unit.Percent
		nodes  int
		want   int
	}{{0, 3, 3}, {100, 3, 3}, {50, 3, 2}, {1, 10, 2}, {66, 3, 2}, {67, 3, 3}, {90, 10, 9}, {50, 2, 1}, {51, 2, 2}} {
		inv := site(c.nodes, 1)
		inv.Nodes[0].Validation.Quorum = c.quorum
		if got := steps(t, inv)["all/validate.pair"].Group.Min; got != c.want {
			t.Errorf("%v of %d: %d, want %d", c.quorum, c.nodes, got, c.want)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		set        func(*inventory.Validation)
		line       int
	}{
		{"burn-in", "Nothing loads the nodes", func(v *inventory.Validation) { v.BurnIn = unit.Duration(30 * time.Minute) }, 40},
		{"nccl", "Engine is not supported", func(v *inventory.Validation) { v.AllReduce.Engine = "nccl" }, 46},
		{"scope", "Scope is not supported", func(v *inventory.Validation) { v.AllReduce.Scope = []string{"node", "all"} }, 46},
		{"floor", "Floor is not supported", func(v *inventory.Validation) { v.AllReduce.Floor = 90 }, 46},
		{"pair engine", "Engine is not supported", func(v *inventory.Validation) { v.Pair.Engine = "iperf" }, 42},
		{"near miss", "Limit is not measured", func(v *inventory.Validation) { v.Limits[1].Name = "rdma.write_bv" }, 51},
		{"unit", "Limit has the wrong unit", func(v *inventory.Validation) { v.Limits[0].AtLeast = floor("3m") }, 54},
		{"ceiling", "Limit has no floor", func(v *inventory.Validation) { v.Limits[0].AtMost = floor("3GB/s") }, 54},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(2, 1)
			c.set(inv.Nodes[0].Validation)
			list, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
			if len(diags) != 1 || diags[0].Summary != c.want || diags[0].Subject.Start.Line != c.line {
				t.Errorf("got %v", diags)
			}
			if c.name == "near miss" && !strings.Contains(diags[0].Detail, `Did you mean "rdma.write_bw"?`) {
				t.Error(diags[0].Detail)
			}
			if slices.ContainsFunc(list, func(s plan.Step) bool { return s.Group != nil }) {
				t.Error("a test was planned")
			}
		})
	}
	if _, diags := validate.New(site(1, 1), nil).Plan(onnodetest.NewRun()); len(diags) != 1 || diags.HasErrors() {
		t.Errorf("one node: %v", diags)
	}
}

func runPair(t *testing.T, w *world) *onnodetest.Run {
	t.Helper()
	run := newRun(t, w.inv)
	if err := validate.New(w.inv, w).Apply(t.Context(), run, steps(t, w.inv)["all/validate.pair"]); err != nil {
		t.Fatal(err)
	}
	return run
}

func suspects(fs []stage.Finding) string {
	var out []string
	for _, f := range fs {
		for _, s := range f.Suspects {
			out = append(out, s.Subject.Name+" "+s.Part)
		}
	}
	return strings.Join(out, "; ")
}

func TestPairs(t *testing.T) {
	t.Parallel()
	slow := func(node string, rail int) func(string, string, int, int) float64 {
		return func(from, to string, r, _ int) float64 {
			if r == rail && (from == node || to == node) && from != to {
				return 0.5
			}
			return 12
		}
	}
	// counted is one node whose port counts something during the test.
	counted := func(node, grew string) func(string, bool) string {
		return func(n string, after bool) string {
			if after && n == node {
				return grew
			}
			return "symbol_error:0\nlink_downed:0\n"
		}
	}
	for _, c := range []struct {
		name         string
		nodes, rails int
		speed        func(from, to string, rail, try int) float64
		stats        func(node string, after bool) string
		want         string // suspects
		cause        string
		accepted     string // nodes
	}{
		{"all good", 3, 2, nil, nil, "", "", "n1 n2 n3"},
		{"slow rail of three", 3, 1, slow("n2", 0), nil, "n2 rail 0", "carries 524kB/s, and the limit is >= 3MB/s", "n1 n3"},
		{"slow rail of eight", 4, 8, slow("n4", 6), nil, "n4 rail 6", "rail 6", "n1 n2 n3"},
		{"fails to send", 4, 1, func(from, _ string, _, _ int) float64 {
			if from == "n3" {
				return 0
			}
			return 12
		}, nil, "n3 rail 0, sending", "fail (3 of 3 bad transfers)", "n1 n2 n4"},
		{"two nodes stay ambiguous", 2, 1, slow("n2", 0), nil, "rail what rail 0 of all nodes shares; n1 rail 0; n2 rail 0", "cannot tell which of", ""},
		{"two nodes, one port negotiated less", 2, 1, slow("n2", 0), func(node string, _ bool) string {
			return map[string]string{"n1": "speed:100000\n", "n2": "speed:10000\n"}[node]
		}, "n2 rail 0", "slow", ""},
		{"two nodes, one counted errors", 2, 1, slow("n1", 0), func(node string, after bool) string {
			if after && node == "n1" {
				return "statistics/rx_crc_errors:812\n"
			}
			return "statistics/rx_crc_errors:1\n"
		}, "n1 rail 0", "slow", ""},
		{"two nodes, one bad within itself", 2, 1, func(from, to string, _, _ int) float64 {
			if from == "n2" || to == "n2" {
				return 0.5
			}
			return 12
		}, nil, "n2 rail 0", "slow", ""},
		{"bad once, good alone", 3, 1, func(from, _ string, _, try int) float64 {
			if from == "n1" && try == 1 {
				return 1
			}
			return 12
		}, nil, "", "", "n1 n2 n3"},
		{"one path of many", 4, 1, func(from, to string, _, _ int) float64 {
			if from == "n1" && to == "n2" {
				return 1
			}
			return 12
		}, nil, "rail path between n1 and n2, rail 0", "both nodes are good with others", "n3 n4"},
		{"errors and no slowness", 3, 1, nil, counted("n2", "symbol_error:900000\n"), "n2 rail 0", "the link of rail 0 of n2 makes errors: symbol_error +900000", "n1 n3"},
		{"a link that went down", 3, 1, nil, counted("n3", "link_downed:1\n"), "n3 rail 0", "link_downed +1", "n1 n2"},
		{"slow by its errors", 3, 1, slow("n2", 0), counted("n2", "symbol_error:900000\n"), "n2 rail 0", "RDMA writes over n2 rail 0 are slow", "n1 n3"},
		{"a path by its errors", 4, 1, func(from, to string, _, _ int) float64 {
			if from == "n1" && to == "n2" {
				return 1
			}
			return 12
		}, counted("n2", "symbol_error:900000\n"), "n2 rail 0", "makes errors", "n1 n3 n4"},
		{"a switch by the errors of all", 4, 1, func(_, _ string, _, _ int) float64 { return 0 }, func(_ string, after bool) string {
			return counted("", "symbol_error:900000\n")("", after)
		}, "rail what rail 0 of all nodes shares", "fail", ""},
		{"a switch", 4, 2, func(_, _ string, rail, _ int) float64 {
			if rail == 1 {
				return 0
			}
			return 12
		}, nil, "rail what rail 1 of all nodes shares", "fail", ""},
		{"a fabric that is slow on all rails", 4, 3, func(_, _ string, _, _ int) float64 { return 1 }, nil, "rail all rails of all nodes", "RDMA writes over all rails of all nodes are slow", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(site(c.nodes, c.rails))
			w.speed, w.stats = c.speed, c.stats
			run := runPair(t, w)
			if got := suspects(run.Findings); got != c.want {
				t.Errorf("suspects %q, want %q", got, c.want)
			}
			if len(run.Findings) > 0 && (!strings.Contains(run.Findings[0].Cause, c.cause) || run.Findings[0].Action == "" || len(run.Findings[0].Evidence) == 0) {
				t.Errorf("finding %+v", run.Findings[0])
			}
			if len(w.overload) > 0 {
				t.Errorf("nodes in two pairs at once: %v", w.overload)
			}
			rep := report(t, run, result.PairReport, "all")
			if want := c.nodes * (c.nodes - 1) * c.rails; len(rep.Results) != want {
				t.Errorf("%d results, want %d", len(rep.Results), want)
			}
			if got := acceptable(t, w.inv, run); got != c.accepted {
				t.Errorf("accepted %q, want %q", got, c.accepted)
			}
		})
	}
}

// acceptable tries to accept every node on the pair test alone.
func acceptable(t *testing.T, inv *inventory.Inventory, run *onnodetest.Run) string {
	t.Helper()
	inv.Nodes[0].Validation.AllReduce = nil
	s := validate.New(inv, nil)
	var ok []string
	for _, n := range inv.Nodes {
		err := s.Apply(t.Context(), run, steps(t, inv)[accept.ID(n.Name)])
		switch {
		case err == nil:
			ok = append(ok, n.Name)
		case errkind.Of(err) != errkind.Refused || errkind.Action(err) == "":
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	return strings.Join(ok, " ")
}

func TestMoreNodesThanAllPairs(t *testing.T) {
	t.Parallel()
	w := newWorld(site(12, 1))
	w.speed = func(from, to string, _, _ int) float64 {
		if from == "n7" || to == "n7" {
			return 0
		}
		return 12
	}
	run := runPair(t, w)
	rep := report(t, run, result.PairReport, "all")
	if suspects(run.Findings) != "n7 rail 0" || len(rep.NotJudged) != 1 || !strings.Contains(rep.NotJudged[0], "24 of 66 pairs") {
		t.Errorf("%s, %v", suspects(run.Findings), rep.NotJudged)
	}
}

func TestANodeThatGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(site(3, 1))
	w.gone = "n2"
	run := runPair(t, w)
	if suspects(run.Findings) != "n2 boot network" {
		t.Errorf("%+v", run.Findings)
	}
	if got := acceptable(t, w.inv, run); got != "n1 n3" {
		t.Errorf("accepted %q", got)
	}
}

func TestPairsWithoutPorts(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	inv.Nodes[1].Hardware = &inventory.Hardware{}
	err := validate.New(inv, newWorld(inv)).Apply(t.Context(), newRun(t, inv), steps(t, inv)["all/validate.pair"])
	if err == nil || errkind.Of(err) != errkind.Refused {
		t.Errorf("got %v", err)
	}
}

func TestAllReduce(t *testing.T) {
	t.Parallel()
	good := func(nodes []string) onnode.Output { return onnode.Output{Stdout: []byte(reduced(nodes, 50_000))} }
	for _, c := range []struct {
		name   string
		nodes  int
		reduce func(nodes []string) onnode.Output
		want   string
		cause  string
		runs   int
		others bool // the others are accepted
	}{
		{"good", 3, good, "", "", 1, true},
		{"slow because of one", 3, func(nodes []string) onnode.Output {
			if slices.Contains(nodes, "n3") {
				return onnode.Output{Stdout: []byte(reduced(nodes, 5e6))}
			}
			return good(nodes)
		}, "n3 all-reduce", "bus bandwidth 280kB/s at 1MiB, and the limit is >= 1MB/s", 4, true},
		{"wrong on one rank", 3, func(nodes []string) onnode.Output {
			i := slices.Index(nodes, "n2")
			if i < 0 {
				return good(nodes)
			}
			wrong := make([]int, len(nodes))
			wrong[i] = 5
			return onnode.Output{Stdout: []byte(reduced(nodes, 50_000, wrong...))}
		}, "n2 all-reduce", "10 elements were not the sum", 2, true},
		{"SSH names one", 3, func(nodes []string) onnode.Output {
			if slices.Contains(nodes, "n2") {
				return onnode.Output{Exit: 1, Stderr: []byte("ssh: connect to host 10.77.0.12 port 22: Connection refused\n")}
			}
			return good(nodes)
		}, "n2 all-reduce", "mpirun: exit status 1", 2, true},
		{"two nodes cannot be distinguished", 2, func(nodes []string) onnode.Output {
			return onnode.Output{Stdout: []byte(reduced(nodes, 5e6))}
		}, "all all-reduce", "bus bandwidth", 1, false},
		{"bad whoever is left out", 3, func([]string) onnode.Output { return onnode.Output{Exit: 1} }, "all all-reduce", "exit status 1", 4, false},
		{"each on its own", 2, func([]string) onnode.Output { return onnode.Output{Stdout: []byte(reduced([]string{"n1"}, 1))} }, "all all-reduce", "1 ranks on 1 nodes", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(site(c.nodes, 1))
			w.reduce = c.reduce
			run := newRun(t, w.inv)
			s := validate.New(w.inv, w)
			if err := s.Apply(t.Context(), run, steps(t, w.inv)["all/validate.all_reduce"]); err != nil {
				t.Fatal(err)
			}
			if got := suspects(run.Findings); got != c.want || c.want != "" && !strings.Contains(run.Findings[0].Cause, c.cause) {
				t.Errorf("suspects %q, finding %+v", got, run.Findings)
			}
			if n := len(w.Calls("mpirun")); n != c.runs {
				t.Errorf("%d runs, want %d", n, c.runs)
			}
			rep := report(t, run, result.AllReduceReport, "all")
			for _, r := range rep.Results {
				if r.Transport != "tcp (not RDMA)" {
					t.Errorf("transport %q", r.Transport)
				}
			}
			w.inv.Nodes[0].Validation.Pair = nil
			err := s.Apply(t.Context(), run, steps(t, w.inv)["n1/validate.accept"])
			if (err == nil) != c.others {
				t.Errorf("accept n1: %v", err)
			}
		})
	}
}

func TestAcceptWithoutValidation(t *testing.T) {
	t.Parallel()
	inv := site(1, 1)
	inv.Nodes[0].Validation = nil
	run := newRun(t, inv)
	st := steps(t, inv)["n1/validate.accept"]
	if err := validate.New(inv, nil).Apply(t.Context(), run, st); err != nil || !st.Accepts {
		t.Errorf("%v, accepts %v", err, st.Accepts)
	}
}

func TestAcceptNeedsResults(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	s := validate.New(inv, nil)
	if err := s.Apply(t.Context(), newRun(t, inv), steps(t, inv)["n1/validate.accept"]); err == nil {
		t.Error("accepted without a test")
	}
	w := newWorld(inv)
	run := newRun(t, inv)
	run.Subjects = run.Subjects[:2]
	third := site(3, 1)
	if err := validate.New(third, w).Apply(t.Context(), run, steps(t, third)["all/validate.pair"]); err != nil {
		t.Fatal(err)
	}
	err := validate.New(third, nil).Apply(t.Context(), run, steps(t, third)["n3/validate.accept"])
	if err == nil || !strings.Contains(err.Error(), "was not among the nodes that were tested") {
		t.Errorf("a late joiner: %v", err)
	}
}

func TestLastOfTwo(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	run := newRun(t, inv)
	run.Subjects = run.Subjects[:1]
	s := validate.New(inv, nil) // no node is called
	for _, id := range []plan.StepID{"all/validate.pair", "all/validate.all_reduce", "n1/validate.accept"} {
		if err := s.Apply(t.Context(), run, steps(t, inv)[id]); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, name := range []fact.Name[result.Report]{result.PairReport, result.AllReduceReport} {
		if rep := report(t, run, name, "all"); len(rep.Results) != 0 || len(rep.NotJudged) != 1 {
			t.Errorf("%s: %+v", name, rep)
		}
	}
	if err := s.Apply(t.Context(), run, steps(t, inv)["n2/validate.accept"]); err == nil {
		t.Error("the one that is lost was accepted")
	}
}

// TestDefaultQuorum: without a quorum a group is judged with three quarters of its
// nodes, and never with fewer than two; the plan says so.
func TestDefaultQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, least int
		title        string
	}{
		{2, 2, "RDMA writes between 2 nodes, pair by pair"},
		{3, 3, "RDMA writes between 3 nodes, pair by pair"},
		{4, 3, "RDMA writes between 4 nodes, pair by pair, judged with 3 or more"},
		{32, 24, "RDMA writes between 32 nodes, pair by pair, judged with 24 or more"},
	} {
		inv := site(c.nodes, 1)
		v := *inv.Nodes[0].Validation
		v.Quorum = 0
		for _, n := range inv.Nodes {
			n.Validation = &v
		}
		st := steps(t, inv)["all/validate.pair"]
		if st.Group == nil || st.Group.Min != c.least || st.Title != c.title || st.Inputs[0].Value != "75% (default)" {
			t.Errorf("%d nodes: %+v", c.nodes, st)
		}
	}
}
