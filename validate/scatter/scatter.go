// SPDX-License-Identifier: Apache-2.0

// Package scatter says from where on a figure is low among figures that are alike.
package scatter

// widths is how far below the median a part is slow at least, in widths of the scatter of those
// that are alike: the closest half of normal figures is 1.35 standard deviations wide, so that
// three are four of these. One healthy part of 30,000 is so slow.
const widths = 3

// Bound returns the least that is good among figures that are alike, which are sorted: a share
// of their median, or less where they scatter. It is not ok where half of them already scatter
// by more than a slow part differs: of such nothing is known. Machines whose neighbours
// load the same cores are so, and roles of which half is slow.
func Bound(sorted []float64, share float64) (median, least float64, ok bool) {
	n := len(sorted)
	median = (sorted[(n-1)/2] + sorted[n/2]) / 2
	most := n/2 + 1
	width := sorted[n-1] - sorted[0]
	for i := 0; i+most <= n; i++ {
		width = min(width, sorted[i+most-1]-sorted[i])
	}
	return median, max(min(share*median, median-widths*width), 0), width <= (1-share)*median
}
