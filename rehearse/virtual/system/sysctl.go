// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/hostfile"
)

// sysctlAreas are the folders of /proc/sys. The kernel of a virtual node takes every
// setting in them: which it really has depends on its version and on its modules.
var sysctlAreas = []string{"abi", "debug", "dev", "fs", "kernel", "net", "user", "vm"}

// applySysctl sets one setting, and reports whether the kernel takes it.
func (n *node) applySysctl(key, value string) bool {
	name := hostfile.SysctlPath(key)
	parts := strings.Split(strings.TrimPrefix(name, "proc/sys/"), "/")
	if len(parts) < 2 || !slices.Contains(sysctlAreas, parts[0]) {
		return false
	}
	if len(parts) == 5 && strings.HasPrefix(name, "proc/sys/net/ipv4/conf/") {
		return n.cfg.Kernel.SetIPv4(parts[3], parts[4], value) == nil
	}
	n.tree.set(name, value+"\n")
	return true
}

// sysctlFile applies a file of sysctl.d(5). What the kernel does not take is passed over,
// as systemd-sysctl does.
func (n *node) sysctlFile(name string) error {
	b, err := fs.ReadFile(n.tree, name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && line[0] != '#' && line[0] != ';' {
			n.applySysctl(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
	return nil
}

// applySysctls does what systemd-sysctl.service does at every boot.
func (n *node) applySysctls() {
	const dir = "etc/sysctl.d"
	names := n.fs.Names(dir)
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".conf") {
			_ = n.sysctlFile(path.Join(dir, name)) // one that cannot be read does not stop the boot
		}
	}
}

// systemdSysctl is systemd-sysctl of files.
func systemdSysctl(_ context.Context, c call) int {
	for _, name := range c.Argv[1:] {
		if err := c.n.sysctlFile(c.path(name)); err != nil {
			return c.fail(name + ": " + describeErrno(err))
		}
	}
	return 0
}

// runLocale is locale -a.
func runLocale(_ context.Context, c call) int {
	c.print("C\nC.utf8\nPOSIX\n")
	if c.n.hasPackage("locales-all") {
		c.print("de_DE.utf8\nen_GB.utf8\nen_US.utf8\nfr_FR.utf8\nja_JP.utf8\n") // some of them
	}
	return 0
}
