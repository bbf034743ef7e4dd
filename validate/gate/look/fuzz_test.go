// SPDX-License-Identifier: Apache-2.0

package look

import (
	"math"
	"testing"
)

// FuzzParseTracking: an offset that was read is a number, with which limits can be
// compared.
func FuzzParseTracking(f *testing.F) {
	f.Add("A9FEA97B,169.254.169.123,4,1700000000.123456789,0.000012345,-0.000001,0.00001,-1.5,0.001,0.02,0.0005,0.0001,64.5,Normal\n")
	f.Add("0,,0,0.0,NaN,0,0,0,0,0,0,0,0,Not synchronised")
	f.Add("0,,0,0.0,+Inf,0,0,0,0,0,0,0,0,Normal")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseTracking(s)
		if ok && (math.IsNaN(got.Offset) || math.IsInf(got.Offset, 0)) {
			t.Errorf("%q: an offset of %g", s, got.Offset)
		}
	})
}
