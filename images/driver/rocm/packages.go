// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// ownRelease is the ROCm that a release of Debian packages itself: without RCCL and
// the mathematical libraries, and with the kernel's own amdgpu
// (packages.debian.org, bookworm).
var ownRelease = map[string]release{"12": {5, 2}}

// debianOwn are Debian's packages.
var debianOwn = []string{"rocm-smi", "rocminfo", "libamdhip64-5", "hipcc", "firmware-amd-graphics"}

// Recipe is the stack on one node (ROCm installation on Linux, "Quick start"): the
// kernel driver from sources, the metapackage of ROCm with RCCL, the validation suite
// that measures bandwidths, and the groups whose users may open the devices. It
// implements stack.Recipe.
func Recipe(t driver.Target, b stack.Base) (stack.Set, error) {
	s := stack.Set{
		Module:  stack.Module{Name: "amdgpu"},
		Groups:  []string{"render", "video"},
		Devices: listDevices(t.Node.Hardware),
		Stays:   true, // its console holds it
	}
	if stack.FromOwnArchive(t.Node.Image, t.Driver) {
		if have, ok := ownRelease[b.System.Version]; !ok || usage.ParseRelease(t.Driver.Version) != have {
			return s, errkind.New(errkind.NotFound, "%s itself does not package ROCm %s", b.System, t.Driver.Version).
				Do(`Name a repository in the block that has it: repository { url = "http://mirror.example/rocm/apt/7.2" suite = "jammy" components = ["main"] key = file("rocm.asc") }.`)
		}
		s.Packages = append(s.Packages, debianOwn...)
		s.Libraries = []string{"libamdhip64.so.5"}
		stack.AddExtra(t.Driver, &s)
		return s, nil
	}
	stack.AddHeaders(t.Node.Image, b, &s)
	if b.System.Family == distribution.Ubuntu && b.Kernel != "" {
		s.Packages = append(s.Packages, "linux-modules-extra-"+b.Kernel) // amdgpu's firmware loader and its dependencies
	}
	s.Packages = append(s.Packages, "amdgpu-dkms", "rocm", "rccl", "rocm-validation-suite", "python3-setuptools", "python3-wheel")
	development := "rccl-dev"
	if b.System.Family == distribution.RHEL {
		development = "rccl-devel"
	}
	s.Module.Package = "amdgpu-dkms"
	s.Libraries = []string{fmt.Sprintf("libamdhip64.so.%d", usage.ParseRelease(t.Driver.Version).Major()), "librccl.so.1"}
	s.Pins = append(s.Pins,
		repo.Pin{Packages: []string{"amdgpu-dkms*"}, Version: "*." + driverCode(kernelDriverOf(t.Driver)) + "-*"},
		repo.Pin{Packages: []string{"rocm", "rocm-*", "rccl*", "hip*", "hsa-rocr*"}, Version: "*." + versionCode(t.Driver.Version) + "-*"})
	s.Toolkit = &stack.Toolkit{Packages: []string{"rocm", "rccl", development}, Home: "/opt/rocm", Library: "/opt/rocm", Targets: listTargets(t.Node.Hardware)}
	stack.AddExtra(t.Driver, &s)
	return s, nil
}

// listTargets lists the names that the compiler has for the GPUs of a chassis, sorted,
// without those of models that no table knows.
func listTargets(h *inventory.Hardware) (list []string) {
	if h == nil {
		return nil
	}
	for _, g := range (&usage.Usage{Hardware: h}).GPUs("amd") {
		if gen, ok := generationOf(g.Model); ok {
			list = append(list, gen.target)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// kernelDriverOf is the amdgpu release of a block: the one that it names, or the one
// that comes with its ROCm.
func kernelDriverOf(d *inventory.Driver) string {
	if v := d.Text("amdgpu"); v != "" {
		return v
	}
	if v, ok := bundled[usage.ParseRelease(d.Version)]; ok {
		return v
	}
	return d.Version
}

// versionCode returns a version as it stands inside of the versions of packages: 7.0.2 is 70002
// (repo.radeon.com: rocm 7.0.2.70002-56, amdgpu-install 6.4.60404-1).
func versionCode(version string) string {
	p := append(strings.Split(version, "."), "0", "0")
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(p[i])
	}
	return fmt.Sprintf("%d%02d%02d", n[0], n[1], n[2])
}

// driverCode is code for amdgpu, which has two digits more since it is numbered
// apart: 30.10.2 is 30100200.
func driverCode(version string) string {
	if usage.ParseRelease(version).Major() < 30 {
		return versionCode(version)
	}
	return versionCode(version) + "00"
}

// listDevices returns those of the compute driver: one for all GPUs, and one for each.
func listDevices(h *inventory.Hardware) []stack.Device {
	n := 0
	if h != nil {
		for _, g := range (&usage.Usage{Hardware: h}).GPUs("amd") {
			n += max(g.Count, 1)
		}
	}
	if n == 0 {
		return nil
	}
	return []stack.Device{{Dir: "/dev", Prefix: "kfd", Count: 1, Of: "compute drivers"}, {Dir: "/dev/dri", Prefix: "renderD", Count: n, Of: "GPUs"}}
}
