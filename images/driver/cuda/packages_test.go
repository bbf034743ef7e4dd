// SPDX-License-Identifier: Apache-2.0

package cuda

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

// target is a node with one driver block; attributes are those of the block.
func target(image *inventory.Image, model, interconnect string, attributes map[string]cty.Value) driver.Target {
	d := &inventory.Driver{Block: inventory.Block{Kind: Name, Name: "d", Value: cty.ObjectVal(attributes)}, Version: attributes["version"].AsString()}
	return driver.Target{Driver: d, Node: &inventory.Node{Name: "n1", Image: image, Drivers: []*inventory.Driver{d},
		Hardware: &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: model, Count: 8, Interconnect: interconnect}}}}}
}

var (
	ubuntu   = &inventory.Image{Block: inventory.Block{Kind: "ubuntu", Name: "u"}, Release: "24.04", Kernel: "linux-image-generic"}
	bookworm = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "b"}, Release: "bookworm", Kernel: "linux-image-amd64"}
	rocky    = &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "r"}, Release: "9"}
	mirror   = cty.ObjectVal(map[string]cty.Value{"url": cty.StringVal("http://m.example/cuda/"), "key": cty.StringVal("-----BEGIN PGP")})
)

func TestRecipe(t *testing.T) {
	t.Parallel()
	text := cty.StringVal
	nine := distribution.Release{Family: distribution.RHEL, Version: "9"}
	noble, twelve := distribution.Release{Family: distribution.Ubuntu, Version: "24.04"}, distribution.Release{Family: distribution.Debian, Version: "12"}
	for _, c := range []struct {
		name       string
		target     driver.Target
		base       stack.Base
		with, lack []string
		service    string
		file       string
	}{
		{"HGX H100", target(ubuntu, "H100 SXM5 80GB", "nvswitch", map[string]cty.Value{"version": text("580.126.16"), "cuda": text("13.0"), "module": text("open"), "fabric_manager": cty.True}),
			stack.Base{System: noble, Kernel: "6.8.0-45-generic"},
			[]string{"linux-headers-6.8.0-45-generic", "nvidia-open", "nvidia-dkms-580-open", "nvidia-fabricmanager", "cuda-toolkit-13-0", "libnccl2", "datacenter-gpu-manager-4-cuda13"}, []string{"nvlsm", "nvidia-imex"}, "nvidia-fabricmanager", "nvidia"},
		{"fabric manager with its branch", target(ubuntu, "H100 SXM5 80GB", "nvswitch", map[string]cty.Value{"version": text("570.86.15"), "module": text("open"), "fabric_manager": cty.True}),
			stack.Base{System: noble}, []string{"linux-headers-generic", "nvidia-dkms-570-open", "nvidia-fabricmanager-570"}, []string{"nvidia-fabricmanager", "nvidia-dkms-open"}, "nvidia-dcgm", "nvidia"},
		{"names without a branch", target(ubuntu, "H100 SXM5 80GB", "nvswitch", map[string]cty.Value{"version": text("590.48.01"), "module": text("open"), "fabric_manager": cty.True}),
			stack.Base{System: noble}, []string{"nvidia-open", "nvidia-dkms-open", "nvidia-fabricmanager"}, []string{"nvidia-dkms-590-open"}, "nvidia-dcgm", "nvidia"},
		{"proprietary, with its branch", target(ubuntu, "V100", "", map[string]cty.Value{"version": text("580.126.16"), "module": text("proprietary")}),
			stack.Base{System: noble}, []string{"cuda-drivers", "nvidia-dkms-580"}, []string{"nvidia-dkms", "nvidia-open"}, "nvidia-dcgm", "nvidia"},
		{"HGX B200", target(ubuntu, "B200", "nvswitch", map[string]cty.Value{"version": text("580"), "module": text("open"), "fabric_manager": cty.True}),
			stack.Base{System: noble}, []string{"nvlsm", "libnvsdm", "datacenter-gpu-manager-4-cuda13"}, nil, "nvidia-fabricmanager", "nvidia"},
		{"NVL72 tray", target(ubuntu, "GB200", "nvswitch", map[string]cty.Value{"version": text("580.126.16"), "module": text("open")}),
			stack.Base{System: noble}, []string{"nvidia-imex"}, []string{"nvidia-fabricmanager", "nvlsm"}, "nvidia-persistenced", "nvidia"},
		{"PCIe cards, vendor's Debian", target(bookworm, "L40S", "", map[string]cty.Value{"version": text("580.126.16"), "module": text("open"), "repository": mirror}),
			stack.Base{System: twelve, Kernel: "6.1.0-56-amd64"}, []string{"nvidia-driver-cuda", "nvidia-kernel-open-dkms"}, []string{"nvidia-fabricmanager", "nvidia-smi"}, "nvidia-dcgm", "nvidia"},
		{"HGX H100 on RHEL", target(rocky, "H100 SXM5 80GB", "nvswitch", map[string]cty.Value{"version": text("580.126.16"), "cuda": text("13.0"), "module": text("open"), "fabric_manager": cty.True, "repository": mirror}),
			stack.Base{System: nine, Kernel: "5.14.0-570.12.1.el9_6.x86_64"},
			[]string{"kernel-devel", "nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-fabricmanager", "cuda-toolkit-13-0", "libnccl", "libnccl-devel", "datacenter-gpu-manager-4-cuda13"}, []string{"libnccl2", "libnccl-dev"}, "nvidia-fabricmanager", "nvidia"},
		{"module of NVIDIA's", target(rocky, "H100 SXM5 80GB", "nvswitch", map[string]cty.Value{"version": text("580.126.16"), "module": text("open"), "precompiled": cty.True, "repository": mirror}),
			stack.Base{System: nine, Kernel: "5.14.0-570.12.1.el9_6.x86_64"}, []string{"nvidia-driver-cuda", "kmod-nvidia-open-580.126.16-5.14.0-570.12.1"}, []string{"kernel-devel", "kmod-nvidia-open-dkms"}, "nvidia-persistenced", "nvidia"},
		{"proprietary module of NVIDIA's", target(rocky, "V100", "", map[string]cty.Value{"version": text("580.126.16"), "module": text("proprietary"), "precompiled": cty.True, "repository": mirror}),
			stack.Base{System: nine, Kernel: "5.14.0-570.12.1.el9_6.x86_64"}, []string{"nvidia-driver-cuda", "kmod-nvidia-580.126.16-5.14.0-570.12.1"}, []string{"kernel-devel", "kmod-nvidia-latest-dkms"}, "nvidia-persistenced", "nvidia"},
		{"Debian's own", target(bookworm, "A100", "", map[string]cty.Value{"version": text("535.261.03"), "module": text("proprietary")}),
			stack.Base{System: twelve, Kernel: "6.1.0-56-amd64"}, []string{"linux-headers-6.1.0-56-amd64", "nvidia-kernel-dkms", "libcuda1"}, []string{"datacenter-gpu-manager-4-cuda12"}, "nvidia-persistenced", "nvidia-current"},
		{"Debian's own, open, by branch", target(bookworm, "A100", "", map[string]cty.Value{"version": text("535"), "module": text("open")}),
			stack.Base{System: twelve, Kernel: "6.1.0-50-amd64"}, []string{"nvidia-open-kernel-dkms"}, nil, "nvidia-persistenced", "nvidia-current-open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Recipe(c.target, c.base)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range c.with {
				if !slices.Contains(s.Packages, p) {
					t.Errorf("lacks %s: %v", p, s.Packages)
				}
			}
			for _, p := range c.lack {
				if slices.Contains(s.Packages, p) {
					t.Errorf("has %s", p)
				}
			}
			if !slices.Contains(s.Services, c.service) {
				t.Errorf("services %v", s.Services)
			}
			if file := cmpOr(s.Module.File, s.Module.Name); file != c.file || !slices.Contains(s.Packages, s.Module.Package) {
				t.Errorf("module %+v of %v", s.Module, s.Packages)
			}
			if len(s.Devices) != 1 || s.Devices[0].Count != 8 || !slices.Contains(s.Clashing, "nouveau") {
				t.Errorf("devices %v, clashing %v", s.Devices, s.Clashing)
			}
		})
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// TestVersions: the pin is the whole version or the branch, and the module is held
// against the same.
func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][2]string{"580.126.16": {"580.126.16-*", "580.126.16"}, "580": {"580.*", "580."}, "580.126": {"580.126.*", "580.126."}} {
		s, err := Recipe(target(ubuntu, "H100", "", map[string]cty.Value{"version": cty.StringVal(version), "module": cty.StringVal("open")}), stack.Base{System: distribution.Release{Family: distribution.Ubuntu, Version: "24.04"}})
		if err != nil || s.Pins[0].Version != want[0] || s.Module.Version != want[1] {
			t.Errorf("%s: pin %q, module %q: %v", version, s.Pins[0].Version, s.Module.Version, err)
		}
	}
}

// TestImpossible: what is known not to work says what would.
func TestImpossible(t *testing.T) {
	t.Parallel()
	twelve := distribution.Release{Family: distribution.Debian, Version: "12"}
	for _, c := range []struct {
		version, module, kernel, says, do string
		kind                              errkind.Kind
	}{
		{"535.261.03", "open", "6.1.0-56-amd64", "does not build for kernel 6.1.0-56-amd64", "6.1.0-50", errkind.Conflict},
		{"535.309.01", "open", "6.1.0-50-amd64", "at 535.261.03 only", "proprietary", errkind.Conflict},
		{"580.126.16", "open", "6.1.0-50-amd64", "does not package driver 580.126.16", "repository", errkind.NotFound},
	} {
		_, err := Recipe(target(bookworm, "A100", "", map[string]cty.Value{"version": cty.StringVal(c.version), "module": cty.StringVal(c.module)}), stack.Base{System: twelve, Kernel: c.kernel})
		if err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || !strings.Contains(errkind.Action(err), c.do) {
			t.Errorf("%s %s: %v (%s)", c.version, c.module, err, errkind.Action(err))
		}
	}
}

// TestPrecompiled: a module that NVIDIA built is refused where there is none that fits or that the
// node's kernel would take, and names are not shared between recipes.
func TestPrecompiled(t *testing.T) {
	t.Parallel()
	nine := stack.Base{System: distribution.Release{Family: distribution.RHEL, Version: "9"}, Kernel: "5.14.0-570.12.1.el9_6.x86_64"}
	ask := func(image *inventory.Image, version string) driver.Target {
		return target(image, "H100", "", map[string]cty.Value{"version": cty.StringVal(version), "module": cty.StringVal("open"), "precompiled": cty.True, "repository": mirror})
	}
	secure := ask(rocky, "580.126.16")
	secure.Node.Hardware.SecureBoot = true
	for _, c := range []struct {
		name     string
		target   driver.Target
		base     stack.Base
		says, do string
	}{
		{"Ubuntu", ask(ubuntu, "580.126.16"), stack.Base{System: distribution.Release{Family: distribution.Ubuntu, Version: "24.04"}, Kernel: "6.8.0-45-generic"}, "on RHEL and its rebuilds alone", "Remove precompiled"},
		{"branch", ask(rocky, "580"), nine, "the whole version", "580.126.16"},
		{"kernel", ask(rocky, "580.126.16"), stack.Base{System: nine.System}, "does not say which one", "kernel-5.14.0"},
		{"Secure Boot", secure, nine, "NVIDIA's signature", "Set secure_boot = false"},
	} {
		if _, err := Recipe(c.target, c.base); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(errkind.Action(err), c.do) {
			t.Errorf("%s: %v (%s)", c.name, err, errkind.Action(err))
		}
	}
	if _, err := Recipe(ask(rocky, "580.126.16"), nine); err != nil {
		t.Error(err)
	}
	if s, err := Recipe(target(rocky, "H100", "", map[string]cty.Value{"version": cty.StringVal("580.126.16"), "module": cty.StringVal("open"), "repository": mirror}), nine); err != nil || !slices.Contains(s.Packages, "kmod-nvidia-open-dkms") {
		t.Errorf("afterwards: %v, %v", s.Packages, err)
	}
}

// TestNVPeerMemory: the module that links to DOCA's ib_core is loaded beside DOCA only.
func TestNVPeerMemory(t *testing.T) {
	t.Parallel()
	tt := target(ubuntu, "H100", "", map[string]cty.Value{"version": cty.StringVal("580"), "module": cty.StringVal("open")})
	base := stack.Base{System: distribution.Release{Family: distribution.Ubuntu, Version: "24.04"}}
	alone, err := Recipe(tt, base)
	if err != nil || slices.Contains(alone.Others, "nvidia_peermem") {
		t.Errorf("alone: %v, %v", alone.Others, err)
	}
	tt.Node.Drivers = append([]*inventory.Driver{{Block: inventory.Block{Kind: "doca", Name: "doca"}}}, tt.Node.Drivers...)
	if beside, err := Recipe(tt, base); err != nil || !slices.Contains(beside.Others, "nvidia_peermem") {
		t.Errorf("beside DOCA: %v, %v", beside.Others, err)
	}
}
