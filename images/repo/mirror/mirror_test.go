// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/ironrail/ironrail/images/internal/dnf"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// vendor is a repository on a web server.
type vendor struct {
	dir, url string
	key      *repo.Key
	asked    atomic.Int64 // requests
}

// newVendor makes a signed repository with packages that hold nothing.
func newVendor(t *testing.T, dnf bool, known []repo.Known) *vendor {
	t.Helper()
	dir := t.TempDir()
	key, err := repo.LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	none, sources := filepath.Join(dir, "none"), filepath.Join(dir, "sources")
	b, err := json.Marshal(repo.DnfSources{Release: "9"})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{none: nil, sources: b} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := repo.Image{Digest: "sha256:" + strings.Repeat("0", 64), Status: none, Sources: none, Keyring: none}
	if dnf {
		image = repo.Image{Digest: image.Digest, Database: none, Repositories: sources}
	}
	r, err := repo.SimulateKnown(t.Context(), repo.Options{Dir: filepath.Join(dir, "repo"), Name: "vendor", Packages: []string{known[0].Name}, Image: image, Key: key}, known)
	if err != nil {
		t.Fatal(err)
	}
	v := &vendor{dir: r.Dir, key: key}
	files := http.FileServer(http.Dir(r.Dir))
	s := httptest.NewServer(http.StripPrefix("/cuda/x86_64", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.asked.Add(1)
		files.ServeHTTP(w, r)
	})))
	t.Cleanup(s.Close)
	v.url = s.URL + "/cuda/x86_64/"
	return v
}

// cuda is what such a vendor has.
var cuda = []repo.Known{
	{Name: "nvidia-driver-cuda", Version: "3:580.126.16-1", Needs: []string{"nvidia-persistenced", "gcc"}}, {Name: "nvidia-persistenced", Version: "3:580.126.16-1"}, {Name: "unrelated", Version: "1-1"},
}

// TestMake: a copy has the signed index and what is needed, is itself a repository that can be copied
// and probed, and is not fetched twice.
func TestMake(t *testing.T) {
	t.Parallel()
	for what, dnf := range map[string]bool{"apt": false, "dnf": true} {
		v, to := newVendor(t, dnf, cuda), t.TempDir()
		w := Want{Source: repo.Source{URL: "http://mirror.example/nvidia/cuda/", Suite: "./", Key: v.key.Public()}, From: v.url, Dnf: dnf, Release: "9", Arch: "amd64", Packages: []string{"nvidia-driver-cuda", "kernel-devel"}}
		c, err := Make(t.Context(), w, to, func(string) {})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if c.Packages != 2 || c.Fetched != 2 || c.Bytes == 0 || c.Unsigned || c.Folder != filepath.Join(to, "mirror.example/nvidia/cuda") || !slices.Equal(c.Absent, []string{"kernel-devel"}) {
			t.Errorf("%s: %+v", what, c)
		}
		pool, err := filepath.Glob(filepath.Join(c.Folder, "pool/*"))
		if err != nil || len(pool) != 2 || strings.Contains(strings.Join(pool, " "), "unrelated") {
			t.Errorf("%s: %q, %v", what, pool, err)
		}
		copied := repo.Source{URL: "file:" + c.Folder, Suite: "./", Key: v.key.Public()}
		if dnf {
			err = copied.ProbeDnf(t.Context(), "9")
		} else {
			err = copied.Probe(t.Context(), "")
		}
		if err != nil {
			t.Errorf("%s: the copy: %v", what, err)
		}
		before := v.asked.Load()
		if c, err = Make(t.Context(), w, to, func(string) {}); err != nil || c.Packages != 2 || c.Fetched != 0 || v.asked.Load()-before > 2 {
			t.Errorf("%s: again: %+v after %d requests, %v", what, c, v.asked.Load()-before, err)
		}
		if err := os.WriteFile(pool[0], []byte("another file"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err = Make(t.Context(), w, to, func(string) {}); err != nil || c.Fetched != 1 {
			t.Errorf("%s: a file that was changed: %+v, %v", what, c, err)
		}
	}
}

// TestRefused: what is not the vendor's is not taken, and leaves no index that says it is.
func TestRefused(t *testing.T) {
	t.Parallel()
	other, err := repo.LoadKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	for what, dnf := range map[string]bool{"apt": false, "dnf": true} {
		for name, c := range map[string]struct {
			spoil func(v *vendor, w *Want)
			kind  errkind.Kind
			says  string
		}{
			"another key":    {func(_ *vendor, w *Want) { w.Source.Key = other.Public() }, errkind.Corrupt, "did not sign"},
			"no key":         {func(_ *vendor, w *Want) { w.Source.Key = nil }, errkind.Refused, "its key"},
			"no web server":  {func(_ *vendor, w *Want) { w.Source.URL = "file:/srv/cuda" }, errkind.Refused, "no URL of a web server"},
			"a password":     {func(_ *vendor, w *Want) { w.Source.URL = "http://a:b@mirror.example/" }, errkind.Refused, "no URL of a web server"},
			"no such folder": {func(_ *vendor, w *Want) { w.From += "x/" }, errkind.NotFound, "404"},
			"nothing of it":  {func(_ *vendor, w *Want) { w.Packages = []string{"rocm"} }, errkind.NotFound, "has none of the packages"},
			"another version": {func(_ *vendor, w *Want) {
				w.Pins = []repo.Pin{{Packages: []string{"*nvidia*"}, Version: "*590.44.01-*"}}
			}, errkind.NotFound, "no nvidia-driver-cuda of version *590.44.01-*; it has"},
			"a changed package": {func(v *vendor, _ *Want) {
				pool, _ := filepath.Glob(filepath.Join(v.dir, "pool/nvidia-p*"))
				if err := os.WriteFile(pool[0], []byte("simulated nvidia-PERSISTENCED\n"), 0o600); err != nil {
					t.Error(err)
				}
			}, errkind.Mismatch, "is not the file that the index describes"},
		} {
			v, to := newVendor(t, dnf, cuda), t.TempDir()
			w := Want{Source: repo.Source{URL: "http://mirror.example/cuda/", Suite: "./", Key: v.key.Public()}, From: v.url, Dnf: dnf, Release: "9", Arch: "amd64", Packages: []string{"nvidia-driver-cuda"}}
			c.spoil(v, &w)
			_, err := Make(t.Context(), w, to, func(string) {})
			if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v of kind %v", what, name, err, errkind.Of(err))
			}
			for _, index := range []string{"InRelease", "repodata/repomd.xml"} {
				if _, err := os.Stat(filepath.Join(to, "mirror.example/cuda", index)); err == nil {
					t.Errorf("%s, %s: there is an %s", what, name, index)
				}
			}
		}
	}
}

// TestChoose: of a package the version of its pin is taken, else the newest; what is provided by
// another name comes from a package that was chosen, else from one that a pin takes.
func TestChoose(t *testing.T) {
	t.Parallel()
	all := offers{
		{name: "driver", version: "580.1-1", needs: []string{"kmod", "libs", "libc6", "firmware | firmware-old"}}, {name: "driver", version: "590.1-1", needs: []string{"new"}},
		{name: "kmod-open", version: "580.1-1", provides: []string{"kmod"}, needs: []string{"dkms | builder"}}, {name: "kmod-closed", version: "580.1-1", provides: []string{"kmod"}}, {name: "kmod-aaa", version: "1", provides: []string{"kmod"}},
		{name: "libs", version: "580.1-1"}, {name: "libs", version: "590.1-1"}, {name: "builder", version: "1"}, {name: "builder", version: "1.10"}, {name: "builder", version: "1.9"}, {name: "firmware-old", version: "2"}, {name: "new", version: "1"},
	}
	pins := []repo.Pin{{Packages: []string{"driver", "libs", "kmod-*d"}, Version: "580.*"}}
	for name, c := range map[string]struct {
		packages []string
		want     string
	}{
		"named":         {[]string{"driver", "kmod-open", "absent"}, "builder 1.10 driver 580.1-1 firmware-old 2 kmod-open 580.1-1 libs 580.1-1"},
		"by what it is": {[]string{"driver"}, "driver 580.1-1 firmware-old 2 kmod-closed 580.1-1 libs 580.1-1"},
	} {
		list, absent, err := all.choose(Want{Packages: c.packages, Pins: pins})
		got := ""
		for _, o := range list {
			got += " " + o.name + " " + o.version
		}
		if err != nil || got[1:] != c.want || (len(absent) == 1) != (name == "named") {
			t.Errorf("%s: %q, absent %q, %v", name, got, absent, err)
		}
	}
}

// TestRelations: names of both formats, without versions and conditions.
func TestRelations(t *testing.T) {
	t.Parallel()
	o, arch, err := parseOffer("Package: a\nVersion: 1:2-3\nArchitecture: amd64\nPre-Depends: dpkg (>= 1.17)\nDepends: b:any (= 1:2-3), c | d (<< 5) , e[amd64]\n continued\nProvides: x (= 1), y\nFilename: ./a.deb\nSize: 5\nSHA256: " + strings.Repeat("0A", 32) + "\n")
	if err != nil || arch != "amd64" || o.version != "1:2-3" || o.file != "a.deb" || o.sum != strings.Repeat("0a", 32) || !slices.Equal(o.provides, []string{"x", "y"}) || !slices.Contains(o.needs, "c | d") || !slices.Contains(o.needs, "b") || !slices.Contains(o.needs, "dpkg") {
		t.Errorf("%+v, %s, %v", o, arch, err)
	}
	if _, _, err := parseOffer("Package: a\nVersion: 1\n"); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a package without a file: %v", err)
	}
	if got := needsOf([]string{"bash", "(a if (b and c))", "libcuda.so.1()(64bit)"}); !slices.Equal(got, []string{"bash", "a", "b", "c", "libcuda.so.1()(64bit)"}) {
		t.Errorf("%q", got)
	}
	files, byHash, err := parseRelease([]byte("Origin: x\nAcquire-By-Hash: yes\nMD5Sum:\n 00 5 Packages\nSHA256:\n " + strings.Repeat("0a", 32) + " 7 main/binary-amd64/Packages.gz\nDate: x\n"))
	if err != nil || !byHash || len(files) != 1 || files["main/binary-amd64/Packages.gz"].size != 7 {
		t.Errorf("%v, %v, %v", files, byHash, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("Package: a\nVersion: 1\nFilename: a\nSize: 1\nSHA256: 00\nDepends: a | b (>= 1)\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _ = parseRelease([]byte(text))
		if o, _, err := parseOffer(text); err == nil && (o.name == "" || slices.Contains(o.needs, "")) {
			t.Errorf("%+v", o)
		}
		for _, n := range needsOf([]string{text}) {
			if n == "" && text != "" {
				t.Error("an empty name")
			}
		}
	})
}

// TestPeerCopy: real apt and real dnf read a copy in a folder, and look at its signature.
func TestPeerCopy(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "apt-get", "dnf")
	for what, rpm := range map[string]bool{"apt": false, "dnf": true} {
		v, to := newVendor(t, rpm, cuda), t.TempDir()
		c, err := Make(t.Context(), Want{Source: repo.Source{URL: "http://mirror.example/cuda/", Suite: "./", Key: v.key.Public()}, From: v.url, Dnf: rpm, Release: "9", Arch: "amd64", Packages: []string{"nvidia-driver-cuda"}}, to, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if !rpm {
			block, err := armor.Decode(bytes.NewReader(v.key.Public()))
			if err != nil {
				t.Fatal(err)
			}
			key, err := io.ReadAll(block.Body)
			keyring := filepath.Join(to, "keyring")
			if err := errors.Join(err, os.WriteFile(keyring, key, 0o600)); err != nil {
				t.Fatal(err)
			}
			debs, err := repo.Download(t.Context(), filepath.Join(to, "work"), "amd64", keyring, []repo.Source{{URL: "file:" + c.Folder, Suite: "./"}}, "nvidia-driver-cuda", "nvidia-persistenced")
			if err != nil || len(debs) != 2 {
				t.Errorf("%s: %q, %v", what, debs, err)
			}
			continue
		}
		w := dnf.Work{Dir: filepath.Join(to, "work"), Release: "9", Cache: filepath.Join(to, "cache")}
		if err := w.Configure([]dnf.Repository{{ID: "copy", URL: "file://" + c.Folder, Key: string(v.key.Public()), SignedIndex: true}}, nil); err != nil {
			t.Fatal(err)
		}
		out, err := w.Output(t.Context(), w.Command(filepath.Join(to, "root"), "--quiet", "repoquery", "--queryformat", "%{name}-%{evr}", "--location")...)
		if err != nil || !strings.Contains(string(out), "/mirror.example/cuda/pool/nvidia-driver-cuda-580.126.16-1.x86_64.rpm") {
			t.Errorf("%s: %s, %v", what, out, err)
		}
	}
}
