// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/cputime"
)

// BenchmarkSavedPlan writes and reads the plan of a site in which nothing was done: as a
// file, and in a state as apply does before it begins. MiB is the size of the file.
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
		b.Run("store/"+strconv.Itoa(nodes), func(b *testing.B) {
			var cpu time.Duration
			var size int64
			for b.Loop() {
				name := filepath.Join(b.TempDir(), "state.db")
				store, err := state.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				fence, err := store.Claim(b.Context(), "bench")
				if err != nil {
					b.Fatal(err)
				}
				began := cputime.Used()
				put, err := state.PutPlan(b.Context(), store, fence, p)
				if err == nil {
					_, err = store.Append(b.Context(), fence, state.Batch{Puts: []state.Put{put}})
				}
				cpu += cputime.Used() - began
				if err != nil {
					b.Fatal(err)
				}
				back, err := state.ReadPlan(b.Context(), store, p.ID)
				if err != nil || len(back.Steps) != len(p.Steps) {
					b.Fatal(len(back.Steps), err)
				}
				info, err := os.Stat(name)
				if err != nil {
					b.Fatal(err)
				}
				size = info.Size()
				_ = store.Close()
			}
			b.ReportMetric(float64(size)/(1<<20), "MiB")
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
