// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"math"
	"testing"
)

func TestOfMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cpu                     string
		sockets, modules, speed int
		want                    float64 // GB/s
	}{
		{"INTEL(R) XEON(R) PLATINUM 8480C", 2, 32, 4800, 0}, // written otherwise: not known
		{"Intel(R) Xeon(R) Platinum 8480C", 2, 32, 4800, 245.8},
		{"Intel(R) Xeon(R) Platinum 8468", 2, 16, 4400, 225.3},
		{"Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz", 2, 24, 2933, 112.6},
		{"Intel(R) Xeon(R) 6960P", 2, 24, 6400, 491.5},
		{"AMD EPYC 9654 96-Core Processor", 2, 24, 4800, 368.6},
		{"AMD EPYC 9V33X 96-Core Processor", 2, 24, 4800, 368.6},
		{"AMD EPYC 7763 64-Core Processor", 2, 8, 3200, 81.9}, // half of the channels have a module
		{"AMD EPYC 9654 96-Core Processor", 2, 24, 0, 0},
		{"Neoverse-V2", 1, 1, 6400, 0},
	} {
		least, source := OfMemory(c.cpu, c.sockets, c.modules, c.speed)
		if math.Abs(least/1e9-c.want) > 0.1 || (source == "") != (least == 0) {
			t.Errorf("%s with %d modules at %d: %.1f GB/s by %q, want %.1f", c.cpu, c.modules, c.speed, least/1e9, source, c.want)
		}
	}
}
