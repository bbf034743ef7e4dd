// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
)

// checkRefused ends an apply whose plan may not be done.
func checkRefused(p *plan.Plan) error {
	n := len(p.Refusals)
	return errkind.New(errkind.Refused, "nothing was done: the plan has %d refused %s", n, pluralOf(n, "step", "steps")).
		Do(p.Refusals[0].Action)
}

// agree shows a plan that is about to be done, with the operator's options about its
// drains in it, and asks for it. A plan with refused steps, or that nobody agrees to,
// is an error; one without steps is not asked for, and nil is returned. The approval
// says how many nodes may be erased.
func (a *app) agree(ctx context.Context, site *provision.Site, o ownership, p *plan.Plan, f applyFlags, resume bool) (*state.Approval, error) {
	f.drainFlags.to(p)
	var err error
	if p.Sum, err = p.Digest(); err != nil {
		return nil, err
	}
	guess := a.predictDuration(ctx, site, o.store, p)
	a.showBefore(p, guess)
	a.showReview(ctx, site, o, p, f, guess, resume)
	switch {
	case len(p.Refusals) > 0:
		a.letLook(f)
		return nil, checkRefused(p)
	case p.Empty():
		return nil, nil
	}
	how, err := a.approve(p, f, resume, site.Inv.Site.MaxErase)
	if err != nil {
		return nil, err
	}
	if f.shown != nil {
		f.shown.ReviewApproved()
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return &state.Approval{By: operatorName(), Host: host, At: a.now().UTC(), How: how, Erase: countErases(p), MaxErase: new(site.Inv.Site.MaxErase), Sum: p.Sum}, nil
}

// showReview says the digest of a plan with something to read, and shows the plan on the pages
// that there are: on that of an owner that stays only while somebody is asked.
func (a *app) showReview(ctx context.Context, site *provision.Site, o ownership, p *plan.Plan, f applyFlags, guess predict.Prediction, resume bool) {
	if p.Empty() && len(p.Refusals) == 0 {
		return
	}
	a.sayf("Digest of the plan: %s", p.Sum)
	expected := []string{}
	if guess.Steps > 0 {
		expected = guess.Text()
	}
	if f.shown != nil {
		f.shown.Review(p, expected)
		a.sayf("The page shows the same plan and digest: %splan", f.shown.URL())
	}
	if o.lent == nil || f.approve || resume || len(p.Refusals) > 0 || !isTerminal(a.in) {
		return
	}
	if err := o.lent.Review(ctx, control.ReviewRequest{Sum: p.Sum, Expected: expected}, p, site.Keys.Plan); err != nil {
		a.sayf("warning: the page of serve does not show the plan: %v", err)
		return
	}
	a.sayf("The page of serve shows the same plan and digest, below /plan.")
}

// letLook keeps the page, where there is one, until somebody at the terminal has looked at a
// plan that cannot be approved.
func (a *app) letLook(f applyFlags) {
	if f.shown == nil || !isTerminal(a.in) {
		return
	}
	fmt.Fprint(a.err, "\nThe plan is refused. The page shows it until Enter is pressed: ")
	_, _ = bufio.NewReader(a.in).ReadString('\n')
}

// countErases counts the nodes that the steps of a plan erase.
func countErases(p *plan.Plan) int {
	erased := map[subject.ID]bool{}
	for i := range p.Steps {
		if p.Steps[i].May.Has(plan.Erase) {
			erased[p.Steps[i].Subject] = true
		}
	}
	return len(erased)
}

// approve asks, unless flags have answered, and says how it was approved. The number
// past the budget of the site is never implied.
func (a *app) approve(p *plan.Plan, f applyFlags, resume bool, budget int) (state.Approved, error) {
	n := countErases(p)
	switch {
	case f.counted && n > f.erase:
		return "", errkind.New(errkind.Refused, "this plan erases %d %s, and --erase approves %d", n, pluralOf(n, "node", "nodes"), f.erase).
			Do(fmt.Sprintf("Read which they are. Give the number if that is meant: --erase %d.", n))
	case n > budget && f.erase != n:
		if f.approve || f.counted {
			return "", errkind.New(errkind.Refused, "this plan erases %d nodes; the site allows %d at once", n, budget).
				Do(fmt.Sprintf("Give the number if that is meant: --erase %d. --auto-approve does not stand for it.", n))
		}
		return state.ByTyping, a.promptFor(fmt.Sprintf("erase %d nodes", n), fmt.Sprintf("Read the plan, then add --auto-approve --erase %d.", n))
	case f.approve && f.counted:
		return state.ByNumber, nil
	case f.approve:
		return state.ByFlag, nil
	case resume:
		return state.ByResumed, nil
	}
	return state.ByTyping, a.promptFor("yes", "Read the plan, then add --auto-approve.")
}

// promptFor asks the operator to type a word. hint is what to do where nobody can.
func (a *app) promptFor(word, hint string) error {
	if !isTerminal(a.in) {
		return errkind.New(errkind.Refused, "this needs an answer, and standard input is not a terminal; nothing was done").
			Do(hint)
	}
	fmt.Fprintf(a.err, "\nType %q to do this: ", word)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != word {
		return errkind.New(errkind.Refused, "not approved; nothing was done")
	}
	return nil
}
