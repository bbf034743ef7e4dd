// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// narrow are the beginnings of the names of models whose ports have four lanes;
// all newer ones have eight. Source: port_config.ini of the platforms in
// sonic-buildimage.
var narrow = []string{"SN2", "SN37", "SN46", "AS7326", "AS7712", "AS7716", "AS7816", "Z9100", "Z9264", "S6100", "DCS-7050", "DCS-7060CX", "WEDGE100"}

// lanesOf is how many lanes a port of a switch has, which SONiC's names count.
func lanesOf(model string) int {
	for _, m := range narrow {
		if strings.HasPrefix(strings.ToUpper(model), m) {
			return 4
		}
	}
	return 8
}

// PortName is SONiC's name of a port: its first lane, counted from 0. A link of a
// port that is split into several is named after the first of its lanes.
func PortName(e inventory.CableEnd, split int) string {
	lanes := lanesOf(e.Switch.Model)
	first := (e.Port - 1) * lanes
	if e.Lane > 1 && split > 1 {
		first += (e.Lane - 1) * max(lanes/split, 1)
	}
	return fmt.Sprintf("Ethernet%d", first)
}

// splitOf is into how many links the ports of a switch are split.
func splitOf(f *inventory.Fabric, s *inventory.Switch) int {
	model := f.Switch
	switch s.Tier {
	case inventory.Spine:
		model = orModel(f.Spine, f.Switch)
	case inventory.Core:
		model = orModel(f.Core, orModel(f.Spine, f.Switch))
	}
	return max(model.Split, 1)
}

func orModel(a, b inventory.SwitchModel) inventory.SwitchModel {
	if a.Split != 0 {
		return a
	}
	return b
}

// fecOf returns the forward error correction of a speed: Reed-Solomon from 100 Gb/s on
// (IEEE 802.3 clauses 91, 119 and 134).
func fecOf(speed unit.BitRate) string {
	if speed >= 100_000_000_000 {
		return "rs"
	}
	return "none"
}

// PauseHeadroom returns what a switch must still take of a paused priority, in bytes: what
// is under way on the cable in both directions, what the far end sends before it
// has understood the pause, and a frame that each end had begun. Source: IEEE
// 802.1Qbb, annex O; 614.4 ns for the reaction to a pause of a port of 100 Gb/s
// and more is 60 quanta of 512 bits at 50 Gb/s a lane, doubled for the switch's
// own delay. speed is that of the port, length that of the cable, mtu in bytes.
func PauseHeadroom(speed unit.BitRate, length unit.Length, mtu int) int {
	const (
		perMetre = 5.0       // ns of light in fibre and of signals in copper
		reaction = 2 * 614.4 // ns
		header   = 38        // bytes of Ethernet around a frame: header, VLAN, preamble, gap, check
		pause    = 64        // bytes of a pause frame
	)
	perNano := float64(speed) / 8e9 // bytes
	return int(perNano*(2*perMetre*float64(length)+reaction)) + 2*(mtu+header) + pause
}
