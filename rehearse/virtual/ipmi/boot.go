// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// expiry is after how long the boot flags are forgotten when no chassis control
// came, unless parameter 3, bit 3, says otherwise (IPMI 2.0, table 28-14).
const expiry = 60 * time.Second

// bootFlags is what the BMC keeps beside the chassis' override: the flags as
// they were written, so that they read back so.
type bootFlags struct {
	written types.BootOptionParam_BootFlags
	means   chassis.Override // of written
	clear   byte             // parameter 3
	ack     [2]byte          // parameter 4
	cancel  context.CancelFunc
}

// stop ends the wait for a chassis control.
func (b *bootFlags) stop() {
	if b.cancel != nil {
		b.cancel()
		b.cancel = nil
	}
}

// targets are IPMI's boot devices in the chassis' words. UEFI disks have other
// numbers with some makers (0x24 on the wire is device 9, Supermicro).
var targets = map[types.BootDeviceSelector]chassis.Target{
	types.BootDeviceSelectorNoOverride:           chassis.BootNone,
	types.BootDeviceSelectorForcePXE:             chassis.BootPXE,
	types.BootDeviceSelectorForceHardDrive:       chassis.BootHDD,
	types.BootDeviceSelectorForceHardDriveSafe:   chassis.BootHDD,
	types.BootDeviceSelectorForceRemoteMedia:     chassis.BootHDD,
	types.BootDeviceSelectorForceRemoteHardDrive: chassis.BootHDD,
	types.BootDeviceSelectorForceCDROM:           chassis.BootCD,
	types.BootDeviceSelectorForceRemoteCDROM:     chassis.BootCD,
	types.BootDeviceSelectorForceBIOSSetup:       chassis.BootBIOSSetup,
	types.BootDeviceSelectorForceRemoteFloppy:    chassis.BootUSB,
	types.BootDeviceSelectorForceFloppy:          chassis.BootUSB,
}

// selectors is the way back, for overrides that somebody else set.
var selectors = map[chassis.Target]types.BootDeviceSelector{
	chassis.BootPXE:       types.BootDeviceSelectorForcePXE,
	chassis.BootUEFIHTTP:  types.BootDeviceSelectorForcePXE, // IPMI knows no HTTP boot
	chassis.BootHDD:       types.BootDeviceSelectorForceHardDrive,
	chassis.BootCD:        types.BootDeviceSelectorForceCDROM,
	chassis.BootBIOSSetup: types.BootDeviceSelectorForceBIOSSetup,
	chassis.BootUSB:       types.BootDeviceSelectorForceFloppy,
}

// setBootOption is Set System Boot Options (28.12) for the parameters 3 to 5.
func (k *controller) setBootOption(req []byte) ([]byte, types.CompletionCode) {
	param, data := types.BootOptionParamSelector(req[0]&0x7f), req[1:]
	switch {
	case param < types.BootOptionParamSelector_BMCBootFlagValidBitClear, param > types.BootOptionParamSelector_BootFlags:
		return nil, types.CodeParameterNotSupported
	case len(data) == 0: // only the parameter's lock
		return nil, types.CodeOK
	}
	switch param {
	case types.BootOptionParamSelector_BMCBootFlagValidBitClear:
		k.boot.clear = data[0] & 0x1f
	case types.BootOptionParamSelector_BootInfoAcknowledge:
		copy(k.boot.ack[:], data)
	default:
		return nil, k.setBootFlags(data)
	}
	return nil, types.CodeOK
}

// setBootFlags hands the flags to the chassis, which may lose them.
func (k *controller) setBootFlags(data []byte) types.CompletionCode {
	var f types.BootOptionParam_BootFlags
	if f.Unpack(data) != nil {
		return types.CodeRequestDataTruncated
	}
	target, ok := targets[f.BootDeviceSelector]
	if !ok {
		return types.CodeParameterOutOfRange
	}
	want := chassis.Override{Enabled: "Once", Target: target, UEFI: bool(f.BIOSBootType)}
	switch {
	case !f.BootFlagsValid || target == chassis.BootNone:
		want.Enabled, want.Target = "Disabled", chassis.BootNone
	case f.Persist:
		want.Enabled = "Continuous"
	}
	if err := k.c.SetOverride(want); err != nil {
		return types.CodeParameterOutOfRange
	}
	k.boot.stop()
	k.boot.written, k.boot.means = f, want
	const keep = 0x08
	if want.Enabled != "Disabled" && k.boot.clear&keep == 0 {
		k.expire(want)
	}
	return types.CodeOK
}

// expire forgets the override after a while, if it is still the same.
func (k *controller) expire(set chassis.Override) {
	ctx, cancel := context.WithCancel(k.ctx)
	k.boot.cancel = cancel
	k.wg.Go(func() {
		defer cancel()
		if k.clk.Sleep(ctx, expiry) == nil && k.c.Override() == set {
			_ = k.c.SetOverride(chassis.Override{Enabled: "Disabled", Target: chassis.BootNone}) // words of its own
		}
	})
}

// getBootOption is Get System Boot Options (28.13).
func (k *controller) getBootOption(req []byte) ([]byte, types.CompletionCode) {
	const version = 1
	out := []byte{version, req[0] & 0x7f}
	switch types.BootOptionParamSelector(req[0] & 0x7f) {
	case types.BootOptionParamSelector_BMCBootFlagValidBitClear:
		return append(out, k.boot.clear), types.CodeOK
	case types.BootOptionParamSelector_BootInfoAcknowledge:
		return append(out, k.boot.ack[:]...), types.CodeOK
	case types.BootOptionParamSelector_BootFlags:
		f := k.flags()
		return append(out, f.Pack()...), types.CodeOK
	}
	return nil, types.CodeParameterNotSupported
}

// flags are the boot flags as they are in force: those written here, or what
// somebody else set.
func (k *controller) flags() types.BootOptionParam_BootFlags {
	o := k.c.Override()
	switch {
	case o.Enabled == "Disabled":
		return types.BootOptionParam_BootFlags{}
	case o == k.boot.means:
		return k.boot.written
	}
	return types.BootOptionParam_BootFlags{BootFlagsValid: true, Persist: o.Enabled == "Continuous",
		BIOSBootType: types.BIOSBootType(o.UEFI), BootDeviceSelector: selectors[o.Target]}
}
