// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// limit is what a figure is held against, as a number in the unit of the measurement.
type limit struct {
	Value float64
	Above bool // the figure must be this or more; false: this or less
}

// limitText is how tests write limits: ">= 43.6GB/s (80% of the median)", "<= 82 °C", "= 0".
var limitText = lazyregexp.New(`^(>=|<=|=|>|<) *([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?) *([kMGT]?)(i?)(B/s)?`)

// scales are the decimal prefixes of rates, and with an i the binary ones.
var scales = map[string][2]float64{"": {1, 1}, "k": {1e3, 1 << 10}, "M": {1e6, 1 << 20}, "G": {1e9, 1 << 30}, "T": {1e12, 1 << 40}}

// parseLimit reads the limit of a measurement; false where there is none, or none that is
// a number.
func parseLimit(m Measurement) (limit, bool) {
	at := limitText.FindStringSubmatch(m.Limit)
	if at == nil {
		return limit{}, false
	}
	v, err := strconv.ParseFloat(at[2], 64)
	if err != nil {
		return limit{}, false
	}
	if at[5] != "" { // a prefix is one of a rate only: "M" may begin another unit
		binary := 0
		if at[4] != "" {
			binary = 1
		}
		v *= scales[at[3]][binary]
	}
	return limit{v, strings.HasPrefix(at[1], ">")}, true
}

// share is how near a figure is to its limit, in percent of it: above 100 is better where
// the figure must be the limit or more.
func share(m Measurement) (percent float64, ok bool) {
	l, ok := parseLimit(m)
	if !ok || l.Value == 0 {
		return 0, false
	}
	return 100 * m.Measured / l.Value, true
}

// ShareOfLimit is how near a figure is to its limit, in percent of it; above says that the
// figure must be the limit or more. False where there is no limit that is a number above zero.
func (m Measurement) ShareOfLimit() (percent float64, above, ok bool) {
	percent, ok = share(m)
	l, _ := parseLimit(m)
	return percent, l.Above, ok
}

// Figure is what was measured, with its unit; empty where there is no figure.
func (m Measurement) Figure() string { return formatValue(m) }
