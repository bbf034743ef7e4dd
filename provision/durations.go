// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"slices"

	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/validate"
)

// Durations are how long steps take on a site that has no past of its own: the table of
// the prediction, and what each test says of itself.
func Durations() []predict.Row {
	rows := slices.Clone(predict.Table)
	for _, c := range validate.Checks {
		d := c.Duration
		rows = append(rows, predict.Row{Kind: c.Kind(), Low: d.Low, Mid: d.Mid, High: d.High, Per: predict.Unit(d.Per), Planned: d.AsPlanned, Source: d.Source, Words: d.Words})
	}
	return rows
}
