// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// server serves text as /file; its first breaks transfers break off in the middle. It counts
// what it is asked.
func server(t *testing.T, text []byte, breaks int64, asked *atomic.Int64) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		switch {
		case r.URL.Path == "/busy":
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case r.URL.Path == "/forbidden":
			http.Error(w, "no", http.StatusForbidden)
		case r.URL.Path != "/file":
			http.NotFound(w, r)
		case n <= breaks:
			w = &breaking{w, len(text) / 3}
			fallthrough
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// breaking is an answer that breaks off when no bytes are left.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		_, _ = b.ResponseWriter.Write(p[:len(p)+b.left])
		panic(http.ErrAbortHandler)
	}
	return b.ResponseWriter.Write(p)
}

// TestFetch: a file comes whole however often the transfer breaks off, and what cannot be
// fetched is said with its kind.
func TestFetch(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("ironrail"), 40<<10)
	for name, c := range map[string]struct {
		path         string
		left         []byte // of an earlier transfer
		most         int64
		breaks, asks int64
		kind         errkind.Kind
		says         string
	}{
		"at once":          {"/file", nil, 0, 0, 1, 0, ""},
		"breaks off":       {"/file", nil, 0, 2, 3, 0, ""},
		"continued":        {"/file", text[:1000], 0, 0, 1, 0, ""},
		"whole":            {"/file", text, 0, 0, 0, 0, ""},
		"longer than it":   {"/file", append(bytes.Clone(text), "more"...), 0, 0, 2, 0, ""},
		"as large":         {"/file", nil, int64(len(text)), 0, 1, 0, ""},
		"too large":        {"/file", nil, int64(len(text)) - 1, 0, 1, errkind.Refused, "it is larger than"},
		"too large, later": {"/file", text[:1000], 5000, 0, 1, errkind.Refused, "it is larger than"},
		"not there":        {"/other", nil, 0, 0, 1, errkind.NotFound, "404"},
		"not allowed":      {"/forbidden", nil, 0, 0, 1, errkind.Refused, "403 Forbidden"},
		"busy":             {"/busy", nil, 0, 0, 1, errkind.Unreachable, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			sum, to := sha256.New(), filepath.Join(t.TempDir(), "f")
			url := server(t, text, c.breaks, &asked)
			if c.left != nil {
				if err := os.WriteFile(to, c.left, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := File{URL: url + c.path, To: to, Sum: sum, Most: c.most, Say: func(string) {},
				Whole: func() bool { return bytes.Equal(sum.Sum(nil), digest(text)) }}.Fetch(t.Context())
			if asked.Load() != c.asks || errkind.Of(err) != c.kind || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), url)) {
				t.Errorf("asked %d times, kind %v: %v", asked.Load(), errkind.Of(err), err)
			}
			if got, _ := os.ReadFile(to); c.kind == 0 && (!bytes.Equal(got, text) || !bytes.Equal(sum.Sum(nil), digest(text))) {
				t.Errorf("%d bytes came with SHA-256 %s", len(got), hex.EncodeToString(sum.Sum(nil)))
			}
		})
	}
}

func digest(text []byte) []byte { d := sha256.Sum256(text); return d[:] }

func TestSmall(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x", 5000))
	for name, c := range map[string]struct {
		path   string
		most   int64
		breaks int64
		asks   int64
		kind   errkind.Kind
	}{
		"whole":       {"/file", 5000, 0, 1, 0},
		"breaks off":  {"/file", 5000, 1, 2, 0},
		"and again":   {"/file", 5000, 2, 2, errkind.Unreachable},
		"too large":   {"/file", 4999, 0, 1, errkind.Refused},
		"not there":   {"/other", 5000, 0, 1, errkind.NotFound},
		"busy":        {"/busy", 5000, 0, 2, errkind.Unreachable},
		"not allowed": {"/forbidden", 5000, 0, 1, errkind.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			url := server(t, text, c.breaks, &asked)
			got, err := Small(t.Context(), url+c.path, c.most)
			if asked.Load() != c.asks || errkind.Of(err) != c.kind || err == nil && !bytes.Equal(got, text) || err != nil && !strings.Contains(err.Error(), url) {
				t.Errorf("asked %d times, %d bytes, kind %v: %v", asked.Load(), len(got), errkind.Of(err), err)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var asked atomic.Int64
	if _, err := Small(ended, server(t, text, 0, &asked)+"/file", 5000); err == nil || asked.Load() > 0 {
		t.Errorf("an ended context fetches: asked %d times, %v", asked.Load(), err)
	}
	if _, err := Small(t.Context(), "http://127.0.0.1:1/", 5000); errkind.Of(err) != errkind.Unreachable || errkind.Action(err) == "" {
		t.Errorf("nobody answers: %v", err)
	}
}
