// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/draw/cost"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images/diskless"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/doca"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/rocm"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/images/raw"
	"github.com/ironrail/ironrail/images/rhel"
	"github.com/ironrail/ironrail/images/ubuntu"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/handover/ansible"
	"github.com/ironrail/ironrail/provision/handover/command"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	"github.com/ironrail/ironrail/provision/handover/slurm"
	"github.com/ironrail/ironrail/provision/nics"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/floor"
)

// Load reads the site in a folder with every kind and every check that there is,
// as inventory.Load does. It is how every command reads a site.
func Load(dir string, o inventory.Options) (*inventory.Inventory, inventory.Diagnostics, inventory.Files) {
	kinds := siteKinds(o.Now, dir)
	o.Kinds, o.Checks = &kinds, siteChecks()
	return inventory.Load(dir, o)
}

// siteKinds are the language's kinds with what their owners add: checks, and the
// topology of fabrics. now decides what has ended, such as a driver's support.
// All topologies are computed before the first check; then a kind's check runs once
// for each of its blocks.
func siteKinds(now time.Time, dir string) inventory.Kinds {
	kinds := inventory.DefaultKinds()

	checked(kinds.Image, raw.Kind{}.Name(), raw.Check(now, dir))
	checked(kinds.Image, rhel.Kind{}.Name(), rhel.Check)
	checked(kinds.Image, ubuntu.Kind{}.Name(), ubuntu.Check)
	checked(kinds.Image, diskless.Kind{}.Name(), diskless.Check)

	checked(kinds.Driver, cuda.Name, cuda.Check(now))
	checked(kinds.Driver, rocm.Name, rocm.Check)
	checked(kinds.Driver, doca.Name, doca.Check)
	checked(kinds.Driver, inbox.Name, inbox.Check)

	designed(kinds.Fabric, infiniband.Name, infiniband.Design)
	checked(kinds.Fabric, infiniband.Name, infiniband.Check)
	designed(kinds.Fabric, roce.Name, roce.Design)
	checked(kinds.Fabric, roce.Name, roce.Check)
	checked(kinds.Fabric, nvlink.Name, nvlink.Check)

	checked(kinds.Handover, slurm.Name, slurm.Check)
	checked(kinds.Handover, kubernetes.Name, kubernetes.Check)
	checked(kinds.Handover, ansible.Name, ansible.Check)
	checked(kinds.Handover, command.Name, command.Check)

	return kinds
}

// siteChecks look at the whole site, after the checks of the kinds.
func siteChecks() []inventory.Check {
	return []inventory.Check{
		artifacts.CheckLock,     // ironrail.lock, and the addresses that it holds
		power.Check,             // PDUs, phases and feeds; room, weight and cooling of racks
		nics.Check,              // settings of NICs that cards do not have
		cable.Check,             // ways, lengths and types of cables
		stack.CheckRepositories, // keys of the repositories of drivers
		usage.Missing,           // GPUs without a driver stack
		usage.Unsigned,          // modules that a node with Secure Boot would refuse
		cost.Check,              // prices of what the site does not have
		floor.Check,             // limits and quorums that faulty hardware would keep
		checkUnimplemented,
	}
}

// checked gives a kind the check of its owner.
func checked(kinds map[string]inventory.KindSpec, kind string, check func(*inventory.Inventory, inventory.Block) diag.List) {
	spec := kinds[kind]
	spec.Check = check
	kinds[kind] = spec
}

// designed gives a kind of fabric the rule that computes its topology.
func designed(kinds map[string]inventory.KindSpec, kind string, design func(*inventory.Inventory, *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List)) {
	spec := kinds[kind]
	spec.Design = design
	kinds[kind] = spec
}

// Durations are how long steps take on a site that has no past of its own: the table of
// the prediction, and what each test says of itself.
func Durations() []predict.Row {
	rows := slices.Clone(predict.Table)
	for _, c := range validate.Checks {
		d := c.Duration
		rows = append(rows, predict.Row{Kind: c.Kind(), Low: d.Low, Mid: d.Mid, High: d.High, Per: predict.Unit(d.Per), Planned: d.AsPlanned, Source: d.Source, Words: d.Words})
	}
	return rows
}

// Predict says how long a plan is expected to take: from the site's own past
// where there is one (nil: none), else from the table. images overrules what the
// store knows of image sizes; nil: it does not.
func (s *Site) Predict(p *plan.Plan, past *predict.History, images map[string]predict.Image) (predict.Prediction, error) {
	if images == nil {
		images = s.Artifacts.ImageSizes()
	}
	return predict.Estimate(p, predict.Options{Table: Durations(), Profiles: predict.Profiles(s.Inv), Images: images, Capacity: capacity(s.Inv), Parallel: parallel(s.Inv), History: past})
}

// Past reads how long steps took in earlier runs of this site.
func (s *Site) Past(ctx context.Context, r state.Reader) (*predict.History, error) {
	return predict.ReadHistory(ctx, r, predict.Profiles(s.Inv), Durations())
}

// listRollouts is how changes reach nodes in service, by role, and the role of each
// node. A role without a rollout block has the language's defaults.
func listRollouts(inv *inventory.Inventory) (map[string]plan.Rollout, map[string]string) {
	nodes, roleOf := map[*inventory.Role]int{}, make(map[string]string, len(inv.Nodes))
	for _, n := range inv.Nodes {
		if n.Role != nil {
			nodes[n.Role]++
			roleOf[n.Name] = n.Role.Name
		}
	}
	all := map[string]plan.Rollout{}
	for r, n := range nodes {
		o := r.Rollout
		// A little less than the exact share: 10% of 30 is 3 and not 3.0000000000000004.
		batch := int(math.Ceil(float64(o.Batch)*float64(n)/100 - 1e-9))
		all[r.Name] = plan.Rollout{Given: o.Decl != hcl.Range{}, Canary: o.Canary, Batch: max(batch, 1), StopAfter: o.StopAfter, Decl: stage.Source(o.Decl)}
	}
	return all, roleOf
}

// What a plan of many nodes may take before the garbage collector has to work
// harder: 12,500 nodes plan within it, loaded site included, without a collection or
// with one. It grows with the site, since what is in use then would leave no room.
const (
	planMemory        = 640 << 20 // bytes, of any site
	planMemoryPerNode = 48 << 10
)

// LimitMemory makes the garbage collector wait for as long as the program stays
// within what a plan of so many nodes takes, and no longer: nearly all that planning
// allocates lives to its end. A lower limit that the environment sets (GOMEMLIMIT)
// stays. The function that it returns puts back what was before, once all have called
// it who limit at the same time.
func LimitMemory(nodes int) (restore func()) {
	return patience.begin(longWait, max(planMemory, int64(nodes)*planMemoryPerNode))
}

// CollectLess makes the garbage collector wait while the files of dir are loaded: nearly all
// that a load allocates lives to its end. It waits less where there is much to parse, since
// what the parser needs is twenty times the text and does not live on: 12,500 nodes that are
// written out take 6 MB of text. restore is as that of LimitMemory.
func CollectLess(dir string) (restore func()) {
	const much = 1 << 20 // bytes
	percent := longWait
	if files, err := filepath.Glob(filepath.Join(dir, "*.hcl")); err == nil {
		text := int64(0)
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				text += info.Size()
			}
		}
		if text > much {
			percent = 125
		}
	}
	return patience.begin(percent, math.MaxInt64)
}

// longWait is how much may be allocated between two collections, in percent of what lives.
const longWait = 400

// patience is what the collector was set to before somebody made it wait. A resident
// process loads and plans at the same time: the last one puts back what the first one found.
var patience collector

type collector struct {
	mu      sync.Mutex // guards what follows, and the settings
	users   int
	percent int   // before the first of them
	limit   int64 // bytes, before the first of them
}

func (c *collector) begin(percent int, limit int64) (restore func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users++; c.users == 1 {
		c.percent, c.limit = debug.SetGCPercent(percent), debug.SetMemoryLimit(-1) // -1 only asks
	}
	debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), limit))
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.users--; c.users == 0 {
			debug.SetGCPercent(c.percent)
			debug.SetMemoryLimit(c.limit)
		}
	})
}
