// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/docs/checks"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/rehearse/rack"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// loadInventory loads the site's files with the variables of the command line.
func (a *app) loadInventory() (*inventory.Inventory, inventory.Diagnostics, inventory.Files) {
	vars := map[string]string{}
	for _, v := range a.vars {
		name, value, _ := strings.Cut(v, "=") // checked before any command runs
		vars[name] = value
	}
	// Nearly all that a load allocates lives to its end, so that collecting it
	// again and again is in vain: 12,500 nodes load a third faster this way.
	defer provision.CollectLess(a.dir)()
	defer a.during("Reading and checking the files of the site")()
	inv, diags, files := provision.Load(a.dir, inventory.Options{Variables: vars, Now: a.now(), CheckNames: checkNames()})
	if inv != nil && (a.rack || a.isKept()) {
		inv.State = inventory.StateStore{Kind: "file"} // in a folder of its own
	}
	if inventory.Complete(diags) {
		a.where.set(onrecord.EtcdOf(inv))
	}
	return inv, diags, files
}

// isKept reports whether the state is what a rehearsal left.
func (a *app) isKept() bool {
	_, kept, err := rehearsal.ReadKept(a.stateDir())
	return kept && err == nil
}

// checkNames are the checks that allow blocks can name: those with a page.
func checkNames() []string {
	var names []string
	for _, p := range checks.All() {
		names = append(names, p.Name)
	}
	return names
}

// checkVars refuses --var words that are not NAME=VALUE, another --color than there is, and what must not be done in this folder.
func (a *app) checkVars(c *cobra.Command, _ []string) error {
	for _, v := range a.vars {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return exit{exitUsage, fmt.Errorf("--var %q is not NAME=VALUE", v)}
		}
	}
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return exit{exitUsage, fmt.Errorf("--color %q is not auto, always or never", a.color)}
	}
	if err := a.checkRack(c); err != nil {
		return err
	}
	return a.checkKept(c)
}

// load loads the site for a command that acts on it, and on these nodes: errors
// end the command, warnings are shown.
func (a *app) load(nodes ...string) (*provision.Site, inventory.Files, error) {
	return a.open(provision.Options{}, checkNamed(nodes))
}

// loadFor is load for nodes that were named by words, each list by itself.
func (a *app) loadFor(words ...[]string) (*provision.Site, inventory.Files, error) {
	return a.open(provision.Options{}, checkChosen(words))
}

// openReadOnly loads the site for a command that changes nothing: a site without a state
// folder stays without one.
func (a *app) openReadOnly(nodes ...string) (*provision.Site, inventory.Files, error) {
	return a.open(provision.Options{Look: true}, checkNamed(nodes))
}

// openReadOnlyFor is openReadOnly for nodes that were named by words, each list by itself.
func (a *app) openReadOnlyFor(words ...[]string) (*provision.Site, inventory.Files, error) {
	return a.open(provision.Options{Look: true}, checkChosen(words))
}

// openRecords loads the site for a command that shows what is on record, as openReadOnly does
// but for the errors that names lets pass.
func (a *app) openRecords(nodes ...string) (*provision.Site, error) {
	inv, err := a.names(nodes...)
	if err != nil {
		return nil, err
	}
	return a.openSite(inv, provision.Options{Look: true})
}

// checkNamed checks names of nodes against an inventory.
func checkNamed(nodes []string) func(*inventory.Inventory) error {
	return func(inv *inventory.Inventory) error { return checkKnown(nodeNames(inv), nodes) }
}

// checkChosen checks words against an inventory, before anything is made.
func checkChosen(lists [][]string) func(*inventory.Inventory) error {
	return func(inv *inventory.Inventory) (errs error) {
		for _, words := range lists {
			_, err := selection.ReadNodes(inv, words)
			errs = errors.Join(errs, err)
		}
		return errs
	}
}

func (a *app) open(o provision.Options, check func(*inventory.Inventory) error) (*provision.Site, inventory.Files, error) {
	inv, diags, files := a.loadInventory()
	diags = withoutGaps(diags) // a plan says by itself what it refuses and what has no effect
	if len(diags) > 0 {
		a.showDiagnostics(diags, files)
	}
	if diags.HasErrors() {
		return nil, files, diagnosed{hasErrors(diags), diags, nil}
	}
	if err := check(inv); err != nil {
		return nil, files, err
	}
	if a.rack {
		o.Look = false // so that simulated images are there; what is made is the rack's own
	}
	var err error
	if o.Agent, err = agentProgram(); err != nil {
		return nil, files, err
	}
	s, err := a.openSite(inv, o)
	return s, files, err
}

// inventory loads the site for a command that only needs its names; findings
// that are no errors are not repeated here.
func (a *app) inventory(nodes ...string) (*inventory.Inventory, error) {
	inv, diags, files := a.loadInventory()
	if diags.HasErrors() {
		a.showDiagnostics(diags, files)
		return nil, hasErrors(diags)
	}
	return inv, checkKnown(nodeNames(inv), nodes)
}

// names loads the site for a command that shows what is on record or stops
// automation: what an operator needs most while the files are being fixed, or when
// another version of ironrail finds more in them. Errors after which a part of the
// model is missing end it; others are counted.
func (a *app) names(nodes ...string) (*inventory.Inventory, error) {
	inv, diags, files := a.loadInventory()
	if !inventory.Complete(diags) {
		a.showDiagnostics(diags, files)
		return nil, hasErrors(diags)
	}
	if n := diags.Errors(); n > 0 {
		a.sayf("warning: the site's files have %d %s, which `ironrail check` shows; nothing is planned until they are fixed.", n, pluralOf(n, "error", "errors"))
	}
	return inv, checkKnown(nodeNames(inv), nodes)
}

// hasErrors ends a command that needs a site without errors.
func hasErrors(diags inventory.Diagnostics) error {
	n := diags.Errors()
	return fmt.Errorf("the site has %d %s", n, pluralOf(n, "error", "errors"))
}

// checkKnown compares the nodes that the operator named with those that there are.
func checkKnown(all, named []string) error {
	var errs error
	have := map[string]bool{}
	for _, n := range all {
		have[n] = true
	}
	for _, n := range named {
		if !have[n] {
			errs = errors.Join(errs, errkind.New(errkind.NotFound, "%q is not a node of this site.%s", n, diag.DidYouMean(n, all)).
				Do("`ironrail status` lists them."))
		}
	}
	return errs
}

// plainNames reports whether words can be nothing but names of nodes.
func plainNames(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, "*?[!,.") })
}

// selected are the nodes of words. The site's files are read only where a word may
// be no plain name; whoever uses plain ones has to look them up.
func (a *app) selected(words []string) ([]string, error) {
	if plainNames(words) {
		return words, nil
	}
	inv, err := a.names()
	if err != nil {
		return nil, err
	}
	return selection.ReadNodes(inv, words)
}

// nodeNames lists the nodes of an inventory.
func nodeNames(inv *inventory.Inventory) (names []string) {
	for _, n := range inv.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// completeNodes offers node names to the shell.
func (a *app) completeNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	inv, diags, _ := a.loadInventory()
	if diags.HasErrors() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nodeNames(inv), cobra.ShellCompDirectiveNoFileComp
}

// completeWords offers to the shell what names nodes.
func (a *app) completeWords(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	inv, diags, _ := a.loadInventory()
	if diags.HasErrors() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return selection.ListWords(inv), cobra.ShellCompDirectiveNoFileComp
}

// agentProgram is the ironrail-agent that lies beside this program.
func agentProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), "ironrail-agent"), nil
}

// stateDir is the state folder of the site, with --rack that of its virtual rack.
func (a *app) stateDir() string {
	if a.rack {
		return rack.StateFolder(a.dir)
	}
	return filepath.Join(a.dir, provision.StateFolder)
}

// statePath is the file of the state.
func (a *app) statePath() string {
	return filepath.Join(a.stateDir(), filepath.Base(provision.StatePath(a.dir)))
}

// openReader opens the state for reading; without one it is empty. While another
// process owns it, its file is not readable.
func (a *app) openReader() (state.Reader, func(), error) {
	return a.place().Read(context.Background()) // its calls have deadlines
}

// place is where the state of the site lies.
func (a *app) place() onrecord.Place {
	return onrecord.Place{Folder: a.stateDir(), Etcd: a.etcd, Say: a.note}
}

// note says something beside what a command prints.
func (a *app) note(text string) { a.sayf("%s", text) }

// etcd is where in etcd the state lies; nil: in a file. The site's files are read unless they
// were, or the folder has a state of its own.
func (a *app) etcd() (*etcd.Config, error) {
	if c, known := a.where.get(); known {
		return c, nil
	}
	if original, err := onrecord.IsOriginal(a.statePath()); err != nil || original {
		return nil, err
	}
	_, diags, _ := a.loadInventory()
	c, known := a.where.get()
	if !known {
		return nil, hasErrors(diags)
	}
	return c, nil
}

// whereabouts is where in etcd the state lies, as the files had it that were read last. It is
// safe for concurrent use.
type whereabouts struct {
	mu    sync.Mutex // guards what follows
	etcd  *etcd.Config
	known bool
}

func (w *whereabouts) set(c *etcd.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.etcd, w.known = c, true
}

func (w *whereabouts) get() (c *etcd.Config, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.etcd, w.known
}

// asked asks the owner of the state; false when there is none.
func (a *app) asked(ask func(*control.Client) error) (bool, error) {
	return onrecord.AskOwner(a.stateDir(), ask)
}

// onRecord is what is known of a site.
func (a *app) onRecord(inv *inventory.Inventory) onrecord.Site {
	return onrecord.Site{State: a.stateDir(), Inv: inv, Now: a.now, Say: a.note}
}

// marker changes what is known of nodes in passing, for a command.
func (a *app) marker(command string) onrecord.Marker {
	m := onrecord.Marker{Place: a.place(), Command: command, Now: a.now}
	if a.rack {
		m.Claimed = func(ctx context.Context, s state.Store, f state.Fence) error {
			return markVirtual(ctx, ownership{store: s, fence: f})
		}
	}
	return m
}

// ownership is the state while this process owns it.
type ownership struct {
	*control.Owner // nil: the state is borrowed
	store          state.Store
	fence          state.Fence
	lent           *onrecord.Borrowed // from an owner that stays; nil: this process owns it
}

// own takes the state for a command, or borrows it from an owner that stays. The error has
// exit code 11 while another process owns it, or has borrowed it.
func (a *app) own(ctx context.Context, command string) (ownership, error) {
	if who, owned, err := control.FindOwner(a.stateDir()); err != nil || owned && who.Resident {
		if err != nil {
			return ownership{}, err
		}
		if a.metrics.Address != "" {
			return ownership{}, exit{exitUsage, errors.New("--metrics: serve does the run, and has its metrics at /metrics of its page")}
		}
		b := control.Borrower{Identity: control.Identity{PID: os.Getpid(), Command: command, Started: a.now()}, Program: thisVersion()}
		s, err := a.place().Borrow(ctx, b)
		if err != nil {
			return ownership{}, err
		}
		return ownership{store: s, fence: state.Fence{Number: 1}, lent: s}, nil
	}
	return a.ownAlone(ctx, command)
}

// ownAlone takes the state for a command, and borrows it from nobody.
func (a *app) ownAlone(ctx context.Context, command string) (o ownership, err error) {
	own, err := a.place().Own(ctx, command, command == residentCommand, a.now())
	if err != nil {
		return o, err
	}
	o = ownership{Owner: own.Owner, store: own.Store, fence: own.Fence}
	if a.rack {
		if err := markVirtual(ctx, o); err != nil {
			o.giveBack()
			return o, err
		}
	}
	if file, ok := o.store.(*state.Bolt); ok {
		a.keepCopies(ctx, file, command)
	}
	return o, nil
}

// keepCopies says that an older file was kept, and makes the daily copy of apply. A
// copy that cannot be made is no reason to stop.
func (a *app) keepCopies(ctx context.Context, s *state.Bolt, command string) {
	if old := s.Migrated(); old > 0 {
		a.sayf("The state was brought from format %d to %d. The old file is kept as %s.", old, state.Format, state.OldFormatPath(s.Path(), old))
	}
	if command == "apply" {
		a.copyDaily(ctx, s)
	}
}

// copyDaily makes the daily copy of the state.
func (a *app) copyDaily(ctx context.Context, s *state.Bolt) {
	if _, err := state.SaveDailyCopy(ctx, s, filepath.Join(a.stateDir(), backupFolder), a.now()); err != nil {
		a.sayf("warning: the daily copy of the state: %s", err)
	}
}

// giveBack ends the ownership. What was appended is on disk already, so that an
// error of closing loses nothing.
func (o ownership) giveBack() {
	_ = o.store.Close()
	if o.Owner != nil {
		_ = o.Release()
	}
}
