// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// entries is an archive of tar headers with their content.
type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}, content}
}

func pack(t *testing.T, list ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range list {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("no archive")
	}
	return b.Bytes()
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestRead(t *testing.T) {
	t.Parallel()
	content := pack(t, file("p-1.2/Makefile", "all:\n"))
	site := t.TempDir()
	if err := os.WriteFile(filepath.Join(site, "p-1.2.tar.gz"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	var broke atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken/v1.2.tar.gz" {
			if !broke.Swap(true) {
				w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				_, _ = w.Write(content[:20])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
			return
		}
		if r.URL.Path != "/v1.2.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	other := "sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		source Source
		kind   errkind.Kind
		says   string
	}{
		"file":           {Source{"p-1.2.tar.gz", digest(content), nil}, 0, ""},
		"absolute":       {Source{filepath.Join(site, "p-1.2.tar.gz"), "", nil}, 0, ""},
		"url":            {Source{server.URL + "/v1.2.tar.gz", digest(content), nil}, 0, ""},
		"breaks off":     {Source{server.URL + "/broken/v1.2.tar.gz", digest(content), nil}, 0, ""},
		"another digest": {Source{"p-1.2.tar.gz", other, nil}, errkind.Corrupt, digest(content)},
		"other url":      {Source{server.URL + "/v1.2.tar.gz", other, nil}, errkind.Corrupt, other},
		"not there":      {Source{"q.tar.gz", other, nil}, errkind.NotFound, "q.tar.gz"},
		"no such url":    {Source{server.URL + "/v1.3.tar.gz", other, nil}, errkind.NotFound, "404"},
		"nobody answers": {Source{"http://127.0.0.1:1/v1.tar.gz", other, nil}, errkind.Unreachable, "127.0.0.1:1"},
		"a folder":       {Source{".", other, nil}, errkind.Refused, "is no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := c.source.read(t.Context(), site, filepath.Join(t.TempDir(), "archive"), func(string) {})
			if c.says == "" {
				if err != nil || a.digest != digest(content) || a.version() != "1.2+"+digest(content)[7:23] {
					t.Errorf("%+v, version %s: %v", a, a.version(), err)
				}
				return
			}
			if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || errkind.Action(err) == "" {
				t.Errorf("kind %v: %v", errkind.Of(err), err)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"v2.17.6.tar.gz": "2.17.6", "nccl-tests-2.17.6.tgz": "2.17.6", "rccl-tests-ae3e635.tar.gz": "0", "stream.tar.gz": "0", "v2.tar.gz": "2"} {
		a := archive{name: name, digest: "sha256:" + strings.Repeat("ab", 32)}
		if got := a.version(); got != want+"+abababababababab" {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	link := func(name, to string) entry {
		return entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
	}
	program := file("p/configure", "#!/bin/sh\n")
	program.Mode = 0o755
	for name, c := range map[string]struct {
		list []entry
		says string
	}{
		"sources": {[]entry{{tar.Header{Name: "p/", Typeflag: tar.TypeDir, Mode: 0o700}, ""}, file("p/src/a/b.c", "int b;\n"), program, link("p/latest", "src/a")}, ""},
		"a device is left out": {[]entry{file("p/src/a/b.c", "int b;\n"), program, link("p/latest", "src/a"),
			{tar.Header{Name: "p/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""}}, ""},
		"up":               {[]entry{file("p/../../up", "x")}, "outside"},
		"through a link":   {[]entry{link("p/out", "/etc"), file("p/out/x", "x")}, "p/out/x"},
		"beside a link up": {[]entry{link("p/out", "../.."), file("p/out/x", "x")}, "p/out/x"},
		"twice":            {[]entry{file("p/a", "x"), file("p/a", "y")}, "exists"},
		"nothing":          {[]entry{file("README", "x")}, "no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := archive{path: filepath.Join(dir, "a.tar.gz"), name: "a.tar.gz"}
			if err := os.WriteFile(a.path, pack(t, c.list...), 0o644); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, "to")
			err := a.unpack(t.Context(), to, os.Getuid())
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(to, "latest/b.c"))
			info, serr := os.Stat(filepath.Join(to, "configure"))
			if err != nil || serr != nil || string(b) != "int b;\n" || info.Mode().Perm() != 0o755 || !info.ModTime().Equal(epoch) {
				t.Errorf("%q %v: %v, %v", b, info, err, serr)
			}
			if _, err := os.Lstat(filepath.Join(to, "null")); err == nil {
				t.Error("a device was made")
			}
		})
	}
	a := archive{path: filepath.Join(t.TempDir(), "a"), name: "a"}
	if err := os.WriteFile(a.path, []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := a.unpack(t.Context(), a.path+".d", os.Getuid()); errkind.Of(err) != errkind.Invalid {
		t.Errorf("%v", err)
	}
}

// TestCollect: only programs are packed, whatever the build has left there.
func TestCollect(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	write := func(name string, mode fs.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("all_reduce_perf", 0o755)
	write("all_gather_perf_mpi", 0o700)
	write("notes_txt", 0o644)
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "sh_link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	if err := (Files{Glob: "*_perf*", Trim: "_mpi", Suffix: "_mpi"}).collect(root, bin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"all_reduce_perf_mpi", "all_gather_perf_mpi"} {
		if info, err := os.Stat(filepath.Join(bin, name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, glob := range []string{"*_txt", "*_link", "nothing"} {
		if err := (Files{Glob: glob}).collect(root, bin); err == nil {
			t.Errorf("%s was packed", glob)
		}
	}
}

// TestOwnSource: the text of a program of ironrail's own is unpacked as it is, and determines
// the package's version and the inputs.
func TestOwnSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := Source{At: "p.cu", Own: []byte("int main() {}\n")}
	a, err := s.read(t.Context(), "/nowhere", filepath.Join(dir, "archive"), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.unpack(t.Context(), filepath.Join(dir, "to"), os.Getuid()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "to", "p.cu")); err != nil || string(b) != string(s.Own) {
		t.Errorf("%q, %v", b, err)
	}
	other := Source{At: "p.cu", Own: []byte("int main() { return 1; }\n")}
	b, err := other.read(t.Context(), "/nowhere", filepath.Join(dir, "other"), func(string) {})
	if err != nil || a.version() == b.version() || s.Identity() == other.Identity() || s.Identity() == (Source{At: "p.cu"}).Identity() {
		t.Errorf("%s and %s: %v", a.version(), b.version(), err)
	}
}
