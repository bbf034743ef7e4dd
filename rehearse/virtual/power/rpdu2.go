// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"math"

	"github.com/gosnmp/gosnmp"
)

// Names of rPDU2 in PowerNet-MIB 4.6.0.
const (
	rpdu2    = "1.3.6.1.4.1.318.1.1.26."
	products = ".1.3.6.1.4.1.318.1.3.4.5" // sysObjectID of a second-generation rack PDU
	command  = rpdu2 + "9.2.4.1.5"        // rPDU2OutletSwitchedControlCommand
	firmware = "v6.8.0"
)

// textColumn and number make columns of a table.
func textColumn(id string, rows func(*view) int, get func(*view, int) any) column {
	return column{name: rpdu2 + id, kind: gosnmp.OctetString, first: 1, rows: rows, get: get}
}

func numberColumn(id string, rows func(*view) int, get func(*view, int) any) column {
	return column{name: rpdu2 + id, kind: gosnmp.Integer, first: 1, rows: rows, get: get}
}

// deviceTables are rPDU2Ident, rPDU2DeviceProperties and rPDU2DeviceStatus.
func deviceTables() []column {
	name := func(v *view, _ int) any { return v.pdu.spec.Name }
	count := func(rows func(*view) int) func(*view, int) any {
		return func(v *view, _ int) any { return rows(v) }
	}
	return []column{
		numberColumn("2.1.1", countOne, rowIndex), numberColumn("2.1.2", countOne, unitIndex), textColumn("2.1.3", countOne, name), textColumn("2.1.6", countOne, fixedValue(firmware)),
		textColumn("2.1.8", countOne, fixedValue("AP8886")), textColumn("2.1.9", countOne, func(v *view, _ int) any { return serialOf(v.pdu.spec.Name) }),
		numberColumn("4.2.1.1", countOne, rowIndex), numberColumn("4.2.1.2", countOne, unitIndex), textColumn("4.2.1.3", countOne, name),
		numberColumn("4.2.1.4", countOne, count(countOutlets)), numberColumn("4.2.1.5", countOne, count(countOutlets)), numberColumn("4.2.1.6", countOne, count(countOutlets)),
		numberColumn("4.2.1.7", countOne, count(countLines)), numberColumn("4.2.1.8", countOne, count(countBreakers)),
		numberColumn("4.2.1.9", countOne, func(v *view, _ int) any { return int(v.pdu.spec.Current) }),
		numberColumn("4.3.1.1", countOne, rowIndex), numberColumn("4.3.1.2", countOne, unitIndex), textColumn("4.3.1.3", countOne, name),
		numberColumn("4.3.1.4", countOne, func(v *view, _ int) any { return loadState(v.Watts, v.most()) }),
		numberColumn("4.3.1.5", countOne, func(v *view, _ int) any { return toHundredths(v.Watts / 1000) }),
	}
}

// most is the power at which every breaker carries its rating.
func (v *view) most() (watts float64) {
	for _, b := range v.Breakers {
		watts += b.Rating * v.Volts
	}
	return watts
}

// loadTables are rPDU2PhaseStatus, rPDU2BankProperties and rPDU2BankStatus. The
// MIB has no word for an open breaker: its bank carries nothing.
func loadTables() []column {
	bank := func(get func(BreakerReading) any) func(*view, int) any {
		return func(v *view, i int) any { return get(v.Breakers[i]) }
	}
	return []column{
		numberColumn("6.3.1.1", countLines, rowIndex), numberColumn("6.3.1.2", countLines, unitIndex), numberColumn("6.3.1.3", countLines, rowIndex),
		numberColumn("6.3.1.4", countLines, func(v *view, i int) any { return loadState(v.Lines[i], float64(v.pdu.spec.Current)) }),
		numberColumn("6.3.1.5", countLines, func(v *view, i int) any { return toTenths(v.Lines[i]) }),
		numberColumn("6.3.1.6", countLines, func(v *view, i int) any { return int(math.Round(v.Volts)) }),
		numberColumn("6.3.1.7", countLines, func(v *view, i int) any { return toHundredths(v.Breakers[i].Amps * v.Volts / 1000) }),
		numberColumn("8.2.1.1", countBreakers, rowIndex), numberColumn("8.2.1.2", countBreakers, unitIndex), numberColumn("8.2.1.3", countBreakers, rowIndex),
		numberColumn("8.2.1.5", countBreakers, bank(func(b BreakerReading) any { return int(math.Round(b.Rating)) })),
		numberColumn("8.3.1.1", countBreakers, rowIndex), numberColumn("8.3.1.2", countBreakers, unitIndex), numberColumn("8.3.1.3", countBreakers, rowIndex),
		numberColumn("8.3.1.4", countBreakers, bank(func(b BreakerReading) any { return loadState(b.Amps, b.Rating) })),
		numberColumn("8.3.1.5", countBreakers, bank(func(b BreakerReading) any { return toTenths(b.Amps) })),
	}
}

// outletTables are rPDU2OutletSwitchedProperties, Status and Control, and
// rPDU2OutletMeteredStatus.
func outletTables() (all []column) {
	name := func(_ *view, i int) any { return fmt.Sprintf("Outlet %d", i+1) }
	state := func(v *view, i int) any { return 1 + toInteger(v.Outlets[i].On) }
	for _, table := range []string{"9.2.2.1.", "9.2.3.1.", "9.2.4.1.", "9.4.3.1."} {
		all = append(all, numberColumn(table+"1", countOutlets, rowIndex), numberColumn(table+"2", countOutlets, unitIndex), textColumn(table+"3", countOutlets, name), numberColumn(table+"4", countOutlets, rowIndex))
	}
	return append(all,
		numberColumn("9.2.2.1.5", countOutlets, func(v *view, i int) any { return v.Outlets[i].Breaker + 3*toInteger(v.pdu.delta) }),
		numberColumn("9.2.2.1.6", countOutlets, func(v *view, i int) any { return v.Outlets[i].Breaker }),
		numberColumn("9.2.3.1.5", countOutlets, state),
		numberColumn("9.2.3.1.6", countOutlets, fixedValue(2)), // no command pending
		column{name: command, kind: gosnmp.Integer, first: 1, rows: countOutlets, get: func(v *view, i int) any { return 2 - toInteger(v.Outlets[i].On) }, set: setOutlet(1, 2, 3)},
		numberColumn("9.4.3.1.5", countOutlets, fixedValue(2)), // "on" always, whatever the relay does
		numberColumn("9.4.3.1.6", countOutlets, func(v *view, i int) any { return toTenths(v.Outlets[i].Amps) }),
		numberColumn("9.4.3.1.7", countOutlets, func(v *view, i int) any { return int(math.Round(v.Outlets[i].Watts)) }),
	)
}

// loadState is lowLoad, normal, nearOverload or overload, at the factory's
// thresholds.
func loadState(x, most float64) any {
	switch {
	case x <= 0.01*most:
		return 1
	case x < 0.8*most:
		return 2
	case x <= most:
		return 3
	}
	return 4
}
