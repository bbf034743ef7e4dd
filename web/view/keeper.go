// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// How old what is shown may be.
const (
	leastAge = time.Second      // a reading that is younger is not repeated
	share    = 20               // reading takes at most one part of so many of the time
	oldest   = 5 * time.Second  // of a reading while an owner that stays may see nodes boot
	copyAge  = 20 * time.Second // of what is read from a copy of the state while a run is active
)

// Keeper keeps the last reading of a site. It is safe for concurrent use.
type Keeper struct {
	Dir     string                                              // the site's folder
	State   string                                              // its state folder
	Load    func() (*inventory.Inventory, error)                // reads the site's files; beside an error, what could be understood
	Open    func(*inventory.Inventory) (*provision.Site, error) // opens the site for its report
	Version string                                              // of this program
	Now     func() time.Time

	review atomic.Pointer[Review] // that is shown now; nil: none

	mu     sync.Mutex // guards what follows; held while a site is read
	last   *Snapshot
	read   time.Time // when last was read
	took   time.Duration
	state  string               // fileOf the state, as of last
	files  *inventory.Sources   // that were loaded last
	inv    *inventory.Inventory // of them, or of those before where fault is not empty
	fault  string               // why the files cannot be used
	failed error                // of the last reading, which is not repeated sooner than a good one; nil: it was good
	stale  bool                 // last is a reading from before: the owner did not answer since

	report   cached[report.Input]
	findings cached[findingsOf]
	index    cached[[]Hit]
	plan     cached[*storedPlan]
	cables   cached[map[string][]Cable]
	stories  stories
	events   eventsRead
	saved    struct {
		sync.Mutex
		plan *storedPlan // that was read last
	}
}

// Snapshot is one reading of a site. Nobody changes it.
type Snapshot struct {
	Generation uint64 // rises with every change
	At         time.Time
	Inv        *inventory.Inventory
	Site       why.Site
	Owner      *control.Identity // nil: no run is active
	Rehearsal  bool              // what a rehearsal left: its nodes were simulated
	Trouble    string            // why the site's files, or its state, cannot be read now

	nodes  []why.NodeSummary // in the order of the site
	byName map[string]int    // places in nodes

	suspects map[string]bool // names of what findings suspect
	review   *Review         // nil: no plan waits for its approval
}

// Current reads the site where the last reading is old and something has changed.
func (k *Keeper) Current(ctx context.Context) (*Snapshot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.takeReview()
	now := k.Now()
	if k.isRecent(now) {
		return k.last, k.failed
	}
	who, owned, err := control.FindOwner(k.State)
	if err != nil {
		return nil, err
	}
	edited, kept := k.files.HaveChanged(), fileOf(onrecord.Place{Folder: k.State}.File())
	same := !edited && kept == k.state
	if k.failed == nil && same && k.stands(who, owned, now) {
		return k.last, nil
	}
	begun := time.Now()
	s, err := k.readSite(ctx, edited)
	if _, silent := errors.AsType[onrecord.OwnedError](err); silent && k.last != nil {
		k.last, k.read, k.took, k.stale, k.failed = k.last.withTrouble(err), now, time.Since(begun), true, nil
		return k.last, nil
	}
	if k.read, k.took, k.failed = now, time.Since(begun), err; err != nil {
		return k.last, err
	}
	if k.last != nil && same && !k.stale && isSame(s, k.last) {
		s = k.last
	}
	k.last, k.state, k.stale = s, kept, false
	return s, nil
}

// stands reports whether the last reading is as good as a new one, of files and a state that are as they were.
func (k *Keeper) stands(who control.Identity, owned bool, now time.Time) bool {
	if k.last == nil || k.stale {
		return false
	}
	if !owned && k.last.Owner == nil && onrecord.EtcdOf(k.last.Inv) != nil {
		return now.Sub(k.read) < oldest // another controller may be the owner
	}
	if !owned && k.last.Owner == nil {
		k.read = now
		return true
	}
	idle := owned && who.Resident && k.last.Owner != nil && *k.last.Owner == who && k.last.Site.Run == nil
	return idle && now.Sub(k.read) < oldest
}

// isSame reports whether two readings of the same files and state say the same.
func isSame(a, b *Snapshot) bool {
	of := a.Site
	of.Now = b.Site.Now
	return a.Inv == b.Inv && a.Trouble == b.Trouble && a.Owner != nil && b.Owner != nil && *a.Owner == *b.Owner && reflect.DeepEqual(of, b.Site)
}

// isRecent reports whether the last reading, good or failed, is not to be repeated yet.
func (k *Keeper) isRecent(now time.Time) bool {
	age := now.Sub(k.read)
	return (k.last != nil || k.failed != nil) && age >= 0 && age < max(leastAge, share*k.took)
}

// withTrouble is a reading that stands while the owner of the state does not answer, and says so.
func (s *Snapshot) withTrouble(err error) *Snapshot {
	if s.Trouble == err.Error() {
		return s
	}
	old := *s
	old.Trouble = err.Error()
	old.Generation++
	return &old
}

// Status is where all nodes stand, as an owner of the state would say it.
func (k *Keeper) Status(ctx context.Context) (control.Status, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return control.Status{}, err
	}
	out := control.Status{Run: s.Site.Run, Nodes: s.Site.Nodes, Waits: s.Site.Waits, Paces: s.Site.Paces, Notes: s.Site.Notes}
	if s.Owner != nil {
		out.Owner = *s.Owner
	}
	return out, nil
}

// readSite reads the site; its files only where they have changed.
func (k *Keeper) readSite(ctx context.Context, edited bool) (*Snapshot, error) {
	s := &Snapshot{At: k.Now(), Generation: 1, review: k.review.Load()}
	if k.last != nil {
		s.Generation = k.last.Generation + 1
	}
	if k.inv == nil || edited {
		inv, err := k.Load()
		if k.files = nil; inv != nil {
			k.files = inv.Sources
		}
		switch {
		case err == nil:
			k.inv, k.fault = inv, ""
		case k.inv == nil:
			return nil, err
		default:
			k.fault = err.Error()
		}
	}
	s.Inv, s.Trouble = k.inv, k.fault
	var err error
	at := k.records(s)
	at.Say = func(text string) { s.Trouble = strings.TrimLeft(s.Trouble+"\n"+text, "\n") }
	s.Site, s.Owner, err = at.Standings(ctx)
	if _, owned := errors.AsType[onrecord.OwnedError](err); owned && k.last == nil {
		s.Trouble, s.Site, err = err.Error(), why.Site{Now: s.At}, nil // a run that waits for its approval
	}
	if err != nil {
		return nil, err
	}
	if _, s.Rehearsal, err = rehearsal.ReadKept(k.State); err != nil {
		return nil, err
	}
	if s.Rehearsal && s.Site.Last != nil && !s.Site.Last.Ended.IsZero() {
		s.At, s.Site.Now = s.Site.Last.Ended, s.Site.Last.Ended // its clock was a virtual one
	}
	s.alignNodes()
	s.suspects = suspectsOf(s.Site)
	return s, nil
}

// alignNodes puts the nodes into the order of the site's files: an owner knows those that
// its run began with, and the files may have others by now.
func (s *Snapshot) alignNodes() {
	known := map[string]why.NodeSummary{}
	for _, n := range why.SummariseNodes(s.Site) {
		known[n.Node] = n
	}
	s.byName = make(map[string]int, len(s.Inv.Nodes))
	for i, n := range s.Inv.Nodes {
		sum, ok := known[n.Name]
		if !ok {
			sum = why.NodeSummary{Node: n.Name, Status: why.Untouched, Text: "nothing was done with it yet"}
		}
		s.nodes = append(s.nodes, sum)
		s.byName[n.Name] = i
	}
}

// records reads what is known of the site of a snapshot.
func (k *Keeper) records(s *Snapshot) onrecord.Site {
	return onrecord.Site{State: k.State, Inv: s.Inv, Now: func() time.Time { return s.At }}
}

// withState calls f with the state, or with a copy of it while a run is active.
func (k *Keeper) withState(ctx context.Context, s *Snapshot, f func(state.Reader) error) error {
	err := k.records(s).WithState(ctx, f)
	if _, owned := errors.AsType[onrecord.OwnedError](err); !owned {
		return err
	}
	return k.records(s).WithCopy(ctx, f)
}

// fileOf is what says that a file is as it was; "" for one that is not there.
func fileOf(path string) string {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// mostStories bounds the nodes whose stories are kept.
const mostStories = 128

// stories are what is known of single nodes. A story is read anew where the site has
// changed, and as often as its reading allows: the journal of a large site is long.
type stories struct {
	mu sync.Mutex // guards the map
	of map[string]*story
}

// story is one node's, of a generation.
type story struct {
	mu         sync.Mutex // guards what follows; held while it is read
	generation uint64
	at         time.Time
	took       time.Duration
	why        control.Why
	running    bool
}

// entry is the place of a node's story.
func (x *stories) entry(node string) *story {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.of[node]; e != nil {
		return e
	}
	if x.of == nil || len(x.of) >= mostStories {
		x.of = map[string]*story{} // those that somebody looks at come again
	}
	e := &story{}
	x.of[node] = e
	return e
}

// storyOf reads what is known of a node.
func (k *Keeper) storyOf(ctx context.Context, s *Snapshot, node string) (control.Why, bool, error) {
	e := k.stories.entry(node)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := k.Now()
	if e.generation == s.Generation || e.generation > 0 && now.Sub(e.at) >= 0 && now.Sub(e.at) < share*e.took {
		return e.why, e.running, nil
	}
	begun := time.Now()
	y, running, err := k.records(s).Node(ctx, node)
	if err != nil {
		return y, running, err
	}
	e.why, e.running, e.generation, e.at, e.took = y, running, s.Generation, now, time.Since(begun)
	return y, running, nil
}

// cached is a value that is made when somebody asks for it, once for a generation, and
// while a run is active at most once in copyAge.
type cached[T any] struct {
	mu         sync.Mutex
	generation uint64
	at         time.Time
	value      T
}

func (c *cached[T]) get(s *Snapshot, now time.Time, read func() (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == s.Generation || c.generation > 0 && s.Owner != nil && now.Sub(c.at) >= 0 && now.Sub(c.at) < copyAge {
		return c.value, nil
	}
	v, err := read()
	if err == nil {
		c.value, c.generation, c.at = v, s.Generation, now
	}
	return v, err
}

// forget drops all stories; one that is being read is not kept.
func (x *stories) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = nil
}

// Forget lets the next reading be a new one: something was changed by this process.
func (k *Keeper) Forget() {
	k.stories.forget()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read, k.files, k.failed = time.Time{}, nil, nil
}
