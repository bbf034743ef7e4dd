// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// formatOne unpacks the file of format 1.
func formatOne(t *testing.T) string { return oldFormat(t, 1) }

// oldFormat unpacks the file that an ironrail of a format has left.
func oldFormat(t *testing.T, format int) string {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("testdata/format-%d.db.gz", format))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMigration: a file of each older format is read as it is, migrated when it is opened
// for writing, and kept.
func TestMigration(t *testing.T) {
	t.Parallel()
	for format, say := range map[int]string{1: "75 records", 2: "76 records"} {
		t.Run(strconv.Itoa(format), func(t *testing.T) {
			t.Parallel()
			migrates(t, format, say)
		})
	}
}

func migrates(t *testing.T, format int, say string) {
	path := oldFormat(t, format)
	before, err := readAll(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Format != state.Format || i.Lineage == "" || s.Migrated() != format {
		t.Errorf("%+v, migrated from %d", i, s.Migrated())
	}
	if p, run, err := state.ReadUnfinishedPlan(t.Context(), s); err != nil || (format == 2) != (p != nil && len(p.Steps) == 40 && run.Plan == p.ID) {
		t.Errorf("the unfinished plan: %v %+v %v", p, run, err)
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil || f.Number != uint64(format)+1 {
		t.Errorf("fence %d after the migration: %v", f.Number, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := readAll(t.Context(), path); err != nil || after != before || !strings.HasPrefix(after, say) {
		t.Errorf("after: %s %v, before: %s", after, err, before)
	}
	kept := state.OldFormatPath(path, format)
	if raw, err := os.ReadFile(kept); err != nil || !bytes.Equal(raw, old) {
		t.Errorf("the old file is not kept: %v", err)
	}
	if got, err := readAll(t.Context(), kept); err != nil || got != before {
		t.Errorf("the kept file: %s %v", got, err)
	}
}

// TestMigrationCutsPlans: a plan that was one large value lies in blocks afterwards, is read
// as it was, and is exported as it was.
func TestMigrationCutsPlans(t *testing.T) {
	t.Parallel()
	path := oldFormat(t, 2)
	want := &plan.Plan{ID: "20261128T120000-TWO000", Site: "a"}
	for i := range 5000 {
		want.Steps = append(want.Steps, plan.Step{ID: plan.StepID(fmt.Sprintf("n%d/install.write", i)), Subject: subject.OfNode("n1"),
			Title: strings.Repeat("write ", 30), Version: i})
	}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	overwriteObject(t, path, "plan/"+want.ID, raw)
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, _, err := s.Object(t.Context(), state.PlanKey(want.ID))
	if err != nil {
		t.Fatal(err)
	}
	if ds, err := state.NamedBlocks(o.Key, o.Value); err != nil || len(ds) < 3 {
		t.Errorf("%d blocks: %v", len(ds), err)
	}
	if got, _, err := state.ReadUnfinishedPlan(t.Context(), s); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the plan is read otherwise: %v", err)
	}
	if whole, err := state.WholeValue(t.Context(), s, o); err != nil || !bytes.Equal(whole, raw) {
		t.Errorf("the plan is shown otherwise: %v", err)
	}
	var out bytes.Buffer
	if err := s.Export(t.Context(), &out); err != nil || !bytes.Contains(out.Bytes(), raw) {
		t.Errorf("the plan is exported otherwise: %v", err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestMigrationCutsFacts: a fact that was one large value lies in blocks afterwards and is
// read as it was.
func TestMigrationCutsFacts(t *testing.T) {
	t.Parallel()
	path := oldFormat(t, 2)
	name := fact.Name[map[string]string]("install.image") // one that the file has
	x, err := name.New(subject.OfNode("n00000"), map[string]string{"steps": strings.Repeat("pairs ", 3*state.MaxValue/6)}, "")
	if err != nil {
		t.Fatal(err)
	}
	x.Observed = time.Unix(1, 0).UTC()
	raw, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	overwriteObject(t, path, state.FactKey(x.Key).String(), raw)
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantFact(t, s, x)
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), f); err != nil {
		t.Error(err)
	}
	wantFact(t, s, x)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// overwriteObject puts another value into a file of format 2, with its checksum.
func overwriteObject(t *testing.T, path, key string, value []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	table := crc32.MakeTable(crc32.Castagnoli)
	if err := db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("objects"))
		version := bytes.Clone(b.Get([]byte(key))[:8])
		sum := crc32.Update(crc32.Update(crc32.Checksum([]byte(key), table), table, version), table, value)
		return b.Put([]byte(key), append(binary.BigEndian.AppendUint32(version, sum), value...))
	}); err != nil {
		t.Fatal(err)
	}
}

// TestMigrationOfADamagedFile leaves it where and as it is.
func TestMigrationOfADamagedFile(t *testing.T) {
	t.Parallel()
	path := formatOne(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte(`"state":"done"`))
	write(t, path, int64(at), `{`)
	spoiled, _ := os.ReadFile(path)
	s, err := state.Open(path)
	if err == nil {
		_ = s.Close()
	}
	if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, spoiled) {
		t.Errorf("it was changed: %v", err)
	}
	if names, _ := filepath.Glob(path + ".*"); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}
