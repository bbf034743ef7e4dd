// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// openText opens a site of this text.
func openText(t *testing.T, text string) *Site {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s, err := Open(inv, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSavedPlansFitTheFiles: between saving a plan and applying it somebody edits the
// files. What the plan shows would no longer be what is applied.
func TestSavedPlansFitTheFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	text := strings.Replace(pinned, "DIGEST", one, 1)
	site := openText(t, text)
	store := finished(t, planFor(t, site, state.Empty{}, PlanOptions{}))
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	p := planFor(t, site, store, PlanOptions{Replace: []string{"n1"}, Targets: []string{"n1"}})
	p.Lineage = store.Info().Lineage
	if _, err := site.Admit(ctx, store, fence, p, nil); err != nil {
		t.Errorf("the same files: %v", err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"an image", one, two, "image.os sha256:1111"},
		{"a driver less", `drivers    = [driver.rdma]`, `drivers    = []`, "is no longer wanted"},
		{"packages", `packages = ["rdma-core"]`, `packages = ["rdma-core", "perftest"]`, "packages"},
		{"a node that is protected now", `  disks      = disk_layout.os`, "  disks      = disk_layout.os\n  protect    = true", "n1 is protected now"},
		{"the erase budget", `max_erase = 2`, `max_erase = 1`, "max_erase 2 -> 1"},
		{"the site's name", `site "t" {`, `site "other" {`, "is for site t, and this is site other"},
	} {
		if !strings.Contains(text, tt.old) {
			t.Fatalf("%s: the site has no %q", tt.name, tt.old)
		}
		_, err := openText(t, strings.Replace(text, tt.old, tt.new, 1)).Admit(ctx, store, fence, p, nil)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want == "":
		case err == nil || !strings.Contains(err.Error(), tt.want) || errkind.Action(err) == "":
			t.Errorf("%s: %v (%s)", tt.name, err, errkind.Action(err))
		}
	}
	moved := *p
	moved.Lineage = "another"
	if _, err := site.Admit(ctx, store, fence, &moved, nil); err == nil || !strings.Contains(err.Error(), "another state") {
		t.Errorf("a plan of another state: %v", err)
	}
}

// TestProtectIsAbsolute: no plan erases a protected node, whoever made it and when.
func TestProtectIsAbsolute(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	text := strings.Replace(pinned, "DIGEST", one, 1)
	store := state.NewMemory()
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	p := planFor(t, openText(t, text), store, PlanOptions{})
	p.Lineage = store.Info().Lineage
	s := openText(t, strings.Replace(text, "  disks      =", "  protect    = true\n  disks      =", 1))
	_, err = s.Begin(ctx, RunOptions{Plan: p, Store: store, Fence: fence, EraseApproved: 2})
	if err == nil || !strings.Contains(err.Error(), "n1 is protected: no plan erases it") {
		t.Errorf("a run that erases protected nodes begins: %v", err)
	}
}

// TestRolloutsAreResumed: the steps of waves and their gates are no reason to take
// the files for changed.
func TestRolloutsAreResumed(t *testing.T) {
	t.Parallel()
	text := strings.Replace(pinned, "DIGEST", one, 1)
	store := finished(t, planFor(t, openText(t, text), state.Empty{}, PlanOptions{}))
	s := openText(t, strings.Replace(text, "mtu        = 1500", "mtu        = 4200", 1))
	p := planFor(t, s, store, PlanOptions{})
	gates, waves := 0, 0
	for _, st := range p.Steps {
		if st.Gate != nil {
			gates++
		}
		if st.ID != st.ID.Base() {
			waves++
		}
	}
	if gates == 0 || waves <= gates {
		t.Fatalf("no rollout in the plan: %d gates, %d steps of waves", gates, waves)
	}
	if why, err := s.Outdated(t.Context(), store, p); err != nil || why != "" {
		t.Errorf("outdated: %q, %v", why, err)
	}
	p.Steps = append(p.Steps, plan.Step{ID: "n1/drivers.gone@canary"})
	if why, _ := s.Outdated(t.Context(), store, p); !strings.Contains(why, "n1/drivers.gone@canary is no longer wanted") {
		t.Errorf("a step that is gone: %q", why)
	}
}

// TestReplaceWithinTargets: what is asked for twice, and differently, is refused.
func TestReplaceWithinTargets(t *testing.T) {
	t.Parallel()
	s := openText(t, strings.Replace(pinned, "DIGEST", one, 1))
	_, _, err := s.Plan(t.Context(), state.Empty{}, PlanOptions{Replace: []string{"n1"}, Targets: []string{"n2"}})
	if err == nil || !strings.Contains(err.Error(), "--replace names n1, which --target leaves out") {
		t.Errorf("replacing n1 with the target n2: %v", err)
	}
}
