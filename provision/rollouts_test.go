// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

var updateRollout = flag.Bool("update-rollout", false, "write the golden plan of a rollout")

// rolling is the pinned site with n nodes, eight in a rack, whose role has the
// given rollout block.
func rolling(t *testing.T, n int, digest, block string) *Site {
	t.Helper()
	head, _, _ := strings.Cut(pinned, `rack "r" {`)
	head = strings.NewReplacer("DIGEST", digest, "192.0.2.0/24", "198.18.0.0/16", "192.0.2.2", "198.18.0.2", "198.51.100.0/24", "10.64.0.0/16",
		"  handover   = handover.s\n", "  handover   = handover.s\n"+block, "max_erase = 2", "max_erase = 1000").Replace(head)
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		if i%8 == 0 {
			fmt.Fprintf(&b, "rack \"r%02d\" {\n  number = %d\n  units = 10\n", i/8+1, i/8+1)
		}
		fmt.Fprintf(&b, "  node \"n%03d\" {\n    role = role.w\n    unit = %d\n    boot_mac = \"02:00:00:00:%02x:%02x\"\n    bmc { address = \"198.18.200.%d\" }\n  }\n", i+1, i%8+1, i/256, i%256, i+1)
		if i%8 == 7 || i == n-1 {
			b.WriteString("}\n")
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s, err := Open(inv, Options{Environ: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allDone is a state in which everything that a site wants was done.
func allDone(t *testing.T, s *Site) state.Store {
	t.Helper()
	steps, diags, err := s.desired(plan.Prior{})
	if err != nil || diags.HasErrors() {
		t.Fatal(err, diags)
	}
	return finished(t, &plan.Plan{Steps: steps})
}

const givenRollout = "  rollout {\n    canary = 1\n    batch = \"25%\"\n    stop_after = 2\n  }\n"

// TestRolloutOfAWholeSite plans another image for nodes in service with the real
// stages: all is refused without a block, and goes in waves with one.
func TestRolloutOfAWholeSite(t *testing.T) {
	t.Parallel()
	done := allDone(t, rolling(t, 8, one, ""))
	if p := planFor(t, rolling(t, 8, two, ""), done, PlanOptions{}); len(p.Refusals) != 8 || !strings.Contains(p.Refusals[0].Action, "give role w a rollout block") {
		t.Errorf("without a block: %v", p.Refusals)
	}
	p := planFor(t, rolling(t, 8, two, givenRollout), done, PlanOptions{})
	if len(p.Refusals) > 0 || len(p.Erase.Nodes) != 8 {
		t.Fatalf("refusals %v, erases %v", p.Refusals, p.Erase.Nodes)
	}
	var b strings.Builder
	for _, r := range p.Rollouts {
		fmt.Fprintf(&b, "%+v\n", r)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s %s", s.Action, s.ID)
		for _, n := range s.Needs {
			fmt.Fprintf(&b, " %s:%s", map[plan.NeedKind]string{plan.Success: "ok", plan.Settled: "end"}[n.On], n.Step)
		}
		b.WriteString("\n")
	}
	path := filepath.Join("testdata", "rollout.golden")
	if *updateRollout {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || b.String() != string(want) {
		t.Errorf("%s differs (%v); run with -update-rollout and look at the difference. Got:\n%s", path, err, b.String())
	}
}

// TestRolloutOfManyNodes: of 128 nodes every one is in one wave, and each step of a
// wave comes behind the gate of the wave before it and before its own.
func TestRolloutOfManyNodes(t *testing.T) {
	t.Parallel()
	const nodes = 128
	p := planFor(t, rolling(t, nodes, two, givenRollout), allDone(t, rolling(t, nodes, one, "")), PlanOptions{})
	if len(p.Refusals) > 0 || len(p.Rollouts) != 1 || len(p.Rollouts[0].Waves) != 5 {
		t.Fatalf("refusals %v, rollouts %v", p.Refusals, p.Rollouts)
	}
	wave, of := map[string]int{}, map[string]int{}
	for w, x := range p.Rollouts[0].Waves {
		of[x.Name] = w
		for _, n := range x.Nodes {
			if _, twice := wave[n]; twice {
				t.Errorf("%s is in two waves", n)
			}
			wave[n] = w
		}
	}
	if len(wave) != nodes {
		t.Errorf("%d nodes in waves", len(wave))
	}
	// behind is the last gate that a step waits for, by its wave; -1: none.
	behind := map[plan.StepID]int{}
	gates := 0
	for _, s := range p.Steps {
		last := -1
		for _, n := range s.Needs {
			last = max(last, behind[n.Step])
		}
		w, waved := of[s.ID.Wave()]
		if s.Subject.Kind == subject.Node {
			w, waved = wave[s.Subject.Name], true
		}
		if waved && last != w-1 {
			t.Errorf("%s of wave %d waits for gate %d", s.ID, w, last)
		}
		if behind[s.ID] = last; s.Stage == plan.GateStage {
			gates++
			behind[s.ID] = w
			if s.Gate.Most != 1 || len(s.Gate.Ends) != len(s.Gate.Nodes) {
				t.Errorf("gate %+v", s.Gate)
			}
		}
	}
	if gates != 4 {
		t.Errorf("%d gates", gates)
	}
}
