// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/direct"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/selection"
)

// closeWait bounds the end of sessions of BMCs.
const closeWait = 5 * time.Second

// AskBMCs asks the BMCs of nodes, all of them when none is named, and gives each
// answer to tell when it comes, one at a time. The state holds the certificates that
// they must show.
func (o Observer) AskBMCs(ctx context.Context, r state.Reader, q control.BMCQuestion, names []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	want, err := selection.CheckNames(o.Inv, names)
	if err != nil {
		return nil, err
	}
	b := o.BMCs(reach.Facts(r))
	list := b.Ask(ctx, q, want, tell)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	return list, b.Pool.Close(end)
}

// AskBMC asks a node's BMC, and its PDUs where they may tell more, while no run is
// active: it opens one session and closes it. It resolves the secrets of both.
func (o Observer) AskBMC(ctx context.Context, node string, r state.Reader) (control.Look, error) {
	if _, err := selection.CheckNames(o.Inv, []string{node}); err != nil {
		return control.Look{}, err
	}
	n, _ := o.Inv.Node(node)
	b := o.BMCs(reach.Facts(r))
	l := reach.AskBMC(ctx, n, b, o.Feeds(nil))
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	return l, b.Pool.Close(end)
}

// Console copies what a node prints on its serial console to w until ctx ends; up
// is called each time that the console is open. It opens a session of its own at
// the node's BMC, besides that of a run. See bmc.Console.
func (o Observer) Console(ctx context.Context, r state.Reader, node string, w io.Writer, up func()) error {
	if _, err := selection.CheckNames(o.Inv, []string{node}); err != nil {
		return err
	}
	n, _ := o.Inv.Node(node)
	t, err := o.BMCs(reach.Facts(r)).Target(n, n.Serial)
	if err != nil {
		return err
	}
	return bmc.Console(ctx, t, bmc.Options{Network: o.Network}, w, up)
}

// Type is Console, and types what comes from keys, by the rules of direct.CheckTyping; by is who types.
func (o Observer) Type(ctx context.Context, r state.Reader, node, by string, w io.Writer, keys <-chan string, up func()) error {
	if _, err := selection.CheckNames(o.Inv, []string{node}); err != nil {
		return err
	}
	b := o.BMCs(reach.Facts(r))
	n, _ := o.Inv.Node(node)
	t, err := b.Target(n, n.Serial)
	if err != nil {
		return err
	}
	err = direct.CheckTyping(ctx, o.Inv, r, func(string) (direct.BMC, error) { return b.Pool.Handle(t), nil }, node, by)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	if err := errors.Join(err, b.Pool.Close(end)); err != nil { // the console takes a session of its own
		return err
	}
	return bmc.Terminal(ctx, t, bmc.Options{Network: o.Network}, w, keys, up)
}
