// SPDX-License-Identifier: Apache-2.0

package cuda

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

// naming is how one distribution, or NVIDIA's repository for it, calls the parts of
// the driver.
type naming struct {
	open, proprietary []string // the whole driver with that kernel module, without a desktop where that can be had
	module            [2]string
	file              [2]string // of the module, as modinfo knows it: open, proprietary
}

// vendor is NVIDIA's own repositories by family. Debian and RHEL: Driver
// Installation Guide R580, "Compute-only System"; Ubuntu: the metapackages of the
// same guide, as azhpc-images installs them, and the sources of the module by the
// names of R590 and later. For RHEL their packages have epoch 3, and nvidia-driver-cuda
// brings nvidia-persistenced of its version (NVIDIA/yum-packaging-nvidia-driver,
// nvidia-driver.spec); kmod-nvidia-open-dkms needs dkms 3.1.8, which EPEL has
// (stackhpc/ansible-slurm-appliance, pull request 703).
var vendor = map[string]naming{
	distribution.Debian: {[]string{"nvidia-driver-cuda", "nvidia-kernel-open-dkms"}, []string{"nvidia-driver-cuda", "nvidia-kernel-dkms"},
		[2]string{"nvidia-kernel-open-dkms", "nvidia-kernel-dkms"}, [2]string{}},
	distribution.Ubuntu: {[]string{"nvidia-open", "nvidia-dkms-open"}, []string{"cuda-drivers", "nvidia-dkms"},
		[2]string{"nvidia-dkms-open", "nvidia-dkms"}, [2]string{}},
	distribution.RHEL: {[]string{"nvidia-driver-cuda", "kmod-nvidia-open-dkms"}, []string{"nvidia-driver-cuda", "kmod-nvidia-latest-dkms"},
		[2]string{"kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"}, [2]string{}},
}

// branchless is the first branch whose packages for Ubuntu have no branch in their
// names (Driver Installation Guide, "Recent Updates", "Ubuntu 590 and later
// packages": nvidia-dkms-580-open became nvidia-dkms-open). The metapackages
// nvidia-open and cuda-drivers never had one.
const branchless = 590

// vendorOf returns NVIDIA's names for a family and a branch.
func vendorOf(family string, branch int) naming {
	n := vendor[family]
	if family != distribution.Ubuntu || branch >= branchless {
		return n
	}
	open, proprietary := fmt.Sprintf("nvidia-dkms-%d-open", branch), fmt.Sprintf("nvidia-dkms-%d", branch)
	n.open, n.proprietary = []string{"nvidia-open", open}, []string{"cuda-drivers", proprietary}
	n.module = [2]string{open, proprietary}
	return n
}

// debianOwn is the driver in Debian's own components contrib and non-free, whose
// modules are called nvidia-current and, open, nvidia-current-open.
var debianOwn = naming{
	[]string{"nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1", "libnvidia-ml1", "firmware-nvidia-gsp", "nvidia-persistenced", "nvidia-modprobe"},
	[]string{"nvidia-kernel-dkms", "nvidia-smi", "libcuda1", "libnvidia-ml1", "firmware-nvidia-gsp", "nvidia-persistenced", "nvidia-modprobe"},
	[2]string{"nvidia-open-kernel-dkms", "nvidia-kernel-dkms"}, [2]string{"nvidia-current-open", "nvidia-current"},
}

// ownBranch is the branch that a release of Debian packages itself, and openOwn the
// one version of it that has the open module (packages.debian.org, bookworm and
// bookworm-security; the open module is not rebuilt for security updates).
var ownBranch = map[string]int{"12": 535}

const openOwn = "535.261.03"

// followed are the packages that have the driver's own version. Packages that match
// and have no such version, such as Debian's nvidia-persistenced, are not touched.
var followed = []string{"*nvidia*", "libcuda*", "cuda-drivers*", "libnvcuvid*", "libnvsdm*", "libxnvctrl*"}

// renamed is the first branch whose fabric manager and IMEX packages have no branch
// in their names (Driver Installation Guide R580, "Recent Updates").
const renamed = 580

// nvlink5 are the GPUs whose NVSwitches need NVIDIA's NVLink subnet manager beside
// the fabric manager (Fabric Manager User Guide, "HGX B200").
var nvlink5 = []string{"B100", "B200", "B300"}

// Recipe is the stack on one node. It implements stack.Recipe.
func Recipe(t driver.Target, b stack.Base) (stack.Set, error) {
	r := recipe{Target: t, Base: b, version: t.Driver.Version, open: t.Driver.Text("module") != "proprietary", own: stack.FromOwnArchive(t.Node.Image, t.Driver)}
	head, _, _ := strings.Cut(r.version, ".")
	r.branch, _ = strconv.Atoi(head) // three digits, as the check has it
	if err := r.possible(); err != nil {
		return stack.Set{}, err
	}
	r.base()
	r.links()
	r.tools()
	stack.AddExtra(t.Driver, &r.set)
	return r.set, nil
}

// recipe is the work on one node.
type recipe struct {
	driver.Target
	stack.Base
	version string
	branch  int
	open    bool
	own     bool // Debian's own packages
	set     stack.Set
}

// possible refuses what is known not to work.
func (r *recipe) possible() error {
	module := "proprietary"
	if r.open {
		module = "open"
	}
	for _, b := range brokenKernels {
		if r.Kernel != "" && b.matches("linux-image-"+r.Kernel, r.version, module) {
			return errkind.New(errkind.Conflict, "the %s module %s does not build for kernel %s: %s", b.module, r.version, r.Kernel, b.why).Do("What goes together: " + b.good + ".")
		}
	}
	if r.Driver.True("precompiled") {
		if err := r.canPrecompiled(); err != nil {
			return err
		}
	}
	if !r.own {
		return nil
	}
	have, ok := ownBranch[r.System.Version]
	switch {
	case !ok || have != r.branch:
		return errkind.New(errkind.NotFound, "%s itself does not package driver %s", r.System, r.version).
			Do(ownHint(r.System, have) + `Name a repository in the block that has it: repository { url = "http://mirror.example/cuda/debian12/x86_64/" key = file("cuda.asc") }.`)
	case r.open && r.version != openOwn && len(strings.Split(r.version, ".")) == 3:
		return errkind.New(errkind.Conflict, "%s itself packages the open module at %s only, and needs everything else at the same version; this block asks for %s", r.System, openOwn, r.version).
			Do(fmt.Sprintf("Write version = %q, or module = \"proprietary\".", openOwn))
	}
	return nil
}

// canPrecompiled refuses modules that the vendor built where there are none that fit.
func (r *recipe) canPrecompiled() error {
	h := r.Node.Hardware
	switch {
	case r.System.Family != distribution.RHEL:
		return errkind.New(errkind.Unsupported, "modules that NVIDIA built are taken on RHEL and its rebuilds alone, and node %s has %s", r.Node.Name, r.System).Do("Remove precompiled: DKMS builds the module.")
	case len(strings.Split(r.version, ".")) != 3:
		return errkind.New(errkind.Invalid, "modules that NVIDIA built have the whole version of the driver in their name, and this block asks for branch %s", r.version).Do(`Write the whole version, such as version = "580.126.16".`)
	case r.Kernel == "":
		return errkind.New(errkind.Invalid, "a module that NVIDIA built is for one kernel, and image %q does not say which one it has", r.Node.Image.Name).Do(`Name the kernel in the image block, such as kernel = "kernel-5.14.0-570.12.1.el9_6.x86_64"; or remove precompiled.`)
	case h != nil && h.SecureBoot:
		return errkind.New(errkind.Unsupported, "modules that NVIDIA built have NVIDIA's signature, and node %s boots with Secure Boot, whose keys are the distribution's and the site's", r.Node.Name).Do("Set secure_boot = false in its hardware and switch Secure Boot off in its firmware: for systems of RHEL no module is built and signed on the controller.")
	}
	return nil
}

// precompiled is the package with a module that NVIDIA built for the kernel of the node, whose
// name has the versions of both: kmod-nvidia-open-580.178.04-6.12.0-211.50.1 for
// 6.12.0-211.50.1.el10_2.x86_64 (README of NVIDIA/yum-packaging-precompiled-kmod;
// mizdebsk/radii, which lists them).
func (r *recipe) precompiled() string {
	kernel, _, _ := strings.Cut(r.Kernel, ".el")
	flavour := ""
	if r.open {
		flavour = "open-"
	}
	return "kmod-nvidia-" + flavour + r.version + "-" + kernel
}

func ownHint(d distribution.Release, branch int) string {
	if branch == 0 {
		return ""
	}
	return fmt.Sprintf("%s has R%d. ", d, branch)
}

// base is the kernel module with the libraries that belong to it.
func (r *recipe) base() {
	n, i := vendorOf(r.System.Family, r.branch), 1
	if r.own {
		n = debianOwn
	}
	packages := n.proprietary
	if r.open {
		i, packages = 0, n.open
	}
	if r.open && r.own && len(strings.Split(r.version, ".")) < 3 {
		r.version = openOwn // the one of its branch that has an open module
	}
	if module := r.precompiled(); r.Driver.True("precompiled") {
		dkms := n.module[i]
		n.module[i], packages = module, slices.Clone(packages)
		packages[slices.Index(packages, dkms)] = module
	} else {
		stack.AddHeaders(r.Node.Image, r.Base, &r.set)
	}
	r.set.Packages = append(r.set.Packages, packages...)
	r.set.Pins = append(r.set.Pins, repo.Pin{Packages: followed, Version: versionPattern(r.version)})
	r.set.Module = stack.Module{Name: "nvidia", File: n.file[i], Version: strings.TrimRight(versionPattern(r.version), "-*"), Package: n.module[i]}
	r.set.Others = []string{"nvidia_uvm"}
	r.set.Clashing = []string{"nouveau"}
	r.set.Options = []string{"options nvidia NVreg_RestrictProfilingToAdminUsers=0"}
	r.set.Services = []string{"nvidia-persistenced"}
	r.set.Libraries = []string{"libcuda.so.1", "libnvidia-ml.so.1"}
	if n := countGPUs(r.Node.Hardware); n > 0 {
		r.set.Devices = []stack.Device{{Dir: "/dev", Prefix: "nvidia", Count: n, Of: "GPUs"}}
	}
}

// versionPattern returns a driver version as packages have it: the whole one with a revision
// behind it, or all of a branch.
func versionPattern(version string) string {
	if len(strings.Split(version, ".")) == 3 {
		return version + "-*"
	}
	return version + ".*"
}

// links is what GPUs need to reach each other: the fabric manager on HGX boards,
// IMEX on trays, and peer memory for HCAs.
func (r *recipe) links() {
	suffix := ""
	if r.branch < renamed {
		suffix = "-" + strconv.Itoa(r.branch)
	}
	if r.System.Family == distribution.RHEL && r.branch < renamed {
		suffix = ""
	}
	switch h := r.Node.Hardware; {
	case isTrayNode(r.Node):
		// The fabric manager of a tray runs on its switches. IMEX is started by the
		// NVLink domain's own configuration.
		r.set.Packages = append(r.set.Packages, "nvidia-imex"+suffix)
		r.set.Options = append(r.set.Options, "options nvidia NVreg_CreateImexChannel0=1")
		if slices.ContainsFunc(nvidiaGPUs(h), func(g inventory.GPU) bool { return isTray(g.Model) }) {
			r.set.Options = append(r.set.Options, "options nvidia NVreg_CoherentGPUMemoryMode=driver")
		}
	case r.Driver.True("fabric_manager"):
		r.set.Packages = append(r.set.Packages, fabricManager(r.System.Family, r.branch)+suffix)
		r.set.Services = append(r.set.Services, "nvidia-fabricmanager")
		if slices.ContainsFunc(nvidiaGPUs(h), func(g inventory.GPU) bool { return hasWord(g.Model, nvlink5) }) {
			r.set.Packages = append(r.set.Packages, "nvlsm", "libnvsdm")
			r.set.Others = append(r.set.Others, "ib_umad")
		}
	}
	doca := func(d *inventory.Driver) bool { return d.Kind == "doca" }
	if slices.ContainsFunc(r.Node.Drivers, doca) && !r.own {
		r.set.Others = append(r.set.Others, "nvidia_peermem") // without DOCA's ib_core there is nothing that it could link with: dma-buf is used
	}
}

// fabricManager is the name without the branch: RPMs had a dash more.
func fabricManager(family string, branch int) string {
	if family == distribution.RHEL && branch < renamed {
		return "nvidia-fabric-manager"
	}
	return "nvidia-fabricmanager"
}

// tools are the toolkit, NCCL and DCGM (azhpc-images, install_nvidia_driver and
// install_nccl): only NVIDIA's repositories have the latter two.
func (r *recipe) tools() {
	toolkit := r.Driver.Text("cuda")
	if r.own {
		if toolkit != "" {
			r.set.Packages = append(r.set.Packages, "nvidia-cuda-toolkit")
		}
		return
	}
	if toolkit != "" {
		v := usage.ParseRelease(toolkit)
		nccl := []string{"libnccl2", "libnccl-dev"}
		if r.System.Family == distribution.RHEL {
			nccl = []string{"libnccl", "libnccl-devel"}
		}
		kit := append([]string{fmt.Sprintf("cuda-toolkit-%d-%d", v.Major(), v.Minor())}, nccl...)
		r.set.Packages = append(r.set.Packages, kit...)
		r.set.Toolkit = &stack.Toolkit{Packages: kit, Home: fmt.Sprintf("/usr/local/cuda-%d.%d", v.Major(), v.Minor()), Library: "/usr", Targets: listTargets(r.Node.Hardware)}
		r.set.Pins = append(r.set.Pins, repo.Pin{Packages: nccl, Version: fmt.Sprintf("*+cuda%d.%d", v.Major(), v.Minor())})
		r.set.Libraries = append(r.set.Libraries, "libnccl.so.2")
	}
	major := usage.ParseRelease(toolkit).Major()
	if b, ok := branchOf(r.branch); ok && toolkit == "" {
		major = b.Major()
	}
	if major >= 11 {
		r.set.Packages = append(r.set.Packages, fmt.Sprintf("datacenter-gpu-manager-4-cuda%d", major))
		r.set.Services = append(r.set.Services, "nvidia-dcgm")
	}
}

// nvidiaGPUs returns the GPUs of NVIDIA of a chassis.
func nvidiaGPUs(h *inventory.Hardware) []inventory.GPU {
	if h == nil {
		return nil
	}
	return (&usage.Usage{Hardware: h}).GPUs("nvidia")
}

// listTargets lists the compute capabilities of the GPUs of a chassis, sorted, without
// those of models that no table knows.
func listTargets(h *inventory.Hardware) (list []string) {
	for _, g := range nvidiaGPUs(h) {
		for _, w := range usage.ModelWords(g.Model) {
			if c, ok := capabilities[w]; ok {
				list = append(list, c)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// countGPUs counts them.
func countGPUs(h *inventory.Hardware) (n int) {
	for _, g := range nvidiaGPUs(h) {
		n += max(g.Count, 1)
	}
	return n
}

// isTrayNode reports whether a node is a tray of an NVLink domain.
func isTrayNode(n *inventory.Node) bool {
	return n.Domain != "" || slices.ContainsFunc(nvidiaGPUs(n.Hardware), func(g inventory.GPU) bool { return isTray(g.Model) })
}

func hasWord(model string, words []string) bool {
	return slices.ContainsFunc(usage.ModelWords(model), func(w string) bool { return slices.Contains(words, w) })
}
