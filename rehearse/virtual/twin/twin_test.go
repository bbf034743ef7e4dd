// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
)

// TestTwins: a simulated system says to be the distribution, release and architecture of
// its image, with a kernel whose package the distribution's description knows.
func TestTwins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, release, kernel string
		arch                  inventory.Arch
		id, version, running  string
		machine               string
	}{
		{"debian", "bookworm", "linux-image-amd64", inventory.AMD64, "debian", "12", "6.1.0-56-amd64", "x86_64"},
		{"debian", "trixie", "linux-image-arm64", inventory.ARM64, "debian", "13", "6.12.57+deb13-arm64", "aarch64"},
		{"debian", "12.11", "linux-image-6.1.0-50-amd64", inventory.AMD64, "debian", "12", "6.1.0-50-amd64", "x86_64"},
		{"debian", "14", "", inventory.AMD64, "debian", "14", "6.1.0-56-amd64", "x86_64"},
		{"ubuntu", "noble", "", inventory.AMD64, "ubuntu", "24.04", "6.8.0-94-generic", "x86_64"},
		{"ubuntu", "24.04.3", "linux-image-nvidia-64k", inventory.ARM64, "ubuntu", "24.04", "6.8.0-94-nvidia-64k", "aarch64"},
		{"ubuntu", "resolute", "", inventory.AMD64, "ubuntu", "26.04", "7.0.0-10-generic", "x86_64"},
		{"ubuntu", "22.04", "linux-image-generic", inventory.AMD64, "ubuntu", "22.04", "5.15.0-161-generic", "x86_64"},
		{"rhel", "9.4", "", inventory.ARM64, "rocky", "9", "5.14.0-570.12.1.el9_6.aarch64", "aarch64"},
		{"oci", "", "", "", "debian", "12", "6.1.0-56-amd64", "x86_64"},
	} {
		w := Of(&inventory.Image{Block: inventory.Block{Kind: c.kind}, Release: c.release, Kernel: c.kernel, Arch: c.arch})
		if w.ID != c.id || w.Release != c.version || w.Kernel != c.running || w.Machine() != c.machine {
			t.Errorf("%s %s %s: %+v, %s", c.kind, c.release, c.arch, w, w.Machine())
		}
		if again := Decode(append(w.Encode(), make([]byte, 100)...)); again != w {
			t.Errorf("%+v was read back as %+v", w, again)
		}
		if got, err := distribution.NewestKernel(strings.NewReader(w.Status([]string{"openssh-server"}))); c.kind != "rhel" && (err != nil || got != w.Kernel) {
			t.Errorf("%s %s: the kernel of its packages is %q, and %q runs: %v", c.kind, c.release, got, w.Kernel, err)
		}
		if !strings.Contains(w.OSRelease(), "VERSION_ID=\""+c.version+"\"\n") {
			t.Errorf("%q", w.OSRelease())
		}
	}
	if w := Decode([]byte("noise")); w.ID != "debian" || w.Kernel != "6.1.0-56-amd64" || len(w.Encode()) > Size {
		t.Errorf("%+v", w)
	}
}
