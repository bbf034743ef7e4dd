// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// TestPowerOffBetweenRuns: the controller dies while a node is in its install
// ramdisk, and somebody switches the node off before the next run. That one
// switches it on at once: it neither waits for an agent that cannot come, nor
// cycles power that is off.
func TestPowerOffBetweenRuns(t *testing.T) {
	t.Parallel()
	const node = "r01-u09"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		p, err := l.Plan(ctx, provision.PlanOptions{Replace: []string{node}, Targets: []string{node}})
		if err != nil {
			return err
		}
		l.KillAt("install.write", node)
		if _, err := l.Apply(ctx, p); err == nil {
			t.Error("the controller did not die")
		}
		n, _ := l.World.Node(node)
		if n.Chassis().Power() != chassis.On {
			t.Errorf("its power is %v when the controller dies", n.Chassis().Power())
		}
		if err := n.Chassis().Press(chassis.ForceOff); err != nil {
			return err
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		var dark time.Duration
		var watch sync.WaitGroup
		watch.Go(func() {
			for n.Chassis().Power() == chassis.Off && time.Since(began) < time.Hour {
				time.Sleep(time.Second)
			}
			dark = time.Since(began)
		})
		res, err := l.Apply(ctx, p)
		watch.Wait()
		if err != nil {
			return err
		}
		if res.Outcome != state.RunDone || dark > 5*time.Minute { // the old attempt waits a quarter of an hour
			t.Errorf("outcome %s, and it had no power for %s: %+v", res.Outcome, dark, res.Findings)
		}
		return nil
	})
}

// TestPowerOffWhileBooting: somebody switches a node off while a run waits for it
// to boot. The run says so within minutes, and the next one switches it on.
func TestPowerOffWhileBooting(t *testing.T) {
	t.Parallel()
	const node = "r01-u09"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		n, _ := l.World.Node(node)
		again := func() (apply.Result, error) {
			p, err := l.Plan(ctx, provision.PlanOptions{Replace: []string{node}, Targets: []string{node}})
			if err != nil {
				return apply.Result{}, err
			}
			return l.Apply(ctx, p)
		}
		var began time.Time
		var pressed error
		var technician sync.WaitGroup
		technician.Go(func() {
			for n.Chassis().Phase() == "OS" { // until it is cycled
				time.Sleep(time.Second)
			}
			time.Sleep(20 * time.Second)
			began, pressed = time.Now(), n.Chassis().Press(chassis.ForceOff)
		})
		res, err := again()
		ended := time.Now()
		technician.Wait()
		took := ended.Sub(began)
		if err = errors.Join(err, pressed); err != nil {
			return err
		}
		if len(res.Findings) != 1 || !strings.Contains(res.Findings[0].Cause, "its power is off") || took > 6*time.Minute {
			t.Errorf("after %s: %+v", took, res.Findings)
		}
		if res, err = again(); err == nil && res.Outcome != state.RunDone {
			t.Errorf("the next run: %s %+v", res.Outcome, res.Findings)
		}
		return err
	})
}
