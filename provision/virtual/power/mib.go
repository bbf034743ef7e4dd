package power

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"
)

// oid is the name of an object.
type oid []uint32

// parse reads a dotted name. A part that is no number ends it.
func parse(s string) (o oid) {
	for part := range strings.SplitSeq(strings.TrimPrefix(s, "."), ".") {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return o
		}
		o = append(o, uint32(n))
	}
	return o
}

// column is a column of a table, or a scalar. Rows are numbered from first.
type column struct {
	name  string
	oid   oid
	kind  gosnmp.Asn1BER
	first uint32 // 0 for a scalar, 1 for a table
	rows  func(*view) int
	get   func(v *view, row int) any // row counts from 0
}

// view is a PDU as one request sees it.
type view struct {
	pdu *PDU
	Reading
	up time.Duration
}

func (p *PDU) view() *view {
	return &view{pdu: p, Reading: p.Read(), up: p.grid.clock.Now().Sub(p.started)}
}

// Names of the tree: MIB-2 system (RFC 3418) and rPDU2 (PowerNet-MIB).
const (
	system   = "1.3.6.1.2.1.1."
	rpdu2    = "1.3.6.1.4.1.318.1.1.26."
	products = ".1.3.6.1.4.1.318.1.3.4.5" // sysObjectID of a second-generation rack PDU
	command  = rpdu2 + "9.2.4.1.5"        // rPDU2OutletSwitchedControlCommand
	firmware = "v6.8.0"
)

// The shapes of tables.
func one(*view) int        { return 1 }
func outlets(v *view) int  { return len(v.Outlets) }
func breakers(v *view) int { return len(v.Breakers) }
func lines(v *view) int    { return len(v.Lines) }

func tenths(f float64) any     { return int(math.Round(f * 10)) }
func hundredths(f float64) any { return int(math.Round(f * 100)) }
func index(_ *view, i int) any { return i + 1 }
func unit(*view, int) any      { return 1 }

// fixed is a column that says the same always.
func fixed(x any) func(*view, int) any { return func(*view, int) any { return x } }

// text and number make columns of a table, scalar one of the system group.
func scalar(id string, kind gosnmp.Asn1BER, get func(v *view) any) column {
	return column{name: system + id, kind: kind, rows: one, get: func(v *view, _ int) any { return get(v) }}
}

func text(id string, rows func(*view) int, get func(*view, int) any) column {
	return column{name: rpdu2 + id, kind: gosnmp.OctetString, first: 1, rows: rows, get: get}
}

func number(id string, rows func(*view) int, get func(*view, int) any) column {
	return column{name: rpdu2 + id, kind: gosnmp.Integer, first: 1, rows: rows, get: get}
}

// columns makes the tree, in the order of an agent.
func columns() []column {
	all := slices.Concat(systemGroup(), deviceTables(), loadTables(), outletTables())
	for i := range all {
		all[i].oid = parse(all[i].name)
	}
	slices.SortFunc(all, func(a, b column) int { return slices.Compare(a.oid, b.oid) })
	return all
}

func systemGroup() []column {
	return []column{
		scalar("1", gosnmp.OctetString, func(*view) any { return "APC Web/SNMP Management Card (MB:v4.1.0 PF:" + firmware + ")" }),
		scalar("2", gosnmp.ObjectIdentifier, func(*view) any { return products }),
		scalar("3", gosnmp.TimeTicks, func(v *view) any { return uint32(v.up / (10 * time.Millisecond)) }),
		scalar("4", gosnmp.OctetString, func(*view) any { return "" }),
		scalar("5", gosnmp.OctetString, func(v *view) any { return v.pdu.spec.Name }),
		scalar("6", gosnmp.OctetString, func(v *view) any { return rackOf(v.pdu.spec.Name) }),
	}
}

func rackOf(pdu string) string {
	rack, _, _ := strings.Cut(pdu, "/")
	return rack
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
		column{name: command, kind: gosnmp.Integer, first: 1, rows: outlets, get: func(v *view, i int) any { return 2 - boolean(v.Outlets[i].On) }},
		number("9.4.3.1.5", outlets, fixed(2)), // "on" always, whatever the relay does
		number("9.4.3.1.6", outlets, func(v *view, i int) any { return tenths(v.Outlets[i].Amps) }),
		number("9.4.3.1.7", outlets, func(v *view, i int) any { return int(math.Round(v.Outlets[i].Watts)) }),
	)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
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

// serial is a serial number of APC's form that follows from the name.
func serial(name string) string {
	var h uint32 = 2166136261 // FNV-1a
	for _, b := range []byte(name) {
		h = (h ^ uint32(b)) * 16777619
	}
	return fmt.Sprintf("5A2601E%05d", h%100000)
}

// find returns the instance of exactly that name.
func find(all []column, o oid) (*column, int, bool) {
	i, _ := slices.BinarySearchFunc(all, o, func(c column, o oid) int { return slices.Compare(c.oid, o) })
	if i == 0 {
		return nil, 0, false
	}
	c := &all[i-1]
	if len(o) != len(c.oid)+1 || !slices.Equal(o[:len(c.oid)], c.oid) || o[len(c.oid)] < c.first {
		return nil, 0, false
	}
	return c, int(o[len(c.oid)] - c.first), true
}

// after returns the first instance behind a name.
func after(all []column, v *view, o oid) (*column, int, bool) {
	for i := range all {
		c := &all[i]
		row := 0
		switch n := len(c.oid); {
		case len(o) > n && slices.Equal(o[:n], c.oid):
			row = int(int64(o[n]) - int64(c.first) + 1)
		case slices.Compare(o, c.oid) > 0:
			continue
		}
		if row = max(row, 0); row < c.rows(v) {
			return c, row, true
		}
	}
	return nil, 0, false
}

// at is the name of an instance.
func (c *column) at(row int) string {
	return "." + c.name + "." + strconv.FormatUint(uint64(c.first)+uint64(row), 10)
}
