// SPDX-License-Identifier: Apache-2.0

package rocmsmi

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// csvIn begins --csv: a row for each card, with the names of --json in the heading,
// or what is said of the node with a name and a value on each row (formatCsv of
// rocm_smi.py, which takes commas out of the values).
var csvIn = lazyregexp.New(`(?m)^device,[^,\n].*\n(?:card\d+|system),|^name, value\s*\n"`)

// csv reads --csv, also of several commands one after another.
func (r *reader) csv(b []byte) {
	var head []string
	n := 0
	for line := range bytes.Lines(b) {
		n++
		row, err := csvRow(line)
		if err != nil || len(row) < 2 {
			head = nil
			continue
		}
		switch card := cardName.FindStringSubmatch(row[0]); {
		case row[0] == "device" || row[0] == "name" && row[1] == "value":
			head = row
		case head == nil:
		case head[0] == "name":
			r.ofSystem(row[0], row[1])
		case card != nil || row[0] == "system":
			r.card(n, card, head, row)
		}
	}
}

func csvRow(line []byte) ([]string, error) {
	c := csv.NewReader(bytes.NewReader(line))
	c.LazyQuotes, c.TrimLeadingSpace = true, true
	return c.Read()
}

// card reads a row of a card, or of the system where card is nil.
func (r *reader) card(n int, card, head, row []string) {
	switch {
	case len(row) < len(head):
		r.p.Add(tool.Truncated, n, "%s has %d of %d columns", row[0], len(row), len(head))
	case len(row) > len(head):
		r.p.Add(tool.Inconsistent, n, "%s has %d columns, the heading %d", row[0], len(row), len(head))
		return
	}
	var g *GPU
	if card != nil {
		i, err := strconv.Atoi(card[1])
		if g = r.gpu(i); err != nil || g == nil {
			return
		}
	}
	for i, v := range row[1:] {
		if g != nil {
			g.set(head[i+1], v)
		} else {
			r.ofSystem(strings.TrimSpace(head[i+1]), v)
		}
	}
}
