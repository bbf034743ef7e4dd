// SPDX-License-Identifier: Apache-2.0

package perftest

import "fmt"

// Largest returns the row of the largest size; of several, the first.
func (r Run) Largest() (Row, bool) {
	var best Row
	for _, row := range r.Rows {
		if row.Size > best.Size {
			best = row
		}
	}
	return best, best.Size > 0
}

// Summary says what each run measured at its largest size.
func (c Content) Summary() []string {
	var lines []string
	for _, run := range c.Runs() {
		lines = append(lines, run.summary())
	}
	return lines
}

func (r Run) summary() string {
	text := r.Test
	if text == "" {
		text = "perftest"
	}
	if r.Device != "" {
		text += " on " + r.Device
	}
	if row, ok := r.Largest(); ok {
		return fmt.Sprintf("%s: %.2f Gb/s at %d bytes, %d sizes", text, row.Gbps, row.Size, len(r.Rows))
	}
	if n := len(r.Latencies); n > 0 {
		l := r.Latencies[0]
		for _, us := range []*float64{l.Average, l.Typical} {
			if us != nil {
				return fmt.Sprintf("%s: %g us at %d bytes, %d sizes", text, *us, l.Size, n)
			}
		}
	}
	return text + ": no results"
}
