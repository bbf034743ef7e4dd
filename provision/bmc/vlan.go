// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"

	"github.com/bougou/go-ipmi/pkg/command/transport"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
)

var (
	_ VLANTagger = (*ipmiDriver)(nil)
	_ VLANTagger = (*redfishDriver)(nil)
)

// What Get LAN Configuration Parameters is asked (IPMI 2.0, 23.2 and table 23-4).
const (
	ownChannel  = 0x0e // the one that the request comes by
	vlanParam   = types.LanConfigParamSelector_VLANID
	vlanEnabled = 0x80   // in the second byte
	vlanBits    = 0x0fff // of both
)

// VLAN implements VLANTagger: LAN configuration parameter 20.
func (d *ipmiDriver) VLAN(ctx context.Context) (int, error) {
	var r *transport.GetLanConfigParamResponse
	err := d.read(ctx, func(ctx context.Context) (err error) {
		r, err = d.client.GetLanConfigParam(ctx, ownChannel, vlanParam, 0, 0)
		return err
	})
	switch {
	case isCode(err, types.CodeParameterNotSupported), isCode(err, types.CodeInvalidCommand), isCode(err, types.CodeParameterOutOfRange):
		return 0, errkind.New(errkind.Unsupported, "the bmc does not say which VLAN it is on (IPMI LAN configuration parameter 20)")
	case err != nil:
		return 0, err
	case len(r.ParamData) < 2:
		return 0, errkind.New(errkind.Invalid, "the bmc says %d bytes of its VLAN (IPMI LAN configuration parameter 20); they are 2", len(r.ParamData))
	case r.ParamData[1]&vlanEnabled == 0:
		return 0, nil
	}
	return (int(r.ParamData[0]) | int(r.ParamData[1])<<8) & vlanBits, nil
}

// VLAN implements VLANTagger.
func (d *redfishDriver) VLAN(ctx context.Context) (int, error) { return d.client.VLAN(ctx) }
