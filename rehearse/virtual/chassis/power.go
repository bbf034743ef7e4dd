// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Action is a change of power asked for, in Redfish's words (ResetType).
type Action string

// The actions a chassis knows.
const (
	PressOn          Action = "On"
	ForceOff         Action = "ForceOff"
	GracefulShutdown Action = "GracefulShutdown"
	ForceRestart     Action = "ForceRestart"
	GracefulRestart  Action = "GracefulRestart"
	PowerCycle       Action = "PowerCycle"
	NMI              Action = "Nmi"
)

// Restore says what happens when mains come back (Redfish PowerRestorePolicy).
type Restore string

// The restore policies; a new chassis has AlwaysOff.
const (
	AlwaysOff Restore = "AlwaysOff"
	AlwaysOn  Restore = "AlwaysOn"
	LastState Restore = "LastState"
)

// Errors of Press, and the causes with which a board's context ends.
var (
	ErrAlready     = errors.New("the power is already in that state")    // also a restart asked of a node that is off
	ErrTransition  = errors.New("a change of power is in progress")      // ask again later
	errNoMains     = errors.New("no power supply has mains")             // cause: mains were lost
	errUnsupported = errors.New("the action is not supported")           // not one of the words above
	errPowerOff    = errors.New("the power was switched off")            // cause only
	ErrReset       = errors.New("the node was reset")                    // cause only
	errValue       = errors.New("the value is not one of those allowed") // of setters
)

// request is what Run is asked to do next.
type request int

const (
	nothing  request = iota
	wantOn           // from Off
	wantBack         // from Off after mains came back: the BMC starts first
	wantOff
	wantReset
	wantCycle
)

// Power returns the power state.
func (c *Chassis) Power() Power {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.power
}

// Press asks for a change of power and returns at once; the change takes
// Timing's durations. ErrAlready, ErrTransition, errNoMains and errUnsupported
// say why it was refused. A forced action overtakes a graceful one under way.
func (c *Chassis) Press(a Action) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isKnown(a) {
		return fmt.Errorf("%w: %q", errUnsupported, string(a))
	}
	if !c.mains() {
		return errNoMains
	}
	switch c.power {
	case PoweringOn, PoweringOff:
		return ErrTransition
	case Off:
		return c.pressOff(a)
	}
	return c.pressOn(a)
}

func isKnown(a Action) bool {
	switch a {
	case PressOn, ForceOff, GracefulShutdown, ForceRestart, GracefulRestart, PowerCycle, NMI:
		return true
	}
	return false
}

// pressOff is Press for a node that is off. c.mu is held.
func (c *Chassis) pressOff(a Action) error {
	if a != PressOn {
		return ErrAlready
	}
	if c.want == wantBack {
		return ErrTransition
	}
	c.power = PoweringOn
	c.request(wantOn)
	return nil
}

// pressOn is Press for a node that is on. c.mu is held.
func (c *Chassis) pressOn(a Action) error {
	graceful := a == GracefulShutdown || a == GracefulRestart
	switch {
	case a == PressOn:
		return ErrAlready
	case a == NMI:
		c.record("Warning", "System Event", "NMI asserted")
		return nil
	case c.want != nothing && graceful:
		return ErrTransition
	}
	want, cause := wantOff, errPowerOff
	switch a {
	case ForceRestart, GracefulRestart:
		want, cause = wantReset, ErrReset
	case PowerCycle:
		want = wantCycle
	}
	c.request(want)
	if c.cancel == nil || !c.inBoard {
		return nil // Run is between two steps and looks at the request itself
	}
	if graceful && c.phase == "OS" {
		c.after(c.cfg.Timing.GracefulOff, cause)
		return nil
	}
	if want != wantReset {
		c.power = PoweringOff
	}
	c.cancel(cause)
	return nil
}

// after ends the board's run with cause when d has passed. c.mu is held.
func (c *Chassis) after(d time.Duration, cause error) {
	end := c.cancel
	t, stop := c.cfg.Clock.WithTimeout(c.runCtx, d)
	context.AfterFunc(t, func() { stop(); end(cause) })
}

// request leaves a request for Run. c.mu is held.
func (c *Chassis) request(r request) {
	c.want = r
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// mains reports whether any supply gives power. c.mu is held.
func (c *Chassis) mains() bool {
	if c.cfg.OwnPower {
		return true
	}
	for i, live := range c.supplies {
		if live && !c.failed[i] {
			return true
		}
	}
	return false
}

// Mains connects or cuts one power supply's mains, counted from 0; others are
// ignored. Without any the power is gone at once, and so is the BMC; when the
// first comes back the BMC starts, and then the restore policy is followed.
func (c *Chassis) Mains(supply int, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if supply < 0 || supply >= len(c.supplies) || c.supplies[supply] == live {
		return
	}
	before := c.mains()
	c.supplies[supply] = live
	switch after := c.mains(); {
	case before && !after:
		c.lose()
	case !before && after:
		c.regain()
	case live:
		c.record("OK", "Power Supply", fmt.Sprintf("PSU%d input restored", supply+1))
	default:
		c.record("Critical", "Power Supply", fmt.Sprintf("PSU%d input lost", supply+1))
	}
}

// FailSupply makes one power supply, counted from 0, give nothing any more; others
// are ignored. It keeps its mains.
func (c *Chassis) FailSupply(supply int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if supply < 0 || supply >= len(c.failed) || c.failed[supply] {
		return
	}
	before := c.mains()
	c.failed[supply] = true
	c.record("Critical", "Power Supply", fmt.Sprintf("PSU%d failure detected", supply+1))
	if before && !c.mains() {
		c.lose()
	}
}

// Failed returns which power supplies give nothing though they have mains.
func (c *Chassis) Failed() []bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bool(nil), c.failed...)
}

// lose takes all power away. c.mu is held.
func (c *Chassis) lose() {
	wasOn := c.power == On || c.power == PoweringOn
	c.epoch++
	c.counts.LostMains++
	if c.power != Off {
		c.counts.PowerOffs++
	}
	c.power, c.phase, c.want = Off, "None", nothing
	if wasOn && c.restore == LastState {
		c.want = wantBack // done once mains are back
	}
	if c.cancel != nil {
		c.cancel(errNoMains)
	}
}

// regain starts the BMC. c.mu is held.
func (c *Chassis) regain() {
	c.bootBMC()
	c.record("Warning", "Power Unit", "AC lost and restored")
	if c.restore == AlwaysOn {
		c.want = wantBack
	}
	if c.want == wantBack {
		c.request(wantBack)
	}
}

// SetRestore sets what happens when mains come back.
func (c *Chassis) SetRestore(r Restore) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r != AlwaysOff && r != AlwaysOn && r != LastState {
		return fmt.Errorf("%w: %q", errValue, string(r))
	}
	c.restore = r
	return nil
}

// RestorePolicy returns what happens when mains come back.
func (c *Chassis) RestorePolicy() Restore {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restore
}

// Supplies returns which power supplies have mains.
func (c *Chassis) Supplies() []bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bool(nil), c.supplies...)
}

// Live reports whether the BMC answers: a supply has mains and the BMC is not
// starting. Without it no front end answers anything.
func (c *Chassis) Live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mains() && !c.cfg.Clock.Now().Before(c.bmcStart)
}

// ResetBMC restarts the BMC; the node's power is left as it is.
func (c *Chassis) ResetBMC() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bootBMC()
	c.record("OK", "System Event", "BMC reset")
}

// BMCStarted returns since when the BMC answers (ahead of now while it starts)
// and how many times it has started; sessions and tasks of an earlier start are
// gone.
func (c *Chassis) BMCStarted() (since time.Time, starts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bmcStart, c.bmcBoots
}

// bootBMC starts the BMC anew. c.mu is held.
func (c *Chassis) bootBMC() {
	c.bmcStart = c.cfg.Clock.Now().Add(c.cfg.Timing.BMCReset)
	c.bmcBoots++
}
