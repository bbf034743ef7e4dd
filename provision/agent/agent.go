// SPDX-License-Identifier: Apache-2.0

// Package agent is the conversation of a node with its controller: hello, tasks
// of a closed list, progress, results. It dials out, over HTTPS with a pinned
// key, and outlives the controller: it backs off, says hello again, and sends
// what was not acknowledged. It knows nothing of disks or hardware; what a task
// does is a Handler. The virtual node runs this very package.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// Handler does one kind of task. It is called again with the same parameters
// after the agent was killed, so it starts by looking at what is done already.
// Its output is the JSON of the task's result.
type Handler func(ctx context.Context, params json.RawMessage, progress func(wire.Progress)) (output any, err error)

// Config is what an agent needs. Boot and Handlers are required.
type Config struct {
	Boot     wire.Boot
	BootID   string // the kernel's random boot_id
	Identity func() wire.Identity
	Handlers map[wire.TaskKind]Handler

	SetClock func(time.Time) error // called with the controller's clock when ours is off; nil: the clock is left alone
	Log      *slog.Logger          // default: discard
	Clock    clock.Clock           // for back-off; default: the wall
	Client   *http.Client          // default: PinnedClient of Boot.Pin
	Memory   string                // folder where results outlive a crash of the agent; "": memory only
	Poll     time.Duration         // how long the controller may hold a poll; default 30 s
	// Retag puts the node's address on its boot NIC itself, or back on the VLAN of the boot network. It is called
	// where that network has a VLAN and the controller is not heard; nil: the address stays where it is.
	Retag func(tagged bool) error
}

// retagAfter is after how many failures in a row, of a minute or more, the controller is sought without the
// tag, or with it again: a port that is no tagged member of the VLAN passes no frame with it.
const retagAfter = 8

// clockTolerance is how far the node's clock may be off before it is set.
const clockTolerance = time.Second

// Agent is one boot of one node. Make it with New and call Run once.
type Agent struct {
	cfg   Config
	call  caller
	tasks *tasks

	untagged bool // the address is on the boot NIC, whose network has a VLAN
	heard    bool // the controller has answered with the tag: the port is right, and the controller is gone for a while
}

// New checks the configuration and fills in its defaults.
func New(cfg Config) (*Agent, error) {
	if cfg.Boot.Version != wire.Version {
		return nil, errkind.New(errkind.Unsupported, "boot file has version %d; this agent speaks %d", cfg.Boot.Version, wire.Version).
			Do("Build the ramdisk and the controller from the same ironrail.")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Wall{}
	}
	if cfg.Poll == 0 {
		cfg.Poll = 30 * time.Second
	}
	if cfg.Client == nil {
		client, err := PinnedClient(cfg.Boot.Pin)
		if err != nil {
			return nil, err
		}
		cfg.Client = client
	}
	c := caller{client: cfg.Client, base: cfg.Boot.Controller, token: cfg.Boot.Token}
	return &Agent{cfg: cfg, call: c, tasks: newTasks(cfg, c)}, nil
}

// Run talks to the controller until a reboot was asked for and the controller
// has acknowledged our answer, or until ctx is done. Only then it returns; no
// trouble of the network or the controller ends it.
func (a *Agent) Run(ctx context.Context) (wire.RebootParams, error) {
	ctx, stop := context.WithCancel(ctx)
	defer a.tasks.wait()
	defer stop()
	if p, ok := a.tasks.acknowledgedReboot(); ok {
		return p, nil // acknowledged by an earlier process of this boot, which died before it could reboot
	}
	a.tasks.start(ctx)
	var wait backoff
	for {
		greeted, err := a.session(ctx)
		if leave, ok := errors.AsType[leaving](err); ok {
			return leave.RebootParams, nil
		}
		if ctx.Err() != nil {
			return wire.RebootParams{}, context.Cause(ctx)
		}
		if p, ok := a.tasks.rebooting(); ok && errkind.Of(err) == errkind.Auth {
			return p, nil // the attempt was closed by our answer, of which only the acknowledgement got lost
		}
		if greeted {
			wait, a.heard = backoff{}, a.heard || !a.untagged
		}
		d := wait.next(errkind.Of(err))
		if kind := errkind.Of(err); wait.failures%retagAfter == 0 && (kind == errkind.Unreachable || kind == errkind.Timeout) {
			a.retag()
		}
		a.cfg.Log.Warn("no controller", "err", err, "hint", errkind.Action(err), "again_in", d.Round(time.Second/10))
		if err := a.cfg.Clock.Sleep(ctx, d); err != nil {
			return wire.RebootParams{}, err
		}
	}
}

// retag seeks the controller without the tag of the boot network's VLAN, or with it again.
func (a *Agent) retag() {
	if a.cfg.Retag == nil || a.cfg.Boot.VLAN == 0 || a.heard {
		return
	}
	if err := a.cfg.Retag(a.untagged); err != nil {
		a.cfg.Log.Warn("the address cannot be moved", "vlan", a.cfg.Boot.VLAN, "err", err)
		return
	}
	a.untagged = !a.untagged
	a.cfg.Log.Info("looking for the controller in another way", "vlan", a.cfg.Boot.VLAN, "tagged", !a.untagged)
}

// leaving ends the sessions: the node is to reboot and the controller knows.
type leaving struct{ wire.RebootParams }

// Error makes leaving an error, so that it can end a session.
func (leaving) Error() string { return "leaving the ramdisk" }

// session is one stretch of connection: hello, then tasks and results side by
// side until a call fails. greeted says that the controller has answered the hello.
func (a *Agent) session(ctx context.Context) (greeted bool, err error) {
	welcome, err := a.hello(ctx)
	if err != nil {
		return false, err
	}
	a.cfg.Log.Info("controller says welcome", "node", welcome.Node, "controller", a.cfg.Boot.Controller)
	// A result does not interrupt the poll: a task that the controller has just put
	// on its way would be lost with it.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.work(ctx) })
	group.Go(func() error { return a.report(ctx) })
	return true, group.Wait()
}

// work takes tasks until a call fails.
func (a *Agent) work(ctx context.Context) error {
	for {
		task, err := a.next(ctx)
		taken := err == nil && task != nil && a.tasks.take(*task)
		if _, ok := a.tasks.rebooting(); ok {
			return nil // the answer to the reboot closes the attempt, and with it this poll: report ends the session
		}
		if err != nil {
			return err
		}
		if task == nil || taken {
			continue
		}
		// The controller repeats a task that we are on, or have done; do not spin on it.
		pace := 100 * time.Millisecond
		if a.tasks.busy() {
			pace = time.Second
		}
		if err := a.tasks.waitChange(ctx, pace); err != nil {
			return err
		}
	}
}

// report delivers results until a call fails, or with leaving.
func (a *Agent) report(ctx context.Context) error {
	for {
		if err := a.deliver(ctx); err != nil {
			return err
		}
		select {
		case <-a.tasks.resultReady().Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hello says who we are and sets the clock from the answer.
func (a *Agent) hello(ctx context.Context) (wire.HelloReply, error) {
	var welcome wire.HelloReply
	h := wire.Hello{Version: wire.Version, Attempt: a.cfg.Boot.Attempt, BootID: a.cfg.BootID, Clock: a.cfg.Clock.Now().UTC()}
	if a.cfg.Identity != nil {
		h.Identity = a.cfg.Identity()
	}
	h.Identity.Untagged = a.untagged
	if err := a.call.post(ctx, wire.PathHello, h, &welcome); err != nil {
		return welcome, fmt.Errorf("hello to %s: %w", a.cfg.Boot.Controller, err)
	}
	if off := a.cfg.Clock.Now().Sub(welcome.Clock); a.cfg.SetClock != nil && !welcome.Clock.IsZero() && off.Abs() > clockTolerance {
		if err := a.cfg.SetClock(welcome.Clock); err != nil {
			a.cfg.Log.Warn("clock not set", "err", err)
		} else {
			a.cfg.Log.Info("clock set from the controller", "was_off", off.Round(time.Second))
		}
	}
	return welcome, nil
}

// deliver sends every result that the controller has not acknowledged, oldest
// first. One that it did not ask for waits until it does. An acknowledged reboot ends the session with leaving.
func (a *Agent) deliver(ctx context.Context) error {
	for {
		result, again, ok := a.tasks.undelivered()
		if !ok {
			return nil
		}
		err := a.call.post(ctx, wire.PathResult, result, nil)
		if errors.Is(err, errUnasked) {
			a.tasks.park(result.Key, again)
			continue
		}
		if err != nil {
			return fmt.Errorf("result of %s: %w", result.Kind, err)
		}
		a.tasks.delivered(result.Key, again)
		if result.Kind == wire.Reboot && result.Error == nil {
			return leaving{a.tasks.reboot(result.Key)}
		}
	}
}

// next waits for a task; nil when there is none yet.
func (a *Agent) next(ctx context.Context) (*wire.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Poll+15*time.Second)
	defer cancel()
	task, err := a.call.poll(ctx, a.cfg.Poll)
	if err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	return task, nil
}
