// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

var (
	_ Sensors      = (*redfishDriver)(nil)
	_ Enclosure    = (*redfishDriver)(nil)
	_ EventLog     = (*redfishDriver)(nil)
	_ LogSpace     = (*redfishDriver)(nil)
	_ Timekeeper   = (*redfishDriver)(nil)
	_ Locator      = (*redfishDriver)(nil)
	_ Components   = (*redfishDriver)(nil)
	_ NICs         = (*redfishDriver)(nil)
	_ Updater      = (*redfishDriver)(nil)
	_ BIOS         = (*redfishDriver)(nil)
	_ SecureBoot   = (*redfishDriver)(nil)
	_ VirtualMedia = (*redfishDriver)(nil)
	_ Accounts     = (*redfishDriver)(nil)
)

// changeAndVerify sends a change and reads back what became of it. A lost answer is decided
// by what is read; a change that is not kept is Refused, beside an Outcome that
// says so.
func (d *redfishDriver) changeAndVerify(change func() error, read func() (kept bool, evidence string, err error)) (Outcome, error) {
	before := d.client.Sent()
	lost := change()
	out := Outcome{Sent: d.client.Sent() - before}
	if lost != nil && !isLost(lost) {
		out.Evidence = "the request was refused"
		return out, lost
	}
	kept, evidence, err := read()
	out.Evidence = evidence
	switch {
	case err != nil:
		out.Evidence = "it cannot be read back"
		return out, err
	case kept:
		out.Verdict = Verified
		return out, nil
	case lost != nil:
		return out, lost
	}
	out.Verdict = Contradicted
	return out, errkind.New(errkind.Refused, "the bmc accepts the request and does not keep it: %s", evidence).
		Do("Make the change by the BMC's own page, and update the BMC's firmware.")
}

// Sensors implements the interface Sensors.
func (d *redfishDriver) Sensors(ctx context.Context) ([]Reading, error) { return d.client.Sensors(ctx) }

// SecureBoot implements the interface SecureBoot.
func (d *redfishDriver) SecureBoot(ctx context.Context) (redfish.SecureBoot, error) {
	return d.client.SecureBoot(ctx)
}

// Enrol implements SecureBoot.
func (d *redfishDriver) Enrol(ctx context.Context, certificate []byte, key redfish.Key) (Outcome, error) {
	has := func() (bool, error) {
		s, err := d.client.SecureBoot(ctx)
		return slices.ContainsFunc(s.Keys, key.Is), err
	}
	if there, err := has(); err != nil || there {
		return Outcome{Verdict: Verified, Evidence: "db has it already"}, err
	}
	before := d.client.Sent()
	lost := d.client.Enrol(ctx, certificate)
	out := Outcome{Sent: d.client.Sent() - before, Verdict: Unverifiable, Evidence: "it is to be in db after the next POST"}
	if lost != nil && !isLost(lost) {
		out.Evidence = "the request was refused"
		return out, lost
	}
	switch there, err := has(); {
	case err == nil && there:
		out.Verdict, out.Evidence = Verified, "db shows it"
	case lost != nil:
		return out, lost
	}
	return out, nil
}

// Parts implements Enclosure.
func (d *redfishDriver) Parts(ctx context.Context) ([]Part, error) { return d.client.Parts(ctx) }

// EventLog implements the interface EventLog.
func (d *redfishDriver) EventLog(ctx context.Context, most int) ([]LogEntry, error) {
	return d.client.EventLog(ctx, most)
}

// ClearEventLog implements EventLog. BMCs may leave one entry that says so.
func (d *redfishDriver) ClearEventLog(ctx context.Context) (Outcome, error) {
	return d.changeAndVerify(func() error { return d.client.ClearLog(ctx) }, func() (bool, string, error) {
		left, err := d.client.EventLog(ctx, 0)
		return len(left) <= 1, fmt.Sprintf("%d entries are left", len(left)), err
	})
}

// LogFull implements LogSpace.
func (d *redfishDriver) LogFull(ctx context.Context) (string, error) { return d.client.LogFull(ctx) }

// Locate implements Locator.
func (d *redfishDriver) Locate(ctx context.Context, want Light) (Outcome, error) {
	return d.changeAndVerify(func() error { return d.client.SetLight(ctx, want) }, func() (bool, string, error) {
		now, err := d.client.Light(ctx)
		return now.Fits(want), now.String(), err
	})
}

// Time implements Timekeeper.
func (d *redfishDriver) Time(ctx context.Context) (time.Time, error) { return d.client.Time(ctx) }

// SetTime implements Timekeeper.
func (d *redfishDriver) SetTime(ctx context.Context, at time.Time) (Outcome, error) {
	return d.changeAndVerify(func() error { return d.client.SetTime(ctx, at) }, func() (bool, string, error) {
		now, err := d.client.Time(ctx)
		return isNear(now, at), formatClock(now), err
	})
}

// isNear reports whether a clock that was set to a time has kept it: what was asked for
// took some seconds to be done and read back.
func isNear(now, set time.Time) bool { return now.Sub(set).Abs() < 30*time.Second }

func formatClock(now time.Time) string { return "its clock says " + now.UTC().Format(time.DateTime) }

// CollectDiagnostics implements Diagnostics.
func (d *redfishDriver) CollectDiagnostics(ctx context.Context, most int64) ([]byte, error) {
	return d.client.CollectDiagnostics(ctx, most)
}

// Components implements the interface Components.
func (d *redfishDriver) Components(ctx context.Context) ([]Component, error) {
	return d.client.Components(ctx)
}

// NICs implements the interface NICs.
func (d *redfishDriver) NICs(ctx context.Context) ([]NIC, error) { return d.client.NICs(ctx) }

// Update implements Updater.
func (d *redfishDriver) Update(ctx context.Context, up Update) (Outcome, error) {
	before := d.client.Sent()
	task, err := d.client.StartUpdate(ctx, up)
	out := Outcome{Sent: d.client.Sent() - before}
	if err != nil {
		return out, err
	}
	if task != "" {
		if err := d.client.WaitTask(ctx, task); err != nil {
			out.Evidence = "the update was begun"
			return out, err
		}
	}
	out.Evidence = "the update was carried out; the version after the next reset proves it"
	return out, nil
}

// BIOS implements the interface BIOS.
func (d *redfishDriver) BIOS(ctx context.Context) (current, pending map[string]string, err error) {
	return d.client.BIOS(ctx)
}

// SetBIOS implements BIOS. What is in force already is not asked for.
func (d *redfishDriver) SetBIOS(ctx context.Context, want map[string]string) (Outcome, error) {
	missing := func() (map[string]string, error) {
		current, pending, err := d.client.BIOS(ctx)
		left := map[string]string{}
		for k, v := range want {
			if w, ok := pending[k]; (ok && !same(w, v)) || (!ok && !same(current[k], v)) {
				left[k] = v
			}
		}
		return left, err
	}
	left, err := missing()
	if err != nil || len(left) == 0 {
		return Outcome{Verdict: Verified, Evidence: "the settings were so already"}, err
	}
	return d.changeAndVerify(func() error { return d.client.SetBIOS(ctx, left) }, func() (bool, string, error) {
		left, err := missing()
		if len(left) == 0 {
			return true, "the settings take effect at the next POST", err
		}
		return false, "not kept: " + strings.Join(slices.Sorted(maps.Keys(left)), ", "), err
	})
}

// same compares settings: numbers and truth values have one way to be written,
// and the case of names of values differs between firmware versions.
func same(a, b string) bool { return strings.EqualFold(a, b) }

// InsertMedia implements VirtualMedia.
func (d *redfishDriver) InsertMedia(ctx context.Context, url string) (Outcome, error) {
	return d.changeAndVerify(func() error { return d.client.InsertMedia(ctx, url) }, func() (bool, string, error) {
		got, err := d.client.Media(ctx)
		return got == url, fmt.Sprintf("the drive holds %q", got), err
	})
}

// EjectMedia implements VirtualMedia.
func (d *redfishDriver) EjectMedia(ctx context.Context) (Outcome, error) {
	return d.changeAndVerify(func() error { return d.client.EjectMedia(ctx) }, func() (bool, string, error) {
		got, err := d.client.Media(ctx)
		return got == "", fmt.Sprintf("the drive holds %q", got), err
	})
}

// Accounts implements the interface Accounts.
func (d *redfishDriver) Accounts(ctx context.Context) ([]Account, error) {
	return d.client.Accounts(ctx)
}

// SetPassword implements Accounts.
func (d *redfishDriver) SetPassword(ctx context.Context, username string, password secret.Value) (Outcome, error) {
	return d.changeAndVerify(func() error { return d.client.SetPassword(ctx, username, password) },
		func() (bool, string, error) { return d.accepts(ctx, username, password) })
}

// accepts tries a password by one log-in; for our own account it is used from
// then on.
func (d *redfishDriver) accepts(ctx context.Context, username string, password secret.Value) (bool, string, error) {
	err := d.client.TryPassword(ctx, username, password)
	switch {
	case err == nil:
		d.client.Adopt(username, password)
		return true, "a log-in with it was accepted", nil
	case errkind.Of(err) == errkind.Auth:
		return false, "a log-in with it was refused", nil
	}
	return false, "", err
}

// AddAccount implements Accounts.
func (d *redfishDriver) AddAccount(ctx context.Context, a Account, password secret.Value) (Outcome, error) {
	return d.changeAndVerify(func() error {
		return d.client.AddAccount(ctx, redfish.Account{Username: a.Username, Role: a.Role}, password)
	},
		func() (bool, string, error) { return d.accepts(ctx, a.Username, password) })
}
