// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
)

// Target is one stack on one node.
type Target struct {
	Node   *inventory.Node
	Driver *inventory.Driver
}

// Kind is one kind of driver stack. All methods but Check reach the world and
// may block; they are safe for concurrent use.
type Kind interface {
	// Check finds what this kind cannot do with a declaration. It is pure.
	Check(*inventory.Driver) hcl.Diagnostics
	// Prepare makes ready, on the controller, what the stack's nodes with that
	// image install from. It does nothing when that is ready.
	Prepare(ctx context.Context, d *inventory.Driver, image string, say func(string)) error
	// Prepared tells whether Prepare has nothing to do.
	Prepared(ctx context.Context, d *inventory.Driver, image string) (stage.Observation, error)
	// Install brings the stack to the node. Doing it twice is harmless. It does
	// what Prepare does when that was lost since, so it may take as long.
	Install(ctx context.Context, run stage.Run, t Target) error
	// Verify looks whether the stack is there, and returns what is installed.
	Verify(ctx context.Context, t Target) (stage.Observation, Installed, error)
}

// Fitter is a Kind that judges a stack together with the system of its nodes. The
// target is one of the nodes of an image and a chassis; what is found holds for all
// of them. It is pure.
type Fitter interface {
	Fits(Target) hcl.Diagnostics
}

// Starter is a Kind whose installation only runs after it was started: modules are
// loaded, and the node restarts where that cannot be done while it runs. It does so
// through an effect of its own, of kind power.
type Starter interface {
	Start(ctx context.Context, run stage.Run, t Target) error
}

// Signing is a Kind that has kernel modules built and signed on the controller for a target.
type Signing interface {
	Signs(Target) bool
}

// Installed is what stands on a node of one stack.
type Installed struct {
	Packages map[string]string `json:"packages"` // name to version
	Modules  []string          `json:"modules,omitempty"`
}

// Packages is the fact of what is installed of the named stack on a node.
func Packages(driver string) fact.Name[Installed] {
	return fact.Name[Installed]("driver.packages." + driver)
}
