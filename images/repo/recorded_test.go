// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	systems "github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// stanzaOf is one package of an index.
func stanzaOf(name, version, fields string) string {
	return "Package: " + name + "\nVersion: " + version + "\nArchitecture: amd64\nMaintainer: nobody\nDescription: none\nFilename: pool/" + name + ".deb\nSize: 1\nSHA256: " + strings.Repeat("0", 64) + "\n" + fields + "\n"
}

// saveIndexes saves indexes as wget does.
func saveIndexes(t *testing.T, files map[string]string) Recorded {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Recorded(dir)
}

// recordedRelease is an archive with a small release, its updates, and a vendor that uses
// the name of the release too.
func recordedRelease() map[string]string {
	return map[string]string{
		"mirror.example/debian/dists/bookworm/main/binary-amd64/Packages": stanzaOf("base-files", "12", "Essential: yes\nPriority: required\n") +
			stanzaOf("libc6", "2.36-9", "Priority: optional\nProvides: libc\n") + stanzaOf("init", "1", "Priority: important\nDepends: libc\n") +
			stanzaOf("linux-image-amd64", "6.1.1-1", "Priority: optional\nDepends: linux-image-6.1.0-1-amd64\n") + stanzaOf("linux-image-6.1.0-1-amd64", "6.1.1-1", "") +
			stanzaOf("dkms", "3", "Depends: make\n") + stanzaOf("make", "4", ""),
		"mirror.example/debian-security/dists/bookworm-security/main/binary-amd64/Packages": stanzaOf("linux-image-amd64", "6.1.9-1", "Depends: linux-image-6.1.0-9-amd64\n") + stanzaOf("linux-image-6.1.0-9-amd64", "6.1.9-1", ""),
		"vendor.example/apt/dists/bookworm/main/binary-amd64/Packages":                      stanzaOf("rocm", "7.0", "Depends: libc6, dkms\n") + stanzaOf("libc6", "9-vendor", ""),
		"flat.example/cuda/debian12/x86_64/Packages":                                        stanzaOf("cuda-drivers", "580.10-1", "Depends: libnv (= 580.10-1), dkms, libc\n") + stanzaOf("libnv", "580.10-1", "") + stanzaOf("cuda-drivers", "590.1-1", "Depends: libnv (= 590.1-1)\n") + stanzaOf("libnv", "590.1-1", ""),
	}
}

// TestPeerRecorded: apt solves an image and a driver stack by indexes that were saved.
func TestPeerRecorded(t *testing.T) {
	peertest.Need(t, "apt-get")
	r := saveIndexes(t, recordedRelease())
	s, err := r.System(t.Context(), "bookworm", "amd64", []string{"linux-image-amd64"})
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := systems.NewestKernel(bytes.NewReader(s.Status))
	if err != nil || kernel != "6.1.0-9-amd64" || strings.Count(string(s.Status), "Status: install ok installed\n") != 5 || strings.Contains(string(s.Status), "vendor") {
		t.Errorf("kernel %q, %v, installed:\n%s", kernel, err, s.Status)
	}
	if want := "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian-security bookworm-security main\n"; string(s.Sources) != want {
		t.Errorf("sources %q, want %q", s.Sources, want)
	}
	dir := t.TempDir()
	o := Options{Name: "gpu", Packages: []string{"cuda-drivers"}, Key: &Key{}, Pins: []Pin{{Packages: []string{"cuda-drivers", "libnv"}, Version: "580.10-*"}},
		Sources: []Source{{URL: "https://flat.example/cuda/debian12/x86_64", Suite: "./"}},
		Image:   Image{Status: filepath.Join(dir, "status"), Sources: filepath.Join(dir, "sources"), Keyring: filepath.Join(dir, "status")}}
	for path, text := range map[string][]byte{o.Image.Status: s.Status, o.Image.Sources: s.Sources} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Solve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b Known) int { return strings.Compare(a.Name, b.Name) })
	want := []Known{{Name: "cuda-drivers", Version: "580.10-1", Arch: "amd64"}, {Name: "dkms", Version: "3", Arch: "amd64"}, {Name: "libnv", Version: "580.10-1", Arch: "amd64"}, {Name: "make", Version: "4", Arch: "amd64"}}
	if !slices.EqualFunc(got, want, func(a, b Known) bool { return a.Name == b.Name && a.Version == b.Version && a.Arch == b.Arch }) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestPeerRecordedRefuses: what is not recorded is named, with what to save.
func TestPeerRecordedRefuses(t *testing.T) {
	peertest.Need(t, "apt-get")
	r := saveIndexes(t, recordedRelease())
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{Name: "gpu", Key: &Key{}, Image: Image{Status: empty, Sources: empty, Keyring: empty}}
	for _, c := range []struct {
		name, pkg string
		from      Source
		want      string
	}{
		{"repository", "doca", Source{URL: "https://other.example/doca", Suite: "./"}, "the indexes of https://other.example/doca are not in"},
		{"package", "absent", Source{URL: "https://flat.example/cuda/debian12/x86_64", Suite: "./"}, "Unable to locate package absent"},
		{"dependency", "cuda-drivers", Source{URL: "https://flat.example/cuda/debian12/x86_64", Suite: "./"}, "Depends: libnv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			o.Packages, o.Sources = []string{c.pkg}, []Source{c.from}
			if c.name == "dependency" {
				o.Pins = []Pin{{Packages: []string{"libnv"}, Version: "580.10-*"}}
			}
			_, err := r.Solve(t.Context(), o)
			if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := r.System(t.Context(), "noble", "amd64", nil); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "no index of noble for amd64") {
		t.Errorf("another release: %v", err)
	}
}
