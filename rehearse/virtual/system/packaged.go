// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// packagedUnit is a service that comes with packages.
type packagedUnit struct {
	packages []string // patterns; one of them brings it
	module   string   // that must be loaded; "": none
	same     bool     // its package must have the module's version
	takes    time.Duration
}

// packagedUnits are the services of driver stacks by name.
var packagedUnits = map[string]packagedUnit{
	"nvidia-persistenced":  {[]string{"nvidia-persistenced", "nvidia-driver-cuda", "nvidia-open", "cuda-drivers"}, "nvidia", false, 2 * time.Second},
	"nvidia-fabricmanager": {[]string{"nvidia-fabricmanager*", "nvidia-fabric-manager"}, "nvidia", true, 25 * time.Second},
	"nvidia-dcgm":          {[]string{"datacenter-gpu-manager*"}, "", false, 2 * time.Second},
	"nvidia-imex":          {[]string{"nvidia-imex*"}, "nvidia", true, 2 * time.Second},
	"openibd":              {[]string{"mlnx-ofed-kernel-dkms", "mlnx-ofa_kernel-dkms", "doca-ofed", "doca-all", "doca-networking", "doca-roce"}, "mlx5_core", false, 4 * time.Second},
}

// packagedLibraries are the shared libraries of driver stacks.
var packagedLibraries = map[string][]string{
	"libcuda.so.1":      {"libcuda1", "nvidia-driver-cuda", "nvidia-open", "cuda-drivers"},
	"libnvidia-ml.so.1": {"libnvidia-ml1", "nvidia-driver-cuda", "nvidia-open", "cuda-drivers"},
	"libnccl.so.2":      {"libnccl2", "libnccl"},
	"libamdhip64.so.5":  {"libamdhip64-5"},
	"libamdhip64.so.6":  {"rocm"},
	"libamdhip64.so.7":  {"rocm"},
	"librccl.so.1":      {"rccl"},
	"libibverbs.so.1":   {"rdma-core", "doca-ofed"},
}

// installedAs returns the first installed package that a pattern names, with its
// version.
func (n *node) installedAs(patterns []string) (name, version string) {
	have := n.packages()
	for _, p := range patterns {
		if v := have[p]; v != "" {
			return p, v
		}
		for name, v := range have {
			if ok, err := path.Match(p, name); err == nil && ok {
				return name, v
			}
		}
	}
	return "", ""
}

// hasUnit reports whether a package brought a unit.
func (n *node) hasUnit(name string) bool {
	u, ok := packagedUnits[name]
	if !ok {
		return false
	}
	pkg, _ := n.installedAs(u.packages)
	return pkg != ""
}

// startPackaged starts a service of a package; it returns what it logs when it
// cannot.
func (n *node) startPackaged(ctx context.Context, name string) string {
	u := packagedUnits[name]
	if n.cfg.Clock.Sleep(ctx, u.takes) != nil {
		return "killed"
	}
	if name == imexUnit {
		n.prolog()
	}
	_, version := n.installedAs(u.packages)
	switch {
	case u.module != "" && !n.loaded(u.module):
		return fmt.Sprintf("%s: kernel module %s is not loaded", name, u.module)
	case u.same && n.fs.Text("sys/module", u.module, "version") != upstreamVersion(version):
		return fmt.Sprintf("fabric manager NVIDIA GPU driver interface version %s don't match with driver version %s. Please update with matching NVIDIA driver package.", upstreamVersion(version), n.fs.Text("sys/module", u.module, "version"))
	}
	return ""
}

// wantedAtStart are the services of packages that are enabled.
func (n *node) wantedAtStart() (names []string) {
	for name := range packagedUnits {
		// The link leads to a file of the package, which no package has here.
		if _, err := n.tree.Lstat("etc/systemd/system/multi-user.target.wants/" + name + ".service"); err == nil && n.hasUnit(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// enable links a unit to the target that the system starts.
func (n *node) enable(name string, on bool) {
	const dir = "etc/systemd/system/multi-user.target.wants"
	at := dir + "/" + name + ".service"
	switch {
	case !on:
		_ = n.tree.Remove(at) // not enabled: nothing to do
	case !n.tree.exists(at) && n.tree.MkdirAll(dir, 0o755) == nil:
		_ = n.tree.Symlink("/usr/lib/systemd/system/"+name+".service", at)
	}
}

// runLdconfig is ldconfig -p.
func runLdconfig(_ context.Context, c call) int {
	var lines []string
	for lib, packages := range packagedLibraries {
		pkg, version := c.n.installedAs(packages)
		if pkg == "" || strings.HasPrefix(lib, "libamdhip64") && pkg == "rocm" && !strings.HasSuffix(lib, "."+rocmMajor(version)) {
			continue
		}
		lines = append(lines, fmt.Sprintf("\t%s (libc6,%s) => /lib/%s/%[1]s\n", lib, c.n.cfg.Twin.LibraryClass(), c.n.cfg.Twin.Triplet()))
	}
	slices.Sort(lines)
	c.print(fmt.Sprintf("%d libs found in cache `/etc/ld.so.cache'\n%s", len(lines), strings.Join(lines, "")))
	return 0
}

// compiledFor are the libraries that programs need which were compiled on the
// controller, by their packages.
var compiledFor = map[string][]string{"ironrail-nccl-tests": {"libnccl.so.2"}, "ironrail-rccl-tests": {"librccl.so.1", "libamdhip64.so.7"}, "ironrail-nvbandwidth": {"libcuda.so.1"}, "ironrail-checksum": nil}

// runLdd is ldd of one program.
func runLdd(_ context.Context, c call) int {
	if len(c.Argv) != 2 || !c.n.tree.exists(c.path(c.Argv[1])) {
		_, _ = fmt.Fprintf(c.Err, "ldd: %s: No such file or directory\n", strings.Join(c.Argv[1:], " "))
		return 1
	}
	c.print("\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0000000000)\n")
	for pkg, libraries := range compiledFor {
		if version := c.n.packages()[pkg]; version == "" || "/"+placed[pkg] != c.Argv[1] {
			continue
		}
		for _, lib := range libraries {
			if brought, _ := c.n.installedAs(packagedLibraries[lib]); brought == "" {
				c.print(fmt.Sprintf("\t%s => not found\n", lib))
				continue
			}
			c.print(fmt.Sprintf("\t%s => /lib/x86_64-linux-gnu/%[1]s (0x00007f0000000000)\n", lib))
		}
	}
	return 0
}

// rocmMajor is the major release of a ROCm package: its number stands behind the
// package's own as in 7.0.2.70002-56.
func rocmMajor(version string) string {
	parts := strings.Split(upstreamVersion(version), ".")
	last := parts[len(parts)-1]
	return last[:min(1, len(last))]
}

// updateInitramfs makes the initial file system of the kernel anew.
func updateInitramfs(ctx context.Context, c call) int {
	if c.n.cfg.Clock.Sleep(ctx, 12*time.Second) != nil {
		return 137
	}
	c.print("update-initramfs: Generating /boot/initrd.img-" + c.n.cfg.Kernel.Release() + "\n")
	return 0
}

// runFind is find(1) with -path or -name, by folders.
func runFind(_ context.Context, c call) int {
	if len(c.Argv) < 2 {
		return c.fail("paths must precede expression")
	}
	test, glob := "", ""
	if len(c.Argv) == 4 {
		test, glob = c.Argv[2], c.Argv[3]
	}
	if !c.n.tree.exists(c.path(c.Argv[1])) {
		return c.fail("‘" + c.Argv[1] + "’: No such file or directory")
	}
	c.walk(strings.TrimSuffix(c.Argv[1], "/"), func(at string) {
		ok := test == ""
		switch test {
		case "-name":
			ok, _ = path.Match(glob, path.Base(at))
		case "-path":
			ok = strings.HasSuffix(at, strings.TrimPrefix(glob, "*")) // a star matches slashes too
		}
		if ok {
			c.print(at + "\n")
		}
	})
	return 0
}

func (c call) walk(at string, see func(string)) {
	see(at)
	list, err := c.n.tree.ReadDir(c.path(at))
	if err != nil {
		return // a file
	}
	for _, d := range list {
		c.walk(at+"/"+d.Name(), see)
	}
}
