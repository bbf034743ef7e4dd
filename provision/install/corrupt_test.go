// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// TestCorruptChunk: a chunk that comes corrupt at every try is said to be corrupt, and
// the journal says that the erasure had begun, never that it did not happen.
func TestCorruptChunk(t *testing.T) {
	t.Parallel()
	c := whole()
	c.fails = errkind.Begun(&wire.PartError{Part: wire.PartChunk, Err: errkind.New(errkind.Corrupt,
		"chunk 7 of 9 of the image came corrupt 6 times (fetched again 5 times, wrong in 6 different ways): expected 4194304 bytes of SHA-256 aa, got 4194304 bytes of SHA-256 bb")})
	res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	if len(res.Findings) != 1 {
		t.Fatalf("findings %+v", res.Findings)
	}
	f := res.Findings[0]
	if f.Cause != "a chunk of the image comes corrupt" || !strings.Contains(f.Action, "ironrail image verify") || !strings.Contains(f.Suspects[0].Part, "02:00:00:00:00:01") ||
		!strings.Contains(strings.Join(f.Evidence, "\n"), "chunk 7 of 9 of the image came corrupt 6 times") {
		t.Errorf("finding %+v", f)
	}
	effects := map[state.EffectState]int{}
	for _, e := range erasures(t, c.store) {
		effects[e.State]++
		if e.State == state.EffectInDoubt && !e.Begun {
			t.Errorf("the journal does not say that it had begun: %+v", e)
		}
	}
	if effects[state.EffectNotDone] != 0 || effects[state.EffectInDoubt] != 1 {
		t.Errorf("erasures in the journal by state: %v", effects)
	}
}

// erasures are the outcomes of erasing effects.
func erasures(t *testing.T, s state.Store) (out []state.Effect) {
	t.Helper()
	err := s.Read(t.Context(), 1, func(r state.Record) error {
		var e state.Effect
		if r.Kind != state.EffectOutcome {
			return nil
		}
		if err := json.Unmarshal(r.Data, &e); err != nil {
			return err
		}
		if e.Kind == plan.Erase {
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
