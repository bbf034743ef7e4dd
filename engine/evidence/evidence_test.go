// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

var at = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// kept is a folder with five raw outputs, the first and the last with the same content.
func kept(t *testing.T) (dir string, head Head, refs []string) {
	t.Helper()
	f := &Folder{Path: t.TempDir()}
	for i := range 5 {
		ref, err := f.Add(Entry{At: at.Add(time.Duration(i) * time.Minute), Run: "r1", Step: fmt.Sprintf("n%d/validate.gates", i)}, "gates.txt", fmt.Appendf(nil, "output %d", i%4))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	head, err := ReadHead(f.Path)
	if err != nil || head.Entries != 5 || head != f.head {
		t.Fatalf("%+v %+v: %v", head, f.head, err)
	}
	return f.Path, head, refs
}

func TestChainHolds(t *testing.T) {
	t.Parallel()
	dir, head, refs := kept(t)
	if missing, err := Verify(dir, head, refs); err != nil || missing != 0 {
		t.Errorf("%d missing: %v", missing, err)
	}
	for _, path := range []string{logName, filepath.Join(refs[0][7:9], refs[0][7:71])} {
		if st, err := os.Stat(filepath.Join(dir, path)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, st, err)
		}
	}
	// What comes later is no matter of the report.
	if _, err := (&Folder{Path: dir}).Add(Entry{At: at, Run: "r2"}, "x", []byte("more")); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir, head, refs); err != nil {
		t.Error(err)
	}
	// Of those that a report does not name some may be missing; of those that it names none.
	path, _ := Path(dir, refs[2])
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if missing, err := Verify(dir, head, refs[:2]); err != nil || missing != 1 {
		t.Errorf("%d missing: %v", missing, err)
	}
	if _, err := Verify(dir, head, refs); err == nil || !strings.Contains(err.Error(), "breaks at line 3: entry 3 (") {
		t.Error(err)
	}
	if _, err := Verify(dir, head, []string{refOf(strings.Repeat("ab", 32), "x")}); err == nil || !strings.Contains(err.Error(), "not in the first 5 entries") {
		t.Error(err)
	}
}

// TestChainBreaks: each way to change what was kept is found, with the first line at which
// it shows.
func TestChainBreaks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(lines [][]byte) [][]byte
		want   string
	}{
		"changed":   {func(l [][]byte) [][]byte { l[1] = bytes.Replace(l[1], []byte("n1"), []byte("n9"), 1); return l }, "breaks at line 3: entry 3 ("},
		"taken out": {func(l [][]byte) [][]byte { return append(l[:1], l[2:]...) }, "breaks at line 2: entry 3 stands there"},
		"put in":    {func(l [][]byte) [][]byte { return append(l[:3:3], append([][]byte{l[1]}, l[3:]...)...) }, "breaks at line 4: entry 2 stands there"},
		"exchanged": {func(l [][]byte) [][]byte { l[2], l[3] = l[3], l[2]; return l }, "breaks at line 3: entry 4 stands there"},
		"cut off":   {func(l [][]byte) [][]byte { return l[:4] }, "breaks at line 5: it ends there, and had 5 lines"},
		"no entry":  {func(l [][]byte) [][]byte { l[3] = []byte("{"); return l }, "breaks at line 4: it is no entry"},
		"last":      {func(l [][]byte) [][]byte { l[4] = bytes.Replace(l[4], []byte("n4"), []byte("n9"), 1); return l }, "breaks at line 5: entry 5 ("},
	} {
		dir, head, refs := kept(t)
		log := filepath.Join(dir, logName)
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		lines := c.change(bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")))
		if err := os.WriteFile(log, append(bytes.Join(lines, []byte("\n")), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(dir, head, refs); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestContentChanged: a raw output that was changed breaks the chain where it was entered
// first.
func TestContentChanged(t *testing.T) {
	t.Parallel()
	dir, head, refs := kept(t)
	path, _ := Path(dir, refs[1])
	if err := os.WriteFile(path, []byte("better output"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir, head, refs[:1]); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "breaks at line 2: entry 2 (") || !strings.Contains(err.Error(), "was changed") {
		t.Error(err)
	}
}

// TestRewritten: who writes the whole chain anew is found by the head that was signed.
func TestRewritten(t *testing.T) {
	t.Parallel()
	dir, head, refs := kept(t)
	other, _, _ := kept(t)
	f := &Folder{Path: other}
	if err := os.Remove(filepath.Join(other, logName)); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := f.Add(Entry{At: at, Run: "r1", Step: "n1/x"}, "gates.txt", fmt.Appendf(nil, "output %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(other, logName))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, logName), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir, head, refs); errkind.Of(err) != errkind.Corrupt {
		t.Error(err)
	}
}

// TestOlderEvidence: what lay there before there was a chain is entered first.
func TestOlderEvidence(t *testing.T) {
	t.Parallel()
	dir, _, refs := kept(t)
	if err := os.Remove(filepath.Join(dir, logName)); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Folder{Path: dir}).Add(Entry{At: at, Run: "r2"}, "x", []byte("more")); err != nil {
		t.Fatal(err)
	}
	head, err := ReadHead(dir)
	if err != nil || head.Entries != 5 { // four files, and the new one
		t.Fatalf("%+v %v", head, err)
	}
	if missing, err := Verify(dir, head, refs); err != nil || missing != 0 {
		t.Errorf("%d missing: %v", missing, err)
	}
}

// TestTornLine: a line that a crash tore is cut off, and the next entry follows the last
// whole one.
func TestTornLine(t *testing.T) {
	t.Parallel()
	dir, head, refs := kept(t)
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString(`{"number":6,"at":"20`); err != nil {
		t.Fatal(err)
	}
	log.Close()
	if now, err := ReadHead(dir); err != nil || now != head {
		t.Errorf("%+v, want %+v: %v", now, head, err)
	}
	if _, err := (&Folder{Path: dir}).Add(Entry{At: at}, "x", []byte("more")); err != nil {
		t.Fatal(err)
	}
	if now, err := ReadHead(dir); err != nil || now.Entries != 6 {
		t.Errorf("%+v: %v", now, err)
	}
	if _, err := Verify(dir, head, refs); err != nil {
		t.Error(err)
	}
}

// TestAtOnce: several processes and goroutines make one chain.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "evidence")
	var wg sync.WaitGroup
	for range 3 {
		f := &Folder{Path: dir}
		for i := range 8 {
			wg.Go(func() {
				if _, err := f.Add(Entry{At: at}, "x", fmt.Append(nil, i)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	head, err := ReadHead(dir)
	if err != nil || head.Entries != 24 {
		t.Fatalf("%+v: %v", head, err)
	}
	if _, err := Verify(dir, head, nil); err != nil {
		t.Error(err)
	}
}

func TestNoChain(t *testing.T) {
	t.Parallel()
	if head, err := ReadHead(t.TempDir()); err != nil || head != (Head{}) {
		t.Errorf("%+v: %v", head, err)
	}
}
