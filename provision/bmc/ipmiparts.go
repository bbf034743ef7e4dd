// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"slices"
	"strings"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
)

var _ Enclosure = (*ipmiDriver)(nil)

// Offsets of the sensor type Power Supply (IPMI 2.0, table 42-3, type 08h).
const (
	supplyFailed    = 1
	supplyPredicted = 2
	supplyNoInput   = 3
	supplyBadInput  = 4
)

// Parts implements Enclosure: the discrete sensors of power supplies. Fans are told
// by their speed only, whose limits differ from board to board, so that none is
// judged here; the event log has it when one fails.
func (d *ipmiDriver) Parts(ctx context.Context) ([]Part, error) {
	if d.client == nil {
		return nil, errkind.New(errkind.Unreachable, "the session is closed")
	}
	var all []*types.Sensor
	err := d.exchange(ctx, max(sensorsTime, d.target.Timeout), func(ctx context.Context) (err error) {
		all, err = d.client.GetSensors(ctx, client.SensorFilterOptionIsSensorType(types.SensorTypePowerSupply))
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []Part
	for _, s := range all {
		if !s.IsThreshold() && !s.NotPresent && s.ReadingAvailable {
			out = append(out, supplyOf(s.Name, s.DiscreteActiveEvents(), s.DiscreteActiveEventsString()))
		}
	}
	return out, nil
}

// supplyOf judges a power supply by the states that its sensor asserts. An empty
// slot asserts nothing, and so does a good supply on some boards: neither is told.
func supplyOf(name string, states []uint8, words []string) Part {
	has := func(offset uint8) bool { return slices.Contains(states, offset) }
	return Part{Kind: Supply, Name: strings.TrimSpace(name), Message: strings.Join(words, ", "),
		Failed: has(supplyFailed) || has(supplyPredicted), NoInput: has(supplyNoInput) || has(supplyBadInput)}
}
