package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/state"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show where every node stands",
		Long:  "Show what a running apply does now and where every node stands. Works from a second terminal, and without a run.",
		Args:  usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.status(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			writeStatus(a.out, s)
			return nil
		},
	}
}

// status asks the owner, or reads the state when there is none.
func (a *app) status(ctx context.Context) (control.Status, error) {
	if _, owned, err := control.Find(a.stateDir()); err != nil {
		return control.Status{}, err
	} else if owned {
		return control.NewClient(a.stateDir()).Status(ctx)
	}
	inv, err := a.inventory()
	if err != nil {
		return control.Status{}, err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return control.Status{}, err
	}
	defer closeState()
	nodes, err := provision.NodeStates(ctx, inv, r)
	return control.Status{Nodes: nodes}, err
}

// inventory loads the site for a command that only needs its names; findings
// that are no errors are not repeated here.
func (a *app) inventory() (*inventory.Inventory, error) {
	inv, diags, files := inventory.Load(a.dir, inventory.Options{})
	if diags.HasErrors() {
		a.showDiagnostics(diags, files)
		return nil, exit{exitFailed, fmt.Errorf("the site has %d errors", diags.Errors())}
	}
	return inv, nil
}

func writeStatus(w io.Writer, s control.Status) {
	b := &strings.Builder{}
	if s.Run != nil {
		fmt.Fprintf(b, "%s runs plan %s.\n", s.Owner, s.Run.Plan)
		for _, x := range s.Run.Active {
			name := x.Node
			if name == "" {
				name = strings.Join(x.Members, ",")
			}
			fmt.Fprintf(b, "  %-12s %-8s %-24s %s, since %s%s\n", name, x.State, x.ID, event.Escape(x.Text), x.Since.Local().Format(time.TimeOnly), until(x.Until))
		}
	} else {
		fmt.Fprintln(b, "No run is active.")
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(b, "%-12s %s\n", n.Name, standing(n))
	}
	io.WriteString(w, b.String())
}

// until shows a deadline.
func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + t.Local().Format(time.TimeOnly)
}

// standing says in a line where a node stands.
func standing(n state.Node) string {
	switch {
	case n.Hold != nil:
		return fmt.Sprintf("held by %s since %s: %s", event.Escape(n.Hold.By), n.Hold.At.Local().Format(time.DateTime), event.Escape(n.Hold.Reason))
	case n.Quarantine != nil:
		return "quarantined: " + event.Escape(n.Quarantine.Finding.Cause)
	case n.Accepted:
		return "accepted " + n.AcceptedAt.Local().Format(time.DateTime)
	case n.Adopted:
		return "adopted as it was found (unverified) " + n.AdoptedAt.Local().Format(time.DateTime)
	case n.Run != "":
		return "not accepted yet"
	}
	return "nothing was done yet"
}

func (a *app) holdCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "hold NODE...",
		Short: "Stop all automation on nodes at once",
		Long:  "Stop all automation on the nodes, now and in later runs, until `ironrail release`. Works while apply runs.",
		Args:  usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.mark(c.Context(), args, "held", reason, (*control.Client).Hold, state.HoldNode)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the node next")
	return c
}

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release NODE...",
		Short: "Let held nodes go again",
		Args:  usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.mark(c.Context(), args, "released", "", (*control.Client).Release, state.ReleaseNode)
		},
	}
}

// mark holds or releases nodes through the owner, or in the state when there is
// none.
func (a *app) mark(ctx context.Context, nodes []string, word, reason string,
	ask func(*control.Client, context.Context, string, control.HoldRequest) error,
	write func(context.Context, state.Store, state.Fence, string, state.Hold) error) error {
	by := operator()
	var failed error
	one := func(n string, err error) {
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		fmt.Fprintf(a.err, "%s is %s.\n", n, word)
	}
	if _, owned, err := control.Find(a.stateDir()); err != nil {
		return err
	} else if owned {
		c := control.NewClient(a.stateDir())
		for _, n := range nodes {
			one(n, ask(c, ctx, n, control.HoldRequest{By: by, Reason: reason}))
		}
		return failed
	}
	inv, err := a.inventory()
	if err != nil {
		return err
	}
	return a.asOwner(ctx, word, func(store state.Store, fence state.Fence) error {
		for _, n := range nodes {
			if _, ok := inv.Node(n); !ok {
				one(n, fmt.Errorf("%q is not a node of this site", n))
				continue
			}
			one(n, write(ctx, store, fence, n, state.Hold{By: by, Reason: reason, At: time.Now().UTC()}))
		}
		return failed
	})
}

// asOwner owns the state for a short command.
func (a *app) asOwner(ctx context.Context, command string, f func(state.Store, state.Fence) error) error {
	owner, err := control.Acquire(a.stateDir(), command, time.Now())
	if err != nil {
		return exit{exitOwned, err}
	}
	defer owner.Release()
	store, err := state.Open(provision.StatePath(a.dir))
	if err != nil {
		return err
	}
	defer store.Close()
	fence, err := store.Claim(ctx, owner.String())
	if err != nil {
		return err
	}
	return f(store, fence)
}

// operator names who types, for the journal.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "operator"
}
