// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// skipPassed skips a test that has passed before with the same programs, when
// LAB_RESUME=1 is in the environment; else it notes when the test has passed.
func (l *Lab) skipPassed(t *testing.T) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, p := range []string{own, filepath.Join(l.bin, "ironrail"), filepath.Join(l.bin, "ironrail-agent"), filepath.Join(l.bin, "ironrail-lab")} {
		if err := hashInto(sum, p); err != nil {
			t.Fatal(err)
		}
	}
	programs := hex.EncodeToString(sum.Sum(nil))
	note := filepath.Join(l.source(), ".lab", "passed", strings.ReplaceAll(t.Name(), "/", "-"))
	if b, err := os.ReadFile(note); err == nil && os.Getenv("LAB_RESUME") == "1" {
		if of, when, _ := strings.Cut(strings.TrimSpace(string(b)), " "); of == programs {
			t.Skipf("passed %s with these programs", when)
		}
	}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			_ = os.Remove(note)
			return
		}
		if err := os.MkdirAll(filepath.Dir(note), 0o755); err != nil { //nolint:gosec // it holds no secret
			t.Error(err)
		}
		if err := os.WriteFile(note, []byte(programs+" "+time.Now().UTC().Format(time.RFC3339)+"\n"), 0o644); err != nil { //nolint:gosec // as above
			t.Error(err)
		}
	})
}

func hashInto(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
