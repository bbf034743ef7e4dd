// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Lengths of the room that a site does not give, in metres. A rack is 600 mm wide
// and 1.2 m deep (EIA-310 leaves both open; these are what is sold for GPU
// nodes); rows of 1.2 m deep racks with a 1.2 m aisle between have 2.4 m; the
// tray hangs above racks of 2.0 to 2.4 m; a metre of slack is shared by the ends.
const (
	defaultRackWidth  = 0.6
	defaultRowPitch   = 2.4
	defaultTrayHeight = 2.7
	defaultSlack      = 0.5
	rackDepth         = 1.2
	rackUnit          = 0.04445 // EIA-310
)

// Slot is where a rack stands: row and place in the row, both from 1.
type Slot struct{ Row, Position int }

// PlaceRacks places every rack: rows by name (numbers in them as numbers), racks
// without a row in a row of their own before them; in a row a rack stands at its
// position, and those without one take the free places in the order of number.
func PlaceRacks(inv *inventory.Inventory) map[*inventory.Rack]Slot {
	rows := map[string][]*inventory.Rack{}
	for _, r := range inv.Racks {
		rows[r.Row] = append(rows[r.Row], r)
	}
	names := make([]string, 0, len(rows))
	for n := range rows {
		names = append(names, n)
	}
	slices.SortFunc(names, byNumbers)
	out := make(map[*inventory.Rack]Slot, len(inv.Racks))
	for i, n := range names {
		placeRow(out, i+1, rows[n])
	}
	return out
}

func placeRow(out map[*inventory.Rack]Slot, row int, racks []*inventory.Rack) {
	taken := map[int]bool{}
	for _, r := range racks {
		taken[r.Position] = true
	}
	slices.SortStableFunc(racks, func(a, b *inventory.Rack) int { return cmp.Compare(a.Number, b.Number) })
	free := 1
	for _, r := range racks {
		at := r.Position
		if at == 0 {
			for taken[free] {
				free++
			}
			at = free
			free++
		}
		out[r] = Slot{Row: row, Position: at}
	}
}

// byNumbers compares names with the digits in them as numbers: "2" before "10".
func byNumbers(a, b string) int {
	for a != "" && b != "" {
		x, restA := cutToken(a)
		y, restB := cutToken(b)
		m, errM := strconv.Atoi(x)
		n, errN := strconv.Atoi(y)
		c := strings.Compare(x, y)
		if errM == nil && errN == nil && m != n {
			c = cmp.Compare(m, n)
		}
		if c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// cutToken cuts the leading digits, or what is before the next ones.
func cutToken(s string) (string, string) {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	n := 1
	for n < len(s) && digit(s[n]) == digit(s[0]) {
		n++
	}
	return s[:n], s[n:]
}

// room measures ways between ports. It is read-only once made.
//
// A cable leaves its port in the middle of the height of its node or switch. In
// one rack it goes to the side, along it, and back to the middle. To another
// rack it goes up (or down) to the tray, along the row, across the rows, and
// down; rows are crossed at right angles. Where ports of one end face the front
// and those of the other the rear, it passes through the depth of a rack. At
// both ends there is slack.
type room struct {
	width, pitch, tray, slack float64
	given                     bool // the site says how large it is
	slots                     map[*inventory.Rack]Slot
}

func newRoom(inv *inventory.Inventory) *room {
	g := inv.Site.Geometry
	or := func(l unit.Length, d float64) float64 {
		if l > 0 {
			return float64(l)
		}
		return d
	}
	return &room{
		width: or(g.RackWidth, defaultRackWidth), pitch: or(g.RowPitch, defaultRowPitch), tray: or(g.TrayHeight, defaultTrayHeight), slack: or(g.Slack, defaultSlack),
		given: g != inventory.Geometry{}, slots: PlaceRacks(inv),
	}
}

// spot is where a port is.
type spot struct {
	rack *inventory.Rack
	slot Slot
	z    float64 // above the floor of the rack, in metres
}

// spot places the end of a cable; false when it stands nowhere.
func (r *room) spot(e *inventory.CableEnd) (spot, bool) {
	var s spot
	unitAt, height := 0, 1
	switch {
	case e.Node != nil:
		s.rack, unitAt, height = e.Node.Rack, e.Node.Unit, e.Node.Height()
	case e.Switch != nil:
		s.rack, unitAt, height = e.Switch.Rack, e.Switch.Unit, max(1, e.Switch.Height)
	}
	if s.rack == nil {
		return s, false
	}
	s.z = (float64(unitAt-1) + float64(height)/2) * rackUnit
	if unitAt == 0 { // a rack without units: the middle of it
		s.z = float64(s.rack.Units) / 2 * rackUnit
	}
	s.slot = r.slots[s.rack]
	return s, true
}

// way is the length from spot to spot with slack, in metres, rounded up to
// centimetres.
func (r *room) way(a, b spot) unit.Length {
	d := r.width/2 + 2*r.slack
	if a.rack == b.rack {
		d += math.Abs(a.z - b.z)
	} else {
		d += math.Abs(r.tray-a.z) + math.Abs(r.tray-b.z) +
			r.width*math.Abs(float64(a.slot.Position-b.slot.Position)) + r.pitch*math.Abs(float64(a.slot.Row-b.slot.Row))
	}
	if a.rack.Orientation != b.rack.Orientation {
		d += rackDepth
	}
	return unit.Length(math.Ceil(d*100-1e-6) / 100)
}

// route is the way of a cable; 0 when an end has no place.
func (r *room) route(c *inventory.Cable) unit.Length {
	a, ok := r.spot(&c.From)
	if !ok {
		return 0
	}
	b, ok := r.spot(&c.To)
	if !ok {
		return 0
	}
	return r.way(a, b)
}
