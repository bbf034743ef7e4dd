// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/since"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// How long a BMC may take for all that it is asked: before the tests, and when a
// node is accepted, where it is asked once more.
const (
	ChassisWait = 90 * time.Second
	againWait   = 20 * time.Second
)

// logMark is where a BMC's event log ended at some time, as the bmc stage learns it
// when a bring-up begins.
type logMark struct {
	At time.Time `json:"at"` // by the controller's clock
	chassis.LogMark
}

const (
	logAtStart  = fact.Name[logMark]("bmc.log_mark")
	logAtAccept = fact.Name[logMark]("validate.log_mark")
)

// AskChassis asks a node's BMC for power supplies, fans, the air that comes in, and
// what is new in its event log. A BMC that does not report is a gap: that it answers
// is proven elsewhere.
func AskChassis(ctx context.Context, j *target.Job, wait time.Duration) (c Chassis, now *chassis.LogMark) {
	c, now, _ = askChassis(ctx, j, wait)
	return c, now
}

// askChassis is AskChassis; silent is why the BMC could not be spoken to at all.
func askChassis(ctx context.Context, j *target.Job, wait time.Duration) (c Chassis, now *chassis.LogMark, silent error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	gap := func(what string, err error) {
		c.Gaps = append(c.Gaps, fmt.Sprintf("%s: not looked at: %v", what, err))
		if k := errkind.Of(err); k == errkind.Unreachable || k == errkind.Timeout || k == errkind.Auth {
			silent = err
		}
	}
	n := j.Node
	h, err := j.BMCs(n.Name)
	if err != nil {
		gap("power supplies, fans and event log", err)
		return c, nil, silent
	}
	c.Parts, err = h.Parts(ctx)
	switch {
	case err != nil && errkind.Of(err) != errkind.Unsupported:
		gap("power supplies, fans and event log", err)
		return c, nil, silent
	case len(c.Parts) == 0:
		c.Gaps = append(c.Gaps, "the BMC tells nothing of power supplies and fans")
	}
	c.Watched = IsWatched(n)
	var from *chassis.LogMark
	since, ok := lastMark(j.Run, n)
	if ok {
		from = &since.LogMark
	} else {
		c.Gaps = append(c.Gaps, "where the event log ended when the bring-up began is not known: it was not looked at")
	}
	mark, log, err := h.Log(ctx, from)
	if err != nil {
		gap("the event log", err)
		return c, nil, silent
	}
	c.Log, c.Logged = log, ok
	return c, &mark, nil
}

// facts finds facts by their keys.
type facts interface {
	Fact(fact.Key) (fact.Fact, bool)
}

// LastLogMark is where the event log of a node's BMC ended when the node was accepted last, or its
// bring-up began, and when that was by the controller's clock; false: that is not known.
func LastLogMark(of facts, n *inventory.Node) (chassis.LogMark, time.Time, bool) {
	m, ok := lastMark(of, n)
	return m.LogMark, m.At, ok
}

// lastMark is where the event log ended when the node was accepted last, or when
// its bring-up began: what is later.
func lastMark(run facts, n *inventory.Node) (logMark, bool) {
	start, began := target.ReadFact(run, logAtStart, subject.OfNode(n.Name))
	end, accepted := target.ReadFact(run, logAtAccept, subject.OfNode(n.Name))
	if accepted && (!began || end.At.After(start.At)) {
		return end, true
	}
	return start, began
}

// IsWatched reports whether all PDUs behind a node are read by themselves.
func IsWatched(n *inventory.Node) bool {
	for _, f := range n.Feeds {
		if f.PDU == nil || f.PDU.Control == nil {
			return false
		}
	}
	return len(n.Feeds) > 0
}

// ChassisAgain asks a node's BMC once more when its tests are over: load is what
// power supplies and memory fail under. What it finds keeps the node from being
// accepted, and so does a BMC that does not answer any more: without it nobody can repair the
// node from afar.
func ChassisAgain(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	if j.BMCs == nil || !target.HasGates(n) {
		return nil
	}
	c, now, silent := askChassis(ctx, j, againWait)
	unread := unreadChassis(j, c)
	if (silent != nil || len(unread) > 0) && ctx.Err() == nil { // it may be busy, or restarting
		c, now, silent = askChassis(ctx, j, ChassisWait)
		unread = unreadChassis(j, c)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if silent != nil {
		return refuseSilent(ctx, j, silent)
	}
	faults, _ := JudgeChassis(n.Hardware, c)
	if len(faults) == 0 && len(unread) > 0 {
		f := since.UnreadFault(append(unread, c.Gaps...), 2)
		f.Part, f.Action = "BMC", doBMC
		faults = []judge.Fault{f}
	}
	for _, f := range faults {
		if err := run.Blame(ctx, f.Finding(n.Name)); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return result.RefuseNode(n.Name, "%s", faults[0].Cause)
	}
	if now == nil {
		return nil
	}
	return target.LearnFact(ctx, run, logAtAccept, subject.OfNode(n.Name), logMark{run.Clock().Now().UTC(), *now})
}

// gatesBefore is what the health checks made of a node, of which the chassis' are read.
const gatesBefore = fact.Name[struct {
	Gates []judge.Outcome `json:"gates"`
}]("validate.gates")

// unreadChassis are the health checks of the chassis that were judged before the tests and cannot be
// judged by what the BMC says now.
func unreadChassis(j *target.Job, c Chassis) []string {
	before, _ := target.ReadFact(j.Run, gatesBefore, subject.OfNode(j.Node.Name))
	return since.UnreadGates(before.Gates, ChassisOutcomes(j.Node.Hardware, c), []string{PowerSupplies, Fans, InletAir, BMCLog})
}

const doBMC = "Look at the BMC's cable and switch port, at its login, and reset the BMC itself if it stays silent; then run `ironrail apply` again."

// refuseSilent blames a BMC that could not be spoken to. Where the controller itself has no way
// to its network, no BMC is at fault.
func refuseSilent(ctx context.Context, j *target.Job, why error) error {
	n := j.Node
	if errkind.Of(why) == errkind.Unreachable && errkind.ReachOf(why) == errkind.NoNetwork {
		return why
	}
	const cause = "the BMC does not answer any more"
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BMC"}}, Cause: cause, Evidence: []string{why.Error()}, Action: cmp.Or(errkind.Action(why), doBMC)}
	if err := j.Run.Blame(ctx, f); err != nil {
		return err
	}
	return result.RefuseNode(n.Name, "%s", cause)
}
