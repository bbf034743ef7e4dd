// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/uniform"
)

// TestUnlikeBlock: one node that is not what its hardware block says is blamed; when most of
// a role are, it is one finding about the block or the delivery. Nobody of them is accepted.
func TestUnlikeBlock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes string // that differ
		want  string
		cause string
		of    string // of the site, in place of the hardware block
	}{
		"one":         {"n3", "node/n3 GPU 3 at 0000:01:00.0", "GPU 3 at 0000:01:00.0: its driver calls it NVIDIA H200", ""},
		"half":        {"n1 n3", "node/n1 GPU 3 at 0000:01:00.0, node/n3 GPU 3 at 0000:01:00.0", "its driver calls it", ""},
		"three":       {"n1 n2 n3", "site/hardware.gpu GPU", "GPU of 3 of 4 nodes of role worker: its driver calls it NVIDIA H200", ""},
		"all of them": {"n1 n2 n3 n4", "site/hardware.gpu GPU", "GPU of 4 of 4 nodes of role worker: ", ""},
		"nobody":      {"", "", "", ""},
		"other word":  {"n1 n2 n3 n4", "site/time_servers GPU", "GPU of 4 of 4 nodes of role worker: ", "time_servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := site(4, 1)
			withGPUs(inv, 4)
			role(inv)
			for _, n := range inv.Nodes {
				n.Hardware.Name = "gpu"
			}
			var left []subject.ID
			for _, n := range inv.Nodes {
				left = append(left, subject.OfNode(n.Name))
			}
			run := onnodetest.NewRun(left...)
			for _, n := range inv.Nodes {
				rec := uniform.Record{Cohort: "a"}
				if strings.Contains(c.nodes, n.Name) {
					rec.Unlike = []uniform.Unlike{{Part: "GPU 3 at 0000:01:00.0", Cause: "GPU 3 at 0000:01:00.0: its driver calls it NVIDIA H200", Evidence: []string{"product name"}, Action: "Exchange it.", Of: c.of}}
				}
				f, err := uniform.VersionsFact.New(subject.OfNode(n.Name), rec, "")
				if err != nil || run.Learn(t.Context(), f) != nil {
					t.Fatal(err)
				}
			}
			all := steps(t, inv)
			s := validate.New(inv, nil)
			if err := s.Apply(t.Context(), run, all["worker/validate.uniform"]); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range run.Findings {
				got = append(got, fmt.Sprintf("%s %s", f.Suspects[0].Subject, f.Suspects[0].Part))
				if !strings.Contains(f.Cause, c.cause) || f.Action != "Exchange it." || len(f.Evidence) == 0 || len(f.Affected) != 0 && f.Suspects[0].Subject.Kind != subject.Site {
					t.Errorf("%+v", f)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("suspects %s, want %s", strings.Join(got, ", "), c.want)
			}
			for _, n := range inv.Nodes {
				id := all[accept.ID(n.Name)]
				err := s.Apply(t.Context(), run, id)
				says := "it is not what hardware.gpu says: GPU 3"
				if c.of != "" {
					says = "H200 (time_servers)"
				}
				if unlike := strings.Contains(c.nodes, n.Name); unlike && (err == nil || !strings.Contains(err.Error(), n.Name+" is not accepted: ") || !strings.Contains(err.Error(), says)) {
					t.Errorf("%s: %v", n.Name, err)
				}
			}
		})
	}
}

// TestUnlikeForeign: a part of a node that another tool installed, which is neither what the
// hardware block says nor what most nodes have, is one finding.
func TestUnlikeForeign(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"n3", "n1 n2 n3 n4"} {
		inv := site(4, 1)
		role(inv)
		run := newRun(t, inv)
		hw := *inv.Nodes[0].Hardware
		hw.Name, hw.CPU = "nodes", inventory.CPU{Model: "Intel Xeon Platinum 8480C"}
		for _, n := range inv.Nodes {
			n.Hardware, n.Foreign = &hw, true
		}
		nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
			if !strings.HasSuffix(c.Line(), "health") {
				return onnode.Output{Exit: 127}, nil, true
			}
			model := "8480C"
			if strings.Contains(odd, c.Node) {
				model = "8468"
			}
			return onnode.Output{Stdout: fmt.Appendf(nil, `{"cpu":{"model":"Intel(R) Xeon(R) Platinum %s","sockets":2,"cores":112}}`, model)}, nil, true
		}}}
		s, all := validate.New(inv, nodes), steps(t, inv)
		for _, id := range []plan.StepID{"n1/validate.gates", "n2/validate.gates", "n3/validate.gates", "n4/validate.gates", "worker/validate.uniform"} {
			if err := s.Apply(t.Context(), run, all[id]); err != nil {
				t.Fatal(id, err)
			}
		}
		var cpus []string
		for _, f := range run.Findings {
			if strings.Contains(f.Cause, "8468") {
				cpus = append(cpus, f.Suspects[0].Subject.Name)
			}
		}
		if got := strings.Join(cpus, " "); got != odd {
			t.Errorf("CPUs of %q are blamed, want %q: %+v", got, odd, run.Findings)
		}
	}
}
