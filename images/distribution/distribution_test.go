// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"strings"
	"testing"

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
	for _, c := range []struct{ family, pkg, release, headers string }{ // headers: the name, and the version where it has to have one
		{Debian, "linux-image-6.1.0-56-amd64", "6.1.0-56-amd64", "linux-headers-6.1.0-56-amd64"},
		{Debian, "linux-image-cloud-amd64", "", "linux-headers-cloud-amd64"},
		{Debian, "", "", "linux-headers-amd64"},
		{Ubuntu, "linux-image-unsigned-6.8.0-40-generic", "6.8.0-40-generic", "linux-headers-6.8.0-40-generic"},
		{Ubuntu, "", "", "linux-headers-generic"},
		{RHEL, "", "", "kernel-devel"},
		{RHEL, "kernel-5.14.0-570.el9.x86_64", "5.14.0-570.el9.x86_64", "kernel-devel 5.14.0-570.el9"}, {RHEL, "kernel-modules-extra", "", "kernel-devel"},
		{RHEL, "kernel-64k-core", "", "kernel-devel"},
		{RHEL, "kernel-core-5.14.0-570.12.1.el9_6", "5.14.0-570.12.1.el9_6", "kernel-devel 5.14.0-570.12.1.el9_6"},
	} {
		f, ok := Find(c.family)
		release := f.KernelRelease(c.pkg)
		name, version := f.HeadersPackage(release, c.pkg)
		if got := strings.TrimSpace(name + " " + version); !ok || release != c.release || got != c.headers {
			t.Errorf("%s %q: kernel %q, headers %q; want %q, %q", c.family, c.pkg, release, got, c.release, c.headers)
		}
		if f.StandBeside(name) != (c.family == RHEL) || f.StandBeside("linux-image-6.1.0-56-amd64") {
			t.Errorf("%s: %s stands beside others: %v", c.family, name, f.StandBeside(name))
		}
	}
}

// TestNewestOf: the newest kernel among packages of RPM.
func TestNewestOf(t *testing.T) {
	t.Parallel()
	list := []string{"bash-5.1.8-9.el9.x86_64", "kernel-core-5.14.0-570.9.1.el9_6.x86_64", "kernel-core-5.14.0-570.12.1.el9_6.x86_64", "kernel-tools-6.0-1.el9.x86_64", "kernel-devel-6.0-1.el9.x86_64"}
	if got := NewestOf(list); got != "5.14.0-570.12.1.el9_6.x86_64" || NewestOf(list[:1]) != "" {
		t.Errorf("got %q", got)
	}
}

func TestNewestKernel(t *testing.T) {
	t.Parallel()
	const status = "Package: linux-image-amd64\nStatus: install ok installed\n\nPackage: linux-image-6.1.0-9-amd64\n\nPackage: linux-image-6.1.0-56-amd64\n\nPackage: linux-image-6.1.0-10-amd64\n"
	if got, err := NewestKernel(strings.NewReader(status)); got != "6.1.0-56-amd64" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
