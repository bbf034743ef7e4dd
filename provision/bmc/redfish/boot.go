// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	schema "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// Override is a boot source override (ComputerSystem.Boot).
type Override struct {
	Enabled schema.BootSourceOverrideEnabled // Disabled, Once, Continuous
	Target  schema.BootSourceOverrideTarget  // None, Pxe, UefiHttp, Hdd ...
	Mode    schema.BootSourceOverrideMode    // UEFI, Legacy; "": the service does not report
}

// String writes the override on one line.
func (o Override) String() string {
	return OneLine(fmt.Sprintf("enabled=%s target=%s mode=%s", o.Enabled, o.Target, o.Mode))
}

// bootProperties is the part of Boot that is read.
type bootProperties struct {
	Enabled text   `json:"BootSourceOverrideEnabled"`
	Target  text   `json:"BootSourceOverrideTarget"`
	Mode    text   `json:"BootSourceOverrideMode"`
	Targets []text `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
}

func (b *bootProperties) override() Override {
	if b == nil {
		return Override{}
	}
	return Override{Enabled: schema.BootSourceOverrideEnabled(b.Enabled), Target: schema.BootSourceOverrideTarget(b.Target),
		Mode: schema.BootSourceOverrideMode(b.Mode)}
}

// Override reads the boot override as the BMC keeps it, where it was written.
func (c *Client) Override(ctx context.Context) (Override, error) {
	p, err := c.where(ctx)
	if err != nil {
		return Override{}, err
	}
	path := p.system
	if p.readBack {
		path = p.override
	}
	var s system
	if _, err := c.get(ctx, path, &s); err != nil {
		return Override{}, err
	}
	return s.Boot.override(), nil
}

// SetOverride writes the boot override once and does not read it back. All three
// properties are sent, since AMI, ASRockRack and Supermicro fall back to their
// defaults for one that is missing (Redfishtool#106), except where the service
// refuses the mode. Newer AMI firmware takes the override at the system's
// settings resource only (Redfish-Tacklebox#144).
func (c *Client) SetOverride(ctx context.Context, o Override) error {
	s, err := c.system(ctx)
	if err != nil {
		return err
	}
	if err := c.canBoot(s, o); err != nil {
		return err
	}
	full := map[string]any{"BootSourceOverrideEnabled": o.Enabled, "BootSourceOverrideTarget": o.Target}
	if !c.quirks.Has(quirk.MinimalBoot) && o.Mode != "" && (s.Boot == nil || s.Boot.Mode != "" || s.Boot.Enabled == "") {
		full["BootSourceOverrideMode"] = o.Mode
	}
	err = c.writeOverride(ctx, s, full)
	f, isFault := errors.AsType[*Fault](err)
	if _, has := full["BootSourceOverrideMode"]; isFault && has && f.Status == 400 && f.says("bootsourceoverridemode") {
		delete(full, "BootSourceOverrideMode")
		err = c.writeOverride(ctx, s, full)
	}
	return err
}

// writeOverride writes the properties where this service takes them.
func (c *Client) writeOverride(ctx context.Context, s system, boot map[string]any) error {
	body := map[string]any{"Boot": boot}
	if c.place.override == "" {
		_, err := c.patch(ctx, c.place.system, body)
		f, isFault := errors.AsType[*Fault](err)
		if !isFault || !f.Has(idsFuture...) {
			return err
		}
		c.place.override = s.Settings.SettingsObject.or(strings.TrimSuffix(c.place.system, "/") + "/SD")
		c.place.readBack = true
	}
	_, err := c.patch(ctx, c.place.override, body)
	return err
}

// canBoot refuses what this node cannot do, before anything is sent.
func (c *Client) canBoot(s system, o Override) error {
	switch {
	case o.Target == schema.PxeBootSourceOverrideTarget && c.quirks.Has(quirk.NoPXE):
		return errkind.New(errkind.Unsupported, "a %s cannot boot by PXE", OneLine(string(s.Model))).Do(`Set boot = "uefi-http" in the hardware block.`)
	case o.Enabled == schema.ContinuousBootSourceOverrideEnabled && c.quirks.Has(quirk.NoContinuous):
		return errkind.New(errkind.Unsupported, "this bmc keeps a boot device for one boot only").Do("Ask for one boot, and again before the next.")
	case s.Boot == nil || len(s.Boot.Targets) == 0:
		return nil // it does not report
	case slices.ContainsFunc(s.Boot.Targets, func(t text) bool { return strings.EqualFold(string(t), string(o.Target)) }):
		return nil
	case o.Target == schema.NoneBootSourceOverrideTarget:
		return nil // "Disabled" needs no target
	}
	e := errkind.New(errkind.Unsupported, "the bmc knows the boot devices %q, and not %q", s.Boot.Targets, o.Target)
	if o.Target == schema.UefiHTTPBootSourceOverrideTarget {
		return e.Do("Enable HTTP boot and UEFI mode in the firmware's set-up and reset the node, or boot by PXE.")
	}
	return e
}
