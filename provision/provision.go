// SPDX-License-Identifier: Apache-2.0

// Package provision brings a site up: Load -> Plan -> Apply -> Report. It is the
// page to read first. It puts the stages in their order, gives each what it
// reaches, and holds the rules that concern them all; what a stage does is in
// the stage's own package, what a BMC or a boot service does in theirs.
package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/roce"
	stacks "github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/fabricreview"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/hook"
	"github.com/ironrail/ironrail/provision/keys"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/notify"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/provision/selection"
)

// StateFolder is the name of the folder, in the site's, where ironrail keeps
// what it knows. It holds no secret but the controller's own keys.
const StateFolder = ".ironrail"

// Site is a loaded site with its state folder: a value that nothing changes, so that it
// is safe for concurrent use. What the state overrides of its files makes another one:
// Desired.
type Site struct {
	Inv       *inventory.Inventory // with overrides; as it was loaded until Desired applies them
	Keys      keys.Keys
	Artifacts artifacts.Artifacts // of Inv
	state     string              // absolute, the state folder
	secrets   reach.Secrets
	agent     string // path of the ironrail-agent program
	network   network.Network
	loaders   string                                                    // folder of the first-stage loaders; empty: where the distribution has them
	links     []*roce.Links                                             // of the fabrics with point-to-point addressing
	loaded    *overrides.Desired                                        // without overrides
	over      *overrides.Desired                                        // what Inv and links are of
	requested overrides.Request                                         // by a rebuild or rollback that is not recorded yet
	local     func(ctx context.Context, argv ...string) ([]byte, error) // programs of schedulers on this controller; nil: none
	subnets   func(fabric string) infiniband.Host                       // where subnet managers run; nil: nowhere
	clusterCA func(endpoint string) string                              // CAs of API servers; nil: what handovers say
	kept      *sockets.Kept                                             // keeps sockets open between services; nil: nothing does
	programs  hook.Program                                              // runs those of hooks; nil: the operating system does
}

// Options of Open.
type Options struct {
	Environ func(string) (string, bool) // looks up environment variables for secrets
	Agent   string                      // path of the static ironrail-agent program
	Virtual bool                        // Network is that of a virtual rack: the state is marked so, and one of real nodes is refused
	Look    bool                        // make no state folder, no keys, and no folders for evidence, events and repositories

	// What lies outside of this process; a rehearsal gives all of it.
	Network network.Network // nil: that of the operating system
	Kept    *sockets.Kept   // keeps the sockets of boot services open from one to the next; nil: they are closed with each
	Secrets reach.Secrets   // nil: resolves the site's references by Environ and its files
	// Packages makes the repository of a driver stack, unless it is there and
	// whole; nil: repo.Build, from the distribution's mirrors.
	Packages artifacts.Packages
	State    string // the state folder; empty: StateFolder in the site's
	Loaders  string // folder of the first-stage loaders; empty: where the distribution has them
	// Local runs a scheduler's program on this controller and returns its standard
	// output; nil: the operating system does, or with another Network nobody.
	Local func(ctx context.Context, argv ...string) ([]byte, error)
	// ClusterCA is the CA, in PEM, of the Kubernetes API server at an endpoint; nil:
	// what the handover says.
	ClusterCA func(endpoint string) string
	// Subnets is where the subnet manager of a fabric runs; nil: on this controller,
	// or with another Network nowhere.
	Subnets func(fabric string) infiniband.Host
	// Hooks runs the programs of hooks; nil: the operating system does.
	Hooks hook.Program
}

// Open makes the state folder of a loaded site and the controller's keys, when
// they are not there, and reads them. It resolves no secret of the site.
func Open(inv *inventory.Inventory, o Options) (*Site, error) {
	s, err := newSite(inv, o)
	if err != nil {
		return nil, err
	}
	s.Keys.Virtual = o.Virtual
	if _, err := os.Stat(s.path()); o.Look && errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if !o.Look {
		for _, d := range []string{"", "evidence", "events", "images", "repo"} {
			if err := os.MkdirAll(s.path(d), 0o755); err != nil {
				return nil, fmt.Errorf("state folder: %w", err)
			}
		}
	}
	if s.Keys, err = keys.Open(s.state, o.Look); err != nil {
		return nil, err
	}
	s.Keys.Virtual = o.Virtual
	if s.Keys.Manifest == nil { // it is only looked at
		return s, nil
	}
	if !o.Look && slices.ContainsFunc(inv.Nodes, stacks.TakesSigned) {
		if err := s.Keys.AddModules(s.state, inv.Site.Name, time.Now()); err != nil {
			return nil, err
		}
	}
	s.Artifacts, err = s.Artifacts.Open(s.Keys.Manifest)
	return s, err
}

// newSite is a site with what options name, and the operating system for what they leave
// out. It opens nothing.
func newSite(inv *inventory.Inventory, o Options) (*Site, error) {
	dir, err := filepath.Abs(inv.Dir) // builders work in other folders than the process
	if err != nil {
		return nil, err
	}
	s := &Site{Inv: inv, state: filepath.Join(dir, StateFolder), secrets: o.Secrets, agent: o.Agent, network: o.Network, kept: o.Kept, loaders: o.Loaders, links: roce.Addresses(inv)}
	s.loaded = overrides.None(inv, s.links)
	s.over = s.loaded
	s.clusterCA, s.programs = o.ClusterCA, o.Hooks
	if o.Secrets == nil {
		s.secrets = secret.Resolver{Dir: dir, Environ: o.Environ}
	}
	if o.Network == nil {
		s.network = network.OS{}
	}
	if s.local = o.Local; o.Local == nil && network.IsOS(s.network) {
		s.local = reach.LocalPrograms(o.Environ)
	}
	if s.subnets = o.Subnets; o.Subnets == nil && network.IsOS(s.network) {
		s.subnets = func(string) infiniband.Host { return infiniband.Local{} }
	}
	if o.State != "" {
		s.state, err = filepath.Abs(o.State)
	}
	s.Artifacts = artifacts.New(inv, s.state, o.Packages).WithSecrets(s.secrets.Resolve)
	return s, err
}

// Notifier is ready to send what happens in a run to the receivers that the site names;
// see notify.New. On a virtual rack there is nobody to notify.
func (s *Site) Notifier(say func(string)) (*notify.Notifier, error) {
	inv := *s.Inv
	if s.Keys.Virtual {
		inv.Notifies = nil
	}
	return notify.New(&inv, s.secrets.Resolve, say, notify.Options{})
}

// access is what the parts of the site are reached with.
func (s *Site) access() reach.Access {
	return reach.Access{Inv: s.Inv, Network: s.network, Secrets: s.secrets, SSH: s.Keys.SSH}
}

// schedulers reaches the schedulers of the site.
func (s *Site) schedulers() reach.Schedulers {
	return reach.Schedulers{Access: s.access(), Local: s.local, ClusterCA: s.clusterCA}
}

// FabricReview looks at the fabrics of the site.
func (s *Site) FabricReview() fabricreview.Review {
	return fabricreview.Review{Inv: s.Inv, Subnets: s.subnets}
}

// path is a place in the state folder.
func (s *Site) path(elem ...string) string {
	return filepath.Join(append([]string{s.state}, elem...)...)
}

// StatePath is the file of the state.
func StatePath(dir string) string { return filepath.Join(dir, StateFolder, "state.db") }

// PlanOptions are the operator's options for one plan.
type PlanOptions struct {
	Replace      []string // nodes to reinstall, as Select reads them
	Retest       []string // nodes in service to drain and test again, as Select reads them
	Targets      []string // nodes to plan for, as Select reads them; none: all
	Decommission []string // nodes that the site does not have any more, by name
	// Disks are the serial numbers or WWNs of the disks that nodes are reinstalled on,
	// by node, where the operator names another than that of the last install.
	Disks   map[string]string
	Refresh bool // look at everything that was done, whatever its age
	// Trust is how long what was done, or seen, is taken to be so still; what is
	// older is looked at. Zero: forever.
	Trust time.Duration
	Now   time.Time
	Say   func(string) // is told how far a long look is; nil: nobody
	// Offline contacts nobody: nodes that the state does not know are not looked at, nor
	// what was done. The plan says so.
	Offline bool
	// Gaps is given what the files ask for and do not get, also where the plan is refused
	// for it; nil: nobody is.
	Gaps func(gaps.List)
	// Looked is given what was looked at, for looks.Record; nil: nobody is.
	Looked func([]looks.Look)
}

// Desired is the site with what the state overrides of its files, what a rebuild or a
// rollback requests that is not recorded yet, and the nodes to decommission, by name. s
// is not changed, and may be one with overrides already: they are read anew.
func (s *Site) Desired(ctx context.Context, r state.Reader, decommission []string) (*Site, error) {
	q := s.requested
	q.Decommission = decommission
	d, err := overrides.Read(ctx, r, s.loaded.Files, s.loaded.Links, q)
	if err != nil {
		return nil, err
	}
	return s.with(d), nil
}

// PrepareRebuild returns the site that requests a rebuild, whose plans are made for the
// chassis that is there now. Nothing is changed, in the state or in the world.
func (s *Site) PrepareRebuild(ctx context.Context, r state.Reader, o *rebuild.Request) (*Site, error) {
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	chassis, err := rebuild.Prepare(ctx, r, s.access(), s.over, o)
	if err != nil {
		return nil, err
	}
	if chassis == nil { // it is the one that was there
		return s, nil
	}
	asks := *s
	asks.requested.Chassis = chassis
	return asks.Desired(ctx, r, nil)
}

// PrepareRollback finds what each node goes back to and makes sure that all of it
// is still there. It returns the site that requests it, whose plans are made for it.
// Nothing is changed in the state or on any node.
func (s *Site) PrepareRollback(ctx context.Context, r state.Reader, o *acceptance.Rollback) (*Site, error) {
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	if _, err := selection.CheckNames(s.Inv, o.Nodes); err != nil {
		return nil, err
	}
	restorable := func(ctx context.Context, p overrides.Pin) error { return s.Artifacts.CheckRestorable(ctx, s.over, p) }
	if err := o.ChoosePins(ctx, r, restorable); err != nil {
		return nil, err
	}
	asks := *s
	asks.requested.Pins = o.Pins
	return asks.Desired(ctx, r, nil)
}

// with is the site with overrides.
func (s *Site) with(d *overrides.Desired) *Site {
	now := *s
	now.Inv, now.links, now.over, now.Artifacts = d.Inv, d.Links, d, s.Artifacts.For(d.Inv)
	return &now
}

// withOrphaned is the site that knows the orphaned among the nodes that are gone from its
// files.
func (s *Site) withOrphaned(ctx context.Context, r state.Reader, gone []string) *Site {
	return s.with(s.over.WithOrphaned(ctx, r, gone))
}

// Relock computes the lock file of the site's files, whatever overrides them. It writes
// nothing.
func (s *Site) Relock(o artifacts.LockOptions) (artifacts.LockUpdate, error) {
	return s.Artifacts.For(s.loaded.Files).Relock(s.loaded.Links, o)
}

// Report gathers what a state of this site says about it. version is that of this program.
func (s *Site) Report(ctx context.Context, r state.Reader, version string, now time.Time) (report.Input, error) {
	if err := keys.CheckSite(ctx, r, s.Inv.Site.Name); err != nil {
		return report.Input{}, err
	}
	digests, err := s.Artifacts.Digests()
	if err != nil {
		return report.Input{}, err
	}
	in, err := acceptance.ReadReport(ctx, r, s.Inv, digests, version, now)
	if err != nil {
		return in, err
	}
	switch virtual, err := keys.IsVirtual(ctx, r); {
	case err != nil:
		return in, err
	case virtual:
		in.Origin = report.Simulated
	}
	return in, acceptance.AddChain(&in, s.path("evidence"))
}

// For is the site as a plan was made of it.
func (s *Site) For(ctx context.Context, r state.Reader, p *plan.Plan) (*Site, error) {
	now, err := s.Desired(ctx, r, overrides.Decommissions(p))
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, g := range p.Orphaned {
		gone = append(gone, g.Node)
	}
	return now.withOrphaned(ctx, r, gone), nil
}

// desired collects the steps of every stage, in the order of the stage table.
func (s *Site) desired(view stage.View) (steps []plan.Step, diags hcl.Diagnostics, err error) {
	digests, err := s.Artifacts.Digests()
	if err != nil {
		return nil, nil, err
	}
	all := s.offlineWorld().stages(digests)
	of, wrong := make([][]plan.Step, len(all)), make([]hcl.Diagnostics, len(all))
	var wg sync.WaitGroup
	for i, st := range all { // pure, so that they may plan at the same time
		wg.Go(func() { of[i], wrong[i] = st.Plan(view) })
	}
	wg.Wait()
	return hook.Place(s.Inv, slices.Concat(of...)), slices.Concat(refused(s.Inv), s.Artifacts.Unsigned(digests), slices.Concat(wrong...)), nil
}
