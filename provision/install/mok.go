// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/images/modsign/mok"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/oob"
)

// MOK is the action of the step that enrols the site's certificate in shim's list, at the console
// of nodes whose BMC cannot add it to db: n1/install.mok.
const MOK = "mok"

// Limits of that step: mokLimit is its hang deadline, with two boots in it; openLimit is for a BMC to open its
// console, which it may keep for a minute for a controller that was killed; consoleLimit is for it to take a key.
const (
	mokLimit     = 2*bootLimit + 10*time.Minute
	openLimit    = 90 * time.Second
	consoleLimit = 30 * time.Second
)

// EnrolsMOK reports whether the site's certificate for kernel modules is enrolled in shim's list at
// a node's console; where its BMC adds it to db, it is not.
func EnrolsMOK(n *inventory.Node) bool {
	return oob.HasConsole(n) && !oob.Enrols(n) && kinds.NeedSigned(n)
}

// enrolMOK looks whether the node's kernel trusts the site's certificate, and enrols it where it
// does not. Nothing of the node's disks is touched.
func (s *Stage) enrolMOK(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	look := st
	look.Uses = nil // they are for the power cycle below
	g, hw, err := s.identified(ctx, run, n, look)
	if err != nil {
		return err
	}
	missing := s.compareModuleKey(n, hw.SecureBoot)
	if missing == nil {
		return nil // it has it; or what it shows is judged by its inspection
	}
	request := mok.NewRequest(s.w.Signer.DER())
	t := &terminal{password: request.Password, clock: run.Clock()}
	typing, stop := context.WithCancel(ctx)
	defer t.wait()
	defer stop()
	if err := t.open(typing, s.w.Type, n.Name); err != nil {
		return s.blameMOK(ctx, run, n, *missing, "its console cannot be typed at", err, t)
	}
	if err := s.requestMOK(ctx, run, n, g.Attempt, request); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return s.blameMOK(ctx, run, n, *missing, "the certificate cannot be handed to shim", err, t)
	}
	if err := s.phase(ctx, run, n, Ended, "restarted for MokManager"); err != nil {
		return err
	}
	at, err := s.open(ctx, run, n, PowerCycle)
	if err != nil {
		return err
	}
	said := t.answer(typing, func(ctx context.Context) error { return s.bootAgain(ctx, run, n, at) })
	_, hw, err = s.identified(ctx, run, n, st)
	stop()
	refused := <-said
	if err != nil {
		t.note(run, refused)
		return err
	}
	if missing = s.compareModuleKey(n, hw.SecureBoot); missing != nil {
		return s.blameMOK(ctx, run, n, *missing, "MokManager did not enrol the certificate", refused, t)
	}
	run.Emit(event.Event{Type: event.Evidence, Text: fmt.Sprintf("certificate %q of this site for kernel modules: MokManager has enrolled it, at the console of %s", s.w.Signer.Name(), n.Name)})
	return nil
}

// requestMOK has the agent write what shim looks for at the next boot. Its password stays here.
func (s *Stage) requestMOK(ctx context.Context, run stage.Run, n *inventory.Node, attempt string, r mok.Request) error {
	key := n.Name + "/" + attempt + "/enrol-" + newNonce() // a password of its own each time
	return run.Effect(ctx, stage.Effect{Key: key, Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("have shim ask at the console of %s whether certificate %q is enrolled", n.Name, s.w.Signer.Name()),
		Do: func(ctx context.Context) error {
			_, err := s.do(ctx, run, n, wire.Enrol, key, wire.EnrolParams{List: r.New, Auth: r.Auth, Countdown: mok.Countdown})
			return err
		}})
}

// bootAgain sets the network as the next boot device before MokManager restarts the node, whose
// boot from the network was for one time.
func (s *Stage) bootAgain(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt) error {
	control, err := s.control(ctx, n)
	if err != nil {
		return err
	}
	return run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/boot-device-again", Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("boot %s from the network once more (%s)", n.Name, n.Hardware.Boot), Do: func(ctx context.Context) error { return s.setBoot(ctx, run, n, control) }})
}

// blameMOK is the finding of a node whose certificate is not enrolled. A person can do it.
func (s *Stage) blameMOK(ctx context.Context, run stage.Run, n *inventory.Node, missing Fault, cause string, why error, t *terminal) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: missing.Part}}, Cause: cause, Evidence: []string{missing.Found}, Action: missing.Action}
	if why != nil {
		f.Cause += ": " + errkind.Line(why)
		if first := errkind.Action(why); first != "" {
			f.Action = first + " Or by hand: " + f.Action
		}
	}
	for _, line := range t.lines() {
		f.Evidence = append(f.Evidence, "console: "+line)
	}
	if err := run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Refused, "%s; %s", f.Cause, missing.Found).Do(f.Action)
}

// note says what the console had shown where the node did not come back.
func (t *terminal) note(run stage.Run, why error) {
	if why != nil {
		run.Emit(event.Event{Type: event.Note, Text: "MokManager, before the node was lost: " + errkind.Line(why)})
	}
	for _, line := range t.lines() {
		run.Emit(event.Event{Type: event.Evidence, Text: "console: " + line})
	}
}

// typeAt is Dependencies.Type.
type typeAt func(ctx context.Context, node string, to io.Writer, keys <-chan string, up func()) error

// terminal is a node's console that is typed at.
type terminal struct {
	password string
	clock    clock.Clock
	screen   mok.Screen
	keys     chan string
	wg       sync.WaitGroup
}

// open begins to read a console, and waits until it is open.
func (t *terminal) open(ctx context.Context, at typeAt, node string) error {
	if at == nil {
		return errkind.New(errkind.Unsupported, "this run types at no console")
	}
	t.keys = make(chan string)
	up, ended := make(chan struct{}, 1), make(chan error, 1)
	t.wg.Go(func() {
		ended <- at(ctx, node, &t.screen, t.keys, func() {
			select {
			case up <- struct{}{}:
			default:
			}
		})
	})
	wait, cancel := t.clock.WithTimeout(ctx, openLimit)
	defer cancel()
	select {
	case <-up:
		return nil
	case err := <-ended:
		if err == nil {
			err = errkind.New(errkind.Unreachable, "the console ended")
		}
		return err
	case <-wait.Done():
		return errkind.New(errkind.Timeout, "the BMC does not open its console")
	}
}

// answer answers MokManager until ctx ends, and sends once how that ended.
func (t *terminal) answer(ctx context.Context, reboot func(context.Context) error) <-chan error {
	said := make(chan error, 1)
	d := mok.Dialogue{Screen: &t.screen, Clock: t.clock, Password: t.password, Reboot: reboot,
		Press: func(ctx context.Context, keys string) error {
			wait, cancel := t.clock.WithTimeout(ctx, consoleLimit)
			defer cancel()
			select {
			case t.keys <- keys:
				return nil
			case <-wait.Done():
				return errkind.New(errkind.Timeout, "the console takes no keys any more")
			}
		}}
	t.wg.Go(func() { said <- d.Run(ctx) })
	return said
}

// wait waits until the console was given back.
func (t *terminal) wait() { t.wg.Wait() }

// lines are the end of what the console shows, escaped, without the password.
func (t *terminal) lines() (list []string) {
	all := mok.Mask(t.screen.Lines(), t.password)
	for _, line := range all[max(0, len(all)-TailLines):] {
		list = append(list, event.Escape(line))
	}
	return slices.Clip(list)
}
