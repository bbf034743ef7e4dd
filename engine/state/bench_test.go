// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/internal/subject"
)

// benchDir is a folder on a real disk where one is named: a temporary folder may
// lie in memory, where fsync costs nothing.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "append-*")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// share runs f b.N times on n goroutines, as what is measured.
func share(b *testing.B, n int, f func(i int) error) {
	b.Helper()
	b.ResetTimer()
	runInParts(b, n, 0, b.N, f)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// runInParts runs f for each number from one to another on n goroutines.
func runInParts(b *testing.B, n, from, to int, f func(i int) error) {
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for i := from + w; i < to; i += n {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// sample is a record of the usual size with one object.
func sample(i int) state.Batch {
	text := strings.Repeat("x", 200)
	return state.Batch{
		Records: []state.Record{state.Record{Kind: state.StepDone, Run: "20260102T150405-ABCDEF", Step: "n1/install.write"}.With(text)},
		Puts:    []state.Put{{Key: state.Key{Kind: "step", Name: strconv.Itoa(i % 1000)}, Want: state.Any, Value: json.RawMessage(`"` + text + `"`)}},
	}
}

// BenchmarkAppend measures durable appends of several goroutines against the least
// that a disk needs for them: one write and one fdatasync of the same bytes for all
// that came while the one before was under way (raw), and against bbolt's own
// batching. of-raw is the share of raw that the store reaches in the same run: both
// take turns, since a disk is never equally fast for long.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("store/%d", n), func(b *testing.B) {
			s, err := state.Open(filepath.Join(benchDir(b), "state.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			f, err := s.Claim(context.Background(), "bench")
			if err != nil {
				b.Fatal(err)
			}
			raw := newRaw(b)
			store := func(i int) error {
				_, err := s.Append(context.Background(), f, sample(i))
				return err
			}
			var stored, written time.Duration
			b.ResetTimer()
			for from := 0; from < b.N; from += oneTurn {
				to := min(b.N, from+oneTurn)
				began := time.Now()
				runInParts(b, n, from, to, store)
				stored += time.Since(began)
				b.StopTimer()
				began = time.Now()
				runInParts(b, n, from, to, raw.append)
				written += time.Since(began)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)/stored.Seconds(), "appends/s")
			b.ReportMetric(written.Seconds()/stored.Seconds(), "of-raw")
		})
		b.Run(fmt.Sprintf("raw/%d", n), func(b *testing.B) { share(b, n, newRaw(b).append) })
		b.Run(fmt.Sprintf("bolt-batch/%d", n), func(b *testing.B) { batching(b, n) })
	}
}

// oneTurn is how many appends the store and raw do before it is the other's turn.
const oneTurn = 512

// raw is a file to which several append, in the groups in which the store would.
type raw struct {
	f      *os.File
	groups state.Groups
}

func newRaw(b *testing.B) *raw {
	f, err := os.Create(filepath.Join(benchDir(b), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return &raw{f: f}
}

func (r *raw) append(i int) error {
	line, err := json.Marshal(sample(i))
	if err != nil {
		return err
	}
	return r.groups.Append(line, func(lines [][]byte) error {
		if _, err := r.f.Write(bytes.Join(lines, nil)); err != nil {
			return err
		}
		return syscall.Fdatasync(int(r.f.Fd()))
	})
}

// batching appends the same bytes with bbolt's Batch.
func batching(b *testing.B, n int) {
	db, err := bbolt.Open(filepath.Join(benchDir(b), "bolt.db"), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	name := []byte("x")
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(name); return err }); err != nil {
		b.Fatal(err)
	}
	share(b, n, func(i int) error {
		s := sample(i)
		line, err := json.Marshal(s.Records[0])
		if err != nil {
			return err
		}
		return db.Batch(func(tx *bbolt.Tx) error {
			x := tx.Bucket(name)
			seq, err := x.NextSequence()
			if err != nil {
				return err
			}
			if err := x.Put(fmt.Appendf(nil, "j%016x", seq), line); err != nil {
				return err
			}
			return x.Put([]byte(s.Puts[0].Key.String()), s.Puts[0].Value)
		})
	})
}

// filled makes a state of BENCH_NODES nodes (1000) once for all benchmarks of a
// process, and opens it.
func filled(b *testing.B) (*state.Bolt, int) {
	b.Helper()
	nodes := 1000
	if n, err := strconv.Atoi(os.Getenv("BENCH_NODES")); err == nil {
		nodes = n
	}
	path := filepath.Join(benchDir(b), "state.db")
	s, err := state.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	f, err := s.Claim(context.Background(), "bench")
	if err == nil {
		err = statetest.Fill(context.Background(), s, f, nodes)
	}
	if err == nil {
		err = unfinish(s, f, nodes)
	}
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		s, err = state.OpenReadOnly(path)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s, nodes
}

// unfinish stores the plan of the filled run, and that the run was stopped.
func unfinish(s state.Store, f state.Fence, nodes int) error {
	p := plan.Plan{ID: statetest.FillPlan}
	steps, err := state.ReadSteps(context.Background(), s)
	for id, st := range steps {
		p.Steps = append(p.Steps, plan.Step{ID: id, Stage: "install", Action: plan.Create, Subject: subject.OfNode("n00000"), Inputs: st.Inputs,
			Why: []string{"not done yet"}, Needs: []plan.Need{{Step: id, On: plan.Success}}, Version: 3})
	}
	if err != nil || len(p.Steps) != 12*nodes {
		return fmt.Errorf("%d steps: %w", len(p.Steps), err)
	}
	whole, err := state.PutPlan(context.Background(), s, f, &p)
	if err != nil {
		return err
	}
	run, err := state.PutOf(state.LastRun, state.Run{ID: statetest.FillRun, Plan: p.ID})
	if err != nil {
		return err
	}
	_, err = s.Append(context.Background(), f, state.Batch{Puts: []state.Put{whole, run}})
	return err
}

// BenchmarkOpen measures the walk over the pages of a file.
func BenchmarkOpen(b *testing.B) {
	s, _ := filled(b)
	for name, open := range map[string]func(string) (*state.Bolt, error){"read": state.OpenReadOnly, "write": state.Open} {
		b.Run(name, func(b *testing.B) {
			_ = s.Close()
			for b.Loop() {
				x, err := open(s.Path())
				if err != nil {
					b.Fatal(err)
				}
				_ = x.Close()
			}
		})
	}
}

// BenchmarkPrior measures what planning reads.
func BenchmarkPrior(b *testing.B) {
	s, nodes := filled(b)
	for b.Loop() {
		if p, err := state.ReadPrior(context.Background(), s); err != nil || len(p.Steps) != 12*nodes {
			b.Fatalf("%d steps: %v", len(p.Steps), err)
		}
	}
}

// BenchmarkResume measures what going on with a stopped run reads: the file is
// opened, and the plan, the steps, the nodes and the doubts are read.
func BenchmarkResume(b *testing.B) {
	s, nodes := filled(b)
	_ = s.Close()
	ctx := context.Background()
	began := cputime.Used()
	for b.Loop() {
		s, err := state.Open(s.Path())
		if err != nil {
			b.Fatal(err)
		}
		p, _, err := state.ReadUnfinishedPlan(ctx, s)
		if err != nil || len(p.Steps) != 12*nodes {
			b.Fatalf("%d steps: %v", len(p.Steps), err)
		}
		if steps, err := state.ReadPlanSteps(ctx, s, p.ID); err != nil || len(steps) != 12*nodes {
			b.Fatalf("%d steps: %v", len(steps), err)
		}
		if _, err := state.ReadNodes(ctx, s); err != nil {
			b.Fatal(err)
		}
		if _, err := state.ReadEffectsInDoubt(ctx, s); err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
	b.ReportMetric((cputime.Used()-began).Seconds()/float64(b.N), "cpu-s/op")
}
