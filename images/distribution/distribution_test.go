// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

func TestOfImage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, release, want string }{
		{"debian", "bookworm", "Debian 12"},
		{"debian", "12.11", "Debian 12"},
		{"ubuntu", "noble", "Ubuntu 24.04"},
		{"ubuntu", "22.04.5", "Ubuntu 22.04"},
		{"rhel", "9.4", "RHEL 9"},
		{"rhel", "stream", ""},
		{"oci", "24.04", ""},
	} {
		d, ok := OfImage(&inventory.Image{Block: inventory.Block{Kind: c.kind}, Release: c.release})
		got := ""
		if ok {
			got = d.String()
		}
		if got != c.want {
			t.Errorf("%s %s is %q, want %q", c.kind, c.release, got, c.want)
		}
	}
}

func TestKernelPackages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ family, pkg, release, headers string }{
		{Debian, "linux-image-6.1.0-56-amd64", "6.1.0-56-amd64", "linux-headers-6.1.0-56-amd64"},
		{Debian, "linux-image-cloud-amd64", "", "linux-headers-cloud-amd64"},
		{Debian, "", "", "linux-headers-amd64"},
		{Ubuntu, "linux-image-unsigned-6.8.0-40-generic", "6.8.0-40-generic", "linux-headers-6.8.0-40-generic"},
		{Ubuntu, "", "", "linux-headers-generic"},
		{RHEL, "", "", "kernel-devel-matched"},
		{RHEL, "kernel-core-5.14.0-570.el9", "5.14.0-570.el9", "kernel-devel-5.14.0-570.el9"},
	} {
		f, ok := Find(c.family)
		release := f.KernelRelease(c.pkg)
		if !ok || release != c.release || f.HeadersPackage(release, c.pkg) != c.headers {
			t.Errorf("%s %q: kernel %q, headers %q; want %q, %q", c.family, c.pkg, release, f.HeadersPackage(release, c.pkg), c.release, c.headers)
		}
	}
}

func TestNewestKernel(t *testing.T) {
	t.Parallel()
	const status = "Package: linux-image-amd64\nStatus: install ok installed\n\nPackage: linux-image-6.1.0-9-amd64\n\nPackage: linux-image-6.1.0-56-amd64\n\nPackage: linux-image-6.1.0-10-amd64\n"
	if got, err := NewestKernel(strings.NewReader(status)); got != "6.1.0-56-amd64" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// What dpkg's own program lists as installed on this machine is what is read of its
// status file.
func TestPeerInstalledPackages(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "dpkg-query")
	out, err := exec.Command("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version} ${Architecture} ${Maintainer}\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		if p, ok := strings.CutPrefix(line, "installed "); ok {
			want = append(want, strings.TrimSpace(p))
		}
	}
	f, err := os.Open("/var/lib/dpkg/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := InstalledPackages(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, strings.TrimSpace(p.Name+" "+p.Version+" "+p.Arch+" "+p.Maintainer))
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(got) < 50 || !slices.Equal(got, want) {
		t.Errorf("%d packages; dpkg-query lists %d", len(got), len(want))
	}
}

// A package whose settings alone are left is not installed; a last stanza may end
// without an empty line.
func TestInstalledPackages(t *testing.T) {
	t.Parallel()
	list, err := InstalledPackages(strings.NewReader(`Package: adduser
Status: install ok installed
Architecture: all
Version: 3.134
Description: add and remove users
 Version: of a line that goes on, no field

Package: gone
Status: deinstall ok config-files
Version: 1
Architecture: amd64

Package: libgcc-s1
Status: install ok installed
Source: gcc-12 (12.2.0-14)
Version: 12.2.0-14
Architecture: amd64`))
	want := []Package{{Name: "adduser", Version: "3.134", Arch: "all"}, {Name: "libgcc-s1", Version: "12.2.0-14", Arch: "amd64", Source: "gcc-12 (12.2.0-14)"}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v; want %+v", list, err, want)
	}
}
