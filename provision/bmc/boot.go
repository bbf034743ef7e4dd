package bmc

import (
	"context"
	"fmt"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"
	"github.com/bougou/go-ipmi/pkg/types"
)

// BootFrom is what a node boots from.
type BootFrom uint8

// The boot devices.
const (
	None BootFrom = iota // the firmware's own order
	PXE
	Disk
	HTTP // UEFI HTTP boot; IPMI cannot ask for it
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
// keep something else. It changes no power; set it before the power action that
// it is meant for, and not minutes ahead.
func (s *Session) SetBoot(ctx context.Context, b Boot) (Outcome, error) {
	sent := s.drv.sent
	out, err := s.setBoot(ctx, b)
	out.Sent = s.drv.sent - sent
	return out, s.drv.target.wrap("set boot "+b.Device.String(), err)
}

func (s *Session) setBoot(ctx context.Context, b Boot) (Outcome, error) {
	if err := s.learnQuirks(ctx); err != nil { // also finds out whether the session lives
		return Outcome{}, err
	}
	want, err := s.drv.selector(bmclibbmc.BootDeviceType(b.Device.library()), b.UEFI)
	if err != nil {
		return Outcome{}, err
	}
	_, err = s.lib.SetBootDevice(ctx, b.Device.library(), !b.Once, b.UEFI)
	if err = plain(err); err != nil && !isLost(err) {
		return Outcome{Evidence: "the boot flags were refused"}, err
	}
	lost := err
	var got types.BootOptionParam_BootFlags
	err = s.again(ctx, func() (err error) { got, err = s.drv.bootFlags(ctx); return err })
	if err != nil {
		return Outcome{Evidence: "the boot flags cannot be read back"}, err
	}
	out := s.drv.judgeBoot(b, want, got)
	if out.Verdict == Verified {
		return out, nil
	}
	return out, lost
}

// judgeBoot compares the flags that were read back with those asked for.
func (d *ipmiDriver) judgeBoot(b Boot, want types.BootDeviceSelector, got types.BootOptionParam_BootFlags) Outcome {
	text := fmt.Sprintf("boot flags read valid=%t once=%t uefi=%t device=%#02x, asked once=%t uefi=%t device=%#02x",
		got.BootFlagsValid, !got.Persist, bool(got.BIOSBootType), uint8(got.BootDeviceSelector), b.Once, b.UEFI, uint8(want))
	device := got.BootDeviceSelector == want
	switch {
	case d.quirks.flagsPartly && device:
		return Outcome{Verdict: Verified, Evidence: text + "; this bmc keeps only the device"}
	case d.quirks.flagsPartly:
		return Outcome{Verdict: Unverifiable, Evidence: text + "; this bmc marks no flags as valid"}
	case want == types.BootDeviceSelectorNoOverride && device:
		return Outcome{Verdict: Verified, Evidence: text} // cleared flags need not be valid
	case device && got.BootFlagsValid && got.Persist == !b.Once && bool(got.BIOSBootType) == b.UEFI:
		return Outcome{Verdict: Verified, Evidence: text}
	}
	return Outcome{Verdict: Contradicted, Evidence: text}
}
