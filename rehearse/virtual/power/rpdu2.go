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

// text and number make columns of a table.
func text(id string, rows func(*view) int, get func(*view, int) any) column {
	return column{name: rpdu2 + id, kind: gosnmp.OctetString, first: 1, rows: rows, get: get}
}

func number(id string, rows func(*view) int, get func(*view, int) any) column {
	return column{name: rpdu2 + id, kind: gosnmp.Integer, first: 1, rows: rows, get: get}
}

// deviceTables are rPDU2Ident, rPDU2DeviceProperties and rPDU2DeviceStatus.
func deviceTables() []column {
	name := func(v *view, _ int) any { return v.pdu.spec.Name }
	count := func(rows func(*view) int) func(*view, int) any {
		return func(v *view, _ int) any { return rows(v) }
	}
	return []column{
		number("2.1.1", one, index), number("2.1.2", one, unit), text("2.1.3", one, name), text("2.1.6", one, fixed(firmware)),
		text("2.1.8", one, fixed("AP8886")), text("2.1.9", one, func(v *view, _ int) any { return serial(v.pdu.spec.Name) }),
		number("4.2.1.1", one, index), number("4.2.1.2", one, unit), text("4.2.1.3", one, name),
		number("4.2.1.4", one, count(outlets)), number("4.2.1.5", one, count(outlets)), number("4.2.1.6", one, count(outlets)),
		number("4.2.1.7", one, count(lines)), number("4.2.1.8", one, count(breakers)),
		number("4.2.1.9", one, func(v *view, _ int) any { return int(v.pdu.spec.Current) }),
		number("4.3.1.1", one, index), number("4.3.1.2", one, unit), text("4.3.1.3", one, name),
		number("4.3.1.4", one, func(v *view, _ int) any { return loadState(v.Watts, v.most()) }),
		number("4.3.1.5", one, func(v *view, _ int) any { return hundredths(v.Watts / 1000) }),
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
		number("6.3.1.1", lines, index), number("6.3.1.2", lines, unit), number("6.3.1.3", lines, index),
		number("6.3.1.4", lines, func(v *view, i int) any { return loadState(v.Lines[i], float64(v.pdu.spec.Current)) }),
		number("6.3.1.5", lines, func(v *view, i int) any { return tenths(v.Lines[i]) }),
		number("6.3.1.6", lines, func(v *view, i int) any { return int(math.Round(v.Volts)) }),
		number("6.3.1.7", lines, func(v *view, i int) any { return hundredths(v.Breakers[i].Amps * v.Volts / 1000) }),
		number("8.2.1.1", breakers, index), number("8.2.1.2", breakers, unit), number("8.2.1.3", breakers, index),
		number("8.2.1.5", breakers, bank(func(b BreakerReading) any { return int(math.Round(b.Rating)) })),
		number("8.3.1.1", breakers, index), number("8.3.1.2", breakers, unit), number("8.3.1.3", breakers, index),
		number("8.3.1.4", breakers, bank(func(b BreakerReading) any { return loadState(b.Amps, b.Rating) })),
		number("8.3.1.5", breakers, bank(func(b BreakerReading) any { return tenths(b.Amps) })),
	}
}

// outletTables are rPDU2OutletSwitchedProperties, Status and Control, and
// rPDU2OutletMeteredStatus.
func outletTables() (all []column) {
	name := func(_ *view, i int) any { return fmt.Sprintf("Outlet %d", i+1) }
	state := func(v *view, i int) any { return 1 + boolean(v.Outlets[i].On) }
	for _, table := range []string{"9.2.2.1.", "9.2.3.1.", "9.2.4.1.", "9.4.3.1."} {
		all = append(all, number(table+"1", outlets, index), number(table+"2", outlets, unit), text(table+"3", outlets, name), number(table+"4", outlets, index))
	}
	return append(all,
		number("9.2.2.1.5", outlets, func(v *view, i int) any { return v.Outlets[i].Breaker + 3*boolean(v.pdu.delta) }),
		number("9.2.2.1.6", outlets, func(v *view, i int) any { return v.Outlets[i].Breaker }),
		number("9.2.3.1.5", outlets, state),
		number("9.2.3.1.6", outlets, fixed(2)), // no command pending
		column{name: command, kind: gosnmp.Integer, first: 1, rows: outlets, get: func(v *view, i int) any { return 2 - boolean(v.Outlets[i].On) }, set: switcher(1, 2, 3)},
		number("9.4.3.1.5", outlets, fixed(2)), // "on" always, whatever the relay does
		number("9.4.3.1.6", outlets, func(v *view, i int) any { return tenths(v.Outlets[i].Amps) }),
		number("9.4.3.1.7", outlets, func(v *view, i int) any { return int(math.Round(v.Outlets[i].Watts)) }),
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
