// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"
)

// oid is the name of an object.
type oid []uint32

// parseOID reads a dotted name. A part that is no number ends it.
func parseOID(s string) (o oid) {
	for part := range strings.SplitSeq(strings.TrimPrefix(s, "."), ".") {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return o
		}
		o = append(o, uint32(n))
	}
	return o
}

// column is a column of a table, or a scalar. Rows are numbered from first; with
// sensors a row's index is the number of the part and that of the sensor.
type column struct {
	name    string
	oid     oid
	kind    gosnmp.Asn1BER
	first   uint32 // 0 for a scalar, 1 for a table
	sensors []uint32
	rows    func(*view) int                        // without sensors: parts, else parts times sensors
	get     func(v *view, row int) any             // row counts from 0
	set     func(p *PDU, outlet, value int) func() // what writing does; nil: no such value, or read only
}

// index is what follows the column's name.
func (c *column) index(row int) oid {
	if len(c.sensors) == 0 {
		return oid{c.first + uint32(row)}
	}
	return oid{c.first + uint32(row/len(c.sensors)), c.sensors[row%len(c.sensors)]}
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

// columnsOf makes the tree of a model, in the order of an agent. A model that is not
// known is as silent as a PDU without SNMP.
func columnsOf(model string) []column {
	var all []column
	switch model {
	case "apc-rpdu2":
		all = slices.Concat(systemGroup("APC Web/SNMP Management Card (MB:v4.1.0 PF:"+firmware+")", products), deviceTables(), loadTables(), outletTables())
	case "raritan-px":
		all = slices.Concat(systemGroup("Raritan PX3", ".1.3.6.1.4.1.13742.6"), raritanTables())
	case "servertech-sentry4":
		all = slices.Concat(systemGroup("Sentry Switched PDU", ".1.3.6.1.4.1.1718.4"), sentryTables())
	}
	for i := range all {
		all[i].oid = parseOID(all[i].name)
	}
	slices.SortFunc(all, func(a, b column) int { return slices.Compare(a.oid, b.oid) })
	return all
}

// The shapes of tables.
func countOne(*view) int        { return 1 }
func countOutlets(v *view) int  { return len(v.Outlets) }
func countBreakers(v *view) int { return len(v.Breakers) }
func countLines(v *view) int    { return len(v.Lines) }

func toTenths(f float64) any      { return int(math.Round(f * 10)) }
func toHundredths(f float64) any  { return int(math.Round(f * 100)) }
func rowIndex(_ *view, i int) any { return i + 1 }
func unitIndex(*view, int) any    { return 1 }

// fixedValue returns a column that says the same always.
func fixedValue(x any) func(*view, int) any { return func(*view, int) any { return x } }

func toInteger(b bool) int {
	if b {
		return 1
	}
	return 0
}

// system is MIB-2's system group (RFC 3418).
const system = "1.3.6.1.2.1.1."

func systemGroup(description, object string) []column {
	scalar := func(id string, kind gosnmp.Asn1BER, get func(v *view) any) column {
		return column{name: system + id, kind: kind, rows: countOne, get: func(v *view, _ int) any { return get(v) }}
	}
	return []column{
		scalar("1", gosnmp.OctetString, func(*view) any { return description }),
		scalar("2", gosnmp.ObjectIdentifier, func(*view) any { return object }),
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

// serialOf returns a serial number that follows from the name.
func serialOf(name string) string {
	var h uint32 = 2166136261 // FNV-1a
	for _, b := range []byte(name) {
		h = (h ^ uint32(b)) * 16777619
	}
	return fmt.Sprintf("5A2601E%05d", h%100000)
}

// findInstance returns the instance of exactly that name. Not ok with a column: it has no
// such row; without: there is no such object at all.
func findInstance(all []column, v *view, o oid) (c *column, row int, ok bool) {
	i, exact := slices.BinarySearchFunc(all, o, func(c column, o oid) int { return slices.Compare(c.oid, o) })
	if i == 0 || exact {
		return nil, 0, false
	}
	c = &all[i-1]
	if len(o) <= len(c.oid) || !slices.Equal(o[:len(c.oid)], c.oid) {
		return nil, 0, false
	}
	row = c.search(v, func(index oid) bool { return slices.Compare(index, o[len(c.oid):]) >= 0 })
	return c, row, row < c.rows(v) && slices.Equal(c.index(row), o[len(c.oid):])
}

// search returns the first row whose index fits.
func (c *column) search(v *view, fits func(oid) bool) int {
	return sort.Search(c.rows(v), func(row int) bool { return fits(c.index(row)) })
}

// nextInstance returns the first instance behind a name.
func nextInstance(all []column, v *view, o oid) (*column, int, bool) {
	for i := range all {
		c := &all[i]
		row := 0
		switch n := len(c.oid); {
		case len(o) > n && slices.Equal(o[:n], c.oid):
			row = c.search(v, func(index oid) bool { return slices.Compare(index, o[n:]) > 0 })
		case slices.Compare(o, c.oid) > 0:
			continue
		}
		if row < c.rows(v) {
			return c, row, true
		}
	}
	return nil, 0, false
}

// at is the name of an instance.
func (c *column) at(row int) string { return "." + c.name + formatOID(c.index(row)) }

// formatOID writes a name, with a leading dot.
func formatOID(o oid) string {
	s := ""
	for _, n := range o {
		s += "." + strconv.FormatUint(uint64(n), 10)
	}
	return s
}
