// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/pdu"
	"github.com/ironrail/ironrail/provision/supply"
)

// How PDUs are asked why a node is silent.
const (
	feedsWait  = 30 * time.Second // for the PDUs of one node
	feedsFresh = 20 * time.Second // a reading that old still counts, so that a rack asks its PDU once

	// feedsWindow is how far apart nodes of one outage are noticed: steps have
	// deadlines of their own.
	feedsWindow = 20 * time.Minute
	snmpPort    = 161
)

// Feeds asks the PDUs of nodes that fell silent. It is safe for concurrent use.
type Feeds struct {
	inv     *inventory.Inventory
	network network.Network
	secrets Secrets
	facts   func(fact.Key) (fact.Fact, bool) // readings of before; nil: there are none
	now     func() time.Time

	mu     sync.Mutex // guards what follows; never held while a PDU is asked
	last   map[string]reading
	silent map[string]time.Time // nodes that were found silent, and when
}

// reading is the last answer of a PDU.
type reading struct {
	at  time.Time
	got pdu.Reading
	err error
}

// Feeds reaches the site's PDUs. facts are readings of before; nil: there are none.
func (a Access) Feeds(facts func(fact.Key) (fact.Fact, bool)) *Feeds {
	return &Feeds{inv: a.Inv, network: a.Network, secrets: a.Secrets, facts: facts, now: time.Now,
		last: map[string]reading{}, silent: map[string]time.Time{}}
}

// Meter implements supply.World.
func (f *Feeds) Meter(p *inventory.PDU) (pdu.Meter, error) { return f.open(p) }

// Outlets are the outlets of a PDU, to be switched.
func (f *Feeds) Outlets(p *inventory.PDU) (pdu.Outlets, error) { return f.open(p) }

// open makes ready to speak with a PDU. The community is resolved here, and only here.
func (f *Feeds) open(p *inventory.PDU) (*pdu.Unit, error) {
	c, err := f.secrets.Resolve(p.Control.Community)
	if err != nil {
		return nil, errkind.New(errkind.Auth, "community of PDU %s: %w", p.Name, err).Do("Make the secret available to this command, then run it again.")
	}
	return pdu.Open(pdu.Target{Name: p.Name, Addr: netip.AddrPortFrom(p.Control.Address, snmpPort), Model: p.Control.Model, Community: c, Network: f.network})
}

// read asks a PDU, unless it was asked just before.
func (f *Feeds) read(ctx context.Context, p *inventory.PDU) (pdu.Reading, error) {
	f.mu.Lock()
	r, ok := f.last[p.Name]
	f.mu.Unlock()
	if ok && f.now().Sub(r.at) < feedsFresh {
		return r.got, r.err
	}
	var m pdu.Meter
	if m, r.err = f.Meter(p); r.err == nil {
		r.got, r.err = m.Read(ctx)
	}
	r.at = f.now()
	f.mu.Lock()
	f.last[p.Name] = r
	f.mu.Unlock()
	return r.got, r.err
}

// explain finds the PDU by which a node has no power. False: its feeds are not
// known, cannot be read, or deliver.
func (f *Feeds) explain(ctx context.Context, node string) (stage.Finding, bool) {
	n, ok := f.inv.Node(node)
	if !ok || len(n.Feeds) == 0 || slices.ContainsFunc(n.Feeds, func(d inventory.Feed) bool { return d.PDU == nil || d.PDU.Control == nil }) {
		return stage.Finding{}, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), feedsWait)
	defer cancel()
	o := pdu.Outage{Feeds: map[string][]pdu.Feed{}, Now: map[string]pdu.Reading{}, Before: map[string]pdu.Reading{}, Silent: map[string]bool{}, Window: feedsWindow}
	for _, d := range n.Feeds {
		r, err := f.read(ctx, d.PDU)
		if o.Now[d.PDU.Name] = r; err != nil {
			delete(o.Now, d.PDU.Name)
			o.Silent[d.PDU.Name] = true
		}
		if was, ok := f.before(d.PDU); ok {
			o.Before[d.PDU.Name] = was
		}
	}
	lost := f.addSilent(node)
	for _, other := range f.inv.Nodes {
		if !sharesFeed(n, other) {
			continue
		}
		if at, ok := lost[other.Name]; ok {
			o.Losses = append(o.Losses, pdu.Loss{Node: other.Name, At: at})
		}
		for _, d := range other.Feeds {
			o.Feeds[other.Name] = append(o.Feeds[other.Name], pdu.Feed{Supply: d.Supply, PDU: d.PDU.Name, Outlet: d.Outlet})
		}
	}
	for _, c := range pdu.ExplainOutage(o) {
		if c.Certain && slices.Contains(c.Nodes, node) {
			return findingOf(c), true
		}
	}
	return stage.Finding{}, false
}

// addSilent adds a node to those that are silent and returns all of them.
func (f *Feeds) addSilent(node string) map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent[node] = f.now()
	return maps.Clone(f.silent)
}

// before is what a PDU measured when the run began.
func (f *Feeds) before(p *inventory.PDU) (r pdu.Reading, ok bool) {
	if f.facts == nil {
		return r, false
	}
	known, ok := f.facts(supply.BeforeFact.Of(supply.Of(p)))
	if !ok {
		return r, false
	}
	r, err := supply.BeforeFact.Get(known)
	return r, err == nil
}

// sharesFeed reports whether two nodes hang on the same PDUs.
func sharesFeed(a, b *inventory.Node) bool {
	if len(b.Feeds) == 0 {
		return false
	}
	for _, d := range b.Feeds {
		if d.PDU == nil || !slices.ContainsFunc(a.Feeds, func(o inventory.Feed) bool { return o.PDU == d.PDU }) {
			return false
		}
	}
	return true
}

// findingOf is a cause as a finding about PDUs.
func findingOf(c pdu.Cause) stage.Finding {
	out := stage.Finding{Cause: c.Cause, Evidence: c.Evidence, Action: c.Action}
	for _, p := range c.Parts {
		part := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(p.String(), "PDU "+p.PDU), "of "))
		out.Suspects = append(out.Suspects, stage.Suspect{Subject: subject.ID{Kind: subject.PDU, Name: p.PDU}, Part: part})
	}
	return out
}

// powered is a stage that asks the PDUs before it blames a silent node: nodes
// behind a breaker that tripped are no fault of theirs, and one cause is told for
// all of them.
type powered struct {
	stage.Stage
	feeds *Feeds
}

// Around is the stage that asks the PDUs before it blames a silent node.
func (f *Feeds) Around(st stage.Stage) stage.Stage { return powered{st, f} }

// Apply implements stage.Stage.
func (p powered) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	watch := &poweredRun{Run: run, feeds: p.feeds}
	err := p.Stage.Apply(ctx, watch, st)
	if err == nil || watch.reported || !silent(err) || st.Subject.Kind != subject.Node {
		return err
	}
	f, ok := p.feeds.explain(ctx, st.Subject.Name)
	if !ok {
		return err
	}
	f.Affected = []subject.ID{st.Subject}
	f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %v", st.Subject.Name, err))
	return errors.Join(run.Blame(context.WithoutCancel(ctx), f), err)
}

// silent reports whether an error may be that of a node without power.
func silent(err error) bool {
	switch errkind.Of(err) {
	case errkind.Unreachable, errkind.Timeout:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// poweredRun replaces findings about a node that has no power.
type poweredRun struct {
	stage.Run
	feeds    *Feeds
	reported bool // owned by the step's goroutine
}

// Blame implements stage.Run. Nodes without power are taken out by a finding about
// their PDU; what is left of the suspects is blamed as asked for.
func (r *poweredRun) Blame(ctx context.Context, f stage.Finding) error {
	r.reported = true
	var left []stage.Suspect
	var errs []error
	for i, s := range f.Suspects {
		if slices.ContainsFunc(f.Suspects[:i], func(o stage.Suspect) bool { return o.Subject == s.Subject }) && !slices.ContainsFunc(left, func(o stage.Suspect) bool { return o.Subject == s.Subject }) {
			continue // another part of a node that has no power
		}
		g, dead := stage.Finding{}, false
		if s.Subject.Kind == subject.Node {
			g, dead = r.feeds.explain(ctx, s.Subject.Name)
		}
		if !dead {
			left = append(left, s)
			continue
		}
		g.Affected = []subject.ID{s.Subject}
		g.Evidence = append(append(g.Evidence, s.Subject.Name+": "+f.Cause), f.Evidence...)
		errs = append(errs, r.Run.Blame(ctx, g))
	}
	if f.Suspects = left; len(left) > 0 || len(errs) == 0 {
		errs = append(errs, r.Run.Blame(ctx, f))
	}
	return errors.Join(errs...)
}
