// SPDX-License-Identifier: Apache-2.0

// Package rehearsal runs a whole site on the virtual rack: the plan, the stages
// and the protocols are those of a real run, the hardware below them is
// simulated, with faults. Time is virtual, the state is thrown away, and no
// secret is resolved.
package rehearsal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/bubble"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Options of a rehearsal. The zero value is a rehearsal in memory without
// faults.
type Options struct {
	Seed    uint64
	Faults  []fault.Fault
	Kill    Kill   // the controller dies once more, at a record
	Dir     string // folder for the throw-away state; empty: one of its own, removed at the end
	Version string
	// Keep is a folder that gets the state, marked as that of a rehearsal; empty: nothing is kept.
	Keep      string
	Variables []string // NAME=VALUE that the site was loaded with, for what is kept

	// What the prediction of the real bring-up is made from beside its table:
	// the site's own past, and the sizes of its images. nil: neither is known.
	Past   *predict.History
	Images map[string]predict.Image

	// Indexes of real repositories, by which the packages of images and driver stacks are
	// solved; "": there are none.
	Indexes repo.Recorded

	Loopback bool    // real sockets on 127.x and wall time, so that other tools can look
	Speed    float64 // of loopback: how much faster hardware is; 0: DefaultSpeed
	Linger   bool    // of loopback: the virtual rack stays until Interrupted

	// OnPlan is told the plan and its prediction before anything is done, and
	// OnEvent every event. Both are called on virtual time: they must not wait,
	// and channels that they use must come from outside. nil: nobody listens.
	OnPlan  func(*plan.Plan, predict.Prediction)
	OnEvent func(event.Event)
	// OnRun asks while a run is active, as a second terminal does. It is called on a
	// goroutine of its own, on virtual time, and returns when ctx is done. nil: nobody
	// asks.
	OnRun func(ctx context.Context, ask control.Backend)
	// OnReady is told where a loopback rehearsal's devices answer.
	OnReady func([]virtual.Endpoint)
	// OnLinger is told what came of the rehearsal when the virtual rack lingers.
	OnLinger func(Summary)
	// Interrupted is asked now and then whether the operator wants to stop; nil:
	// never.
	Interrupted func() bool
	// OnRack changes the virtual rack before anything is planned, on virtual time: what
	// stands there beside what the site says. nil: nothing.
	OnRack func(context.Context, *virtual.World) error
	// Then goes on after the first run, with the same state and the same hardware;
	// nil: nothing follows.
	Then func(context.Context, *Rehearsal) error
	// OnReport gets the report of the run, as a site's state gives it. nil: none is made.
	OnReport func(report.Input) error
	// OnEnd is shown the virtual rack and the state after the last run; for tests.
	OnEnd func(*virtual.World, state.Reader)
}

// DefaultSpeed is how much faster than in a room hardware is on loopback.
const DefaultSpeed = 60

// mostOnLoopback is how many nodes a rehearsal on real sockets may have.
const mostOnLoopback = 128

// Run rehearses a site. The inventory is used up: digests that it pins are taken
// off. What a plan is refused for although all images are built is Unplannable; what is
// simulated stands in the Summary. The error is about the rehearsal as a whole; what
// failed in it is in the Summary.
func Run(ctx context.Context, inv *inventory.Inventory, o Options) (Summary, error) {
	if err := fault.CheckFits(inv, o.Faults); err != nil {
		return Summary{}, errkind.New(errkind.Invalid, "%w", err)
	}
	if o.Loopback && len(inv.Nodes) > mostOnLoopback {
		return Summary{}, errkind.New(errkind.Unsupported, "a rehearsal on loopback has at most %d nodes; this site has %d", mostOnLoopback, len(inv.Nodes)).
			Do("Rehearse it in memory: leave --loopback out.")
	}
	dir, cleanup, err := newTempDir(o.Dir)
	if err != nil {
		return Summary{}, err
	}
	defer cleanup()
	t := &Rehearsal{opt: o, inv: inv, dir: dir, Clock: clock.Wall{}}
	t.sum.Site, t.sum.Seed = inv.Site.Name, o.Seed
	t.Planned = Lift(inv)
	t.sum.Simulated = gaps.OfRehearsal(inv, describePackages(inv, o.Indexes))
	// Before images and packages are made that nobody can use.
	refused, err := provision.Refusals(t.Planned)
	if err != nil {
		return t.sum, err
	}
	if refused.HasErrors() {
		return t.sum, Unplannable{refused}
	}
	t.began, t.meter = time.Now(), startMeter()
	if o.Loopback {
		if t.opt.Speed <= 0 {
			t.opt.Speed = DefaultSpeed
		}
		t.Clock = clock.NewFast(t.opt.Speed)
		t.Board = network.NewLoopback()
		err = t.play(ctx)
	} else {
		bubble.Run(func() { // a context from outside would hold virtual time still
			t.Board = network.NewMemory()
			err = t.play(context.Background())
		})
	}
	t.measure()
	return t.sum, err
}

// Lift is a site whose nodes are not protected, since a plan would refuse to erase them
// and on a virtual rack there is nothing to lose: the site itself where none is.
func Lift(inv *inventory.Inventory) *inventory.Inventory {
	if !slices.ContainsFunc(inv.Nodes, func(n *inventory.Node) bool { return n.Protect }) {
		return inv
	}
	out := inv.Copy()
	for _, n := range out.Nodes {
		n.Protect = false
	}
	return out
}

// measure fills in what the rehearsal cost, at its first call.
func (t *Rehearsal) measure() {
	if t.sum.WallTime == 0 {
		t.sum.PeakMemory, t.sum.WallTime = t.meter.stop(), Seconds(time.Since(t.began))
	}
}

// Unplannable says why a site cannot be planned, with places in its files.
type Unplannable struct{ Diags hcl.Diagnostics }

// Error is one line; the diagnostics are for a reader with the files.
func (u Unplannable) Error() string {
	return "the site cannot be planned as it stands: " + u.Diags.Error()
}

// newTempDir makes the folder of the state.
func newTempDir(dir string) (string, func(), error) {
	if dir != "" {
		return dir, func() {}, os.MkdirAll(dir, 0o700)
	}
	dir, err := os.MkdirTemp("", "ironrail-rehearsal-")
	return dir, func() { _ = os.RemoveAll(dir) }, err // nothing in it is needed
}

// Rehearsal is one rehearsal: the site, the virtual rack, and what came of it.
type Rehearsal struct {
	Planned    *inventory.Inventory // of the controller: the site, see Lift
	Clock      clock.Clock          // of the hardware
	Board      network.Board
	Site       *provision.Site // as it was opened last
	World      *virtual.World
	Store      *Store   // the state; a run claims it anew
	Unbootable []string // images whose next stand-in does not boot

	opt   Options
	inv   *inventory.Inventory // of the virtual rack
	dir   string
	steps map[string]*plan.Step // of the plan that runs; set before it does

	mu      sync.Mutex // guards waiting
	waiting []fault.Fault

	copies copies

	timed  context.Context // ends with the virtual rack; faults that come late wait on it
	timers sync.WaitGroup  // of them

	began time.Time // on the wall
	meter meter
	sum   Summary
}

// file is a place in the throw-away folder.
func (t *Rehearsal) file(elem ...string) string {
	return filepath.Join(append([]string{t.dir}, elem...)...)
}
