// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// moduleTime is how long loading a kernel module takes.
const moduleTime = 300 * time.Millisecond

// knownModules are the modules of the kernel itself that a node may load (Debian
// 12's).
var knownModules = []string{
	"rdma_rxe", "ib_core", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_ucm", "rdma_cm", "mlx5_core", "mlx5_ib", "bnxt_en", "bnxt_re", "amdgpu", "nouveau",
	"8021q", "bonding", "ipmi_devintf", "ipmi_si", "nvme_tcp", "nfs", "nfsv4", "overlay", "loop", "dummy",
}

// fileNames are what files of modules are called besides the module's own name:
// Debian's own packages name them so and let modprobe find them by an alias.
var fileNames = map[string][]string{
	"nvidia": {"nvidia-current", "nvidia-current-open"}, "nvidia_uvm": {"nvidia-current-uvm", "nvidia-current-open-uvm"}, "nvidia_peermem": {"nvidia-current-peermem", "nvidia-current-open-peermem"},
}

// needs are the modules without which another does not load, and which stay while
// it is loaded.
var needs = map[string]string{"nvidia_uvm": "nvidia", "nvidia_modeset": "nvidia", "nvidia_drm": "nvidia_modeset", "nvidia_peermem": "nvidia", "mlx5_ib": "mlx5_core"}

// moduleName returns the name of a module in the kernel.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (n *node) moduleFolder() string { return "usr/lib/modules/" + n.cfg.Kernel.Release() }

// moduleFile finds the file of a module: what lies in updates first, as depmod has
// it, then what DKMS built, then the kernel's own. version is "" for the latter.
func (n *node) moduleFile(name string) (file, version string, ok bool) {
	names := append([]string{moduleName(name), strings.ReplaceAll(name, "_", "-")}, fileNames[moduleName(name)]...)
	if n.cfg.Stray != nil {
		if s := n.cfg.Stray(); s != nil && s.Module == moduleName(name) {
			return "/lib/modules/" + n.cfg.Kernel.Release() + "/updates/" + s.Module + ".ko", s.Version, true
		}
	}
	for _, dir := range []string{"updates", "updates/dkms", "updates/ironrail", "extra"} {
		for _, f := range names {
			at := path.Join(n.moduleFolder(), dir, f+".ko")
			if b, err := n.tree.ReadFile(at); err == nil {
				return "/" + strings.TrimPrefix(at, "usr/"), fieldsOf(string(b))["version"], true
			}
		}
	}
	if slices.Contains(knownModules, moduleName(name)) {
		return "/lib/modules/" + n.cfg.Kernel.Release() + "/kernel/drivers/" + moduleName(name) + ".ko", "", true
	}
	return "", "", false
}

// loaded reports whether a module is in the kernel.
func (n *node) loaded(name string) bool { return n.tree.exists("sys/module/" + moduleName(name)) }

// load puts a module into the kernel, with those that it needs; what is there
// already stays as it is. It returns what the kernel says when it cannot.
func (n *node) load(name string) string {
	m := moduleName(name)
	if n.loaded(m) {
		return ""
	}
	if other := needs[m]; other != "" {
		if said := n.load(other); said != "" {
			return said
		}
	}
	file, version, ok := n.moduleFile(name)
	switch {
	case !ok:
		return fmt.Sprintf("modprobe: FATAL: Module %s not found in directory /lib/modules/%s", name, n.cfg.Kernel.Release())
	case version != "" && strings.Contains(n.fs.Text("sys/kernel/security/lockdown"), "[integrity]") && !n.trusts(file):
		return fmt.Sprintf("modprobe: ERROR: could not insert '%s': Key was rejected by service", name)
	case m == "nvidia" && (len(n.gpus()) == 0 || n.loaded("nouveau")):
		return "modprobe: ERROR: could not insert 'nvidia': No such device"
	}
	at := path.Join("sys/module", m)
	_ = n.tree.MkdirAll(at, 0o755) // in memory: it cannot fail
	if version != "" {
		n.tree.set(at+"/version", version+"\n")
	}
	n.makeDevices(m)
	if m == "nvidia" {
		fields := map[string]string{"version": version}
		if b, err := n.tree.ReadFile("usr" + file); err == nil {
			fields = fieldsOf(string(b))
		}
		n.tree.set(driverFiles+"nvidia/version", nvidiaVersion(fields, n.cfg.Twin.Machine()))
	}
	return ""
}

// trusts reports whether the kernel of a node with Secure Boot takes a file of a module that is
// not its own: one that is signed by the key of a certificate in db or in shim's list, which its serial
// number names.
func (n *node) trusts(file string) bool {
	b, err := n.tree.ReadFile("usr" + file)
	if err != nil {
		return false
	}
	serial, err := hex.DecodeString(strings.ReplaceAll(fieldsOf(string(b))["sig_key"], ":", ""))
	trusted := n.fs.Text("sys/firmware/efi/efivars", "db-d719b2cb-3d3a-4596-a3bc-dad00e67656f") + n.fs.Text("sys/firmware/efi/mok-variables", "MokListRT")
	return err == nil && len(serial) > 0 && strings.Contains(trusted, string(serial))
}

// unload takes a module out of the kernel, unless something needs it.
func (n *node) unload(name string) string {
	m := moduleName(name)
	if !n.loaded(m) {
		return ""
	}
	if n.inUse(m) {
		return fmt.Sprintf("modprobe: FATAL: Module %s is in use.", m)
	}
	_ = n.tree.removeAll(path.Join("sys/module", m)) // in memory
	if m == "nvidia" {
		_ = n.tree.removeAll(driverFiles + "nvidia") // in memory
		for _, d := range n.fs.Names("dev") {
			if strings.HasPrefix(d, "nvidia") {
				_ = n.tree.Remove("dev/" + d)
			}
		}
	}
	return ""
}

// inUse reports whether a module is needed: by another one, by a service that has
// its device open, or, that of a NIC or of a console, by the system itself.
func (n *node) inUse(m string) bool {
	for other, needed := range needs {
		if needed == m && n.loaded(other) {
			return true
		}
	}
	switch m {
	case "mlx5_core", "amdgpu":
		return true
	case "nvidia":
		return slices.ContainsFunc([]string{"nvidia-persistenced", "nvidia-fabricmanager", "nvidia-dcgm"}, func(u string) bool { return n.units.of(u) == "active" })
	}
	return false
}

// makeDevices makes the files of a driver's devices.
func (n *node) makeDevices(m string) {
	switch m {
	case "nvidia":
		n.tree.set("dev/nvidiactl", "")
		for _, g := range n.gpus() {
			n.tree.set(fmt.Sprintf("dev/nvidia%d", g.index), "")
		}
	case "amdgpu":
		if k := n.amdGPUs(); k > 0 {
			n.tree.set("dev/kfd", "")
			_ = n.tree.MkdirAll("dev/dri", 0o755)
			for i := range k {
				n.tree.set(fmt.Sprintf("dev/dri/renderD%d", 128+i), "")
			}
		}
	}
}

// amdGPUs counts the accelerators of AMD on the bus.
func (n *node) amdGPUs() (k int) {
	if n.cfg.Hardware == nil {
		return 0
	}
	for _, at := range n.fs.Names("sys/bus/pci/devices") {
		class := n.fs.Text("sys/bus/pci/devices", at, "class")
		if n.fs.Text("sys/bus/pci/devices", at, "vendor") == "0x1002" && (strings.HasPrefix(class, "0x12") || strings.HasPrefix(class, "0x03")) {
			k++
		}
	}
	return k
}

// coldplug loads the drivers of what is on the bus, as udev does at the start, and
// what is listed.
func (n *node) coldplug() {
	if slices.ContainsFunc(n.cfg.Ports, func(p Port) bool { return strings.HasPrefix(p.RDMA, "mlx5") }) {
		n.load("mlx5_core")
		n.load("mlx5_ib")
	}
	if n.amdGPUs() > 0 && !n.blacklisted("amdgpu") {
		n.load("amdgpu")
	}
	if len(n.gpus()) > 0 {
		if _, _, own := n.moduleFile("nvidia"); own && !n.blacklisted("nvidia") {
			n.load("nvidia")
		}
		if !n.blacklisted("nouveau") && !n.loaded("nvidia") {
			n.load("nouveau")
		}
	}
	const dir = "etc/modules-load.d"
	for _, name := range n.fs.Names(dir) {
		for line := range strings.Lines(n.fs.Text(dir, name)) {
			if m := strings.TrimSpace(line); m != "" && !strings.HasPrefix(m, "#") {
				n.load(m)
			}
		}
	}
}

// blacklisted reports whether an argument of the kernel (kernel-command-line(7)), or a file of
// modprobe.d(5), keeps a module from being loaded by its alias.
func (n *node) blacklisted(m string) bool {
	for arg := range strings.FieldsSeq(n.fs.Text("proc/cmdline")) {
		if list, ok := strings.CutPrefix(arg, "modprobe.blacklist="); ok && slices.Contains(strings.Split(list, ","), m) {
			return true
		}
	}
	const dir = "etc/modprobe.d"
	for _, name := range n.fs.Names(dir) {
		if slices.Contains(strings.Split(n.fs.Text(dir, name), "\n"), "blacklist "+m) {
			return true
		}
	}
	return false
}

func runModprobe(ctx context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	do := c.n.load
	if hasOption(o, 'r') {
		do = c.n.unload
	}
	for _, m := range names {
		if c.n.cfg.Clock.Sleep(ctx, moduleTime) != nil {
			return 137
		}
		if said := do(m); said != "" {
			_, _ = fmt.Fprintln(c.Err, said)
			return 1
		}
	}
	return 0
}

func runLsmod(_ context.Context, c call) int {
	c.print("Module                  Size  Used by\n")
	for _, m := range c.n.fs.Names("sys/module") {
		c.print(fmt.Sprintf("%-19s %8d  0\n", m, 16384))
	}
	return 0
}

// runModinfo prints one field (-F) of a module's file, for the kernel that runs.
func runModinfo(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "Fk")
	if release := o['k']; release != "" && release != c.n.cfg.Kernel.Release() || len(names) != 1 {
		return c.fail("ERROR: Module " + strings.Join(names, " ") + " not found.")
	}
	file, version, ok := c.n.moduleFile(names[0])
	if !ok {
		return c.fail("ERROR: Module " + names[0] + " not found.")
	}
	fields := map[string]string{}
	if b, err := c.n.tree.ReadFile("usr" + file); err == nil {
		fields = fieldsOf(string(b))
	}
	switch f := o['F']; f {
	case "sig_id", "sig_key", "signer":
		if fields[f] != "" {
			c.print(fields[f] + "\n")
		}
	case "filename":
		c.print(file + "\n")
	case "version":
		if version != "" {
			c.print(version + "\n")
		}
	case "":
		c.print("filename:       " + file + "\n")
		if version != "" {
			c.print("version:        " + version + "\n")
		}
	}
	return 0
}
