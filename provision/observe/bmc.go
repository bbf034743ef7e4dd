// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
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

// Console is the serial console of a node, found: nothing of the state is used any more, so that the state
// may be closed while the console is open.
type Console struct {
	at   reach.Console
	pool *bmc.Pool
	open reach.Terminal
}

// FindConsole finds the console of a node, with what the state knows of its BMC. It connects to nothing.
func (o Observer) FindConsole(r state.Reader, node string) (Console, error) {
	if _, err := selection.CheckNames(o.Inv, []string{node}); err != nil {
		return Console{}, err
	}
	n, _ := o.Inv.Node(node)
	b := o.BMCs(reach.Facts(r))
	at, err := b.Console(n)
	return Console{at, b.Pool, reach.TerminalOn(o.Network)}, err
}

// Open copies what the node prints to w until ctx ends, and types what comes from keys, nil: nothing; up is
// called each time that the console is open. It has a session of its own. See reach.Terminal.
func (c Console) Open(ctx context.Context, w io.Writer, keys <-chan string, up func()) error {
	return c.open(ctx, c.at, w, keys, up)
}

// CheckIdentity refuses a BMC that says that it is of another node, over a session that ends with the
// question.
func (c Console) CheckIdentity(ctx context.Context, inv *inventory.Inventory) error {
	err := direct.CheckIdentity(ctx, inv, func(string) (direct.BMC, error) { return c.pool.Handle(c.at.BMC), nil }, c.at.BMC.Node)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	return errors.Join(err, c.pool.Close(end))
}
