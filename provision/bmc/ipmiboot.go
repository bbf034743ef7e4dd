// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// selectors maps bmclib's boot devices to IPMI's (IPMI 2.0, table 28-14,
// parameter 5). IPMI has no HTTP boot.
var selectors = map[bmclibbmc.BootDeviceType]types.BootDeviceSelector{
	bmclibbmc.BootDeviceTypeNone: types.BootDeviceSelectorNoOverride,
	bmclibbmc.BootDeviceTypePXE:  types.BootDeviceSelectorForcePXE,
	bmclibbmc.BootDeviceTypeDisk: types.BootDeviceSelectorForceHardDrive,
	bmclibbmc.BootDeviceTypeBIOS: types.BootDeviceSelectorForceBIOSSetup,
}

// uefiDisk24 is what some BMCs take for "disk, UEFI": 24h in the whole byte, whose
// bits 5:2 are the selector.
const uefiDisk24 = types.BootDeviceSelectorForceRemoteMedia

// selector returns the selector for a device on this BMC.
func (d *ipmiDriver) selector(device bmclibbmc.BootDeviceType, uefi bool) (types.BootDeviceSelector, error) {
	s, ok := selectors[device]
	if !ok {
		return 0, errkind.New(errkind.Unsupported, "boot device %q does not exist in IPMI", device).
			Do("Let the firmware boot by PXE, or use a BMC protocol that has this device.")
	}
	if device == bmclibbmc.BootDeviceTypeDisk && uefi && d.quirks.Has(quirk.UEFIDisk24) {
		s = uefiDisk24
	}
	return s, nil
}

// BootDeviceSet writes the boot flags (parameter 5), once. Before them it gives
// the BMC two pieces of advice that it may not know:
//   - parameter 3, bit 3: the flags do not expire 60 s after they were set when
//     no chassis command came in between, which is the default (IPMI 2.0,
//     table 28-14; ironic drivers/modules/ipmitool.py:1231 does the same);
//   - parameter 4, boot info acknowledge, as ipmitool writes it before each
//     change of the flags.
func (d *ipmiDriver) BootDeviceSet(ctx context.Context, device string, persistent, efi bool) (bool, error) {
	s, err := d.selector(bmclibbmc.BootDeviceType(device), efi)
	if err != nil {
		return false, err
	}
	d.advise(ctx, &types.BootOptionParam_BMCBootFlagValidBitClear{DontClearOnCommandReceivedTimeout: true})
	d.advise(ctx, &types.BootOptionParam_BootInfoAcknowledge{ByBIOSPOST: true})
	err = d.write(ctx, func(ctx context.Context) error {
		return d.client.SetSystemBootOptionsParamFor(ctx, &types.BootOptionParam_BootFlags{
			BootFlagsValid:     true,
			Persist:            persistent,
			BIOSBootType:       types.BIOSBootType(efi),
			BootDeviceSelector: s,
		})
	})
	return err == nil, err
}

// advise writes a boot option that helps where the BMC knows it. Refusal and
// silence are the same: the flags themselves are read back.
func (d *ipmiDriver) advise(ctx context.Context, param types.BootOptionParameter) {
	if d.client != nil && ctx.Err() == nil {
		_ = d.exchange(ctx, d.target.Timeout/4, func(ctx context.Context) error {
			return d.client.SetSystemBootOptionsParamFor(ctx, param)
		})
	}
}

// bootFlags reads the boot flags as the BMC keeps them.
func (d *ipmiDriver) bootFlags(ctx context.Context) (types.BootOptionParam_BootFlags, error) {
	var flags types.BootOptionParam_BootFlags
	err := d.read(ctx, func(ctx context.Context) error {
		return d.client.GetSystemBootOptionsParamFor(ctx, &flags)
	})
	return flags, err
}

// BootDeviceOverrideGet reads the boot flags in bmclib's words.
func (d *ipmiDriver) BootDeviceOverrideGet(ctx context.Context) (bmclibbmc.BootDeviceOverride, error) {
	flags, err := d.bootFlags(ctx)
	if err != nil {
		return bmclibbmc.BootDeviceOverride{}, err
	}
	o := bmclibbmc.BootDeviceOverride{
		IsPersistent: flags.Persist,
		IsEFIBoot:    bool(flags.BIOSBootType),
		Device:       bmclibbmc.BootDeviceTypeNone,
	}
	for device := range selectors {
		if s, err := d.selector(device, o.IsEFIBoot); err == nil && s == flags.BootDeviceSelector {
			o.Device = device
		}
	}
	return o, nil
}

// canBoot refuses what IPMI cannot ask for.
func (d *ipmiDriver) canBoot(b Boot) error {
	_, err := d.selector(bmclibbmc.BootDeviceType(b.Device.library()), b.UEFI)
	return err
}

// bootKept reads the boot flags and compares them with those asked for.
func (d *ipmiDriver) bootKept(ctx context.Context, b Boot) (Outcome, error) {
	want, err := d.selector(bmclibbmc.BootDeviceType(b.Device.library()), b.UEFI)
	if err != nil {
		return Outcome{}, err
	}
	got, err := d.bootFlags(ctx)
	if err != nil {
		return Outcome{}, err
	}
	return d.judgeBoot(b, want, got), nil
}

// judgeBoot compares the flags that were read back with those asked for.
func (d *ipmiDriver) judgeBoot(b Boot, want types.BootDeviceSelector, got types.BootOptionParam_BootFlags) Outcome {
	text := fmt.Sprintf("boot flags read valid=%t once=%t uefi=%t device=%#02x, asked once=%t uefi=%t device=%#02x",
		got.BootFlagsValid, !got.Persist, bool(got.BIOSBootType), uint8(got.BootDeviceSelector), b.Once, b.UEFI, uint8(want))
	device := got.BootDeviceSelector == want
	switch {
	case d.quirks.Has(quirk.DeviceOnly) && device:
		return Outcome{Verdict: Verified, Evidence: text + "; this bmc keeps only the device"}
	case d.quirks.Has(quirk.DeviceOnly):
		return Outcome{Verdict: Unverifiable, Evidence: text + "; this bmc marks no flags as valid"}
	case want == types.BootDeviceSelectorNoOverride && device:
		return Outcome{Verdict: Verified, Evidence: text} // cleared flags need not be valid
	case device && got.BootFlagsValid && got.Persist == !b.Once && bool(got.BIOSBootType) == b.UEFI:
		return Outcome{Verdict: Verified, Evidence: text}
	}
	return Outcome{Verdict: Contradicted, Evidence: text}
}
