// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/vlanport"
)

// openPort opens the switch port of a machine that is Tagged, the boot bridge behind it; serve passes frames on
// until its ctx ends. nil where the machine is on the bridge itself.
func (m *machine) openPort() (serve func(context.Context) error, err error) {
	if m.Hardware != rack.Tagged {
		return nil, nil
	}
	tap, err := vlanport.OpenTap(m.BootTap())
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return func(ctx context.Context) error {
		return vlanport.Port{Tagged: rack.VLAN}.Serve(ctx, m.files.Port, tap)
	}, nil
}
