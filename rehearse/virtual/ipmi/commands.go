// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	libchassis "github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// codeState is "command not supported in present state" (IPMI 2.0, table 5-2).
const codeState = types.CompletionCode(0xd5)

// handler answers one command with its data and completion code.
type handler func(req []byte) ([]byte, types.CompletionCode)

// commands lists every command: the library's, and over them those that look at
// the chassis, with the shortest request and the privilege of appendix G.
func (k *controller) commands() *handlers.Registry {
	reg := handlers.NewRegistry()
	handlers.RegisterAppHandlers(reg)
	handlers.RegisterSessionHandlers(reg)
	handlers.RegisterStorageHandlers(reg)
	const user, operator, admin = bmc.PrivilegeLevelUser, bmc.PrivilegeLevelOperator, bmc.PrivilegeLevelAdministrator
	for _, r := range []struct {
		cmd   types.Command
		level bmc.PrivilegeLevel
		least int // bytes of the request
		do    handler
	}{
		{types.CommandGetSystemGUID, 0, 0, k.systemGUID},
		{types.CommandColdReset, admin, 0, k.coldReset},
		{types.CommandWarmReset, admin, 0, k.coldReset},
		{types.CommandGetChassisStatus, user, 0, k.status},
		{types.CommandChassisControl, operator, 1, k.control},
		{types.CommandChassisIdentify, operator, 0, k.identify},
		{types.CommandSetPowerRestorePolicy, operator, 1, k.setRestore},
		{types.CommandSetSystemBootOptions, operator, 1, k.setBootOption},
		{types.CommandGetSystemBootOptions, operator, 3, k.getBootOption},
		{types.CommandGetSensorReading, user, 1, k.reading},
		{types.CommandGetSensorThresholds, user, 1, k.thresholds},
		{types.CommandGetSELInfo, user, 0, k.selInfo},
		{types.CommandReserveSEL, user, 0, k.selReserve},
		{types.CommandGetSELEntry, user, 6, k.selEntry},
		{types.CommandClearSEL, operator, 6, k.selClear},
		{types.CommandGetSELTime, user, 0, k.selTime},
		{types.CommandSetSELTime, operator, 4, k.setSELTime},
		{types.CommandActivatePayload, operator, 6, k.activate},
		{types.CommandDeactivatePayload, operator, 6, k.deactivate},
		{types.CommandGetPayloadActivationStatus, user, 1, k.activation},
		{types.CommandGetSOLConfigParam, operator, 4, k.serialConfig},
		{types.CommandGetLanConfigParam, operator, 4, k.lanConfig},
	} {
		reg.RegisterFunc(r.cmd, func(_ context.Context, h *handlers.HandlerContext, req []byte) ([]byte, types.CompletionCode, error) {
			switch {
			case r.level > 0 && (h.Session == nil || h.Session.PrivilegeLevel < r.level):
				return nil, types.CodeCannotExecuteCommandSecurityRestrict, nil
			case len(req) < r.least:
				return nil, types.CodeRequestDataTruncated, nil
			}
			out, code := r.do(req)
			return out, code, nil
		})
	}
	return reg
}

// splitRevision reads the two numbers that Get Device ID has room for: seven bits,
// and two digits as BCD.
func splitRevision(version string) (major, minor uint8) {
	var n [2]int
	at := 0
	for _, r := range version {
		switch {
		case '0' <= r && r <= '9':
			n[at] = (n[at]*10 + int(r-'0')) % 100
		case r == '.' && at == 0:
			at++
		case at == 1 || n[0] > 0:
			return uint8(n[0]), uint8(n[1]/10<<4 | n[1]%10)
		}
	}
	return uint8(n[0]), uint8(n[1]/10<<4 | n[1]%10)
}

func (k *controller) systemGUID([]byte) ([]byte, types.CompletionCode) {
	return k.lib.GUID[:], types.CodeOK
}

// lanConfig is Get LAN Configuration Parameters (23.2), of the VLAN alone.
func (k *controller) lanConfig(req []byte) ([]byte, types.CompletionCode) {
	const revision, thisChannel, enabled = 0x11, 0x0e, 0x80
	switch channel := req[0] & 0x0f; {
	case channel != thisChannel && channel != lanChannel:
		return nil, types.CodeParameterOutOfRange
	case types.LanConfigParamSelector(req[1]) != types.LanConfigParamSelector_VLANID:
		return nil, types.CodeParameterNotSupported
	case req[0]&0x80 != 0: // the revision only
		return []byte{revision}, types.CodeOK
	}
	vlan := 0
	if k.o.VLAN != nil {
		vlan = k.o.VLAN()
	}
	out := binary.LittleEndian.AppendUint16([]byte{revision}, uint16(vlan))
	if vlan != 0 {
		out[2] |= enabled
	}
	return out, types.CodeOK
}

// coldReset restarts the BMC; its answer is the last thing that it says.
func (k *controller) coldReset([]byte) ([]byte, types.CompletionCode) {
	k.c.ResetBMC()
	return nil, types.CodeOK
}

// restorePolicies in the chassis' words; "previous" is LastState.
var restorePolicies = map[chassis.Restore]libchassis.PowerRestorePolicy{
	chassis.AlwaysOff: libchassis.PowerRestorePolicyAlwaysOff,
	chassis.AlwaysOn:  libchassis.PowerRestorePolicyAlwaysOn,
	chassis.LastState: libchassis.PowerRestorePolicyPrevious,
}

// status is Get Chassis Status (28.2). Power is on as soon as its transition has
// ended, and stays so until the rails are down.
func (k *controller) status([]byte) ([]byte, types.CompletionCode) {
	p := k.c.Power()
	r := libchassis.GetChassisStatusResponse{
		PowerIsOn:                p == chassis.On || p == chassis.PoweringOff,
		PowerRestorePolicy:       restorePolicies[k.c.RestorePolicy()],
		ACFailed:                 k.c.Counters().LostMains > 0,
		ChassisIdentifySupported: true,
	}
	switch {
	case k.identifying.forever:
		r.ChassisIdentifyState = libchassis.ChassisIdentifyStateIndefiniteOn
	case k.clk.Now().Before(k.identifying.until):
		r.ChassisIdentifyState = libchassis.ChassisIdentifyStateTemporaryOn
	}
	return r.Pack(), types.CodeOK
}

// setRestore is Set Power Restore Policy (28.8); the answer lists all three.
func (k *controller) setRestore(req []byte) ([]byte, types.CompletionCode) {
	const noChange = 3
	for word, p := range restorePolicies {
		if uint8(p) == req[0]&7 {
			_ = k.c.SetRestore(word) // one of its own words
			return []byte{7}, types.CodeOK
		}
	}
	if req[0]&7 != noChange {
		return nil, types.CodeParameterOutOfRange
	}
	return []byte{7}, types.CodeOK
}

// controls is Chassis Control (28.3) in the chassis' words.
var controls = map[libchassis.ChassisControl]chassis.Action{
	libchassis.ChassisControlPowerDown:           chassis.ForceOff,
	libchassis.ChassisControlPowerUp:             chassis.PressOn,
	libchassis.ChassisControlPowerCycle:          chassis.PowerCycle,
	libchassis.ChassisControlHardReset:           chassis.ForceRestart,
	libchassis.ChassisControlDiagnosticInterrupt: chassis.NMI,
	libchassis.ChassisControlSoftShutdown:        chassis.GracefulShutdown,
}

// control presses the button. On when on and off when off are answered with
// success, as most BMCs do; "node busy" says that nothing was done.
func (k *controller) control(req []byte) ([]byte, types.CompletionCode) {
	what := libchassis.ChassisControl(req[0] & 0x0f)
	action, ok := controls[what]
	if !ok {
		return nil, types.CodeParameterOutOfRange
	}
	k.boot.stop() // the flags wait no longer for this command
	err := k.c.Press(action)
	idle := what == libchassis.ChassisControlPowerDown || what == libchassis.ChassisControlPowerUp
	switch {
	case err == nil, idle && errors.Is(err, chassis.ErrAlready):
		return nil, types.CodeOK
	case errors.Is(err, chassis.ErrTransition):
		return nil, types.CodeNodeBusy
	}
	return nil, codeState
}

// identify lets the light blink: 15 s without a word (28.5).
func (k *controller) identify(req []byte) ([]byte, types.CompletionCode) {
	d := 15 * time.Second
	if len(req) > 0 {
		d = time.Duration(req[0]) * time.Second
	}
	k.identifying = identifyState{until: k.clk.Now().Add(d), forever: len(req) > 1 && req[1]&1 == 1}
	return nil, types.CodeOK
}
