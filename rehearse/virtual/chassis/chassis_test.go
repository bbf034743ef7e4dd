// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// board notes its runs and leaves off as told.
type board struct {
	c     *Chassis
	phase string
	exit  Exit
	self  time.Duration // when it leaves off by itself; 0: never

	mu     sync.Mutex
	starts []bool  // of each run, whether it was cold
	causes []error // why they ended, where it was not by themselves
}

func (b *board) runs() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.starts)
}

func (b *board) ended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.causes) == 0 {
		return nil
	}
	return b.causes[0]
}

func (b *board) Run(ctx context.Context, cold bool) Exit {
	b.mu.Lock()
	b.starts = append(b.starts, cold)
	b.mu.Unlock()
	b.c.ApplyBIOS()
	b.c.SetPhase(b.phase)
	if b.self > 0 {
		select {
		case <-time.After(b.self):
			return b.exit
		case <-ctx.Done():
		}
	} else {
		<-ctx.Done()
	}
	b.mu.Lock()
	b.causes = append(b.causes, context.Cause(ctx))
	b.mu.Unlock()
	return Halt
}

// rig runs body with a chassis in a bubble.
func rig(t *testing.T, cfg Config, b *board, body func(*Chassis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := New(cfg)
		b.c = c
		c.SetBoard(b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		body(c)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestPowerOnTakesItsTime(t *testing.T) {
	t.Parallel()
	b := &board{phase: "POST"}
	rig(t, Config{}, b, func(c *Chassis) {
		if err := c.Press(PressOn); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c.Power() != PoweringOn {
			t.Errorf("power = %s at once, want PoweringOn", c.Power())
		}
		if err := c.Press(ForceOff); !errors.Is(err, ErrTransition) {
			t.Errorf("press in transition: %v", err)
		}
		wait(5*time.Second - 1)
		if c.Power() != PoweringOn {
			t.Errorf("power = %s just before 5 s", c.Power())
		}
		wait(1)
		if c.Power() != On || c.Phase() != "POST" || !slices.Equal(b.runs(), []bool{true}) {
			t.Errorf("after 5 s: %s, phase %s, runs %v", c.Power(), c.Phase(), b.runs())
		}
		if err := c.Press(PressOn); !errors.Is(err, ErrAlready) {
			t.Errorf("on when on: %v", err)
		}
	})
}

func TestActions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		action Action
		phase  string
		after  time.Duration // until the end state is reached
		power  Power
		runs   []bool
		cause  error
		want   Counts
	}{
		{"force off", ForceOff, "OS", 3 * time.Second, Off, []bool{true}, errPowerOff, Counts{PowerOns: 1, PowerOffs: 1}},
		{"graceful from the OS", GracefulShutdown, "OS", 23 * time.Second, Off, []bool{true}, errPowerOff, Counts{PowerOns: 1, PowerOffs: 1}},
		{"graceful from POST is at once", GracefulShutdown, "POST", 3 * time.Second, Off, []bool{true}, errPowerOff, Counts{PowerOns: 1, PowerOffs: 1}},
		{"force restart", ForceRestart, "OS", 0, On, []bool{true, false}, ErrReset, Counts{PowerOns: 1, Resets: 1}},
		{"graceful restart", GracefulRestart, "OS", 20 * time.Second, On, []bool{true, false}, ErrReset, Counts{PowerOns: 1, Resets: 1}},
		{"power cycle is cold", PowerCycle, "OS", 8 * time.Second, On, []bool{true, true}, errPowerOff, Counts{PowerOns: 2, PowerOffs: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &board{phase: tt.phase}
			rig(t, Config{}, b, func(c *Chassis) {
				_ = c.Press(PressOn)
				wait(time.Minute)
				if err := c.Press(tt.action); err != nil {
					t.Fatal(err)
				}
				wait(tt.after)
				if c.Power() != tt.power || c.Counters() != tt.want {
					t.Errorf("power %s, counters %+v, want %s %+v", c.Power(), c.Counters(), tt.power, tt.want)
				}
				if !slices.Equal(b.runs(), tt.runs) {
					t.Errorf("runs %v, want %v", b.runs(), tt.runs)
				}
				if !errors.Is(b.ended(), tt.cause) {
					t.Errorf("cause %v, want %v", b.ended(), tt.cause)
				}
			})
		})
	}
}

func TestForceOffOvertakesGraceful(t *testing.T) {
	t.Parallel()
	rig(t, Config{}, &board{phase: "OS"}, func(c *Chassis) {
		_ = c.Press(PressOn)
		wait(time.Minute)
		_ = c.Press(GracefulShutdown)
		wait(time.Second)
		if c.Power() != On {
			t.Fatalf("power %s while the OS shuts down", c.Power())
		}
		if err := c.Press(GracefulShutdown); !errors.Is(err, ErrTransition) {
			t.Errorf("second graceful: %v", err)
		}
		if err := c.Press(ForceOff); err != nil {
			t.Fatal(err)
		}
		wait(3 * time.Second)
		if c.Power() != Off {
			t.Errorf("power %s", c.Power())
		}
		wait(time.Minute) // the graceful timer must not act on a later run
		_ = c.Press(PressOn)
		wait(time.Minute)
		if c.Power() != On {
			t.Errorf("power %s after the next power-on", c.Power())
		}
	})
}

func TestBoardLeavesOff(t *testing.T) {
	t.Parallel()
	t.Run("shutdown", func(t *testing.T) {
		t.Parallel()
		rig(t, Config{}, &board{self: time.Minute, exit: Shutdown}, func(c *Chassis) {
			_ = c.Press(PressOn)
			wait(2 * time.Minute)
			if c.Power() != Off {
				t.Errorf("power %s", c.Power())
			}
		})
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		rig(t, Config{}, &board{self: time.Minute, exit: Reset}, func(c *Chassis) {
			_ = c.Press(PressOn)
			wait(3*time.Minute + 30*time.Second)
			if n := c.Counters().Resets; c.Power() != On || n != 3 {
				t.Errorf("power %s, %d resets", c.Power(), n)
			}
		})
	})
	t.Run("halt", func(t *testing.T) {
		t.Parallel()
		b := &board{self: time.Second, exit: Halt}
		rig(t, Config{}, b, func(c *Chassis) {
			_ = c.Press(PressOn)
			wait(time.Hour)
			if c.Power() != On || len(b.runs()) != 1 {
				t.Errorf("power %s, runs %v", c.Power(), b.runs())
			}
			_ = c.Press(ForceRestart)
			wait(0)
			if len(b.runs()) != 2 {
				t.Errorf("runs %v after a reset of a halted board", b.runs())
			}
		})
	})
}

func TestMains(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy Restore
		wasOn  bool
		want   Power
	}{
		{AlwaysOff, true, Off}, {AlwaysOn, false, On}, {LastState, true, On}, {LastState, false, Off},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy)+"/"+string(tt.want), func(t *testing.T) {
			t.Parallel()
			b := &board{phase: "OS"}
			rig(t, Config{}, b, func(c *Chassis) {
				if err := c.SetRestore(tt.policy); err != nil {
					t.Fatal(err)
				}
				if tt.wasOn {
					_ = c.Press(PressOn)
					wait(time.Minute)
				}
				c.Mains(0, false)
				wait(time.Second)
				if !c.Live() || tt.wasOn && c.Power() != On {
					t.Fatal("one supply of two is enough")
				}
				c.Mains(1, false)
				wait(0)
				if c.Live() || c.Power() != Off || c.Phase() != "None" {
					t.Fatalf("without mains: live %t, power %s, phase %s", c.Live(), c.Power(), c.Phase())
				}
				if err := c.Press(PressOn); !errors.Is(err, errNoMains) {
					t.Errorf("press without mains: %v", err)
				}
				if tt.wasOn && !errors.Is(b.ended(), errNoMains) {
					t.Errorf("cause %v", b.ended())
				}
				c.Mains(1, true)
				wait(59 * time.Second)
				if c.Live() {
					t.Error("the BMC answers before it has started")
				}
				wait(10 * time.Second)
				if !c.Live() || c.Power() != tt.want {
					t.Errorf("live %t, power %s, want %s", c.Live(), c.Power(), tt.want)
				}
				if c.Counters().LostMains != 1 {
					t.Errorf("counters %+v", c.Counters())
				}
			})
		})
	}
}

func TestMainsLostInTransition(t *testing.T) {
	t.Parallel()
	b := &board{}
	rig(t, Config{Supplies: 1}, b, func(c *Chassis) {
		_ = c.Press(PressOn)
		wait(time.Second)
		c.Mains(0, false)
		c.Mains(0, true)
		if err := c.Press(PressOn); err != nil {
			t.Fatal(err)
		}
		wait(4*time.Second + 500*time.Millisecond) // the first press would be through
		if c.Power() != PoweringOn || len(b.runs()) != 0 {
			t.Errorf("power %s, runs %v", c.Power(), b.runs())
		}
		wait(time.Second)
		if c.Power() != On {
			t.Errorf("power %s", c.Power())
		}
	})
}

func TestBMCResetLeavesThePowerAlone(t *testing.T) {
	t.Parallel()
	rig(t, Config{}, &board{phase: "OS"}, func(c *Chassis) {
		_ = c.Press(PressOn)
		wait(time.Minute)
		c.ResetBMC()
		if c.Live() {
			t.Error("the BMC answers while it starts")
		}
		wait(time.Minute)
		if _, starts := c.BMCStarted(); !c.Live() || starts != 2 || c.Power() != On {
			t.Errorf("live %t, %d starts, power %s", c.Live(), starts, c.Power())
		}
	})
}

// silent sets a phase on its cold start only.
type silent struct{ board }

func (b *silent) Run(ctx context.Context, cold bool) Exit {
	if cold {
		b.c.SetPhase("OS")
	}
	<-ctx.Done()
	return Halt
}

func TestPhaseEndsWithTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		c.SetBoard(&silent{board{c: c}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Run(ctx) }()
		_ = c.Press(PressOn)
		wait(time.Minute)
		if c.Phase() != "OS" {
			t.Fatalf("phase %s", c.Phase())
		}
		_ = c.Press(ForceRestart)
		wait(0)
		if c.Phase() != "None" {
			t.Errorf("phase %s after a reset", c.Phase())
		}
		cancel()
		synctest.Wait()
	})
}

// TestPressBetweenSteps presses when the power is on and the board has not
// begun: its context is dead from the start.
func TestPressBetweenSteps(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	c.power = On
	if err := c.Press(ForceOff); err != nil {
		t.Fatal(err)
	}
	ctx, _, ok := c.enter(t.Context(), 0, true)
	if !ok || ctx.Err() == nil {
		t.Error("the board would run on")
	}
}
