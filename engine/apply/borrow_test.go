// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestBorrow: what is lent counts against the limit of a resource, a step waits for it without
// the run ending meanwhile, and a borrower in line is not passed by steps.
func TestBorrow(t *testing.T) {
	t.Parallel()
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	uses := func(n int) []plan.Use { return []plan.Use{{Resource: "pdu/a", Units: n, Hold: plan.ForStep}} }
	p := &plan.Plan{Format: plan.Format, ID: "p1", Lineage: store.Info().Lineage}
	for _, n := range []string{"n1", "n2"} {
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(n + "/on"), Stage: "x", Subject: subject.OfNode(n), Deadline: plan.Budget{Limit: time.Minute}, Uses: uses(3)})
	}
	began, goOn := make(chan string, 2), make(chan struct{})
	e, err := apply.New(t.Context(), apply.Config{Plan: p, Store: store, Fence: fence, Capacity: room, Stages: map[string]stage.Stage{"x": fake{
		apply: func(ctx context.Context, _ stage.Run, s plan.Step) error {
			began <- s.Subject.Name
			<-goOn
			return nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Borrow(uses(4)); errkind.Of(err) != errkind.Internal {
		t.Errorf("more than there is: %v", err)
	}
	wait, first, err := e.Borrow(uses(2))
	if err == nil {
		err = wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := e.Run(t.Context()); ended <- err }()
	select {
	case n := <-began:
		t.Fatalf("%s started while 2 of 3 units were lent", n)
	case err := <-ended:
		t.Fatalf("the run ended while its steps waited for what is lent: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if s := e.NextStep("n2"); s != "n2/on" {
		t.Errorf("next step of n2: %q", s)
	}
	first()
	if n := <-began; n != "n1" {
		t.Errorf("%s started first", n)
	}
	wait, back, err := e.Borrow(uses(1))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	waitInVain, leave, err := e.Borrow(uses(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := waitInVain(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that waited in vain: %v", err)
	}
	leave()
	goOn <- struct{}{} // n1 ends: the borrower comes before n2
	if err := wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-began:
		t.Fatalf("%s passed a borrower in line", n)
	case <-time.After(50 * time.Millisecond):
	}
	back()
	if n := <-began; n != "n2" {
		t.Errorf("%s started", n)
	}
	goOn <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s := e.NextStep("n2"); s != "" {
		t.Errorf("n2 still has %s", s)
	}
}
