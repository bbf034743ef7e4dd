// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/services"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Times of a rehearsal's operator, on the hardware's clock.
const (
	restartAfter = 30 * time.Second // until somebody starts a killed controller again
	mostRuns     = 20               // more deaths than faults can cause
)

// NewRack makes the virtual rack of a site: its hardware keeps the time of c and is plugged
// into b. Nothing runs yet.
func NewRack(inv *inventory.Inventory, seed uint64, c clock.Clock, b network.Board) (*virtual.World, error) {
	controller, err := services.FindController(inv)
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
func (t *Rehearsal) play(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.World, err = NewRack(t.inv, t.opt.Seed, t.Clock, t.Board)
	if err != nil {
		return err
	}
	if err := t.Open(ctx); err != nil {
		return err
	}
	if t.opt.OnRack != nil {
		if err := t.opt.OnRack(ctx, t.World); err != nil {
			return err
		}
	}
	var untimed context.CancelFunc
	t.timed, untimed = context.WithCancel(context.WithoutCancel(ctx))
	defer func() { untimed(); t.timers.Wait() }()
	if err := errors.Join(t.plantEarly(), t.World.Open(ctx)); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var broken error
	up, down := context.WithCancel(context.WithoutCancel(ctx))
	wg.Go(func() {
		if broken = t.World.Run(up); broken != nil {
			cancel(broken)
		}
	})
	wg.Go(func() { t.watchStop(up, cancel) })
	if t.opt.OnReady != nil && t.opt.Loopback {
		t.opt.OnReady(t.World.Endpoints())
	}
	err = t.rehearse(ctx)
	err = errors.Join(err, t.after(ctx, err == nil))
	down()
	wg.Wait()
	return errors.Join(err, broken)
}

// after is what follows the first run, while the virtual rack is up: more than keeping its state only where
// the run went well.
func (t *Rehearsal) after(ctx context.Context, well bool) (err error) {
	if t.opt.Then != nil && well {
		err = t.opt.Then(ctx, t)
	}
	if t.opt.Linger && t.opt.Loopback && well && err == nil {
		t.linger(ctx)
	}
	err = errors.Join(err, t.keep(context.WithoutCancel(ctx)))
	if t.opt.OnEnd != nil {
		t.opt.OnEnd(t.World, t.Store)
	}
	return err
}

// Open opens the site beside its state, with simulated images and packages.
func (t *Rehearsal) Open(ctx context.Context) (err error) {
	if t.Site, err = t.open(); err != nil {
		return err
	}
	return simulateArtifacts(ctx, t.Site, t.opt.Seed, t.opt.Indexes, t.Unbootable...)
}

// open opens the site beside its state.
func (t *Rehearsal) open() (*provision.Site, error) {
	o, err := WriteStandIns(t.dir)
	if err != nil {
		return nil, err
	}
	o.Network, o.Secrets, o.State = t.World.Controller(), t.World.Secrets(), t.file("state")
	o.Local, o.ClusterCA, o.Hooks = t.World.Scheduler().Run, t.World.ClusterCA, t.simulateHook
	o.Subnets = func(fabric string) infiniband.Host { return t.World.SubnetManager(fabric) }
	if err := virtual.PinConsoles(t.Planned, t.opt.Seed); err != nil {
		return nil, err
	}
	return provision.Open(t.Planned, o)
}

// WriteStandIns writes what stands in for first-stage loaders and agents into a folder, which
// is made. The options name them, and make no packages: those that Simulate made are there.
func WriteStandIns(dir string) (provision.Options, error) {
	o := provision.Options{Agent: filepath.Join(dir, "agent"), Loaders: filepath.Join(dir, "loaders"), Packages: onlyWhatIsThere}
	if err := os.MkdirAll(o.Loaders, 0o755); err != nil {
		return o, err
	}
	// Of an agent the first bytes say for which processors it is (elf(5)).
	const program = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
	for name, begin := range map[string]string{"loaders/snponly.efi": "MZ", "loaders/undionly.kpxe": "", "agent-amd64": program + "\x3e\x00", "agent-arm64": program + "\xb7\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(begin+" simulation of "+name+"\n"), 0o644); err != nil {
			return o, err
		}
	}
	return o, nil
}

// HookTime is how long the program of a hook takes in a rehearsal.
const HookTime = time.Second

// simulateHook stands for the program of a hook, which would act on the real world: it
// takes a second and ends well.
func (t *Rehearsal) simulateHook(ctx context.Context, _, _ []string, _ string, _ []byte, _ io.Writer) error {
	return t.Clock.Sleep(ctx, HookTime)
}

// rehearse plans, plants the faults, and runs the plan, again after each death of
// the controller.
func (t *Rehearsal) rehearse(ctx context.Context) error {
	t.Store = NewStore(state.NewMemory())
	for _, when := range t.triggers() {
		t.Store.KillWhen(when)
	}
	p, err := t.plan(ctx)
	if err != nil || p.Empty() {
		return err
	}
	began := t.Clock.Now()
	var res apply.Result
	t.beginCopies(ctx)
	for {
		t.sum.Runs++
		if res, err = t.Apply(ctx, p); !errors.Is(err, errKilled) {
			break
		}
		if p, err = t.restart(ctx, p); err != nil {
			return err
		}
	}
	err = errors.Join(err, t.endCopies())
	t.sum.SimulatedTime = Seconds(t.Clock.Now().Sub(began))
	t.sum.Records = t.Store.records()
	t.sum.evaluate(res, t.inv, t.opt.Faults, t.World.FaultyPart, t.Store.countKills())
	if cause := context.Cause(ctx); err == nil && errkind.Of(cause) == errkind.Interrupted {
		err = cause
	}
	if err == nil {
		err = t.report(ctx)
	}
	if late := t.late(); len(late) > 0 && err == nil {
		err = t.serve(ctx, late)
	}
	return err
}

// restart starts a controller that died again. It returns the plan to apply: p, or a new one
// where its disk died with it.
func (t *Rehearsal) restart(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	if t.sum.Runs > mostRuns {
		return nil, errkind.New(errkind.Internal, "the controller died %d times", t.sum.Runs)
	}
	if err := t.Clock.Sleep(ctx, restartAfter); err != nil || t.opt.Kill.Disk == 0 {
		return p, err
	}
	return t.replaceDisk(ctx)
}

// report hands over the report of the run that ended, if somebody wants it.
func (t *Rehearsal) report(ctx context.Context) error {
	if t.opt.OnReport == nil || t.sum.Result.Run == "" {
		return nil
	}
	in, err := t.Site.Report(ctx, t.Store, t.opt.Version, t.Clock.Now())
	if err != nil {
		return err
	}
	in.Origin = report.Simulated
	return t.opt.OnReport(in)
}

// triggers are the conditions under which the controller dies.
func (t *Rehearsal) triggers() (all []Trigger) {
	if t.opt.Kill.At > 0 {
		all = append(all, atRecord(t.opt.Kill))
	}
	if t.opt.Kill.Step != "" {
		all = append(all, t.amid(t.opt.Kill))
	}
	for _, f := range t.opt.Faults {
		if f.Kind == fault.ControllerKill {
			all = append(all, t.AtStep(f))
		}
	}
	return all
}

// plan makes the plan and its prediction. Erasures are approved: there is nothing
// to lose.
func (t *Rehearsal) plan(ctx context.Context) (*plan.Plan, error) {
	p, diags, err := t.Site.Plan(ctx, t.Store, provision.PlanOptions{Now: time.Now()})
	if err == nil && diags.HasErrors() {
		err = Unplannable{diags}
	}
	if err != nil {
		return nil, err
	}
	if len(p.Refusals) > 0 {
		return nil, Refused(p)
	}
	if err := timely(p, t.opt.Faults); err != nil {
		return nil, err
	}
	p.Lineage = t.Store.Info().Lineage
	images := t.World.Images()
	maps.Copy(images, t.opt.Images)
	guess, err := t.Site.Predict(p, t.opt.Past, images)
	if err != nil {
		return nil, err
	}
	t.sum.PredictedTime, t.sum.Bottleneck = Seconds(guess.Expected), guess.Bottleneck.Text
	if t.opt.OnPlan != nil {
		t.opt.OnPlan(p, guess)
	}
	return p, nil
}

// Refused lists why a plan cannot be run.
func Refused(p *plan.Plan) (err error) {
	for _, r := range p.Refusals {
		err = errors.Join(err, errkind.New(errkind.Refused, "the plan is refused: %s: %s", r.Subject, r.Cause).Do(r.Action))
	}
	return err
}

// Apply runs the plan once, as one process of the controller; one after a death goes
// on where the plan was left, if it was begun at all.
func (t *Rehearsal) Apply(ctx context.Context, p *plan.Plan) (apply.Result, error) {
	ctx, die := context.WithCancelCause(ctx)
	defer die(nil)
	t.Store.Reopen(die)
	t.steps = make(map[string]*plan.Step, len(p.Steps))
	for i := range p.Steps {
		t.steps[string(p.Steps[i].ID)] = &p.Steps[i]
	}
	fence, err := t.Store.Claim(ctx, "rehearsal")
	if err != nil {
		return apply.Result{}, err
	}
	last, _, err := state.Get[state.Run](ctx, t.Store, state.LastRun)
	if err != nil {
		return apply.Result{}, err
	}
	bus := event.NewBus(busSize)
	run, err := t.Site.Begin(ctx, provision.RunOptions{Plan: p, Store: t.Store, Fence: fence, Bus: bus, Resume: last.Plan == p.ID, EraseApproved: len(t.inv.Nodes)})
	if err != nil {
		return apply.Result{}, t.alive(ctx, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { t.listen(bus.Subscribe(0)) })
	asking, enough := context.WithCancel(ctx)
	if t.opt.OnRun != nil {
		wg.Go(func() {
			t.opt.OnRun(asking, run.Backend(bus, control.Identity{Command: "apply", Started: t.Clock.Now().UTC()}))
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
func (t *Rehearsal) alive(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errKilled) {
		return errKilled
	}
	return err
}

// listen passes events on, and plants the faults that wait for a step.
func (t *Rehearsal) listen(sub *event.Subscription) {
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
func (t *Rehearsal) plantEarly() error {
	for _, f := range t.opt.Faults {
		switch {
		case f.Kind == fault.ControllerKill, f.At == fault.Accepted:
		case f.At != "":
			t.waiting = append(t.waiting, f)
		default:
			if err := t.begin(f); err != nil {
				return fmt.Errorf("fault %s: %w", f.Kind, err)
			}
		}
	}
	return nil
}

// note tells the listener something.
func (t *Rehearsal) note(text string) {
	if t.opt.OnEvent != nil {
		t.opt.OnEvent(event.Event{Time: t.Clock.Now().UTC(), Type: event.Note, Text: text})
	}
}

// Plant plants a fault now.
func (t *Rehearsal) Plant(f fault.Fault) error {
	if f.Kind == fault.RepoGone {
		return os.RemoveAll(t.file("state", "repo"))
	}
	return t.World.Plant(f)
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
