// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

func target(kind, version, amdgpu string) driver.Target {
	d := &inventory.Driver{Version: version, Block: inventory.Block{Kind: Name, Name: "d", Value: cty.ObjectVal(map[string]cty.Value{"version": cty.StringVal(version), "amdgpu": cty.StringVal(amdgpu)})}}
	return driver.Target{Driver: d, Node: &inventory.Node{Name: "n1", Drivers: []*inventory.Driver{d}, Image: &inventory.Image{Block: inventory.Block{Kind: kind}},
		Hardware: &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "amd", Model: "MI300X", Count: 8}}}}}
}

func TestRecipe(t *testing.T) {
	t.Parallel()
	s, err := Recipe(target("ubuntu", "7.0.2", "30.10.2"), stack.Base{System: distribution.Release{Family: distribution.Ubuntu, Version: "22.04"}, Kernel: "6.8.0-45-generic"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"linux-headers-6.8.0-45-generic", "linux-modules-extra-6.8.0-45-generic", "amdgpu-dkms", "rocm", "rccl"} {
		if !slices.Contains(s.Packages, p) {
			t.Errorf("lacks %s: %v", p, s.Packages)
		}
	}
	if s.Pins[0].Version != "*.30100200-*" || s.Pins[1].Version != "*.70002-*" || s.Libraries[0] != "libamdhip64.so.7" || s.Devices[1].Count != 8 || !slices.Equal(s.Groups, []string{"render", "video"}) {
		t.Errorf("%+v", s)
	}
}

// TestRHEL: headers are those of the image's kernel, by version, and libraries have names of RHEL.
func TestRHEL(t *testing.T) {
	t.Parallel()
	s, err := Recipe(target("rhel", "7.2", ""), stack.Base{System: distribution.Release{Family: distribution.RHEL, Version: "9"}, Kernel: "5.14.0-570.12.1.el9_6.x86_64"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Packages, "kernel-devel") || !slices.Contains(s.Toolkit.Packages, "rccl-devel") || len(s.Pins) != 3 || s.Pins[0].Version != "5.14.0-570.12.1.el9_6" || s.Module.Package != "amdgpu-dkms" {
		t.Errorf("%+v", s)
	}
}

// TestDebianOwn: Debian 12 has one ROCm, with the kernel's own driver.
func TestDebianOwn(t *testing.T) {
	t.Parallel()
	base := stack.Base{System: distribution.Release{Family: distribution.Debian, Version: "12"}}
	s, err := Recipe(target("debian", "5.2", ""), base)
	if err != nil || !slices.Contains(s.Packages, "rocm-smi") || s.Module.Package != "" || slices.Contains(s.Packages, "amdgpu-dkms") {
		t.Errorf("%+v: %v", s, err)
	}
	if _, err := Recipe(target("debian", "7.2", ""), base); errkind.Of(err) != errkind.NotFound || !strings.Contains(errkind.Action(err), "repository") {
		t.Errorf("%v", err)
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"7.0.2": "70002", "6.4.4": "60404", "7.2": "70200", "30.10.2": "30100200", "30.30": "30300000"} {
		if got := driverCode(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
