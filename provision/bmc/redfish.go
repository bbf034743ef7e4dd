// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"
	schema "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// The names of the driver in bmclib's registrar.
const (
	redfishName     = "ironrail-redfish"
	redfishProtocol = "redfish"
)

// redfishDriver is bmclib's driver for Redfish, instead of bmclib's own, which
// fails on nodes with several systems, does not read back what it wrote, ignores
// contexts and opens a connection for each request.
type redfishDriver struct {
	client *redfish.Client
}

var (
	_ driver                             = (*redfishDriver)(nil)
	_ bmclibbmc.BootDeviceOverrideGetter = (*redfishDriver)(nil)
)

// newRedfish makes the driver; nothing is sent.
func newRedfish(t Target, o Options) (*redfishDriver, error) {
	c, err := redfish.New(redfish.Config{Addr: t.Addr, Username: t.Username, Password: t.Password, TLS: t.TLS, Pinned: t.Pinned,
		Serial: t.Serial, Timeout: t.Timeout, Gap: o.Gap, Network: o.Network, Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	return &redfishDriver{client: c}, nil
}

// Name returns the driver's name for bmclib.
func (d *redfishDriver) Name() string { return redfishName }

// Open logs in, or makes sure that the service still answers.
func (d *redfishDriver) Open(ctx context.Context) error { return d.client.Open(ctx) }

// Close logs out.
func (d *redfishDriver) Close(ctx context.Context) error { return d.client.Close(ctx) }

func (d *redfishDriver) drop() { d.client.Drop() }

// redfishStale is how long a session that nobody used is taken to be alive; a
// service answers 401 to a dead one, and a new one is opened then.
const redfishStale = 10 * time.Minute

func (d *redfishDriver) usable(now time.Time) bool {
	return d.client.LoggedIn() && now.Sub(d.client.Last()) < redfishStale
}

// pinged: Redfish sessions live for minutes and are not kept alive.
func (d *redfishDriver) pinged(time.Time) bool { return false }

// survives: a session outlives the connection; only a refused account or another
// certificate ends it.
func (d *redfishDriver) survives(err error) bool {
	k := errkind.Of(err).Base()
	return k != errkind.Auth && k != errkind.Mismatch
}

func (d *redfishDriver) used() (time.Time, int) { return d.client.Last(), d.client.Sent() }

func (d *redfishDriver) certificate() string { return d.client.Certificate() }

func (d *redfishDriver) ping(ctx context.Context) error {
	_, err := d.client.PowerState(ctx)
	return err
}

// PowerStateGet returns "on", "off", or "" while the power changes.
func (d *redfishDriver) PowerStateGet(ctx context.Context) (string, error) {
	s, err := d.client.PowerState(ctx)
	switch {
	case err != nil:
		return "", err
	case strings.EqualFold(string(s), string(schema.OnPowerState)):
		return string(PowerOn), nil
	case strings.EqualFold(string(s), string(schema.OffPowerState)):
		return string(PowerOff), nil
	}
	return string(PowerUnknown), nil
}

// resets maps bmclib's words to reset types, the preferred one first. "cycle" is
// missing on purpose: see Session.cycle.
var resets = map[string][]schema.ResetType{
	"on":    {schema.OnResetType, schema.ForceOnResetType},
	"off":   {schema.ForceOffResetType},
	"reset": {schema.ForceRestartResetType},
	"soft":  {schema.GracefulShutdownResetType},
}

// PowerSet sends one reset action.
func (d *redfishDriver) PowerSet(ctx context.Context, state string) (bool, error) {
	types, ok := resets[state]
	if !ok {
		return false, errkind.New(errkind.Unsupported, "power action %q is not one command of the driver", state)
	}
	err := d.client.Reset(ctx, types...)
	return err == nil, err
}

// targets maps bmclib's boot devices to Redfish's.
var targets = map[bmclibbmc.BootDeviceType]schema.BootSourceOverrideTarget{
	bmclibbmc.BootDeviceTypeNone: schema.NoneBootSourceOverrideTarget,
	bmclibbmc.BootDeviceTypePXE:  schema.PxeBootSourceOverrideTarget,
	bmclibbmc.BootDeviceTypeDisk: schema.HddBootSourceOverrideTarget,
	bmclibbmc.BootDeviceUefiHTTP: schema.UefiHTTPBootSourceOverrideTarget,
	bmclibbmc.BootDeviceTypeBIOS: schema.BiosSetupBootSourceOverrideTarget,
}

// override returns the boot override that asks for a device.
func override(device string, persistent, efi bool) redfish.Override {
	o := redfish.Override{Target: targets[bmclibbmc.BootDeviceType(device)], Enabled: schema.OnceBootSourceOverrideEnabled,
		Mode: schema.LegacyBootSourceOverrideMode}
	if efi || o.Target == schema.UefiHTTPBootSourceOverrideTarget {
		o.Mode = schema.UEFIBootSourceOverrideMode
	}
	switch {
	case o.Target == schema.NoneBootSourceOverrideTarget:
		o.Enabled, o.Mode = schema.DisabledBootSourceOverrideEnabled, ""
	case persistent:
		o.Enabled = schema.ContinuousBootSourceOverrideEnabled
	}
	return o
}

// BootDeviceSet writes the boot override, once.
func (d *redfishDriver) BootDeviceSet(ctx context.Context, device string, persistent, efi bool) (bool, error) {
	if _, ok := targets[bmclibbmc.BootDeviceType(device)]; !ok {
		return false, errkind.New(errkind.Unsupported, "boot device %q does not exist in Redfish", device)
	}
	err := d.client.SetOverride(ctx, override(device, persistent, efi))
	return err == nil, err
}

// BootDeviceOverrideGet reads the boot override in bmclib's words.
func (d *redfishDriver) BootDeviceOverrideGet(ctx context.Context) (bmclibbmc.BootDeviceOverride, error) {
	got, err := d.client.Override(ctx)
	if err != nil {
		return bmclibbmc.BootDeviceOverride{}, err
	}
	o := bmclibbmc.BootDeviceOverride{Device: bmclibbmc.BootDeviceTypeNone,
		IsPersistent: got.Enabled == schema.ContinuousBootSourceOverrideEnabled, IsEFIBoot: got.Mode == schema.UEFIBootSourceOverrideMode}
	for device, target := range targets {
		if target == got.Target && got.Enabled != schema.DisabledBootSourceOverrideEnabled {
			o.Device = device
		}
	}
	return o, nil
}

// canBoot: what this BMC knows is in its answers; see redfish.Client.SetOverride.
func (d *redfishDriver) canBoot(Boot) error { return nil }

// bootKept compares the override that is kept with the one that was asked for.
func (d *redfishDriver) bootKept(ctx context.Context, b Boot) (Outcome, error) {
	got, err := d.client.Override(ctx)
	if err != nil {
		return Outcome{}, err
	}
	return judgeOverride(got, override(b.Device.library(), !b.Once, b.UEFI)), nil
}

// judgeOverride is the comparison. A mode that the service does not show is not
// compared; it follows the firmware's own mode then.
func judgeOverride(got, want redfish.Override) Outcome {
	out := Outcome{Verdict: Contradicted, Evidence: fmt.Sprintf("boot override reads %s, asked %s", got, want)}
	switch {
	case want.Enabled == schema.DisabledBootSourceOverrideEnabled:
		if same(string(got.Enabled), string(want.Enabled)) || same(string(got.Target), string(want.Target)) {
			out.Verdict = Verified
		}
	case got.Target == "" && got.Enabled == "":
		out.Verdict = Unverifiable
		out.Evidence += "; this bmc shows no boot override"
	case same(string(got.Target), string(want.Target)) && same(string(got.Enabled), string(want.Enabled)) &&
		(got.Mode == "" || same(string(got.Mode), string(want.Mode))):
		out.Verdict = Verified
	case want.Enabled == schema.OnceBootSourceOverrideEnabled && same(string(got.Enabled), string(schema.ContinuousBootSourceOverrideEnabled)) &&
		same(string(got.Target), string(want.Target)) && (got.Mode == "" || same(string(got.Mode), string(want.Mode))):
		out.Verdict, out.Persistent = Verified, true // sushy-tools answers so
		out.Evidence += "; this bmc keeps the boot device for every boot"
	}
	return out
}

func (d *redfishDriver) powerHabits() powerQuirks {
	q := d.client.Quirks()
	return powerQuirks{dwell: q.Dwell(), noReset: q.Has(quirk.NoRestart)}
}

// identity turns the service's texts into an Identity.
func (d *redfishDriver) identity(ctx context.Context) (Identity, error) {
	got, err := d.client.Identity(ctx)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Maker: got.Manufacturer, ProductName: got.Model, ProductSerial: got.Serial, BoardSerial: got.BoardSerial,
		ChassisSerial: got.Chassis, BIOS: got.BIOS, BMCFirmware: got.BMCFirmware, BMCModel: got.BMCModel, Gaps: got.Gaps}
	guid, err := parseGUID(got.UUID)
	if err != nil {
		id.Gaps = append(id.Gaps, "system uuid: "+err.Error())
	}
	id.GUID = guid
	return id, nil
}

// errGUID says that a text is no UUID.
var errGUID = errors.New("not a UUID")

// parseGUID reads a written UUID into the bytes that IPMI would send (SMBIOS
// order), so that GUID.String writes it as the BMC did. "" is none.
func parseGUID(s string) (g GUID, err error) {
	if s == "" {
		return g, nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(g) {
		return g, errGUID
	}
	for i, p := range guidOrders[0].place {
		g[p] = b[i]
	}
	return g, nil
}
