// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"

	"github.com/ironrail/ironrail/internal/errkind"
)

// BootFrom is what a node boots from.
type BootFrom uint8

// The boot devices.
const (
	None BootFrom = iota // the firmware's own order
	PXE
	Disk
	HTTP  // UEFI HTTP boot; IPMI cannot ask for it, Redfish can
	Setup // the set-up of the firmware
)

// String returns the device's name.
func (f BootFrom) String() string {
	switch f {
	case None:
		return "none"
	case PXE:
		return "pxe"
	case Disk:
		return "disk"
	case HTTP:
		return "http"
	case Setup:
		return "bios"
	}
	return fmt.Sprintf("boot(%d)", uint8(f))
}

// library returns bmclib's word for the device.
func (f BootFrom) library() string {
	switch f {
	case None:
		return string(bmclibbmc.BootDeviceTypeNone)
	case PXE:
		return string(bmclibbmc.BootDeviceTypePXE)
	case Disk:
		return string(bmclibbmc.BootDeviceTypeDisk)
	case HTTP:
		return string(bmclibbmc.BootDeviceUefiHTTP)
	case Setup:
		return string(bmclibbmc.BootDeviceTypeBIOS)
	}
	return f.String()
}

// Boot is a request about the next boot.
type Boot struct {
	Device BootFrom
	Once   bool // for the next boot only; else until it is changed
	UEFI   bool // boot the device by UEFI; else by BIOS
}

// SetBoot sets the boot device and reads it back: many BMCs accept a request and
// keep something else. One that does so twice is Refused, beside an Outcome that
// says Contradicted. It changes no power; set it before the power action that it
// is meant for, and not minutes ahead.
func (s *Session) SetBoot(ctx context.Context, b Boot) (Outcome, error) {
	_, sent := s.drv.used()
	out, err := s.insist(ctx, b)
	_, now := s.drv.used()
	out.Sent = now - sent
	return out, s.target.wrap("set boot "+b.Device.String(), err)
}

// bootTries is how often a boot device is set that the BMC does not keep.
const bootTries = 2

// insist sets the boot device, once more when the BMC does not keep it.
func (s *Session) insist(ctx context.Context, b Boot) (out Outcome, err error) {
	for try := 1; ; try++ {
		out, err = s.setBoot(ctx, b)
		if err != nil || out.Verdict != Contradicted {
			return out, err
		}
		if try == bootTries {
			return out, errkind.New(errkind.Refused, "the bmc accepts the boot device and does not keep it: %s", out.Evidence).
				Do("Set the boot device by the BMC's own page, and update the BMC's firmware.")
		}
		if err := s.clk.Sleep(ctx, pollMost); err != nil {
			return out, classify(ctx, err)
		}
	}
}

// setBoot sets the boot device once and reads it back.
func (s *Session) setBoot(ctx context.Context, b Boot) (Outcome, error) {
	if err := s.learnQuirks(ctx); err != nil { // also finds out whether the session lives
		return Outcome{}, err
	}
	if err := s.drv.canBoot(b); err != nil {
		return Outcome{}, err
	}
	_, err := s.lib.SetBootDevice(ctx, b.Device.library(), !b.Once, b.UEFI)
	if err = plain(err); err != nil && !isLost(err) {
		return Outcome{Evidence: "the boot device was refused"}, err
	}
	lost := err
	out, err := s.bootKept(ctx, b)
	if err != nil {
		return Outcome{Evidence: "the boot device cannot be read back"}, err
	}
	if out.Verdict == Verified {
		return out, nil
	}
	return out, lost
}

// bootReads is how often a boot device that reads wrong is read again: some BMCs
// take a second to show what they took.
const bootReads = 3

// bootKept reads the boot device back.
func (s *Session) bootKept(ctx context.Context, b Boot) (out Outcome, err error) {
	for read := 1; ; read++ {
		err = s.again(ctx, func() (err error) { out, err = s.drv.bootKept(ctx, b); return err })
		if err != nil || out.Verdict != Contradicted || read == bootReads {
			return out, err
		}
		if err := s.clk.Sleep(ctx, pollFirst*5); err != nil {
			return out, classify(ctx, err)
		}
	}
}
