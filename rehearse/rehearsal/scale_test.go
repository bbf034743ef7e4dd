// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// BenchmarkScale rehearses racks of 8-GPU nodes from cold to accepted:
// `make bench-scale`.
func BenchmarkScale(b *testing.B) {
	for _, nodes := range []int{16, 128, 256, 512, 1024, 4096} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			for b.Loop() {
				sum, err := rehearsal.Run(context.Background(), load(b, "../../examples/scale", map[string]string{"nodes": strconv.Itoa(nodes)}), rehearsal.Options{Seed: 1})
				if err != nil || len(sum.Accepted) != nodes {
					b.Fatalf("%d of %d nodes accepted: %v", len(sum.Accepted), nodes, err)
				}
				b.ReportMetric(float64(sum.PeakMemory)/(1<<20), "MiB")
			}
		})
	}
}
