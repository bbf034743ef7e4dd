package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/plan"
)

// refused ends an apply whose plan may not be done.
func refused(p *plan.Plan) error {
	n := len(p.Refusals)
	return errkind.New(errkind.Refused, "nothing was done: the plan has %d refused %s", n, plural(n, "step", "steps")).
		Do(p.Refusals[0].Action)
}

// agree shows a plan that is about to be done, with the operator's wishes about its
// drains in it, and asks for it. A plan with refused steps, or that nobody agrees to,
// is an error; one without steps is not asked for. It returns how many nodes may be
// erased.
func (a *app) agree(ctx context.Context, site *provision.Site, o ownership, p *plan.Plan, f applyFlags, resume bool) (erase int, err error) {
	f.drainFlags.to(p)
	a.showBefore(p, a.guess(ctx, site, o.store, p))
	switch {
	case len(p.Refusals) > 0:
		return 0, refused(p)
	case p.Empty():
		return 0, nil
	}
	return a.approve(p, f, resume)
}

// approve asks, unless flags have answered, and returns how many erasures a
// person has approved. The number past the budget is never implied.
func (a *app) approve(p *plan.Plan, f applyFlags, resume bool) (erase int, err error) {
	n := len(p.Erase.Nodes)
	switch {
	case f.counted && n > f.erase:
		return 0, errkind.New(errkind.Refused, "this plan erases %d %s, and --erase approves %d", n, plural(n, "node", "nodes"), f.erase).
			Do(fmt.Sprintf("Read which they are. Give the number if that is meant: --erase %d.", n))
	case n > p.Erase.Budget && f.erase != n:
		if f.approve || f.counted {
			return 0, errkind.New(errkind.Refused, "this plan erases %d nodes; the site allows %d at once", n, p.Erase.Budget).
				Do(fmt.Sprintf("Give the number if that is meant: --erase %d. --auto-approve does not stand for it.", n))
		}
		return n, a.ask(fmt.Sprintf("erase %d nodes", n), fmt.Sprintf("Read the plan, then add --auto-approve --erase %d.", n))
	case f.approve, resume:
		return n, nil
	}
	return n, a.ask("yes", "Read the plan, then add --auto-approve.")
}

// ask wants the operator to type a word. hint is what to do where nobody can.
func (a *app) ask(word, hint string) error {
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
