// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"

	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/validate/chassis"
)

// nodeChassis answers the tests' questions about a chassis by the node's BMC.
type nodeChassis struct{ h *bmc.Handle }

// ChassisBy opens chassis by their BMCs; nil where no BMC is asked.
func ChassisBy(ask func(node string) (*bmc.Handle, error)) func(node string) (chassis.BMC, error) {
	if ask == nil {
		return nil
	}
	return func(node string) (chassis.BMC, error) {
		h, err := ask(node)
		if err != nil {
			return nil, err
		}
		return nodeChassis{h}, nil
	}
}

// Parts implements chassis.BMC.
func (c nodeChassis) Parts(ctx context.Context) (parts []chassis.Part, err error) {
	err = bmc.Use(ctx, c.h, "read power supplies and fans", func(b bmc.Enclosure) error {
		all, err := b.Parts(ctx)
		for _, p := range all {
			parts = append(parts, chassis.Part{Kind: chassis.PartKind(p.Kind), Name: p.Name, Absent: p.Absent, Failed: p.Failed, NoInput: p.NoInput, Message: p.Message, Reading: p.Reading, Limit: p.Limit, Speed: p.Speed})
		}
		return err
	})
	return parts, err
}

// Diagnostics implements chassis.Diagnostics.
func (c nodeChassis) Diagnostics(ctx context.Context, most int64) (content []byte, err error) {
	err = bmc.Use(ctx, c.h, "collect diagnostic data", func(b bmc.Diagnostics) error {
		content, err = b.CollectDiagnostics(ctx, most)
		return err
	})
	return content, err
}

// Log implements chassis.BMC.
func (c nodeChassis) Log(ctx context.Context, since *chassis.LogMark) (end chassis.LogMark, log []chassis.LogEntry, err error) {
	err = bmc.Use(ctx, c.h, "read the event log", func(b bmc.LogSince) error {
		mark, err := b.LogMark(ctx)
		end = chassis.LogMark(mark)
		if err != nil || since == nil || end == *since {
			return err
		}
		all, err := b.LogSince(ctx, bmc.LogMark(*since))
		for _, e := range all {
			log = append(log, chassis.LogEntry{ID: e.ID, Severity: e.Severity, Message: e.Message, Sensor: e.Sensor})
		}
		return err
	})
	return end, log, err
}
