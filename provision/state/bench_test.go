package state_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/provision/state"
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

// share runs f b.N times on n goroutines.
func share(b *testing.B, n int, f func(i int) error) {
	b.Helper()
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for i := w; i < b.N; i += n {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// sample is a record of the usual size with one object.
func sample(i int) state.Batch {
	text := strings.Repeat("x", 200)
	return state.Batch{
		Records: []state.Record{state.Record{Kind: state.StepDone, Run: "20260102T150405-ABCDEF", Step: "n1/install.write"}.With(text)},
		Puts:    []state.Put{{Key: state.Key{Kind: "step", Name: strconv.Itoa(i % 1000)}, Want: state.Any, Value: json.RawMessage(`"` + text + `"`)}},
	}
}

// BenchmarkAppend measures durable appends against the least that a disk needs:
// a write and an fsync of the same bytes, and against bbolt's own batching.
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
			share(b, n, func(i int) error {
				_, err := s.Append(context.Background(), f, sample(i))
				return err
			})
		})
		b.Run(fmt.Sprintf("bolt-batch/%d", n), func(b *testing.B) { batching(b, n) })
	}
	b.Run("write+fsync/1", func(b *testing.B) {
		f, err := os.Create(filepath.Join(benchDir(b), "raw"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line, err := json.Marshal(sample(0))
		if err != nil {
			b.Fatal(err)
		}
		share(b, 1, func(int) error {
			if _, err := f.Write(line); err != nil {
				return err
			}
			return f.Sync()
		})
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
