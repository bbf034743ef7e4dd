// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Model is what a switch of a maker is, as its manual says. Zero fields are not
// known here.
type Model struct {
	Name       string       // as SwitchModel.Model has it
	Kind       string       // of fabric: "infiniband" or "roce"
	Ports      int          // of Speed each
	Speed      unit.BitRate // of a port
	Splits     []int        // how many links of equal speed all ports may be split into; nil: not known
	Cage       int          // ports that one cage holds: 2 in twin-port OSFP
	RackUnits  int
	Aliases    []string // other names of the same box, in lower case
	SourceText string   // where this stands
}

const gbps = unit.BitRate(1e9)

// models are the switches that are known. Power and weight depend on the optics
// and the supplies and are the site's own to say.
var models = []Model{
	{"QM9700", "infiniband", 64, 400 * gbps, []int{2}, 2, 1, []string{"mqm9700", "qm9790", "mqm9790"}, "QM97XX 1U NDR 400Gbps InfiniBand Switch Systems User Manual, Interfaces: each of the 32 OSFP ports is 2 InfiniBand ports"},
	{"QM8700", "infiniband", 40, 200 * gbps, []int{2}, 1, 1, []string{"mqm8700", "qm8790", "mqm8790"}, "QM87xx 1U HDR 200Gb/s InfiniBand Switch Systems User Manual: 40 ports of 200 Gb/s, or 80 of 100 Gb/s"},
	{"Q3400-RA", "infiniband", 144, 800 * gbps, nil, 2, 4, []string{"q3400"}, "Q3200-RA/Q3400-RA XDR 800Gb/s InfiniBand Switch Systems User Manual: 72 OSFP, 144 ports of 800 Gb/s"},
	{"SN5600", "roce", 64, 800 * gbps, []int{2, 4}, 1, 2, []string{"sn5600d"}, "SN5000 2U Switch Systems Hardware User Manual, Data Interfaces: 64 x 800GbE, 128 x 400GbE, 256 x 200GbE"},
	{"SN5400", "roce", 64, 400 * gbps, []int{2, 4}, 1, 2, nil, "SN5000 2U Switch Systems Hardware User Manual, Data Interfaces: 64 x 400GbE, 128 x 200GbE, 256 x 100GbE"},
	{"SN4700", "roce", 32, 400 * gbps, []int{2, 4}, 1, 1, nil, "SN4000 1U and 2U Switch Systems Hardware User Manual: 32 QSFP-DD ports of 400GbE"},
	{"Z9864F", "roce", 64, 800 * gbps, []int{2, 4}, 1, 2, []string{"z9864f-on"}, "Dell PowerSwitch Z9864F-ON specification: 64 ports of 800GbE OSFP112"},
	{"7060X6-64PE", "roce", 64, 800 * gbps, []int{2, 4}, 1, 2, []string{"dcs-7060x6-64pe"}, "Arista 7060X6 data sheet: 64 ports of 800G OSFP"},
}

// FindModel returns the switch of that name; upper and lower case mean the same.
func FindModel(name string) (Model, bool) {
	name = strings.ToLower(name)
	for _, m := range models {
		if name == strings.ToLower(m.Name) {
			return m, true
		}
		for _, a := range m.Aliases {
			if name == a {
				return m, true
			}
		}
	}
	return Model{}, false
}

// PortLabel is what is printed at a port of a switch that has so many ports a
// cage: of two, port 34 is "17/2"; of one, lane 2 of port 17 is "17/2".
func PortLabel(cage, port, lane int) string {
	var b [24]byte
	label := strconv.AppendInt(b[:0], int64((port-1)/cage+1), 10)
	if cage > 1 {
		label = strconv.AppendInt(append(label, '/'), int64((port-1)%cage+1), 10)
	}
	if lane > 0 {
		label = strconv.AppendInt(append(label, '/'), int64(lane), 10)
	}
	return string(label)
}

// class is what the switches of one tier can do.
type class struct {
	ports int          // physical ports
	split int          // links that one port may be split into; 1: none
	speed unit.BitRate // of a port; 0: not known
	model inventory.SwitchModel
}

// lanes is the number of links of the lesser speed that the switch has.
func (c class) lanes() int { return c.ports * c.split }

// down is the number of links that go down from a spine with cores above it: the
// lanes of a port all go one way.
func (c class) down(lanes bool) int {
	if lanes {
		return c.ports / 2 * c.split
	}
	return c.ports / 2
}
