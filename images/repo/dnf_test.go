// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/errkind"
)

// dnfOptions are those of a repository for an image of RPM packages.
func dnfOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	database, sources := filepath.Join(dir, "rpmdb.sqlite"), filepath.Join(dir, "repositories.json")
	b, err := json.Marshal(DnfSources{Release: "9.6", Kernel: "5.14.0-570.12.1.el9_6.x86_64"})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{database: nil, sources: b} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Options{Dir: filepath.Join(dir, "repo"), Name: "gpu-hpc", Key: newSigner(t, "own"), Packages: []string{"nvidia-driver-cuda", "mlnx-ofa_kernel-dkms", "libnccl", "kernel-devel"},
		Image: Image{Digest: "sha256:" + strings.Repeat("0", 64), Database: database, Repositories: sources},
		Pins:  []Pin{{[]string{"kernel-devel"}, "5.14.0-570.12.1.el9_6"}, {[]string{"*nvidia*"}, "580.126.16-*"}, {[]string{"libnccl"}, "*+cuda13.0"}}}
}

// TestSimulatedDnf: a simulated repository is signed, verified, read and served as one that was
// built; what is damaged is found.
func TestSimulatedDnf(t *testing.T) {
	t.Parallel()
	o := dnfOptions(t)
	r, err := SimulateKnown(t.Context(), o, []Known{{Name: "dkms", Version: "3:3.1.8-1.el9", Arch: "noarch"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"dkms": "3:3.1.8-1.el9", "nvidia-driver-cuda": "580.126.16-1", "libnccl": "1-1+cuda13.0", "kernel-devel": "5.14.0-570.12.1.el9_6", "mlnx-ofa_kernel-dkms": simulatedVersion + "-1"}
	for name, version := range want {
		if r.Packages[name] != version || !o.Takes(name, version) {
			t.Errorf("%s is %q, want %q", name, r.Packages[name], version)
		}
	}
	if o.Takes("nvidia-driver-cuda", "3:590.44.01-1.el9") || !o.Takes("nvidia-driver-cuda", "3:580.126.16-1.el9") {
		t.Error("pins are not compared without the epoch")
	}
	if err := r.Verify(t.Context(), o.Key); err != nil {
		t.Fatal(err)
	}
	content, err := r.Content()
	if err != nil || len(content) != len(want) || !slices.ContainsFunc(content, func(c Content) bool { return c.Name == "dkms" && c.Version == "3:3.1.8-1.el9" && c.Arch == "noarch" }) {
		t.Errorf("content: %+v, %v", content, err)
	}
	if kernel, err := o.Image.Kernel(); err != nil || kernel != "5.14.0-570.12.1.el9_6.x86_64" {
		t.Errorf("kernel %q, %v", kernel, err)
	}
	s := httptest.NewServer(Handler(o.Dir, "/repo/"))
	defer s.Close()
	get := func(name string) (int, string) {
		res, err := http.Get(s.URL + "/repo/gpu-hpc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	_, index := get(repodata.Index)
	files, err := repodata.ParseIndex([]byte(index))
	if err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]int{repodata.Signature: 200, "key.asc": 200, files[0].Name: 200, "pool/dkms-3.1.8-1.el9.noarch.rpm": 200, "repo.json": 404, "repodata/": 404, "repodata/../repo.json": 404, "repodata/x/y.xml.gz": 404} {
		if got, _ := get(name); got != status {
			t.Errorf("%s: %d, want %d", name, got, status)
		}
	}
	for _, name := range []string{repodata.Index, repodata.Signature, files[0].Name, files[1].Name, "pool/dkms-3.1.8-1.el9.noarch.rpm"} {
		at := filepath.Join(r.Dir, name)
		good, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(good)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(at, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.Verify(t.Context(), o.Key); errkind.Of(err) != errkind.Corrupt {
			t.Errorf("%s was changed: %v", name, err)
		}
		if err := os.WriteFile(at, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Verify(t.Context(), newSigner(t, "other")); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("another key: %v", err)
	}
}

// TestExcludedBy: of packages that pins name all other versions are out of sight; what has no such
// version is not touched, unless it is asked for.
func TestExcludedBy(t *testing.T) {
	t.Parallel()
	o := dnfOptions(t)
	list := "nvidia-driver-cuda\t3\t580.126.16-1.el9\tx86_64\nnvidia-driver-cuda\t3\t580.173.02-1.el9\tx86_64\nnvidia-driver-cuda-libs\t3\t590.44.01-1.el9\tx86_64\nnvidia-driver-cuda-libs\t3\t580.126.16-1.el9\tx86_64\n" +
		"nvidia-container-toolkit\t0\t1.17.8-1\tx86_64\nkernel-devel\t0\t5.14.0-570.12.1.el9_6\tx86_64\nkernel-devel\t0\t5.14.0-600.el9\tx86_64\nlibnccl\t0\t2.27.7-1+cuda12.9\tx86_64\nlibnccl\t0\t2.27.7-1+cuda13.0\tx86_64\nbash\t0\t5.1.8-9.el9\tx86_64\nLast metadata expiration check: 0:00:01 ago\n"
	got, err := o.excludedBy(list)
	want := []string{"kernel-devel-0:5.14.0-600.el9.x86_64", "libnccl-0:2.27.7-1+cuda12.9.x86_64", "nvidia-driver-cuda-3:580.173.02-1.el9.x86_64", "nvidia-driver-cuda-libs-3:590.44.01-1.el9.x86_64"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	o.Pins[1].Version = "580.1.1-*"
	if _, err := o.excludedBy(list); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "no nvidia-driver-cuda of version 580.1.1-*; they have 580.126.16-1.el9, 580.173.02-1.el9") || errkind.Action(err) == "" {
		t.Errorf("got %v", err)
	}
}

// TestDnfOptions: names and versions of RPM packages have signs that those of Debian have not,
// and nothing that would be an option or another line.
func TestDnfOptions(t *testing.T) {
	t.Parallel()
	for _, p := range []Pin{{[]string{"mlnx-*", "*mlx5*", "NetworkManager", "mlnx-ofa_kernel"}, "25.10-OFED.25.10.1.el9_6"}, {[]string{"a"}, "1.2~rc1-*"}} {
		if err := p.check(true); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if (Pin{[]string{"mlnx-ofa_kernel"}, "1"}).check(false) == nil {
		t.Error("a name of RPM passes for Debian")
	}
	for _, p := range []Pin{{}, {[]string{"a b"}, "1"}, {[]string{"ab"}, "1\nx=1"}, {[]string{"ab"}, "1,2"}, {[]string{""}, "1"}} {
		if p.check(true) == nil {
			t.Errorf("%+v passes", p)
		}
	}
	o := dnfOptions(t)
	if err := o.check(); err != nil {
		t.Error(err)
	}
	o.Packages = []string{"--installroot=/"}
	if o.check() == nil {
		t.Error("an option passes for a package")
	}
	o.Image.Database = ""
	o.Packages, o.Pins = []string{"NetworkManager"}, nil
	if o.check() == nil {
		t.Error("a name of RPM passes for Debian")
	}
}

// TestProbeDnf: what dnf would refuse of a repository is found by asking for its index.
func TestProbeDnf(t *testing.T) {
	t.Parallel()
	vendor, other := newSigner(t, "vendor"), newSigner(t, "other")
	files, err := repodata.Write(nil)
	if err != nil {
		t.Fatal(err)
	}
	index := files[repodata.Index]
	signed, err := vendor.signDetached(index)
	if err != nil {
		t.Fatal(err)
	}
	const at, asc = "/rhel9/x86_64/repodata/repomd.xml", "/rhel9/x86_64/repodata/repomd.xml.asc"
	for name, c := range map[string]struct {
		files  map[string][]byte
		key    []byte
		kind   errkind.Kind
		says   string
		signed bool
	}{
		"signed":                 {map[string][]byte{at: index, asc: signed}, vendor.Public(), 0, "", true},
		"packages are signed":    {map[string][]byte{at: index}, vendor.Public(), 0, "", false},
		"another key":            {map[string][]byte{at: index, asc: signed}, other.Public(), errkind.Corrupt, "did not sign its index", true},
		"no index":               {nil, vendor.Public(), errkind.NotFound, "404", false},
		"the page of a proxy":    {map[string][]byte{at: []byte("<html>log in")}, vendor.Public(), errkind.Invalid, "repomd.xml", false},
		"a key of the image":     {map[string][]byte{at: index, asc: signed}, nil, 0, "", true},
		"a signature of nothing": {map[string][]byte{at: index, asc: []byte("x")}, vendor.Public(), errkind.Corrupt, "did not sign", true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, ok := c.files[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(b)
		}))
		source := Source{URL: s.URL + "/rhel$releasever/$basearch/", Suite: "./", Key: c.key}
		got, err := source.probeDnf(t.Context(), "9")
		switch {
		case c.says == "" && (err != nil || got != c.signed):
			t.Errorf("%s: %v, %v", name, got, err)
		case c.says != "" && (err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || errkind.Action(err) == ""):
			t.Errorf("%s: %v, kind %v, do %q", name, err, errkind.Of(err), errkind.Action(err))
		}
		s.Close()
	}
}
