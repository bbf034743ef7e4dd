// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"context"
	"time"
)

// Run is the power state machine; it returns nil when ctx ends, after the
// board's run has ended too. It is called once. Between requests it waits and
// costs nothing.
func (c *Chassis) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		switch want, epoch := c.next(); want {
		case wantOn:
			c.powerOn(ctx, epoch)
		case wantBack:
			c.comeBack(ctx)
		default:
			select {
			case <-c.wake:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// next takes a request that makes sense without power.
func (c *Chassis) next() (request, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.want
	if !c.mains() || w != wantOn && w != wantBack {
		return nothing, c.epoch
	}
	c.want = nothing
	return w, c.epoch
}

// comeBack lets the BMC start and then presses the button itself.
func (c *Chassis) comeBack(ctx context.Context) {
	if !c.sleep(ctx, c.epochNow(), c.cfg.Timing.BMCReset) {
		return
	}
	_ = c.Press(PressOn) // refused only when somebody was faster
}

func (c *Chassis) epochNow() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// powerOn brings the power up and runs the board until the power is off again.
func (c *Chassis) powerOn(ctx context.Context, epoch int) {
	for cold := true; ; {
		if cold {
			if !c.sleep(ctx, epoch, c.cfg.Timing.PowerOn) {
				return
			}
			if !c.becomeOn(epoch) {
				return
			}
		}
		switch c.runBoard(ctx, epoch, cold) {
		case wantReset:
			cold = false
		case wantCycle:
			if !c.powerOff(ctx, epoch, PoweringOn) {
				return
			}
			cold = true
		case wantOff:
			c.powerOff(ctx, epoch, Off)
			return
		default: // mains lost or ctx ended
			return
		}
	}
}

// becomeOn ends the transition to On.
func (c *Chassis) becomeOn(epoch int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return false
	}
	c.power = On
	c.counts.PowerOns++
	c.record("OK", "Power Unit", "System power on")
	return true
}

// powerOff spends the transition and ends in then.
func (c *Chassis) powerOff(ctx context.Context, epoch int, then Power) bool {
	c.mu.Lock()
	if c.epoch != epoch {
		c.mu.Unlock()
		return false
	}
	c.power, c.phase = PoweringOff, "None"
	c.mu.Unlock()
	if !c.sleep(ctx, epoch, c.cfg.Timing.PowerOff) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return false
	}
	c.power = then
	c.counts.PowerOffs++
	c.record("OK", "Power Unit", "System power off")
	return true
}

// runBoard runs the board once and returns what comes next; nothing means that
// mains were lost or ctx ended.
func (c *Chassis) runBoard(ctx context.Context, epoch int, cold bool) request {
	bctx, board, ok := c.enter(ctx, epoch, true)
	if !ok {
		return nothing
	}
	exit := Halt
	if board != nil {
		exit = board.Run(bctx, cold)
	}
	c.mu.Lock()
	idle := exit == Halt && c.want == nothing && bctx.Err() == nil
	c.mu.Unlock()
	if idle {
		<-bctx.Done() // a press or the loss of mains ends it
	}
	c.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || c.epoch != epoch {
		return nothing
	}
	next := c.want
	c.want = nothing
	if next == nothing {
		next = map[Exit]request{Reset: wantReset, Shutdown: wantOff}[exit]
	}
	c.phase = "None"
	if next == wantReset {
		c.counts.Resets++
		c.record("OK", "System Event", "System reset")
	}
	return next
}

// enter makes a context that ends with what Run is in the midst of.
func (c *Chassis) enter(ctx context.Context, epoch int, board bool) (context.Context, Board, bool) {
	sub, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		cancel(errNoMains)
		return sub, nil, false
	}
	c.cancel, c.inBoard, c.runCtx = cancel, board, sub
	if board {
		c.activate()
		if c.want != nothing { // pressed between two steps
			cancel(ErrReset)
		}
	}
	return sub, c.board, true
}

// leave ends what enter began.
func (c *Chassis) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(context.Canceled)
	c.cancel, c.inBoard, c.runCtx = nil, false, nil
}

// sleep spends one of the transitions; false: mains were lost or ctx ended.
func (c *Chassis) sleep(ctx context.Context, epoch int, d time.Duration) bool {
	sub, _, ok := c.enter(ctx, epoch, false)
	if !ok {
		return false
	}
	err := c.cfg.Clock.Sleep(sub, d)
	c.leave()
	return err == nil
}
