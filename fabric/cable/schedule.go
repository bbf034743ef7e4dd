// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// WriteSchedule writes what is laid, as CSV, a row for each pair of plugs: a
// splitter cable has a row for each leg, labelled LABEL/1, LABEL/2. A cell is
// empty where nothing is known.
func WriteSchedule(w io.Writer, runs []Run) error {
	t := newTable(w, "label", "from", "to", "type", "length", "rail", "from_rack", "from_unit", "from_port", "to_rack", "to_unit", "to_port", "speed", "fabric", "route", "part")
	cages := newCages()
	for i := range runs {
		r := &runs[i]
		speed := r.Speed / unit.BitRate(len(r.Cables))
		for j, c := range r.Cables {
			label := r.Label
			if len(r.Cables) > 1 {
				label += "/" + strconv.Itoa(j+1)
			}
			t.row(label, c.From.String(), c.To.String(), r.Type, formatLength(r.Length), formatRail(r.Rail),
				rackOf(&c.From), unitOf(&c.From), cages.portOf(&c.From), rackOf(&c.To), unitOf(&c.To), cages.portOf(&c.To),
				formatRate(speed), fabricName(r), formatLength(r.Route), r.Part)
		}
	}
	return t.end()
}

// WriteLabels writes what is printed, as CSV, one row a plug: its label, where it
// is plugged in, and where the other end is.
func WriteLabels(w io.Writer, runs []Run) error {
	t := newTable(w, "label", "here", "there", "here_rack", "here_unit", "here_port", "there_rack", "there_unit", "there_port", "type", "length")
	cages := newCages()
	for i := range runs {
		r := &runs[i]
		for j, c := range r.Cables {
			label := r.Label
			if len(r.Cables) > 1 {
				label += "/" + strconv.Itoa(j+1)
			}
			for _, e := range [][2]*inventory.CableEnd{{&c.From, &c.To}, {&c.To, &c.From}} {
				t.row(label, e[0].String(), e[1].String(), rackOf(e[0]), unitOf(e[0]), cages.portOf(e[0]), rackOf(e[1]), unitOf(e[1]), cages.portOf(e[1]), r.Type, formatLength(r.Length))
			}
		}
	}
	return t.end()
}

// table writes CSV. No cell is a formula for a spreadsheet.
type table struct{ w *csv.Writer }

func newTable(w io.Writer, header ...string) table {
	t := table{csv.NewWriter(w)}
	t.row(header...)
	return t
}

// row writes a row; errors are kept for end.
func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = escapeFormula(c)
	}
	_ = t.w.Write(cells)
}

func (t table) end() error {
	t.w.Flush()
	return t.w.Error()
}

// escapeFormula makes text of a cell that a spreadsheet would take for a formula (OWASP,
// CSV Injection): names and labels come from the site's files, which may come
// from somebody else.
func escapeFormula(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func formatLength(l unit.Length) string {
	if l == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(l), 'f', -1, 64) + "m"
}

func formatRate(s unit.BitRate) string {
	if s == 0 {
		return ""
	}
	return s.String()
}

func formatRail(r int) string {
	if r < 0 {
		return ""
	}
	return strconv.Itoa(r)
}

func fabricName(r *Run) string {
	if r.Fabric == nil {
		return ""
	}
	return r.Fabric.Name
}

func rackOf(e *inventory.CableEnd) string {
	switch {
	case e.Node != nil && e.Node.Rack != nil:
		return e.Node.Rack.Name
	case e.Switch != nil && e.Switch.Rack != nil:
		return e.Switch.Rack.Name
	}
	return ""
}

func unitOf(e *inventory.CableEnd) string {
	n := 0
	switch {
	case e.Node != nil:
		n = e.Node.Unit
	case e.Switch != nil:
		n = e.Switch.Unit
	}
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// portOf is what stands at the port: the label on the case of a node or switch.
func (c cages) portOf(e *inventory.CableEnd) string {
	switch {
	case e.NIC != nil && e.Port < len(e.NIC.Ports) && e.NIC.Ports[e.Port].Panel != "":
		return e.NIC.Ports[e.Port].Panel
	case e.NIC != nil:
		return e.NIC.Name + "/" + strconv.Itoa(e.Port)
	case e.Switch != nil:
		return c.label(e.Switch, e.Port, e.Lane)
	}
	return ""
}
