// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
)

// BenchmarkSavedPlan writes and reads the plan of a site in which nothing was done. MiB
// is the size of the file.
func BenchmarkSavedPlan(b *testing.B) {
	for _, nodes := range []int{1_000, 12_500} {
		p := makePlan(b, openBench(b, benchSite(b, nodes, "")), state.Empty{})
		key := plan.Key("0123456789abcdef0123456789abcdef")
		var file bytes.Buffer
		b.Run("save/"+strconv.Itoa(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				file.Reset()
				if err := plan.Save(&file, p, key); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(file.Len())/(1<<20), "MiB")
		})
		b.Run("open/"+strconv.Itoa(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				back, problem, err := plan.Open(bytes.NewReader(file.Bytes()), key)
				if err != nil || problem != "" || len(back.Steps) != len(p.Steps) {
					b.Fatal(problem, err)
				}
			}
		})
	}
}
