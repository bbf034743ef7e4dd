// SPDX-License-Identifier: Apache-2.0

package power

import (
	"math"

	"github.com/gosnmp/gosnmp"
)

// raritan is the tree of PDU2-MIB, of PDU 1. A part has several sensors, by type:
// rmsCurrent 1, rmsVoltage 4, activePower 5, trip 15.
const raritan = "1.3.6.1.4.1.13742.6."

// states of sensors.
const (
	raritanOpen, raritanClosed = 0, 1
	raritanNormal              = 4
	raritanOn, raritanOff      = 7, 8
)

// sensorColumns returns a column of values with its column of decimal digits: milliamperes,
// volts and watts.
func sensorColumns(values, digits string, sensors []uint32, parts func(*view) int, read func(v *view, part int, sensor uint32) float64) []column {
	rows := func(v *view) int { return parts(v) * len(sensors) }
	at := func(row int) (part int, sensor uint32) { return row / len(sensors), sensors[row%len(sensors)] }
	places := func(sensor uint32) int { return 3 * toInteger(sensor == 1) }
	return []column{
		{name: raritan + values, kind: gosnmp.Gauge32, first: 1, sensors: sensors, rows: rows, get: func(v *view, row int) any {
			part, sensor := at(row)
			return uint32(math.Round(read(v, part, sensor) * math.Pow10(places(sensor))))
		}},
		{name: raritan + digits, kind: gosnmp.Gauge32, first: 1, sensors: sensors, rows: rows, get: func(_ *view, row int) any {
			_, sensor := at(row)
			return uint32(places(sensor))
		}},
	}
}

// pickMeasurement returns the measurement that a sensor type stands for.
func pickMeasurement(sensor uint32, amps, volts, watts float64) float64 {
	switch sensor {
	case 1:
		return amps
	case 4:
		return volts
	}
	return watts
}

func raritanTables() []column {
	electric := []uint32{1, 4, 5}
	all := sensorColumns("5.2.3.1.4.1", "3.3.4.1.7.1", []uint32{5}, countOne, func(v *view, _ int, _ uint32) float64 { return v.Watts })
	all = append(all, sensorColumns("5.2.4.1.4.1.1", "3.3.6.1.7.1.1", electric, countLines, func(v *view, i int, s uint32) float64 {
		return pickMeasurement(s, v.Lines[i], v.Volts, v.Breakers[i].Amps*v.Volts)
	})...)
	all = append(all, sensorColumns("5.3.3.1.4.1", "3.4.4.1.7.1", []uint32{1}, countBreakers, func(v *view, i int, _ uint32) float64 { return v.Breakers[i].Amps })...)
	all = append(all, sensorColumns("5.4.3.1.4.1", "3.5.4.1.7.1", electric, countOutlets, func(v *view, i int, s uint32) float64 {
		return pickMeasurement(s, v.Outlets[i].Amps, v.Volts, v.Outlets[i].Watts)
	})...)
	return append(all,
		column{name: raritan + "3.2.1.1.3", kind: gosnmp.OctetString, first: 1, rows: countOne, get: fixedValue("PX3-5902V")},
		column{name: raritan + "3.2.1.1.4", kind: gosnmp.OctetString, first: 1, rows: countOne, get: func(v *view, _ int) any { return serialOf(v.pdu.spec.Name) }},
		column{name: raritan + "3.2.2.1.4", kind: gosnmp.Integer, first: 1, rows: countOne, get: func(v *view, _ int) any { return countOutlets(v) }},
		column{name: raritan + "5.3.3.1.3.1", kind: gosnmp.Integer, first: 1, sensors: []uint32{1, 15}, rows: func(v *view) int { return 2 * countBreakers(v) }, get: func(v *view, row int) any {
			switch {
			case row%2 == 0:
				return raritanNormal
			case v.Breakers[row/2].Open:
				return raritanOpen
			}
			return raritanClosed
		}},
		column{name: raritan + "4.1.2.1.2.1", kind: gosnmp.Integer, first: 1, rows: countOutlets, get: func(v *view, i int) any { return toInteger(v.Outlets[i].On) }, set: setOutlet(1, 0, 2)},
		column{name: raritan + "4.1.2.1.3.1", kind: gosnmp.Integer, first: 1, rows: countOutlets, get: func(v *view, i int) any {
			if v.Outlets[i].On {
				return raritanOn
			}
			return raritanOff
		}},
	)
}

// sentry is the tree of Sentry4-MIB; all rows are of unit 1, cord 1.
const sentry = "1.3.6.1.4.1.1718.4.1."

func sentryTables() []column {
	row := func(id string, rows func(*view) int, get func(*view, int) any) column {
		return column{name: sentry + id + ".1.1", kind: gosnmp.Integer, first: 1, rows: rows, get: get}
	}
	onOff := func(on bool) any { return 2 - toInteger(on) }
	control := row("8.5.1.2", countOutlets, fixedValue(0)) // no action
	control.set = setOutlet(1, 2, 3)
	return []column{
		row("5.3.1.3", countLines, func(v *view, _ int) any { return toTenths(v.Volts) }),
		row("5.3.1.6", countLines, func(v *view, i int) any { return toHundredths(v.Lines[i]) }),
		row("5.3.1.8", countLines, func(v *view, i int) any { return int(math.Round(v.Breakers[i].Amps * v.Volts)) }),
		row("7.2.1.6", countBreakers, func(v *view, i int) any { return int(math.Round(v.Breakers[i].Rating)) }),
		row("7.3.1.1", countBreakers, func(v *view, i int) any { return onOff(!v.Breakers[i].Open) }),
		row("7.3.1.3", countBreakers, func(v *view, i int) any { return toHundredths(v.Breakers[i].Amps) }),
		row("8.3.1.1", countOutlets, func(v *view, i int) any { return onOff(v.Outlets[i].On) }),
		row("8.3.1.3", countOutlets, func(v *view, i int) any { return toHundredths(v.Outlets[i].Amps) }),
		row("8.3.1.7", countOutlets, func(v *view, i int) any { return int(math.Round(v.Outlets[i].Watts)) }),
		control,
	}
}
