// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// manySteps is a plan of so many steps.
func manySteps(n int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1", Lineage: "l1", Site: "s"}
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(name + "/install.system"), Subject: subject.OfNode(name), Inputs: []plan.Input{{Name: "image", Value: fmt.Sprintf("sha256:%064x", 7)}}})
	}
	return p
}

// TestPlanIsPacked: the blocks of a large plan take a small part of what it says, and plans
// are read whose blocks were written before they were packed.
func TestPlanIsPacked(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	p := manySteps(20_000)
	put, err := PutPlan(t.Context(), s, f, p)
	if err != nil {
		t.Fatal(err)
	}
	var list planList
	if err := json.Unmarshal(put.Value, &list); err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, d := range list.Blocks {
		b, err := s.Block(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		size += len(b)
	}
	if list.Bytes < 1<<20 || size*5 > list.Bytes || len(list.Parts) < 3 {
		t.Errorf("%d bytes of a plan take %d in %d parts", list.Bytes, size, len(list.Parts))
	}
	same := func(name string, put Put) {
		t.Helper()
		if _, err := s.Append(t.Context(), f, Batch{Puts: []Put{put}}); err != nil {
			t.Fatal(name, err)
		}
		if got, err := ReadPlan(t.Context(), s, p.ID); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: another plan is read: %v", name, err)
		}
	}
	same("packed", put)
	head := *p
	head.Steps = nil
	var parts [][]byte
	for _, v := range []any{&head, p.Steps[:3000], p.Steps[3000:6000]} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, raw)
	}
	p.Steps = p.Steps[:6000]
	old := planList{Parts: []int{1, 2, 2}}
	for i, raw := range parts {
		cut := len(raw)
		if i > 0 {
			cut = len(raw) / 2
		}
		ds, err := s.PutBlocks(t.Context(), f, raw[:cut])
		if err == nil && i > 0 {
			var more []Digest
			more, err = s.PutBlocks(t.Context(), f, raw[cut:])
			ds = append(ds, more...)
		}
		if err != nil {
			t.Fatal(err)
		}
		old.Blocks = append(old.Blocks, ds...)
		old.Bytes += len(raw)
	}
	was, err := PutOf(PlanKey(p.ID), old)
	if err != nil {
		t.Fatal(err)
	}
	same("not packed", was)
	old.Packed = "brotli"
	later, err := PutOf(PlanKey(p.ID), old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), f, Batch{Puts: []Put{later}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPlan(t.Context(), s, p.ID); err == nil {
		t.Error("a plan that is packed in an unknown way was read")
	}
}
