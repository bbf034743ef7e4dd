package cable

import (
	"io"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Runs lists every cable of the site.
func Runs(inv *inventory.Inventory) []Run { return nil }

// WriteSchedule writes what is laid, as CSV: label, from, to, type, length, rail
// and more.
func WriteSchedule(w io.Writer, runs []Run) error { return nil }

// WriteLabels writes what is printed, as CSV: two labels a cable.
func WriteLabels(w io.Writer, runs []Run) error { return nil }

// Item is one line of the bill of materials.
type Item struct {
	Count  int         // needed
	Spares int         // beside Count: 2 %, rounded up
	Part   string      // "DAC 400Gbps"
	Type   string      // as of Run, or "optic"
	Length unit.Length // of a cable; 0: an optic, or not known
	Speed  unit.BitRate
}

// Bill counts what is ordered: cables by part and length, then optics.
func Bill(runs []Run) []Item { return nil }

// WriteBill writes a bill as CSV.
func WriteBill(w io.Writer, items []Item) error { return nil }
