// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"strconv"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// pace is what the test "diagnostic" notes of each GPU, whether it passed or not (RunTest of
// nvvs/plugin_src/diagnostic/DiagnosticPlugin.cpp of DCGM 4; `dcgmi diag -j` prints all notes).
var pace = lazyregexp.New(`^GPU (\d+) calculated at approximately ([\d.]+) gigaflops during this test`)

// GFLOPS returns how fast the test "diagnostic" multiplied matrices on each GPU, by DCGM's
// number of the GPU; nothing of those that it does not report.
func (c Content) GFLOPS() map[int]float64 {
	all := map[int]float64{}
	for _, t := range c.Tests {
		for _, r := range t.Results {
			for _, text := range r.Info {
				m := pace.FindStringSubmatch(text)
				if m == nil {
					continue
				}
				number, err := strconv.Atoi(m[1])
				rate, bad := strconv.ParseFloat(m[2], 64)
				if err == nil && bad == nil && rate > 0 {
					all[number] = rate
				}
			}
		}
	}
	return all
}
