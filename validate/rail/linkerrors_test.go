// SPDX-License-Identifier: Apache-2.0

package rail

import (
	"slices"
	"testing"
	"time"
)

// TestDegradedPorts: what a good link counts now and then is no fault; what one never
// counts is.
func TestDegradedPorts(t *testing.T) {
	t.Parallel()
	before := PortCounters{"symbol_error": 1000, "port_rcv_errors": 0, "link_downed": 3, "link_error_recovery": 7, "local_link_integrity_errors": 0, "rx_crc_errors": 5, "carrier_changes": 4, "speed": 400_000}
	for name, c := range map[string]struct {
		after PortCounters
		want  []string
	}{
		"nothing":           {before, nil},
		"few":               {PortCounters{"symbol_error": 1600, "port_rcv_errors": 600, "link_downed": 3, "link_error_recovery": 12}, nil},
		"many":              {PortCounters{"symbol_error": 1601, "port_rcv_errors": 601, "link_downed": 3, "link_error_recovery": 13}, []string{"symbol_error +601", "port_rcv_errors +601", "link_error_recovery +6"}},
		"once":              {PortCounters{"link_downed": 4, "local_link_integrity_errors": 1}, []string{"link_downed +1", "local_link_integrity_errors +1"}},
		"checksums":         {PortCounters{"rx_crc_errors": 606}, []string{"rx_crc_errors +601"}},
		"few checksums":     {PortCounters{"rx_crc_errors": 605}, nil},
		"lost for a moment": {PortCounters{"carrier_changes": 6}, nil},
		"lost and again":    {PortCounters{"carrier_changes": 8}, []string{"carrier_changes +4"}},
		"trained anew":      {PortCounters{"speed": 200_000}, []string{"speed 200000 Mb/s instead of 400000"}},
		"speed not told":    {PortCounters{"link_downed": 3}, nil},
		"cleared":           {PortCounters{"link_downed": 0, "symbol_error": 0}, nil},
		"not read":          {nil, nil},
		"not known yet":     {PortCounters{"excessive_buffer_overrun_errors": 9}, nil},
	} {
		if got := WornCounters(before, c.after, time.Minute); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
