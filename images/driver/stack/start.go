// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// How long a node may take from its restart to its next login, and how often it is
// asked. GPU nodes check 2 TiB of memory and train their links first.
const (
	restartLimit = 40 * time.Minute
	restartPause = 10 * time.Second
)

// Start implements driver.Starter: what was installed is what runs afterwards. The
// modules of another version are taken out, or, where they are in use, the node
// restarts, once.
func (s *Stack) Start(ctx context.Context, run stage.Run, t driver.Target) error {
	r, found, err := s.repos.Find(ctx, t.Driver, t.Node.Image.Name)
	if err != nil {
		return err
	}
	if !found {
		return errkind.New(errkind.NotFound, "the repository of driver %s for image %s is not there any more", t.Driver.Name, t.Node.Image.Name).Do("Apply again: it is made anew.")
	}
	w, err := s.begin(run, t, r)
	if err != nil {
		return err
	}
	why, err := w.unload(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		run.Emit(event.Event{Type: event.StepProgress, Node: t.Node.Name, Text: "restarting: " + why})
		if err := w.restart(ctx, why); err != nil {
			return err
		}
	}
	return w.bringUp(ctx)
}

// loaded reports whether a module is in the kernel.
func (w work) loaded(ctx context.Context, module string) (bool, error) {
	out, err := w.on.Nodes.Run(ctx, w.Node.Name, onnode.Command{Argv: []string{"test", "-d", "/sys/module/" + module}})
	if err != nil {
		return false, fmt.Errorf("node %s: %w", w.Node.Name, err)
	}
	return out.Exit == 0, nil
}

// running is the version of the module in the kernel; "" when it is not loaded.
func (w work) running(ctx context.Context) (string, error) {
	in, err := w.loaded(ctx, w.set.Module.Name)
	if err != nil || !in {
		return "", err
	}
	version, err := w.query(ctx, "cat", "/sys/module/"+w.set.Module.Name+"/version")
	if version == "" && err == nil {
		version = inTree
	}
	return version, err
}

// unload takes out of the kernel what must not be in it: clashing modules, and the
// stack's own of another version. It returns why that needs a restart; "" when it
// does not.
func (w work) unload(ctx context.Context) (string, error) {
	for _, m := range w.set.Clashing {
		if why, err := w.takeOut(ctx, m, "it clashes with "+w.set.Module.Name); why != "" || err != nil {
			return why, err
		}
	}
	have, err := w.running(ctx)
	if err != nil || have == "" {
		return "", err
	}
	want, err := w.built(ctx)
	if err != nil || want.version == have {
		return "", err
	}
	text := fmt.Sprintf("kernel module %s %s runs, and %s is installed", w.set.Module.Name, have, want.version)
	if w.set.Stays {
		return text, nil
	}
	for _, service := range w.set.Services {
		if _, err := w.query(ctx, "systemctl", "stop", service); err != nil { // one that is not there does not hold a module
			return "", err
		}
	}
	for _, m := range slices.Backward(append([]string{w.set.Module.Name}, w.set.Others...)) {
		if why, err := w.takeOut(ctx, strings.ReplaceAll(m, "-", "_"), text); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// takeOut removes a module from the kernel, and says why it did not work.
func (w work) takeOut(ctx context.Context, module, text string) (string, error) {
	if in, err := w.loaded(ctx, module); err != nil || !in {
		return "", err
	}
	if _, err := w.query(ctx, "modprobe", "-r", module); err != nil {
		return "", err
	}
	if in, err := w.loaded(ctx, module); err != nil || !in {
		return "", err
	}
	return fmt.Sprintf("kernel module %s is in use (%s)", module, text), nil
}

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// restart restarts the node's system and waits until it answers again.
func (w work) restart(ctx context.Context, why string) error {
	if w.Node.Diskless() {
		return errkind.New(errkind.Refused, "%s has to be restarted (%s), and its system is in memory: nothing would be left of it", w.Node.Name, why).
			Do("Take out of its host block what loads the module at the start; then `ironrail rebuild " + w.Node.Name + "`.")
	}
	id, err := onnode.Do(ctx, w.on.Nodes, w.Node.Name, "cat", bootIDFile)
	if err != nil {
		return err
	}
	before := strings.TrimSpace(string(id))
	return w.on.Run.Effect(ctx, stage.Effect{
		Key: fmt.Sprintf("%s/drivers.%s/restart-%s", w.Node.Name, w.Driver.Name, before), Kind: plan.Power, Repeatable: true,
		Does: fmt.Sprintf("restart %s: %s", w.Node.Name, why),
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			now, err := w.query(ctx, "cat", bootIDFile)
			switch {
			case err != nil:
				return stage.Doubt, "the node does not answer", nil
			case now != before:
				return stage.Done, "it runs since another start", nil
			}
			return stage.NotDone, "it runs since the same start", nil
		},
		Do: func(ctx context.Context) error {
			if _, err := w.query(ctx, "systemctl", "reboot"); err != nil && ctx.Err() != nil {
				return err // otherwise the connection may have ended with the system
			}
			return w.awaitStart(ctx, before)
		},
	})
}

// awaitStart waits until the node runs since another start.
func (w work) awaitStart(ctx context.Context, before string) error {
	var last error
	for range int(restartLimit / restartPause) {
		if err := w.on.Run.Clock().Sleep(ctx, restartPause); err != nil {
			return err
		}
		now, err := w.query(ctx, "cat", bootIDFile)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if last = err; err == nil && now != "" && now != before {
			return nil
		}
	}
	if last != nil {
		return errkind.New(errkind.Unreachable, "node %s did not answer within %v after its restart: %w", w.Node.Name, restartLimit, last).
			Do("Look at its console; then apply again.")
	}
	return errkind.New(errkind.Timeout, "node %s did not restart within %v", w.Node.Name, restartLimit).Do("Look at its console; then apply again.")
}

// bringUp loads the modules and starts the services.
func (w work) bringUp(ctx context.Context) error {
	for _, m := range append([]string{w.set.Module.Name}, w.set.Others...) {
		if err := onnode.Exec(ctx, w.on.Nodes, w.Node.Name, "modprobe", m); err != nil {
			if refusesSignature(err) {
				return w.rejected(m, err)
			}
			return errkind.New(errkind.Mismatch, "load kernel module %s: %w", m, err).Do("Look at the node's kernel log (dmesg), then apply again.")
		}
	}
	if err := w.compare(ctx); err != nil {
		return err
	}
	for _, service := range w.set.Services {
		for _, verb := range []string{"enable", "restart"} {
			if err := onnode.Exec(ctx, w.on.Nodes, w.Node.Name, "systemctl", verb, service+".service"); err != nil {
				return w.serviceFailed(ctx, service, err)
			}
		}
	}
	return nil
}

// compare finds a module that is not the stack's before services run on it.
func (w work) compare(ctx context.Context) error {
	have, err := w.manager.Installed(ctx, w.set.Packages)
	if err != nil {
		return err
	}
	_, differs, err := w.moduleDifferences(ctx, have)
	if err != nil || len(differs) == 0 {
		return err
	}
	f, err := w.built(ctx)
	if err != nil {
		return err
	}
	action := fmt.Sprintf("Read the package log of the node (%s), then run `ironrail apply`.", w.family.Manager.Log())
	if f.stray(w.set.Module) {
		action = fmt.Sprintf("No package of driver %s brought %s: remove it, run `depmod -a`, then `ironrail apply`; or write the image again: `ironrail rebuild %s`.", w.Driver.Name, f.path, w.Node.Name)
	}
	return driver.Blame(ctx, w.on.Run, w.Target, strings.Join(differs, "; "), []string{"the file that is loaded: " + f.path}, action)
}

// serviceFailed adds what the service said.
func (w work) serviceFailed(ctx context.Context, service string, err error) error {
	said, qerr := w.query(ctx, "journalctl", "--no-pager", "--lines=40", "--unit="+service)
	if qerr != nil || said == "" {
		return errkind.New(errkind.Mismatch, "service %s does not start: %w", service, err).Do("Look at `systemctl status " + service + "` on the node, then apply again.")
	}
	ref, aerr := w.on.Run.Attach(service+".txt", []byte(said+"\n"))
	if aerr != nil {
		return aerr
	}
	return errkind.New(errkind.Mismatch, "service %s does not start: %w (%s)", service, err, ref).Do("Read what it said, then apply again.")
}
