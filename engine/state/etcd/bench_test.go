// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
)

// benchNodes and benchSteps are of the state that is followed: an object of each step, of
// about 200 bytes, and a record of it.
const (
	benchNodes = 2000
	benchSteps = 10
)

// BenchmarkFollow measures a copy of a state with 20,000 objects and 20,000 records, on
// three real members on this machine. An operation is an append of one record and one
// object until the copy has it. Reported besides: to read the whole state into a new copy,
// and to read all objects from etcd and from the copy.
func BenchmarkFollow(b *testing.B) {
	peertest.Need(b, "etcd")
	c := etcdtest.Start(b)
	r := &rig{Cluster: c}
	s, err := Open(b.Context(), r.config("bench", c.Endpoints()))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fence, err := s.Claim(b.Context(), "owner")
	if err != nil {
		b.Fatal(err)
	}
	fillSteps(b, s, fence)

	began := time.Now()
	f, err := OpenFollower(b.Context(), s, filepath.Join(b.TempDir(), "copy.db"))
	if err != nil {
		b.Fatal(err)
	}
	metrics := map[string]time.Duration{"load-ms": time.Since(began)}
	read := func(name string, from state.Reader) {
		began := time.Now()
		os, err := from.Objects(b.Context(), "thing")
		if err != nil || len(os) != benchNodes*benchSteps {
			b.Fatal(len(os), err)
		}
		metrics[name] = time.Since(began)
	}
	read("etcd-objects-ms", s)
	_ = f.Read(func(copy state.Reader) error { read("copy-objects-ms", copy); return nil })

	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Append(b.Context(), fence, stepBatch(i, 1)); err != nil {
			b.Fatal(err)
		}
		if err := f.Await(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for name, d := range metrics { // Loop forgets what was reported before it
		b.ReportMetric(float64(d.Milliseconds()), name)
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// fillSteps writes the state that is followed.
func fillSteps(b *testing.B, s *Store, f state.Fence) {
	const n = state.MaxEntries / 2
	for i := 0; i < benchNodes*benchSteps; i += n {
		if _, err := s.Append(b.Context(), f, stepBatch(i, n)); err != nil {
			b.Fatal(err)
		}
	}
}

// stepBatch has n records and objects of the steps from the first on.
func stepBatch(first, n int) (out state.Batch) {
	for i := first; i < first+n; i++ {
		name := fmt.Sprintf("node-%05d/step-%d", i/benchSteps, i%benchSteps)
		value := json.RawMessage(fmt.Sprintf(`{"step":%q,"digest":"%064x","status":"done","text":"%080d"}`, name, i, i))
		out.Records = append(out.Records, state.Record{Kind: state.StepDone, Step: name, Data: value})
		out.Puts = append(out.Puts, state.Put{Key: state.Key{Kind: "thing", Name: name}, Want: state.Any, Value: value})
	}
	return out
}
