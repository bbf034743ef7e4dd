// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Recipe{Block: "os", Source: "https://images.example/a.qcow2", Checksum: "sha256:" + strings.Repeat("a", 64), OS: "ubuntu", Release: "noble"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*Recipe){
		"is no URL of http or https":  func(r *Recipe) { r.Source = "ftp://images.example/a" },
		"has a password in it":        func(r *Recipe) { r.Source = "https://u:p@images.example/a" },
		"is not sha256: and 64 hex":   func(r *Recipe) { r.Checksum = "sha256:abc" },
		`checksum "sha256:zz`:         func(r *Recipe) { r.Checksum = "sha256:" + strings.Repeat("z", 64) },
		"says nothing without os":     func(r *Recipe) { r.OS = "" },
		`"nonsense" is no release of`: func(r *Recipe) { r.Release = "nonsense" },
	} {
		r := good
		spoil(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "image os") {
			t.Errorf("got %v, want one that says %q", err, want)
		}
	}
	other := good
	other.Source, other.Site = "a.qcow2", "/srv"
	if other.Digest() != good.Digest() || other.Inputs() != good.Inputs() {
		t.Error("where the file comes from changes the digest")
	}
	other.Checksum = "sha256:" + strings.Repeat("b", 64)
	if other.Digest() == good.Digest() || other.Inputs() == good.Inputs() {
		t.Error("another file has the same digest")
	}
	// As lock files have it, of before signatures were verified.
	if got, want := good.Inputs(), manifest.Digest([]byte(`{"Kind":"raw","Checksum":"`+good.Checksum+`","OS":"ubuntu","Release":"noble"}`)); got != want {
		t.Errorf("inputs are %s, want %s", got, want)
	}
}

// TestDownload: a source that breaks off is fetched on from where it was, and is whole.
func TestDownload(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("ironrail"), 100_000)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", "800000")
			_, _ = w.Write(text[:300_000])
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}))
	defer server.Close()
	dir := t.TempDir()
	plain := filepath.Join(dir, "f")
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := recipe(t, plain)
	r.Source = server.URL + "/image"
	b := builder{recipe: r, dir: dir, say: func(string) {}}
	if err := b.fetch(t.Context()); err != nil || asked.Load() != 2 {
		t.Fatalf("asked %d times: %v", asked.Load(), err)
	}
	if got, err := os.ReadFile(b.source); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	b.recipe.Source = server.URL + "/image"
	b.recipe.Checksum = "sha256:" + strings.Repeat("0", 64)
	if err := b.fetch(t.Context()); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("another checksum: %v", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	if err := b.fetch(ended); err == nil {
		t.Error("an ended context fetches")
	}
}

// A fetch continues what an earlier one left, begins again where the server gives the file
// only from its start, and asks for nothing once it is whole.
func TestFetchAhead(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("ironrail"), 100_000)
	for name, resumes := range map[string]bool{"with ranges": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !resumes {
					r.Header.Del("Range")
				}
				http.ServeContent(countingWriter{w, &sent}, r, "", time.Time{}, bytes.NewReader(text))
			}))
			defer server.Close()
			plain, dir := filepath.Join(t.TempDir(), "f"), t.TempDir()
			if err := os.WriteFile(plain, text, 0o600); err != nil {
				t.Fatal(err)
			}
			r := recipe(t, plain)
			r.Source = server.URL + "/image"
			left := filepath.Join(dir, "source")
			if err := os.WriteFile(left, text[:500_000], 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second asks for nothing
				if err := r.Fetch(t.Context(), dir, func(string) {}); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(left); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes came, %v", len(got), err)
			}
			if resumes && sent.Load() != 300_000 || !resumes && sent.Load() < 800_000 {
				t.Errorf("%d bytes were sent", sent.Load())
			}
			r.Checksum = "sha256:" + strings.Repeat("0", 64)
			if err := r.Fetch(t.Context(), dir, func(string) {}); errkind.Of(err) != errkind.Mismatch {
				t.Errorf("another checksum: %v", err)
			}
			if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file that is not wanted is left: %v", err)
			}
		})
	}
}

// countingWriter counts the bytes of answers.
type countingWriter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (w countingWriter) Write(p []byte) (int, error) {
	w.sent.Add(int64(len(p))) // before it may have come
	return w.ResponseWriter.Write(p)
}

// FuzzQcow2: no image makes the reader fail in another way than by an error.
func FuzzQcow2(f *testing.F) {
	head := make([]byte, 4<<10)
	copy(head, magicQcow2)
	head[7], head[23], head[30], head[39], head[46] = 3, 9, 1, 8, 2 // version, clusters of 512 bytes, a disk of 64 KiB, first table at 512
	head[519+0] = 0
	head[518] = 4 // second table at 1024
	head[1030] = 8
	f.Add(head)
	f.Add(head[:600])
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := openQcow2(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for off := int64(0); off < min(q.size, 1<<24); off += 1 << q.bits {
			p, err := q.cluster(off)
			if err != nil {
				return
			}
			if p != nil && int64(len(p)) < q.length(off) {
				t.Fatalf("%d bytes of a cluster of %d", len(p), q.length(off))
			}
		}
	})
}
