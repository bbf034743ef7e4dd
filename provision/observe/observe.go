// SPDX-License-Identifier: Apache-2.0

// Package observe looks at nodes, switches and BMCs without changing them: whether what
// was done is so still, what steps of switches would write, which unknown nodes run, and
// what has drifted since nodes were accepted. It keeps baselines, and the answers of BMCs,
// in the state.
package observe

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/reach"
)

// Observer looks at the parts of a site. It is a value that nothing changes, so that it
// is safe for concurrent use.
type Observer struct {
	reach.Access

	// Stages makes the stages of the site for a look, by what r knows of boot attempts.
	Stages func(ctx context.Context, r state.Reader, w Dependencies) ([]stage.Stage, error)
	// NodeStages makes the stages that configure installed nodes: drivers and fabrics.
	NodeStages func(nodes onnode.Nodes) []stage.Stage
	// Fabrics makes the kinds of fabrics, by name, that read switches and subnets.
	Fabrics func(nodes onnode.Nodes, switches switchos.Switches) map[string]fabric.Kind
	// SwitchKind makes the kind that configures switches; it reaches none.
	SwitchKind func() *switchos.Kind
}

// Dependencies is what the stages of a look reach.
type Dependencies struct {
	BMC      func(ctx context.Context, node string) (oob.BMC, error) // ErrNotAsked where BMCs are not asked
	Nodes    onnode.Nodes
	Switches switchos.Switches // nil: they are not asked
}

// ErrNotAsked is the answer in place of a BMC's where BMCs are not asked.
var ErrNotAsked = errkind.New(errkind.Refused, "BMCs are not asked by this look").Do("`ironrail plan --refresh` asks them.")

// Options say what of a plan's steps is looked at.
type Options struct {
	Refresh bool // look at everything that was done, whatever its age; BMCs and switches are asked
	// Trust is how long what was done, or seen, is taken to be so still; what is
	// older is looked at. Zero: forever.
	Trust  time.Duration
	Now    time.Time
	Say    func(string)       // is told how far a long look is; nil: nobody
	Looked func([]looks.Look) // is given what was looked at, for looks.Record; nil: nobody is
}
