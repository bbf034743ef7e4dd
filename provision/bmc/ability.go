// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// What some BMCs can do beyond Power, BootDevice and Identifier. A caller asks
// for one of these interfaces by Use.

// Reading is one sensor's value with its unit.
type Reading = redfish.Reading

// Sensors reads what the BMC measures.
type Sensors interface {
	Sensors(context.Context) ([]Reading, error)
}

// Watts returns the power that the node draws as a whole, among readings.
func Watts(readings []Reading) (float64, bool) { return redfish.WattsOf(readings) }

// Part is how the BMC finds one part of the chassis.
type Part = redfish.Part

// The parts that are told.
const (
	Supply = redfish.Supply
	Fan    = redfish.Fan
	Inlet  = redfish.Inlet
)

// Enclosure reads the state of power supplies, fans and the air that comes in.
type Enclosure interface {
	// Parts returns what the BMC watches of them; none where it watches nothing.
	Parts(context.Context) ([]Part, error)
}

// LogEntry is one record of the event log.
type LogEntry = redfish.LogEntry

// EventLog reads and empties the hardware event log.
type EventLog interface {
	// EventLog returns the newest entries, the oldest of them first, at most so
	// many; zero: all.
	EventLog(ctx context.Context, most int) ([]LogEntry, error)
	ClearEventLog(context.Context) (Outcome, error)
}

// LogSpace tells whether the hardware event log takes new entries.
type LogSpace interface {
	// LogFull says in a few words why the log takes none; empty: it does, or overwrites its
	// oldest, or the BMC does not say.
	LogFull(context.Context) (why string, err error)
}

// Light is what the light that locates a chassis does.
type Light = redfish.Light

// The lights.
const (
	LightOff   = redfish.LightOff
	LightOn    = redfish.LightOn
	LightBlink = redfish.LightBlink
)

// Locator switches the light that locates a chassis.
type Locator interface {
	// Locate switches the light and reads it back. A BMC that does not know on from
	// blinking does what it has, and Evidence says so.
	Locate(context.Context, Light) (Outcome, error)
}

// Timekeeper reads and sets the clock by which the BMC dates its event log, to the second.
type Timekeeper interface {
	// Time returns the zero time where the BMC shows none.
	Time(context.Context) (time.Time, error)
	SetTime(context.Context, time.Time) (Outcome, error)
}

// Diagnostics collects what the BMC knows for its maker's support.
type Diagnostics interface {
	// CollectDiagnostics waits for it within ctx and returns the file, of at most so many
	// bytes, in the maker's format.
	CollectDiagnostics(ctx context.Context, most int64) ([]byte, error)
}

// VLANTagger reads how the BMC tags the frames of its own network interface (IEEE 802.1Q).
type VLANTagger interface {
	// VLAN returns the ID of the VLAN, 1 to 4094, or 0 for untagged frames. A BMC that does
	// not say is an error of kind Unsupported.
	VLAN(context.Context) (int, error)
}

// NIC is a network port of the node, as its BMC shows it.
type NIC = redfish.NIC

// NICs reads the network ports of the node.
type NICs interface {
	// NICs returns the ports in the BMC's order; none where the BMC does not know
	// them before the node's first POST.
	NICs(context.Context) ([]NIC, error)
}

// Component is one entry of the firmware inventory.
type Component = redfish.Component

// Components reads which firmware is on the node.
type Components interface {
	Components(context.Context) ([]Component, error)
}

// Update is a request for new firmware.
type Update = redfish.Update

// Updater installs firmware.
type Updater interface {
	// Update makes the BMC fetch and install an image, and waits for it within
	// ctx. Some firmware takes effect at the next reset only, so that the
	// versions must be read afterwards: the Outcome is Unverifiable.
	Update(context.Context, Update) (Outcome, error)
}

// BIOS reads and changes the settings of the node's firmware.
type BIOS interface {
	// BIOS returns the settings in force, and those that the next POST takes up.
	BIOS(context.Context) (current, pending map[string]string, err error)
	// SetBIOS asks for settings, all at once. Verified says that they wait for
	// the next POST, or are in force; read them after it.
	SetBIOS(ctx context.Context, want map[string]string) (Outcome, error)
}

// SecureBoot reads what the BMC shows of the node's Secure Boot.
type SecureBoot interface {
	SecureBoot(context.Context) (redfish.SecureBoot, error)
	// Enrol adds a certificate, in PEM, to the firmware's db, unless it is there: key names it.
	// It is in force after the next POST. A BMC that does not show it before has the outcome
	// Unverifiable.
	Enrol(ctx context.Context, certificate []byte, key redfish.Key) (Outcome, error)
}

// VirtualMedia puts an image into the node's virtual CD drive.
type VirtualMedia interface {
	InsertMedia(ctx context.Context, url string) (Outcome, error)
	EjectMedia(context.Context) (Outcome, error)
}

// Account is one user of a BMC.
type Account = redfish.Account

// Accounts manages the users of a BMC.
type Accounts interface {
	Accounts(context.Context) ([]Account, error)
	// SetPassword changes a password and proves it by a log-in of its own.
	SetPassword(ctx context.Context, username string, password secret.Value) (Outcome, error)
	// AddAccount makes a user of a.Username and a.Role ("Administrator",
	// "Operator", "ReadOnly"); a.ID is not looked at.
	AddAccount(ctx context.Context, a Account, password secret.Value) (Outcome, error)
}

// Use runs f with one of the abilities above, T, of the BMC's session; nobody
// else reaches the BMC until f returns. what names the deed in errors. It is an
// error of kind Unsupported when the BMC's protocol has no T.
func Use[T any](ctx context.Context, h *Handle, what string, f func(T) error) error {
	return h.Do(ctx, func(s *Session) error {
		able, ok := any(s.drv).(T)
		if !ok {
			return s.target.wrap(what, errkind.New(errkind.Unsupported, "protocol %s has no way to do this", s.target.Protocol).
				Do(`Set protocol = "redfish" for this BMC, or do it by hand.`))
		}
		return s.target.wrap(what, f(able))
	})
}
