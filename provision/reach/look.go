// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/pdu"
)

// How long a look at one node takes at most, and how much of the event log it
// shows.
const (
	askLimit   = 10 * time.Second
	askLog     = 8
	mainsAfter = 3 * time.Second // a BMC that has said nothing by then may have no mains
)

// AskBMC asks within askLimit. What could not be read is in the Look.
func AskBMC(ctx context.Context, n *inventory.Node, b BMCs, f *Feeds) (l control.Look) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	l = control.Look{At: time.Now().UTC()}
	defer func() { // whose BMC it is stands above
		for i, e := range l.Errors {
			l.Errors[i] = strings.TrimPrefix(e, "node "+n.Name+": ")
		}
	}()
	h, err := b.Handle(n.Name)
	if err != nil {
		l.Errors = append(l.Errors, err.Error())
		return l
	}
	on := func() bool { return l.Power == string(bmc.PowerOn) }
	var mains control.Look
	askBeside(func() bool { askPower(ctx, h, &l); return on() }, func() { f.mains(ctx, n, &mains) })
	if !on() {
		l.Outlets, l.Errors = mains.Outlets, append(l.Errors, mains.Errors...)
	}
	return l
}

// askPower reads power, boot progress and event log of a BMC.
func askPower(ctx context.Context, h *bmc.Handle, l *control.Look) {
	power, err := h.PowerState(ctx)
	if l.Power = string(power); err != nil {
		l.Answered = answered(err)
		l.Sort, l.Do = oob.DescribeProblem(err)
		l.Errors = append(l.Errors, err.Error())
		return
	}
	_ = bmc.Use(ctx, h, "read the boot progress", func(p bmc.Progress) (err error) { // not all BMCs have it
		l.Progress, err = p.Progress(ctx)
		return err
	})
	if err := bmc.Use(ctx, h, "read the event log", func(e bmc.EventLog) error { return readLog(ctx, e, l) }); err != nil {
		l.Errors = append(l.Errors, err.Error())
	}
}

// answered reports whether an error is of a BMC that is there: it was not silence.
func answered(err error) bool {
	switch errkind.Of(err).Base() {
	case errkind.Auth, errkind.Refused, errkind.Unsupported, errkind.Mismatch:
		return true
	}
	return false
}

func readLog(ctx context.Context, e bmc.EventLog, l *control.Look) error {
	entries, err := e.EventLog(ctx, askLog)
	for _, x := range entries {
		l.Log = append(l.Log, control.LogEntry{Time: x.Created, Severity: x.Severity, Text: x.Message})
	}
	return err
}

// askBeside asks a BMC, and the PDUs when it does not say that the power is on, or has
// not answered after mainsAfter: a BMC without mains never does. It returns when both
// have answered.
func askBeside(isOn func() bool, pdus func()) {
	answer := make(chan bool, 1)
	var wg sync.WaitGroup
	wg.Go(func() { answer <- isOn() })
	select {
	case on := <-answer:
		if !on {
			pdus()
		}
	case <-time.After(mainsAfter):
		pdus()
	}
	wg.Wait()
}

// mains asks the PDUs of a node that may have no power, all at once.
func (f *Feeds) mains(ctx context.Context, n *inventory.Node, l *control.Look) {
	var all []*inventory.PDU
	for _, d := range n.Feeds {
		if d.PDU != nil && d.PDU.Control != nil && !slices.Contains(all, d.PDU) {
			all = append(all, d.PDU)
		}
	}
	got, errs := make([]pdu.Reading, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { got[i], errs[i] = f.read(ctx, p) })
	}
	wg.Wait()
	for i, p := range all {
		if errs[i] != nil {
			l.Errors = append(l.Errors, errs[i].Error())
			continue
		}
		l.Outlets = append(l.Outlets, mainsText(p.Name, got[i])...)
	}
}

// mainsText says what of a PDU may keep a node without power.
func mainsText(name string, r pdu.Reading) (out []string) {
	for _, b := range r.Breakers {
		if b.State == pdu.BreakerOpen {
			out = append(out, fmt.Sprintf("PDU %s: breaker %d is open", name, b.Number))
		}
	}
	for _, p := range r.Phases {
		if p.Volts == 0 {
			out = append(out, fmt.Sprintf("PDU %s: phase %d has no voltage", name, p.Number))
		}
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("PDU %s delivers %.0f W as a whole", name, r.Watts))
	}
	return out
}
