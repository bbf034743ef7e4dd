// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStore opens a store with a key of its own.
func newStore(t *testing.T) *Store {
	t.Helper()
	dir := t.TempDir()
	key, err := Key(filepath.Join(dir, "manifest.pem"))
	must(t, err)
	s, err := Open(filepath.Join(dir, "images"), key)
	must(t, err)
	return s
}

// disk is an image with zeroes in the middle and a last chunk that is not full.
func disk(seed uint64) []byte {
	b := make([]byte, 4*manifest.ChunkSize+5000)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b[:manifest.ChunkSize])
	copy(b[manifest.ChunkSize:], bytes.Repeat([]byte("packs well "), 1000))
	b[3*manifest.ChunkSize+1] = 1 // chunk 2 is all zeroes, chunk 3 nearly
	_, _ = r.Read(b[4*manifest.ChunkSize:])
	return b
}

func recipe(text string) string { return manifest.Digest([]byte(text)) }

// source writes a disk and a kernel to files.
func source(t *testing.T, name string, content []byte) Source {
	t.Helper()
	dir := t.TempDir()
	d, k := filepath.Join(dir, "disk"), filepath.Join(dir, "k")
	must(t, os.WriteFile(d, content, 0o600))
	must(t, os.WriteFile(k, []byte("kernel of "+name), 0o600))
	return Source{Name: "image." + name, Recipe: recipe(name), Disk: d, Files: map[string]string{"kernel": k}}
}

func put(t *testing.T, s *Store, name string, content []byte) string {
	t.Helper()
	digest, err := s.Put(t.Context(), source(t, name, content), func(string) {})
	must(t, err)
	return digest
}

func TestPutKeepsEveryByte(t *testing.T) {
	t.Parallel()
	s, want := newStore(t), disk(1)
	digest := put(t, s, "os", want)
	m, err := s.Manifest(digest)
	must(t, err)
	if !m.Chunks[2].Zero() || m.Chunks[3].Zero() || len(m.Chunks) != 5 || m.Chunks[4].Plain != 5000 {
		t.Errorf("chunks %+v", m.Chunks)
	}
	if sum := sha256.Sum256(want); m.SHA256 != fmt.Sprintf("%x", sum) || m.Size != int64(len(want)) {
		t.Errorf("manifest says %d bytes, %s", m.Size, m.SHA256)
	}
	if got := unpack(t, s, digest, m); !bytes.Equal(got, want) {
		t.Error("the blob does not hold the disk")
	}
	must(t, s.Verify(t.Context(), digest))
	found, ok, err := s.Find(recipe("os"))
	if err != nil || !ok || found != digest {
		t.Errorf("Find: %q, %v, %v", found, ok, err)
	}
}

// unpack reads chunk by chunk, as an agent does.
func unpack(t *testing.T, s *Store, digest string, m manifest.Manifest) []byte {
	t.Helper()
	f, err := s.Open(digest, BlobFile)
	must(t, err)
	defer f.Close()
	dec, err := zstd.NewReader(nil)
	must(t, err)
	defer dec.Close()
	var out []byte
	for _, c := range m.Chunks {
		if c.Zero() {
			out = append(out, make([]byte, c.Plain)...)
			continue
		}
		packed := make([]byte, c.Length)
		_, err := f.ReadAt(packed, c.Offset)
		must(t, err)
		out, err = dec.DecodeAll(packed, out)
		must(t, err)
	}
	return out
}

func TestPutIsRepeatable(t *testing.T) {
	t.Parallel()
	s, again := newStore(t), newStore(t)
	again.key = s.key
	first := put(t, s, "os", disk(1))
	if got := put(t, again, "os", disk(1)); got != first {
		t.Errorf("the same disk gave %s and %s", first, got)
	}
	if got := put(t, s, "os", disk(1)); got != first { // over the one that is there
		t.Errorf("the same disk gave %s and %s", first, got)
	}
	must(t, s.Verify(t.Context(), first))
	all, err := s.List()
	if err != nil || len(all) != 1 || all[0].Err != nil {
		t.Errorf("List: %+v, %v", all, err)
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	digest := put(t, s, "os", disk(1))
	m, err := s.Manifest(digest)
	must(t, err)
	for _, c := range []struct {
		name, file string
		change     func([]byte) []byte
		want       string
	}{
		{"one bit of chunk 0", BlobFile, flip(m.Chunks[0].Length / 2), "chunk 0 "},
		{"one bit of chunk 1", BlobFile, flip(m.Chunks[1].Offset + m.Chunks[1].Length/2), "chunk 1 "},
		{"one bit of the last chunk", BlobFile, flip(m.Blob - 1), "chunk 4 "},
		{"two chunks changed places", BlobFile, swapChunks(m, 0, 4), "chunk 0 "},
		{"cut blob", BlobFile, func(b []byte) []byte { return b[:len(b)-1] }, "bytes, not"},
		{"long blob", BlobFile, func(b []byte) []byte { return append(b, 0) }, "bytes, not"},
		{"no blob", BlobFile, nil, "no such file"},
		{"kernel", "kernel", flip(3), "file kernel"},
		{"no kernel", "kernel", nil, "no such file"},
		{"manifest", ManifestFile, flip(100), "its manifest has digest"},
	} {
		path := s.file(digest, c.file)
		whole, err := os.ReadFile(path)
		must(t, err)
		if c.change == nil {
			must(t, os.Remove(path))
		} else {
			must(t, os.WriteFile(path, c.change(bytes.Clone(whole)), 0o644))
		}
		err = s.Verify(t.Context(), digest)
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
			t.Errorf("%s: got %v, want corrupt with %q and an action", c.name, err, c.want)
		}
		must(t, os.WriteFile(path, whole, 0o644))
	}
	must(t, s.Verify(t.Context(), digest))
}

func flip(at int64) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 4; return b }
}

func swapChunks(m manifest.Manifest, i, j int) func([]byte) []byte {
	cut := func(b []byte, c manifest.Chunk) []byte { return bytes.Clone(b[c.Offset : c.Offset+c.Length]) }
	return func(b []byte) []byte {
		first, second := cut(b, m.Chunks[i]), cut(b, m.Chunks[j])
		middle := b[m.Chunks[i].Length:m.Chunks[j].Offset]
		return bytes.Join([][]byte{second, bytes.Clone(middle), first}, nil)
	}
}

func TestFindTakesNoForeignOrHalfImage(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	digest := put(t, s, "os", disk(1))
	for _, c := range []struct {
		name string
		harm func() *Store
	}{
		{"another key", func() *Store {
			_, key, err := ed25519.GenerateKey(nil)
			must(t, err)
			o, err := Open(s.dir, key)
			must(t, err)
			return o
		}},
		{"a recipe that points elsewhere", func() *Store {
			must(t, os.WriteFile(s.recipe(recipe("other")), []byte(digest), 0o644))
			return s
		}},
		{"a short blob", func() *Store { must(t, os.Truncate(s.file(digest, BlobFile), 5)); return s }},
	} {
		o := c.harm()
		name := "os"
		if strings.Contains(c.name, "elsewhere") {
			name = "other"
		}
		if _, found, err := o.Find(recipe(name)); found || err != nil {
			t.Errorf("%s: found %v, %v", c.name, found, err)
		}
	}
}

func TestPutLeavesNothingWhenItFails(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	ok := source(t, "os", disk(1))
	noFile, badName, noDisk := ok, ok, ok
	noFile.Files = map[string]string{"kernel": "/not/there"}
	badName.Files = map[string]string{"../kernel": ok.Disk}
	noDisk.Disk = "/not/there"
	for name, c := range map[string]struct {
		ctx context.Context
		src Source
	}{"cancelled": {cancelled, ok}, "no file": {t.Context(), noFile}, "bad name": {t.Context(), badName}, "no disk": {t.Context(), noDisk}} {
		if _, err := s.Put(c.ctx, c.src, func(string) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "work"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in work: %v, %v", left, err)
	}
	if all, err := s.List(); err != nil || len(all) > 0 {
		t.Errorf("images: %v, %v", all, err)
	}
}

func TestSweepRemovesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	digest := put(t, s, "os", disk(1))
	dir, _, err := s.Scratch()
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "root/etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "root/etc/x"), nil, 0o400))
	must(t, s.Sweep())
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	must(t, s.Verify(t.Context(), digest))
}

func TestRemove(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a, b := put(t, s, "a", disk(1)), put(t, s, "b", disk(2))
	must(t, s.Remove(a))
	must(t, s.Remove(a))
	if _, found, _ := s.Find(recipe("a")); found {
		t.Error("a is still found")
	}
	if _, err := s.Manifest(a); errkind.Of(err) != errkind.NotFound {
		t.Errorf("manifest of a removed image: %v", err)
	}
	must(t, s.Verify(t.Context(), b))
	if err := s.Remove("sha256:../.."); err == nil {
		t.Error("a path was taken for a digest")
	}
}

func TestLockKeepsASecondBuilderOut(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	unlock, err := s.Lock(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx); errkind.Of(err) != errkind.Timeout {
		t.Errorf("second lock: %v, want a timeout", err)
	}
	unlock()
	unlock, err = s.Lock(t.Context())
	must(t, err)
	unlock()
}

func TestHandlerServesRanges(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	digest := put(t, s, "os", disk(1))
	blob, err := os.ReadFile(s.file(digest, BlobFile))
	must(t, err)
	server := httptest.NewServer(s.Handler("/images/"))
	defer server.Close()
	for _, c := range []struct {
		path, span string
		status     int
		want       []byte
	}{
		{Path(digest, BlobFile), "", 200, blob},
		{Path(digest, BlobFile), "bytes=1000-1999", 206, blob[1000:2000]},
		{Path(digest, BlobFile), fmt.Sprintf("bytes=%d-", len(blob)-7), 206, blob[len(blob)-7:]},
		{Path(digest, "kernel"), "", 200, []byte("kernel of os")},
		{Path(digest, "nothing"), "", 404, nil},
		{Path(digest, "../lock"), "", 404, nil},
		{Path(recipe("none"), BlobFile), "", 404, nil},
		{"lock", "", 404, nil},
		{"", "", 404, nil},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/images/"+c.path, nil)
		must(t, err)
		if c.span != "" {
			req.Header.Set("Range", c.span)
		}
		resp, err := server.Client().Do(req)
		must(t, err)
		got, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		if resp.StatusCode != c.status || c.want != nil && !bytes.Equal(got, c.want) {
			t.Errorf("%s %s: %d with %d bytes, want %d with %d", c.path, c.span, resp.StatusCode, len(got), c.status, len(c.want))
		}
	}
}

func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "k.pem")
	a, err := Key(path)
	must(t, err)
	b, err := Key(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if !a.Equal(b) || info.Mode().Perm() != 0o600 {
		t.Errorf("the same %v, mode %v", a.Equal(b), info.Mode())
	}
	must(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	if _, err := Key(path); errkind.Of(err) != errkind.Invalid {
		t.Errorf("got %v, want invalid", err)
	}
}

// Tools run in folders of their own: a store that is opened by a relative path
// gives them paths that hold anywhere.
func TestScratchIsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	key, err := Key("key.pem")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open("images", key)
	if err != nil {
		t.Fatal(err)
	}
	dir, discard, err := s.Scratch()
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("scratch %q, %v", dir, err)
	}
	if err := discard(); err != nil {
		t.Error(err)
	}
}
