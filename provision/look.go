package provision

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
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/remote"
)

// How steps that were done are looked at.
const (
	lookParallel = 256              // nodes at once
	lookWait     = 20 * time.Second // for one step
	lookSay      = 5 * time.Second  // between two words on how far it is
)

// look asks the stages of steps whether all is as they left it. Steps of one node
// are asked one after another, so that a BMC has one session and a node one login;
// nodes that do not answer at all are not asked again for each step.
func (s *Site) look(ctx context.Context, r state.Reader, steps []plan.Step, o PlanOptions) ([]Look, error) {
	l, err := s.newLooker(ctx, r, o)
	if err != nil {
		return nil, err
	}
	defer l.close()
	parts := bySubject(steps)
	looks := make([][]Look, len(parts))
	var done atomic.Int64
	stop := l.tell(&done, len(parts))
	defer stop()
	var wg sync.WaitGroup
	slots := make(chan struct{}, lookParallel)
	for i, part := range parts {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots; done.Add(1) }()
			looks[i] = l.subject(ctx, part)
		})
	}
	wg.Wait()
	return slices.Concat(looks...), ctx.Err()
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

// looker looks at the world and changes nothing. It is safe for concurrent use.
type looker struct {
	site   *Site
	reader state.Reader
	stages map[string]stage.Stage
	say    func(string)
	now    time.Time
	ssh    *remote.Pool
	bmcs   bmcs
}

// newLooker makes the stages of a world that is only looked at: nodes over SSH,
// and BMCs when the operator wants all to be looked at. No service is opened.
func (s *Site) newLooker(ctx context.Context, r state.Reader, o PlanOptions) (*looker, error) {
	boots, err := s.loadBoots(ctx, r)
	if err != nil {
		return nil, err
	}
	digests, err := s.digests()
	if err != nil {
		return nil, err
	}
	l := &looker{site: s, reader: r, say: o.Say, now: o.Now, stages: map[string]stage.Stage{}, ssh: remote.NewPoolOn(lookParallel, s.network),
		bmcs: bmcs{inv: s.Inv, pool: bmc.NewPool(bmc.Options{Network: s.network}), secrets: s.secrets, facts: factsOf(r)}}
	ssh := nodes{inv: s.Inv, pool: l.ssh, signer: s.Keys.SSH, facts: factsOf(r)}
	w := world{
		bmc:     func(_ context.Context, node string) (oob.BMC, error) { return nil, errNotAsked },
		install: install.World{Boots: boots, Hub: hub.New(hub.Config{Grants: boots}), Nodes: ssh, BMC: func(context.Context, string) (install.Control, error) { return nil, errNotAsked }},
		nodes:   ssh, store: r, repos: repositories{site: s},
	}
	if o.Refresh {
		w.switches = &switches{inv: s.Inv, pool: l.ssh, secrets: s.secrets, own: s.Keys.SSH, facts: factsOf(r)}
		w.bmc = func(_ context.Context, node string) (oob.BMC, error) { return l.bmcs.handle(node) }
	}
	for _, st := range s.stages(digests, w) {
		l.stages[st.Name()] = st
	}
	return l, nil
}

var errNotAsked = errkind.New(errkind.Refused, "BMCs are not asked by this look").Do("`ironrail plan --refresh` asks them.")

// close ends the sessions. What cannot be ended well was not changed either.
func (l *looker) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = errors.Join(l.bmcs.pool.Close(ctx), l.ssh.Close())
}

// tell says every few seconds how far the look is, until it is stopped.
func (l *looker) tell(done *atomic.Int64, all int) (stop func()) {
	if l.say == nil {
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
				l.say(fmt.Sprintf("Looked at %d of %d nodes and other subjects.", done.Load(), all))
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// subject looks at the steps of one subject, one after another.
func (l *looker) subject(ctx context.Context, steps []plan.Step) (looks []Look) {
	silent := l.silent(ctx, steps[0].Subject)
	for _, st := range steps {
		if silent != "" && st.Stage != oob.Name {
			looks = append(looks, Look{Step: st.ID, At: l.now.UTC(), State: stage.Unknown, Evidence: silent})
			continue
		}
		var showed showing
		if o := l.step(ctx, st, &showed); o.State != stage.Unknown || o.Evidence != "" {
			looks = append(looks, Look{Step: st.ID, At: l.now.UTC(), State: o.State, Evidence: event.Escape(o.Evidence), Operations: o.Operations, showed: showed.keys})
		}
	}
	return looks
}

// silent says why a node need not be asked; "" when it may.
func (l *looker) silent(ctx context.Context, id subject.ID) string {
	n, ok := l.site.Inv.Node(id.Name)
	if id.Kind != subject.Node || !ok {
		return ""
	}
	if !l.site.probeSSH(ctx, n.Address).accepted {
		return fmt.Sprintf("nothing answers on its SSH port within %s", presenceWait)
	}
	return ""
}

// step asks the stage of one step. A stage that has nothing to look at says
// unknown without evidence.
func (l *looker) step(ctx context.Context, st plan.Step, showed *showing) stage.Observation {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	of, ok := l.stages[st.Stage]
	if !ok {
		return stage.Observation{State: stage.Unknown}
	}
	o, err := of.Observe(ctx, lookRun{l, st, showed}, st)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}
	}
	if o.State == "" {
		o.State = stage.Unknown
	}
	return o
}

// lookRun is the stage.Run of a look: facts can be read, and nothing is done or
// recorded.
type lookRun struct {
	l      *looker
	st     plan.Step
	showed *showing
}

// showing is the host keys that switches showed to a look and that the state does not
// know: all that a look remembers. It is safe for concurrent use.
type showing struct {
	mu   sync.Mutex // guards keys
	keys []fact.Fact
}

var _ stage.Run = lookRun{}

// errLookOnly refuses what would change something.
var errLookOnly = errkind.New(errkind.Refused, "this is a look: nothing is done and nothing is recorded")

// Members implements stage.Run.
func (r lookRun) Members() []subject.ID {
	if r.st.Group != nil {
		return slices.Clone(r.st.Group.Members)
	}
	return []subject.ID{r.st.Subject}
}

// Fact implements stage.Run.
func (r lookRun) Fact(k fact.Key) (fact.Fact, bool) { return factsOf(r.l.reader)(k) }

// Learn implements stage.Run. What a look sees is not learned: the run that
// follows looks again. But a key that was believed once is to be the same then.
func (r lookRun) Learn(_ context.Context, fs ...fact.Fact) error {
	r.showed.mu.Lock()
	defer r.showed.mu.Unlock()
	for _, f := range fs {
		if f.Key.Name == string(switchos.HostKeyFact) {
			r.showed.keys = append(r.showed.keys, f)
		}
	}
	return nil
}

// Effect implements stage.Run.
func (lookRun) Effect(context.Context, stage.Effect) error { return errLookOnly }

// Blame implements stage.Run.
func (lookRun) Blame(context.Context, stage.Finding) error { return errLookOnly }

// Release implements stage.Run.
func (lookRun) Release(string) {}

// Emit implements stage.Run.
func (lookRun) Emit(event.Event) {}

// Attach implements stage.Run.
func (lookRun) Attach(string, []byte) (string, error) { return "", errLookOnly }

// Clock implements stage.Run.
func (lookRun) Clock() clock.Clock { return clock.Wall{} }
