// Package provision brings a site up: Load -> Plan -> Apply -> Report. It is the
// page to read first. It puts the stages in their order, gives each what it
// reaches, and holds the rules that concern them all; what a stage does is in
// the stage's own package, what a BMC or a boot service does in theirs.
package provision

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/network"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/secret"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/state"
)

// StateFolder is the name of the folder, in the site's, where ironrail keeps
// what it knows. It holds no secret but the controller's own keys.
const StateFolder = ".ironrail"

// Site is a loaded site with its state folder. It is safe for concurrent use.
type Site struct {
	Inv     *inventory.Inventory
	Keys    Keys
	Images  *store.Store // nil for a site that is only looked at and has no state folder
	state   string       // absolute, the state folder
	secrets Secrets
	agent   string // path of the ironrail-agent program
	network network.Network
	// packages makes the repository of a driver stack unless it is there.
	packages func(context.Context, repo.Options) (repo.Repo, error)
	loaders  string // folder of the first-stage loaders; empty: where the distribution has them
	whole    wholeRepos
	links    []*roce.Links // of the fabrics with point-to-point addressing
}

// Options of Open.
type Options struct {
	Environ func(string) (string, bool) // looks up environment variables for secrets
	Agent   string                      // path of the static ironrail-agent program
	Look    bool                        // make nothing: a site without a state folder stays without one

	// What lies outside of this process; a rehearsal gives all of it.
	Network network.Network // nil: that of the operating system
	Secrets Secrets         // nil: resolves the site's references by Environ and its files
	// Packages makes the repository of a driver stack, unless it is there and
	// whole; nil: repo.Build, from the distribution's mirrors.
	Packages func(context.Context, repo.Options) (repo.Repo, error)
	State    string // the state folder; empty: StateFolder in the site's
	Loaders  string // folder of the first-stage loaders; empty: where the distribution has them
}

// Secrets turns references into secrets, while a run needs them.
type Secrets interface {
	Resolve(secret.Ref) (secret.Value, error)
}

// Open makes the state folder of a loaded site and the controller's keys, when
// they are not there, and reads them. It resolves no secret of the site.
func Open(inv *inventory.Inventory, o Options) (*Site, error) {
	dir, err := filepath.Abs(inv.Dir) // builders work in other folders than the process
	if err != nil {
		return nil, err
	}
	s := &Site{Inv: inv, state: filepath.Join(dir, StateFolder), secrets: o.Secrets, agent: o.Agent, network: o.Network, loaders: o.Loaders, links: roce.Addresses(inv)}
	if s.packages = o.Packages; s.packages == nil {
		s.packages = repo.Build
	}
	if o.Secrets == nil {
		s.secrets = secret.Resolver{Dir: dir, Environ: o.Environ}
	}
	if o.Network == nil {
		s.network = network.OS{}
	}
	if o.State != "" {
		if s.state, err = filepath.Abs(o.State); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(s.path()); o.Look && errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	for _, d := range []string{"", "evidence", "events", "images", "repo"} {
		if err := os.MkdirAll(s.path(d), 0o755); err != nil {
			return nil, fmt.Errorf("state folder: %w", err)
		}
	}
	if s.Keys, err = LoadKeys(s.path("keys")); err != nil {
		return nil, err
	}
	s.Images, err = store.Open(s.path("images"), s.Keys.Manifest)
	return s, err
}

// path is a place in the state folder.
func (s *Site) path(elem ...string) string {
	return filepath.Join(append([]string{s.state}, elem...)...)
}

// StatePath is the file of the state.
func StatePath(dir string) string { return filepath.Join(dir, StateFolder, "state.db") }

// PlanOptions are the operator's wishes for one plan.
type PlanOptions struct {
	Replace []string // nodes to reinstall
	Targets []string // nodes to plan for; none: all
	Now     time.Time
}

// Plan compares the site with the state. It resolves no secret and changes
// nothing; nodes that the state does not know are looked at over the network, so
// that one that runs is offered for adoption and not for erasure.
func (s *Site) Plan(ctx context.Context, r state.Reader, o PlanOptions) (*plan.Plan, hcl.Diagnostics, error) {
	prior, err := state.Prior(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	steps, diags, err := s.desired(prior)
	if err != nil || diags.HasErrors() {
		return nil, diags, err
	}
	opt, err := s.wishes(o)
	if err != nil {
		return nil, diags, err
	}
	opt.Presence = s.presence(ctx, prior)
	p, err := plan.Diff(steps, prior, opt)
	if err != nil {
		return nil, diags, err
	}
	if !p.Empty() {
		p.Warnings = append(p.Warnings, inert(s.Inv)...)
	}
	p.ID, p.Created = planID(o.Now), o.Now.UTC()
	return p, diags, nil
}

// desired collects the steps of every stage, in the order of the stage table.
func (s *Site) desired(view stage.View) (steps []plan.Step, diags hcl.Diagnostics, err error) {
	digests, err := s.digests()
	if err != nil {
		return nil, nil, err
	}
	for _, st := range s.stages(digests, world{}) {
		got, d := st.Plan(view)
		steps, diags = append(steps, got...), append(diags, d...)
	}
	return steps, diags, nil
}

// wishes checks the operator's words against the inventory.
func (s *Site) wishes(o PlanOptions) (plan.Options, error) {
	opt := plan.Options{Site: s.Inv.Site.Name, MaxErase: s.Inv.Site.MaxErase, Protected: map[string]bool{}}
	var err error
	if opt.Replace, err = s.named(o.Replace); err != nil {
		return opt, err
	}
	if opt.Targets, err = s.named(o.Targets); err != nil {
		return opt, err
	}
	for _, n := range s.Inv.Nodes {
		if n.Protect {
			opt.Protected[n.Name] = true
		}
	}
	return opt, nil
}

// named checks node names that the operator typed.
func (s *Site) named(names []string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, name := range names {
		if _, ok := s.Inv.Node(name); !ok {
			return nil, errkind.New(errkind.Refused, "%q is not a node of this site.%s", name, diag.DidYouMean(name, s.nodeNames())).
				Do("`ironrail check --json` lists what the site holds.")
		}
		set[name] = true
	}
	return set, nil
}

func (s *Site) nodeNames() []string {
	names := make([]string, len(s.Inv.Nodes))
	for i, n := range s.Inv.Nodes {
		names[i] = n.Name
	}
	return names
}

// planID names a plan; names sort by time.
func planID(now time.Time) string {
	return "p" + now.UTC().Format("20060102T150405") + "-" + rand.Text()[:6]
}
