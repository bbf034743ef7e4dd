package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Times of a rehearsal's operator, on the hardware's clock.
const (
	restartAfter = 30 * time.Second // until somebody starts a killed controller again
	mostRuns     = 20               // more deaths than faults can cause
)

// newRack makes the virtual rack of a site.
func newRack(inv *inventory.Inventory, seed uint64, c clock.Clock, b network.Board) (*virtual.World, error) {
	controller, err := provision.ControllerOf(inv)
	if err != nil {
		return nil, err
	}
	return virtual.New(inv, virtual.Options{Seed: seed, Clock: c, Board: b, ImageBytes: diskSize, ImagePacked: realData, Controller: controller, Standbys: standbys(inv)})
}

// standbys are how many of the controllers that a fabric names have no master: somebody
// is taken to have put their files there and started them.
func standbys(inv *inventory.Inventory) map[string]int {
	of := map[string]int{}
	for _, f := range inv.Fabrics {
		if f.Kind == infiniband.Name {
			of[f.Name] = max(0, len(infiniband.Managers(f))-1)
		}
	}
	return of
}

// play puts the virtual rack up, runs the site on it, and takes it down.
func (t *theatre) play(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.world, err = newRack(t.inv, t.opt.Seed, t.clk, t.board)
	if err != nil {
		return err
	}
	if err := t.openSite(ctx); err != nil {
		return err
	}
	if t.opt.OnRack != nil {
		if err := t.opt.OnRack(ctx, t.world); err != nil {
			return err
		}
	}
	if err := errors.Join(t.plantEarly(), t.world.Open(ctx)); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var broken error
	up, down := context.WithCancel(context.WithoutCancel(ctx))
	wg.Go(func() {
		if broken = t.world.Run(up); broken != nil {
			cancel(broken)
		}
	})
	wg.Go(func() { t.heed(up, cancel) })
	if t.opt.OnReady != nil && t.opt.Loopback {
		t.opt.OnReady(t.world.Doors())
	}
	err = t.rehearse(ctx)
	if t.opt.Then != nil && err == nil {
		err = t.opt.Then(ctx, &Later{t: t})
	}
	if t.opt.Linger && t.opt.Loopback && err == nil {
		t.linger(ctx)
	}
	if t.opt.OnEnd != nil {
		t.opt.OnEnd(t.world, t.store)
	}
	down()
	wg.Wait()
	return errors.Join(err, broken)
}

// openSite opens the site beside its state, with stand-ins of what a run needs.
func (t *theatre) openSite(ctx context.Context) (err error) {
	if t.site, err = t.open(); err != nil {
		return err
	}
	return standIns(ctx, t.site, t.opt.Seed, t.spoilt...)
}

// open opens the site beside its state.
func (t *theatre) open() (*provision.Site, error) {
	loaders := t.file("loaders")
	if err := os.MkdirAll(loaders, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"loaders/snponly.efi", "loaders/undionly.kpxe", "agent"} {
		if err := os.WriteFile(t.file(name), []byte("\x7fELF stand-in of "+name+"\n"), 0o644); err != nil {
			return nil, err
		}
	}
	return provision.Open(t.planned, provision.Options{Agent: t.file("agent"), Network: t.world.Controller(), Secrets: t.world.Secrets(),
		State: t.file("state"), Loaders: loaders, Packages: onlyWhatIsThere, Local: t.world.Scheduler().Run, ClusterCA: t.world.ClusterCA,
		Subnets: func(fabric string) infiniband.Host { return t.world.SubnetManager(fabric) }})
}

// rehearse plans, plants the faults, and runs the plan, again after each death of
// the controller.
func (t *theatre) rehearse(ctx context.Context) error {
	t.store = &killer{Store: state.NewMemory(), when: t.triggers(), next: 1}
	p, err := t.plan(ctx)
	if err != nil || p.Empty() {
		return err
	}
	began := t.clk.Now()
	var res apply.Result
	for {
		t.sum.Runs++
		if res, err = t.run(ctx, p); !errors.Is(err, errKilled) {
			break
		}
		if t.sum.Runs > mostRuns {
			return errkind.New(errkind.Internal, "the controller died %d times", t.sum.Runs)
		}
		if err := t.clk.Sleep(ctx, restartAfter); err != nil {
			return err
		}
	}
	t.sum.SimulatedTime = Seconds(t.clk.Now().Sub(began))
	t.sum.Records = t.store.records()
	t.sum.judge(res, t.inv, t.opt.Faults, t.world.FaultyPart, t.store.deaths())
	if cause := context.Cause(ctx); err == nil && errkind.Of(cause) == errkind.Interrupted {
		err = cause
	}
	return err
}

// triggers are the conditions under which the controller dies.
func (t *theatre) triggers() (all []trigger) {
	if t.opt.Kill.At > 0 {
		all = append(all, atRecord(t.opt.Kill))
	}
	if t.opt.Kill.Step != "" {
		all = append(all, t.amid(t.opt.Kill))
	}
	for _, f := range t.opt.Faults {
		if f.Kind == fault.ControllerKill {
			all = append(all, t.atStep(f))
		}
	}
	return all
}

// plan makes the plan and its prediction. Erasures are approved: there is nothing
// to lose.
func (t *theatre) plan(ctx context.Context) (*plan.Plan, error) {
	p, diags, err := t.site.Plan(ctx, t.store, provision.PlanOptions{Now: time.Now()})
	if err == nil && diags.HasErrors() {
		err = Unplannable{diags}
	}
	if err != nil {
		return nil, err
	}
	if len(p.Refusals) > 0 {
		return nil, refused(p)
	}
	if err := timely(p, t.opt.Faults); err != nil {
		return nil, err
	}
	p.Lineage = t.store.Info().Lineage
	images := t.world.Images()
	maps.Copy(images, t.opt.Images)
	guess, err := t.site.Predict(p, t.opt.Past, images)
	if err != nil {
		return nil, err
	}
	t.sum.PredictedTime, t.sum.Bottleneck = Seconds(guess.Expected), guess.Bottleneck.Text
	if t.opt.OnPlan != nil {
		t.opt.OnPlan(p, guess)
	}
	return p, nil
}

// refused lists why a plan cannot be run.
func refused(p *plan.Plan) (err error) {
	for _, r := range p.Refusals {
		err = errors.Join(err, errkind.New(errkind.Refused, "the plan is refused: %s: %s", r.Subject, r.Cause).Do(r.Action))
	}
	return err
}

// run runs the plan once, as one process of the controller; one after a death goes
// on where the plan was left, if it was begun at all.
func (t *theatre) run(ctx context.Context, p *plan.Plan) (apply.Result, error) {
	ctx, die := context.WithCancelCause(ctx)
	defer die(nil)
	t.store.reopen(die)
	t.steps = make(map[string]*plan.Step, len(p.Steps))
	for i := range p.Steps {
		t.steps[string(p.Steps[i].ID)] = &p.Steps[i]
	}
	fence, err := t.store.Claim(ctx, "rehearsal")
	if err != nil {
		return apply.Result{}, err
	}
	last, _, err := state.Get[state.Run](ctx, t.store, state.LastRun)
	if err != nil {
		return apply.Result{}, err
	}
	bus := event.NewBus(busSize)
	run, err := t.site.Begin(ctx, provision.RunOptions{Plan: p, Store: t.store, Fence: fence, Bus: bus, Resume: last.Plan == p.ID, EraseApproved: len(t.inv.Nodes)})
	if err != nil {
		return apply.Result{}, t.alive(ctx, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { t.listen(bus.Subscribe(0)) })
	asking, enough := context.WithCancel(ctx)
	if t.opt.OnRun != nil {
		wg.Go(func() {
			t.opt.OnRun(asking, run.Backend(bus, control.Identity{Command: "apply", Started: t.clk.Now().UTC()}))
		})
	}
	res, err := run.Run(ctx)
	enough()
	bus.Close()
	wg.Wait()
	return res, t.alive(ctx, err)
}

// busSize is how many events wait for the listener of a run.
const busSize = 1 << 16

// alive tells the death of the controller from every other error.
func (t *theatre) alive(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errKilled) {
		return errKilled
	}
	return err
}

// listen passes events on, and plants the faults that wait for a step.
func (t *theatre) listen(sub *event.Subscription) {
	for {
		e, err := sub.Next(context.Background())
		if err != nil {
			return
		}
		if e.Type == event.StepStarted {
			t.plantAt(e)
		}
		if t.opt.OnEvent != nil {
			t.opt.OnEvent(e)
		}
	}
}

// plantEarly plants what is broken from the start.
func (t *theatre) plantEarly() error {
	for _, f := range t.opt.Faults {
		switch {
		case f.Kind == fault.ControllerKill:
		case f.At != "":
			t.waiting = append(t.waiting, f)
		default:
			if err := t.plantOne(f); err != nil {
				return fmt.Errorf("fault %s: %w", f.Kind, err)
			}
		}
	}
	return nil
}

// note tells the listener something.
func (t *theatre) note(text string) {
	if t.opt.OnEvent != nil {
		t.opt.OnEvent(event.Event{Time: t.clk.Now().UTC(), Type: event.Note, Text: text})
	}
}

// plantOne plants a fault now.
func (t *theatre) plantOne(f fault.Fault) error {
	if f.Kind == fault.RepoGone {
		return os.RemoveAll(t.file("state", "repo"))
	}
	return t.world.Plant(f)
}

// onlyWhatIsThere finds a driver repository. A rehearsal downloads nothing: what
// is gone cannot be made again.
func onlyWhatIsThere(ctx context.Context, o repo.Options) (repo.Repo, error) {
	r, found, err := repo.Find(o)
	switch {
	case err != nil:
		return r, err
	case !found:
		return r, errkind.New(errkind.Unreachable, "repository %s is not there, and a rehearsal reaches no package mirror", o.Name)
	}
	return r, r.Verify(ctx, o.Key)
}
