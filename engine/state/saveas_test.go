// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// TestSaveAs: a file has the records of a store in memory with their numbers and times, and its objects.
func TestSaveAs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := NewMemory()
	fence, err := m.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3*MaxEntries + 7 {
		r := Record{Kind: StepDone, Time: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Step: fmt.Sprintf("n%d/bmc", i)}
		put := Put{Key: Key{Kind: "fact", Name: fmt.Sprintf("n%d", i%150)}, Value: fmt.Appendf(nil, "%d", i), Want: Any}
		if _, err := m.Append(ctx, fence, Batch{Records: []Record{r}, Puts: []Put{put}}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "state.db")
	if err := m.SaveAs(ctx, path); err != nil {
		t.Fatal(err)
	}
	b, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	read := func(r Reader) (records []string, objects map[string]string) {
		if err := r.Read(ctx, 1, func(r Record) error {
			records = append(records, fmt.Sprint(r.Seq, r.Time.UTC(), r.Kind, r.Step))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		list, err := r.Objects(ctx, "fact")
		if err != nil {
			t.Fatal(err)
		}
		objects = map[string]string{}
		for _, o := range list {
			objects[o.Key.Name] = string(o.Value)
		}
		return records, objects
	}
	wantRecords, wantObjects := read(m)
	records, objects := read(b)
	if len(records) != 3*MaxEntries+7 || !reflect.DeepEqual(records, wantRecords) || len(objects) != 150 || !reflect.DeepEqual(objects, wantObjects) {
		t.Errorf("%d records and %d objects, want %d and %d", len(records), len(objects), len(wantRecords), len(wantObjects))
	}
	if err := m.SaveAs(ctx, path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}
