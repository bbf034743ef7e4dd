// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/overrides"
)

// TestConcurrentPlans: one Site is planned with many options at once, from a state that
// overrides its files. Each plan is the one that is made alone, and the inventory that
// was loaded stays as it was.
func TestConcurrentPlans(t *testing.T) {
	t.Parallel()
	s := openText(t, strings.Replace(pinned, "DIGEST", one, 1))
	n1, _ := s.Inv.Node("n1")
	was := overrides.ChassisOf(n1)
	store := finished(t, planFor(t, s, state.Empty{}, PlanOptions{}))
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	x := overrides.Replacement{Node: "n1", Chassis: overrides.Chassis{Serial: "NEW1", UUID: was.UUID, BootMAC: was.BootMAC}, Was: was, At: time.Unix(1, 0)}
	if err := x.Put(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(t.Context(), fence, b); err != nil {
		t.Fatal(err)
	}
	options := []PlanOptions{{}, {Replace: []string{"n1"}}, {Targets: []string{"n2"}}, {Replace: []string{"n1", "n2"}}, {Offline: true}}
	text := func(o PlanOptions) string {
		o.Now = time.Unix(2, 0)
		p, diags, err := s.Plan(t.Context(), store, o)
		if err != nil || diags.HasErrors() {
			return fmt.Sprint(diags, err)
		}
		var steps []string
		for i := range p.Steps {
			steps = append(steps, string(p.Steps[i].ID)+" "+fmt.Sprint(p.Steps[i].Inputs))
		}
		return strings.Join(append(steps, p.Warnings...), "\n")
	}
	var alone []string
	for _, o := range options {
		alone = append(alone, text(o))
	}
	if !strings.Contains(alone[1], "NEW1") {
		t.Errorf("the replaced chassis is in no step or warning:\n%s", alone[1])
	}
	var wg sync.WaitGroup
	for range 4 {
		for i, o := range options {
			wg.Go(func() {
				if got := text(o); got != alone[i] {
					t.Errorf("%+v: planned at the same time as others\n%s\nalone\n%s", o, got, alone[i])
				}
			})
		}
	}
	wg.Wait()
	if n, _ := s.Inv.Node("n1"); n != n1 || overrides.ChassisOf(n) != was {
		t.Errorf("planning has changed the inventory that was loaded: %+v", overrides.ChassisOf(n))
	}
}

// TestOfflinePlan: it contacts nobody, and says so.
func TestOfflinePlan(t *testing.T) {
	t.Parallel()
	s := openText(t, strings.Replace(pinned, "DIGEST", one, 1))
	s.network = nil // whoever dials panics
	p := planFor(t, s, state.Empty{}, PlanOptions{Offline: true, Trust: time.Second})
	if p.Empty() || p.Request == nil || !p.Request.Offline || !slices.Contains(p.Warnings, offlineWarning) {
		t.Errorf("%d steps, asked %+v, warnings %q", len(p.Steps), p.Request, p.Warnings)
	}
	if _, _, err := s.Plan(t.Context(), state.Empty{}, PlanOptions{Offline: true, Refresh: true}); err == nil || !strings.Contains(err.Error(), "contacts nobody") {
		t.Errorf("offline and refresh: %v", err)
	}
}

// TestInsecureIsInEveryPlan: a BMC whose certificate nobody verifies is named by each
// plan, also by one that changes nothing.
func TestInsecureIsInEveryPlan(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("DIGEST", one, `protocol = "ipmi"`, `protocol = "redfish"`).Replace(pinned)
	insecure := strings.Replace(text, `protocol = "redfish"`, `protocol = "redfish"
  tls      = "insecure"`, 1)
	warned := func(p *plan.Plan) bool {
		return slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "BMC certificates are not verified") })
	}
	if p := planFor(t, openText(t, text), state.Empty{}, PlanOptions{Offline: true}); warned(p) {
		t.Errorf("pinned certificates: %q", p.Warnings)
	}
	s := openText(t, insecure)
	p := planFor(t, s, state.Empty{}, PlanOptions{Offline: true})
	if !warned(p) {
		t.Errorf("first plan: %q", p.Warnings)
	}
	if p = planFor(t, s, finished(t, p), PlanOptions{Offline: true}); !p.Empty() || !warned(p) {
		t.Errorf("plan without changes: %d steps, %q", len(p.Steps), p.Warnings)
	}
}
