// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
)

// How steps that were done are looked at.
const (
	lookParallel = 256              // nodes at once
	lookWait     = 20 * time.Second // for one step
	lookSay      = 5 * time.Second  // between two words on how far it is
)

// Look asks the stages of steps whether all is as they left it. Steps of one node
// are asked one after another, so that a BMC has one session and a node one login;
// nodes that do not answer at all are not asked again for each step.
func (ob Observer) Look(ctx context.Context, r state.Reader, steps []plan.Step, o Options) ([]looks.Look, error) {
	l, err := ob.newSiteReader(ctx, r, o)
	if err != nil {
		return nil, err
	}
	defer l.close()
	parts := bySubject(steps)
	shown := make([][]looks.Look, len(parts))
	var done atomic.Int64
	stop := sayEvery(o.Say, func() string {
		return fmt.Sprintf("Looked at %d of %d nodes and other subjects.", done.Load(), len(parts))
	})
	defer stop()
	var wg sync.WaitGroup
	slots := make(chan struct{}, lookParallel)
	for i, part := range parts {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots; done.Add(1) }()
			shown[i] = l.subject(ctx, part)
		})
	}
	wg.Wait()
	return slices.Concat(shown...), ctx.Err()
}

// bySubject parts steps by what they work on, in their order.
func bySubject(steps []plan.Step) (parts [][]plan.Step) {
	at := map[subject.ID]int{}
	for _, st := range steps {
		i, ok := at[st.Subject]
		if !ok {
			i = len(parts)
			at[st.Subject], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], st)
	}
	return parts
}

// siteReader looks at the world and changes nothing. It is safe for concurrent use.
type siteReader struct {
	Observer
	reader state.Reader
	stages map[string]stage.Stage
	now    time.Time
	ssh    *remote.Pool
	bmcs   reach.BMCs
}

// newSiteReader makes the stages of a world that is only looked at: nodes over SSH,
// and BMCs when the operator wants all to be looked at. No service is opened.
func (ob Observer) newSiteReader(ctx context.Context, r state.Reader, o Options) (*siteReader, error) {
	facts := reach.Facts(r)
	l := &siteReader{Observer: ob, reader: r, now: o.Now, stages: map[string]stage.Stage{}, ssh: remote.NewPoolOn(lookParallel, ob.Network), bmcs: ob.BMCs(facts)}
	w := Dependencies{Nodes: ob.Nodes(l.ssh, facts), BMC: func(context.Context, string) (oob.BMC, error) { return nil, ErrNotAsked }}
	if o.Refresh {
		w.Switches = ob.Switches(l.ssh, facts)
		w.BMC = func(_ context.Context, node string) (oob.BMC, error) { return l.bmcs.Handle(node) }
	}
	stages, err := ob.Stages(ctx, r, w)
	if err != nil {
		l.close()
		return nil, err
	}
	for _, st := range stages {
		l.stages[st.Name()] = st
	}
	return l, nil
}

// close ends the sessions. What cannot be ended well was not changed either.
func (l *siteReader) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = errors.Join(l.bmcs.Pool.Close(ctx), l.ssh.Close())
}

// sayEvery gives a text to say every few seconds, until it is stopped; after that
// nothing is said any more. With a nil say nobody is told.
func sayEvery(say func(string), text func() string) (stop func()) {
	if say == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(lookSay)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				say(text())
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// subject looks at the steps of one subject, one after another.
func (l *siteReader) subject(ctx context.Context, steps []plan.Step) (found []looks.Look) {
	silent := l.silent(ctx, steps[0].Subject)
	for _, st := range steps {
		if silent != "" && st.Stage != oob.Name {
			found = append(found, looks.Look{Step: st.ID, At: l.now.UTC(), State: stage.Unknown, Evidence: silent})
			continue
		}
		showed := &stepMemory{facts: reach.Facts(l.reader), all: st.Inherited}
		if o := l.step(ctx, st, showed); o.State != stage.Unknown || o.Evidence != "" {
			x := looks.Look{Step: st.ID, At: l.now.UTC(), State: o.State, Evidence: event.Escape(o.Evidence), Operations: o.Operations, Facts: showed.kept}
			if st.Inherited {
				x.Inherited = &st
			}
			found = append(found, x)
		}
	}
	return found
}

// silent says why a node need not be asked; "" when it may.
func (l *siteReader) silent(ctx context.Context, id subject.ID) string {
	n, ok := l.Inv.Node(id.Name)
	if id.Kind != subject.Node || !ok {
		return ""
	}
	if !l.probeSSH(ctx, n.Address).accepted {
		return fmt.Sprintf("nothing answers on its SSH port within %s", presenceWait)
	}
	return ""
}

// step asks the stage of one step. A stage that has nothing to look at says
// unknown without evidence.
func (l *siteReader) step(ctx context.Context, st plan.Step, showed *stepMemory) stage.Observation {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	of, ok := l.stages[st.Stage]
	if !ok {
		return stage.Observation{State: stage.Unknown}
	}
	o, err := of.Observe(ctx, readOnlyRun{st, showed}, st)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}
	}
	if o.State == "" {
		o.State = stage.Unknown
	}
	return o
}

// stepMemory is the memory of a look at one step. What a look sees is not learned: the
// run that follows looks again. But a host key that was believed once is to be the same
// then, and a step that is found to be so and is not looked at again learns all.
// It is safe for concurrent use.
type stepMemory struct {
	facts func(fact.Key) (fact.Fact, bool)
	all   bool // every fact is kept, else host keys alone

	mu   sync.Mutex  // guards kept
	kept []fact.Fact // host keys that switches showed and the state does not know, or all
}

// Fact implements Memory.
func (m *stepMemory) Fact(k fact.Key) (fact.Fact, bool) { return m.facts(k) }

// Learn implements Memory.
func (m *stepMemory) Learn(_ context.Context, fs ...fact.Fact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range fs {
		if m.all || f.Key.Name == string(switchos.HostKeyFact) {
			m.kept = append(m.kept, f)
		}
	}
	return nil
}
