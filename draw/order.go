// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strconv"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory/power"
)

// orderSheets draws the order of switching on, in columns.
func (d *Drawing) orderSheets() []svg.Sheet {
	const line, columns, most = 16, 2, 4
	const perColumn = (sheetHeight - headHeight - 60) / line
	const width = (sheetWidth - 20.0) / columns
	all := d.plan.Order
	var sheets []svg.Sheet
	for from := 0; from < len(all); from += perColumn * columns {
		if len(sheets) == most {
			break
		}
		part := all[from:min(from+perColumn*columns, len(all))]
		rows := min(len(part), perColumn)
		id := "order"
		title := "Switching on: " + formatCount(len(all), "batch", "batches")
		if from > 0 {
			id += "-" + strconv.Itoa(len(sheets)+1)
			title += ", continued"
		}
		s := d.newSheet(id, title, "In which order nodes and switches may be switched on so that their inrush stays within every phase.", sheetWidth, float64(headHeight+rows*line+30))
		for i, b := range part {
			x, y := 10+float64(i/perColumn)*width, float64(headHeight+16+i%perColumn*line)
			d.batch(s.Canvas, from+i+1, b, x, y, width-20)
		}
		if rest := len(all) - from - len(part); rest > 0 && len(sheets) == most-1 {
			s.Canvas.Text(10, s.H-6, svg.Font{Fill: svg.Soft}, fmt.Sprintf("and %s more: --json has all", formatCount(rest, "batch", "batches")))
		}
		sheets = append(sheets, s)
	}
	return sheets
}

// batch is one line of the order.
func (d *Drawing) batch(c *svg.Canvas, number int, b power.Batch, x, y, w float64) {
	c.Text(x+40, y, svg.Font{Anchor: svg.End, Bold: true}, strconv.Itoa(number))
	c.Text(x+120, y, svg.Font{Anchor: svg.End}, formatWatts(b.Watts))
	const shown = 12
	names := joinList(b.Names[:min(len(b.Names), shown)])
	words := formatCount(len(b.Names), "thing", "things") + ": " + names
	if len(b.Names) > shown {
		words += ", …"
	}
	c.Fit(x+132, y, w-132, svg.Font{Size: 10.5}, words)
}
