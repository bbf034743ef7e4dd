// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// Board is a node's mainboard that tells the Grid when it is on: what it draws
// changes then, and a cold start has its surge. Give the chassis this instead of
// b, before it runs: the load is off from now on until it does. Where the load of
// a running node changes, call Changed.
func (g *Grid) Board(load string, b chassis.Board) chassis.Board {
	l := g.loads[load]
	g.set(l, false, false)
	return board{g, l, b}
}

type board struct {
	grid  *Grid
	load  *load
	inner chassis.Board
}

// Run implements chassis.Board.
func (b board) Run(ctx context.Context, cold bool) chassis.Exit {
	b.grid.set(b.load, true, cold)
	exit := b.inner.Run(ctx, cold)
	off := func() {
		if context.Cause(ctx) != chassis.ErrReset {
			b.grid.set(b.load, false, false)
		}
	}
	switch {
	case ctx.Err() != nil:
		off()
	case exit == chassis.Halt:
		context.AfterFunc(ctx, off) // it stays on until somebody acts
	case exit == chassis.Shutdown:
		b.grid.set(b.load, false, false)
	}
	return exit
}
