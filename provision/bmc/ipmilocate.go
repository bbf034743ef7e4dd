// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"

	libchassis "github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/types"
)

// longestIdentify is the longest that a BMC identifies its chassis which cannot do so until it is
// switched off, seconds.
const longestIdentify = 255

// Locate implements Locator: Chassis Identify (IPMI 2.0, 28.5), which knows on and off. Whether
// on is steady or blinks is the BMC's. Where the BMC shows it (28.2), it is read back.
func (d *ipmiDriver) Locate(ctx context.Context, want Light) (Outcome, error) {
	before := d.sent
	lost, limited := d.identify(ctx, 0, want != LightOff), false
	if want != LightOff && (isCode(lost, types.CodeRequestDataLengthInvalid) || isCode(lost, types.CodeRequestDataFieldInvalid)) {
		lost, limited = d.identify(ctx, longestIdentify, false), true // force is optional
	}
	out := Outcome{Sent: d.sent - before}
	if lost != nil && !isLost(lost) {
		out.Evidence = "the request was refused"
		return out, lost
	}
	var now *libchassis.GetChassisStatusResponse
	err := d.read(ctx, func(ctx context.Context) (err error) { now, err = d.client.GetChassisStatus(ctx); return err })
	switch {
	case err != nil:
		out.Evidence = "it cannot be read back"
		return out, err
	case !now.ChassisIdentifySupported && lost != nil:
		return out, lost
	case !now.ChassisIdentifySupported:
		out.Evidence = "the light was asked for; this BMC does not show it"
	case (now.ChassisIdentifyState != libchassis.ChassisIdentifyStateOff) == (want != LightOff):
		out.Verdict, out.Evidence = Verified, "chassis identify reads "+now.ChassisIdentifyState.String()
	case lost != nil:
		return out, lost
	default:
		out.Verdict, out.Evidence = Contradicted, "chassis identify reads "+now.ChassisIdentifyState.String()
	}
	if limited {
		out.Evidence += fmt.Sprintf("; for %d s, this BMC knows no longer", longestIdentify)
	}
	if want == LightBlink {
		out.Evidence += "; IPMI knows no blinking apart from on"
	}
	return out, nil
}

func (d *ipmiDriver) identify(ctx context.Context, seconds uint8, force bool) error {
	return d.write(ctx, func(ctx context.Context) error {
		_, err := d.client.ChassisIdentify(ctx, seconds, force)
		return err
	})
}
