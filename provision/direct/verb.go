// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc"
)

// verb is one thing to do.
type verb struct {
	starts   bool // may switch supplies on: it claims the node's circuits
	disturbs bool // ends what runs on the node: not on a protected one, nor under jobs
	changes  bool // changes what happens to a node later: not on a protected one
	mains    bool // is done at the outlets of the node's PDUs
	harmless bool // no rule stands against it: whoever works at a node on hold wants it
	// repeats: doing it once more changes nothing if it was done, as the power is read first.
	repeats  bool
	describe func(q control.DirectRequest, now bmc.PowerState) (does string, nothing bool)
	do       func(ctx context.Context, w work) (bmc.Outcome, error)
}

// work is one verb on one node.
type work struct {
	bmc   BMC
	uefi  bool // the hardware block says that the node boots by UEFI
	q     control.DirectRequest
	clock clock.Clock
	say   func(text string)
	// rest waits while others work; recheck asks once more what ready asked, for a second command.
	rest    func(ctx context.Context, wait time.Duration) error
	recheck func(ctx context.Context) error
	mains   []outlet       // of a verb that is done at outlets; then bmc is nil
	now     bmc.PowerState // how the power, or those outlets, read
}

// verbs are all that there is to do.
var verbs = map[control.DirectVerb]verb{
	control.DirectOn: {starts: true, repeats: true,
		describe: func(_ control.DirectRequest, now bmc.PowerState) (string, bool) {
			return "switch it on", now == bmc.PowerOn
		},
		do: func(ctx context.Context, w work) (bmc.Outcome, error) { return w.bmc.SetPower(ctx, bmc.On) }},
	control.DirectOff: {disturbs: true, repeats: true, describe: describeOff, do: switchOff},
	control.DirectCycle: {starts: true, disturbs: true,
		describe: func(_ control.DirectRequest, now bmc.PowerState) (string, bool) {
			if now == bmc.PowerOff {
				return "switch it on", false
			}
			return "switch it off hard, wait, and switch it on", false
		},
		do: func(ctx context.Context, w work) (bmc.Outcome, error) { return w.bmc.SetPower(ctx, bmc.Cycle) }},
	// A BMC that cannot reset cycles the power instead, so that circuits are claimed here too.
	control.DirectReset: {starts: true, disturbs: true,
		describe: func(control.DirectRequest, bmc.PowerState) (string, bool) {
			return "reset it hard, without loss of power", false
		},
		do: func(ctx context.Context, w work) (bmc.Outcome, error) { return w.bmc.SetPower(ctx, bmc.Reset) }},
	control.DirectMains: {starts: true, disturbs: true, mains: true,
		describe: func(_ control.DirectRequest, now bmc.PowerState) (string, bool) {
			if now == bmc.PowerOff {
				return "switch all its outlets on, of which some are off", false
			}
			return "switch all its outlets off, wait, and on", false
		},
		do: func(ctx context.Context, w work) (bmc.Outcome, error) {
			return cycleOutlets(ctx, w.clock, w.mains, w.now)
		}},
	control.DirectBoot: {changes: true, repeats: true,
		describe: func(q control.DirectRequest, _ bmc.PowerState) (string, bool) { return describeBoot(q), false },
		do:       setBoot},
	control.DirectLight: {harmless: true, repeats: true,
		describe: func(q control.DirectRequest, _ bmc.PowerState) (string, bool) { return "light " + q.Light, false },
		do: func(ctx context.Context, w work) (bmc.Outcome, error) {
			return w.bmc.Locate(ctx, lights[w.q.Light])
		}},
}

// devices and lights are the words of requests.
var (
	devices = map[string]bmc.BootFrom{"none": bmc.None, "pxe": bmc.PXE, "http": bmc.HTTP, "disk": bmc.Disk, "bios": bmc.Setup}
	lights  = map[string]bmc.Light{"on": bmc.LightOn, "off": bmc.LightOff, "blink": bmc.LightBlink}
)

// findVerb finds what a request asks for, and refuses one that is not whole.
func findVerb(q control.DirectRequest) (verb, error) {
	v, ok := verbs[q.Verb]
	_, device := devices[q.Device]
	_, light := lights[q.Light]
	switch {
	case !ok:
		return v, errkind.New(errkind.Unsupported, "this ironrail has no %q", q.Verb)
	case q.Verb == control.DirectBoot && !device:
		return v, errkind.New(errkind.Invalid, "%q is no boot device", q.Device).Do("Say pxe, http, disk, bios or none.")
	case q.Verb == control.DirectLight && !light:
		return v, errkind.New(errkind.Invalid, "%q is nothing that a light does", q.Light).Do("Say on, off or blink.")
	}
	return v, nil
}

// describeBoot says what a node boots from.
func describeBoot(q control.DirectRequest) string {
	switch {
	case q.Device == "none":
		return "boot by the firmware's own order"
	case q.Persistent:
		return "boot from " + q.Device + " at every boot"
	}
	return "boot from " + q.Device + " at the next boot, then by the firmware's own order"
}

// setBoot sets the boot device. Some BMCs keep for every boot what was asked for one: that is said, and
// what takes it back.
func setBoot(ctx context.Context, w work) (bmc.Outcome, error) {
	device := devices[w.q.Device]
	out, err := w.bmc.SetBoot(ctx, bmc.Boot{Device: device, Once: !w.q.Persistent && device != bmc.None, UEFI: w.uefi || device == bmc.HTTP})
	if err == nil && out.Persistent {
		out.Evidence += "; THIS BMC KEEPS IT FOR EVERY BOOT: `ironrail boot NODE none` takes it back"
	}
	return out, err
}

func describeOff(q control.DirectRequest, now bmc.PowerState) (string, bool) {
	soft := fmt.Sprintf("ask its system to shut down (ACPI) and wait %s", q.Wait)
	switch {
	case now == bmc.PowerOff:
		return "switch it off", true
	case q.Force && q.Wait <= 0:
		return "switch it off hard", false
	case q.Force:
		return soft + ", then switch it off hard if it is still on", false
	}
	return soft + "; it stays on if it does not", false
}

// shutdownPoll is how often the power is read while an operating system shuts down.
const shutdownPoll = 3 * time.Second

// switchOff asks the system to shut down, waits, and switches off hard where that is asked for.
func switchOff(ctx context.Context, w work) (bmc.Outcome, error) {
	if w.q.Wait <= 0 {
		return w.bmc.SetPower(ctx, bmc.Off)
	}
	start := w.clock.Now()
	out, err := w.bmc.ShutDown(ctx)
	if errkind.Of(err).Base() == errkind.Refused || errkind.Of(err) == errkind.Unsupported {
		if !w.q.Force {
			return out, err
		}
		w.say(fmt.Sprintf("it cannot be asked to shut down (%v): it is switched off hard", err))
		return w.bmc.SetPower(ctx, bmc.Off)
	}
	if err != nil || out.Verdict == bmc.Verified {
		return out, err
	}
	w.say(out.Evidence)
	now, err := bmc.PowerUnknown, error(nil)
	for {
		if err := w.rest(ctx, min(shutdownPoll, max(0, w.q.Wait-w.clock.Now().Sub(start)))); err != nil {
			return bmc.Outcome{Evidence: out.Evidence + "; not waited for", Sent: out.Sent}, err
		}
		now, err = w.bmc.PowerState(ctx)
		spent := w.clock.Now().Sub(start).Round(time.Second)
		switch {
		case err == nil && now == bmc.PowerOff:
			return bmc.Outcome{Verdict: bmc.Verified, Sent: out.Sent, Evidence: fmt.Sprintf("it shut down within %s", spent)}, nil
		case spent < w.q.Wait:
			continue
		case !w.q.Force && err != nil:
			return bmc.Outcome{Evidence: fmt.Sprintf("power cannot be read for %s after the shutdown was asked for", spent), Sent: out.Sent}, err
		case !w.q.Force:
			return bmc.Outcome{Verdict: bmc.Contradicted, Sent: out.Sent, Evidence: fmt.Sprintf("power still reads on %s after its system was asked to shut down", spent)}, nil
		}
		return switchOffLate(ctx, w, out.Sent, spent)
	}
}

// switchOffLate switches off hard a system that did not shut down, unless a job has begun meanwhile, or
// another rule stands against it by now.
func switchOffLate(ctx context.Context, w work, sent int, spent time.Duration) (bmc.Outcome, error) {
	late := fmt.Sprintf("its system did not shut down within %s", spent)
	if err := w.recheck(ctx); err != nil {
		return bmc.Outcome{Sent: sent, Evidence: late + ", and it was not switched off hard"}, err
	}
	w.say(fmt.Sprintf("it has not shut down within %s: it is switched off hard", spent))
	off, err := w.bmc.SetPower(ctx, bmc.Off)
	off.Sent += sent
	off.Evidence = late + "; hard: " + off.Evidence
	return off, err
}
