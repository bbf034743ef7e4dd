// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// moduleSource is a package with the sources of kernel modules, which dkms(8) builds when
// it is configured.
type moduleSource struct {
	name    string   // of the modules in DKMS' tree
	modules []string // files that come out, the first of which has the version
	takes   time.Duration
}

// moduleSources are the packages by name, without the branch that NVIDIA's have in
// theirs for Ubuntu before R590. The times of the NVIDIA modules were measured
// with Debian 12's on two cores (102 to 136 s); those of the others are estimates.
var moduleSources = map[string]moduleSource{
	"nvidia-kernel-dkms":      {"nvidia-current", []string{"nvidia-current", "nvidia-current-uvm", "nvidia-current-peermem"}, 110 * time.Second},
	"nvidia-open-kernel-dkms": {"nvidia-current-open", []string{"nvidia-current-open", "nvidia-current-open-uvm", "nvidia-current-open-peermem"}, 100 * time.Second},
	"nvidia-kernel-open-dkms": {"nvidia", []string{"nvidia", "nvidia-uvm", "nvidia-peermem"}, 100 * time.Second},
	"nvidia-dkms-open":        {"nvidia", []string{"nvidia", "nvidia-uvm", "nvidia-peermem"}, 100 * time.Second},
	"nvidia-dkms":             {"nvidia", []string{"nvidia", "nvidia-uvm", "nvidia-peermem"}, 110 * time.Second},
	"kmod-nvidia-open-dkms":   {"nvidia", []string{"nvidia", "nvidia-uvm", "nvidia-peermem"}, 100 * time.Second},
	"kmod-nvidia-latest-dkms": {"nvidia", []string{"nvidia", "nvidia-uvm", "nvidia-peermem"}, 110 * time.Second},
	"mlnx-ofa_kernel-dkms":    {"mlnx-ofa_kernel", []string{"mlx5_core", "mlx5_ib", "ib_core", "ib_umad", "ib_uverbs", "rdma_ucm"}, 150 * time.Second},
	"mlnx-ofed-kernel-dkms":   {"mlnx-ofed-kernel", []string{"mlx5_core", "mlx5_ib", "ib_core", "ib_umad", "ib_uverbs", "rdma_ucm"}, 150 * time.Second},
	"amdgpu-dkms":             {"amdgpu", []string{"amdgpu"}, 180 * time.Second},
}

// branched is a name with a driver branch in it: nvidia-dkms-580-open.
var branched = lazyregexp.New(`^(nvidia-dkms)-[0-9]{3}`)

// prebuilt is a name of NVIDIA's with a module that it built for one kernel: of the driver's version
// and the kernel's.
var prebuilt = lazyregexp.New(`^kmod-nvidia-(?:open-)?[0-9]+(?:\.[0-9]+){2}-([0-9].*)$`)

// linkTime is how long such a module is linked when it is installed; an estimate.
const linkTime = 10 * time.Second

// sourceOf returns what a package with sources of modules, or with modules, has.
func sourceOf(pkg string) (moduleSource, bool) {
	if prebuilt.MatchString(pkg) {
		return moduleSource{"nvidia", []string{"nvidia", "nvidia-uvm", "nvidia-peermem"}, linkTime}, true
	}
	s, ok := moduleSources[branched.ReplaceAllString(pkg, "$1")]
	return s, ok
}

// api is a change of the kernel that sources of before do not know: which kernels
// have it, and the versions of the sources that do not compile with it.
type api struct {
	abi    string // the release begins with it
	since  int    // the number that follows, and later ones
	module string // in DKMS' tree
	until  []int  // the first version that knows it
	log    string // what the compiler says
}

// changes of kernels. Seen with Debian 12's packages: 6.1.192 gave
// pci_resize_resource an argument more.
var changes = []api{
	{"6.1.0-", 56, "nvidia-current-open", []int{535, 309}, "nvidia/nv-pci.c:223:5: error: too few arguments to function 'pci_resize_resource'"},
}

// buildFailure returns what the compiler says of the sources of a version on a kernel; ""
// when it builds.
func buildFailure(release, module, version string) string {
	for _, a := range changes {
		rest, ok := strings.CutPrefix(release, a.abi)
		number, _, _ := strings.Cut(rest, "-")
		if n, err := strconv.Atoi(number); !ok || err != nil || n < a.since || module != a.module {
			continue
		}
		if isOlder(versionNumbers(version), a.until) {
			return a.log
		}
	}
	return ""
}

// versionNumbers returns the leading numbers of a version.
func versionNumbers(version string) (list []int) {
	for part := range strings.SplitSeq(upstreamVersion(version), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return list
		}
		list = append(list, n)
	}
	return list
}

// upstreamVersion returns a package's version without epoch and revision.
func upstreamVersion(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	if i := strings.LastIndexByte(version, '-'); i >= 0 {
		version = version[:i]
	}
	return version
}

func isOlder(a, b []int) bool {
	for i := range b {
		switch {
		case i >= len(a) || a[i] < b[i]:
			return true
		case a[i] > b[i]:
			return false
		}
	}
	return false
}

// signedModules stands for dkms(8) on nodes whose modules come signed.
const signedModules = "ironrail-dkms"

// build configures a package with sources: the headers must be there, and the
// compiler must take them. Where the modules come built, with the signature of signer, in a
// package beside it, they are what that one brings.
func (n *node) build(ctx context.Context, c call, pkg, version, signer string) bool {
	s, _ := sourceOf(pkg)
	if signer != "" && n.packages()[signedModules] != "" {
		return n.placeModules(s, "updates/ironrail", pkg, version, "sig_id: PKCS#7\nsig_key: "+signer+"\n")
	}
	release := n.cfg.Kernel.Release()
	if n.cfg.Clock.Sleep(ctx, s.takes) != nil {
		return false
	}
	if m := prebuilt.FindStringSubmatch(pkg); m != nil { // of another kernel, it brings none for this one
		return !strings.HasPrefix(release, m[1]+".") || n.placeModules(s, "extra", pkg, version, "")
	}
	if !n.hasHeaders() {
		c.print(fmt.Sprintf("Your kernel headers for kernel %s cannot be found at /lib/modules/%[1]s/build or /lib/modules/%[1]s/source.\n", release))
		return true // DKMS leaves it at that: the package is installed, and there is no module
	}
	dir := path.Join("var/lib/dkms", s.name, upstreamVersion(version), "build")
	if log := buildFailure(release, s.name, version); log != "" {
		_ = n.tree.MkdirAll(dir, 0o755)
		_ = n.tree.write(dir+"/make.log", fmt.Appendf(nil, "DKMS make.log for %s-%s for kernel %s (%s)\n%s\nmake[2]: *** [scripts/Makefile.build:250: %s] Error 1\nmake: *** [Makefile:82: modules] Error 2\n", s.name, upstreamVersion(version), release, n.cfg.Twin.Machine(), log, "nv-pci.o"), 0o644)
		_, _ = fmt.Fprintf(c.Err, "Error! Bad return status for module build on kernel: %s (%s)\nConsult /%s/make.log for more information.\ndpkg: error processing package %s (--configure):\n installed %[4]s package post-installation script subprocess returned error exit status 10\n", release, n.cfg.Twin.Machine(), dir, pkg)
		return false
	}
	return n.placeModules(s, "updates/dkms", pkg, version, "")
}

// placeModules writes the modules of a source to a folder; signature is what modinfo(8) shows
// of it.
func (n *node) placeModules(s moduleSource, folder, pkg, version, signature string) bool {
	to := path.Join(n.moduleFolder(), folder)
	if n.tree.MkdirAll(to, 0o755) != nil {
		return false
	}
	license := "GPL"
	switch {
	case strings.Contains(pkg, "nvidia") && strings.Contains(pkg, "open"):
		license = openLicense
	case strings.Contains(pkg, "nvidia"):
		license = "NVIDIA"
	}
	for _, m := range s.modules {
		if n.tree.write(to+"/"+m+".ko", []byte("version: "+upstreamVersion(version)+"\nlicense: "+license+"\n"+signature), 0o644) != nil {
			return false
		}
	}
	return true
}

// hasHeaders reports whether headers of a kernel are installed.
func (n *node) hasHeaders() bool {
	for name := range n.packages() {
		if strings.HasPrefix(name, "linux-headers-") || name == "kernel-devel" {
			return true
		}
	}
	return false
}
