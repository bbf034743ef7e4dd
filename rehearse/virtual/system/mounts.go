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

// mountTable is what a node has mounted beside its own disks, as the kernel shows it.
const mountTable = "proc/self/mounts"

// wantsRemote is where enabled units of mounts are linked.
const wantsRemote = "etc/systemd/system/remote-fs.target.wants"

// mountTime is how long a server takes to answer.
const mountTime = 200 * time.Millisecond

// mountHelpers are the packages with mount.TYPE; of other types the kernel needs none, or it is in
// a package of the vendor's.
var mountHelpers = map[string][]string{"nfs": {"nfs-common", "nfs-utils"}, "nfs4": {"nfs-common", "nfs-utils"}, "cifs": {"cifs-utils"}}

// mountUnit is a unit file of a mount, or a line of fstab.
func (n *node) mountUnit(unit string) (what, where, kind, options string, ok bool) {
	b, err := n.tree.ReadFile("etc/systemd/system/" + unit)
	if err != nil {
		return n.fstabUnit(unit)
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.ReplaceAll(value, "%%", "%")
		switch key {
		case "What":
			what = value
		case "Where":
			where = value
		case "Type":
			kind = value
		case "Options":
			options = value
		}
	}
	return what, where, kind, options, err == nil
}

// mountLines are the lines of the table but for those of one place.
func (n *node) mountLines(but string) (kept []string) {
	b, _ := n.tree.ReadFile(mountTable) // a system that runs has it
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] != but {
			kept = append(kept, line)
		}
	}
	return kept
}

// mountVerb is systemctl of a unit that mounts.
func (n *node) mountVerb(ctx context.Context, c call, verb, unit string) int {
	what, where, kind, options, ok := n.mountUnit(unit)
	link := wantsRemote + "/" + unit
	if !ok {
		_, _ = fmt.Fprintf(c.Err, "Failed to %s %s: Unit %s not found.\n", verb, unit, unit)
		return 5
	}
	switch verb {
	case "start", "restart":
		if !n.mount(ctx, unit, what, where, kind, options) {
			_, _ = fmt.Fprintf(c.Err, "Job for %s failed.\nSee \"systemctl status %[1]s\" and \"journalctl -xeu %[1]s\" for details.\n", unit)
			return 1
		}
	case "enable":
		if !n.tree.exists(link) && n.tree.MkdirAll(wantsRemote, 0o755) == nil {
			_ = n.tree.Symlink("/etc/systemd/system/"+unit, link)
		}
	case "disable":
		_ = n.tree.Remove(link) // not enabled: nothing to do
	}
	if verb == "stop" || verb == "disable" && slices.Contains(c.Argv, "--now") {
		n.tree.set(mountTable, strings.Join(n.mountLines(where), ""))
		n.units.mu.Lock()
		delete(n.units.active, unit)
		n.units.mu.Unlock()
	}
	return 0
}

// mount mounts, and reports whether it could.
func (n *node) mount(ctx context.Context, unit, what, where, kind, options string) bool {
	if n.cfg.Clock.Sleep(ctx, mountTime) != nil {
		return false
	}
	if packages, needs := mountHelpers[kind]; needs {
		if pkg, _ := n.installedAs(packages); pkg == "" {
			n.tree.set("run/log/"+unit, "mount: "+where+": bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.\n")
			n.units.end(unit, false)
			return false
		}
	}
	if !n.maps(what, kind) {
		n.tree.set("run/log/"+unit, "mount: "+where+": wrong fs type, bad option, bad superblock on "+what+", missing codepage or helper program, or other error.\n")
		n.units.end(unit, false)
		return false
	}
	how := "rw"
	if slices.Contains(strings.Split(options, ","), "ro") {
		how = "ro"
	}
	if kind == "nfs" {
		kind = "nfs4"
	}
	_ = n.tree.MkdirAll(strings.TrimPrefix(where, "/"), 0o755) // there already
	line := fmt.Sprintf("%s %s %s %s,relatime 0 0\n", what, where, kind, how)
	n.tree.set(mountTable, strings.Join(append(n.mountLines(where), line), ""))
	n.units.end(unit, true)
	return true
}

// mountAtStart mounts what is enabled, and the volumes of fstab.
func (n *node) mountAtStart(ctx context.Context) {
	n.mountVolumes(ctx)
	list, err := n.tree.ReadDir(wantsRemote)
	if err != nil {
		return // nothing is enabled
	}
	for _, e := range list {
		if what, where, kind, options, ok := n.mountUnit(e.Name()); ok {
			n.mount(ctx, e.Name(), what, where, kind, options)
		}
	}
}

// isEnabled is `systemctl is-enabled` of a unit.
func (n *node) isEnabled(c call, unit string) int {
	for _, target := range []string{wantsRemote, "etc/systemd/system/multi-user.target.wants"} {
		if _, err := n.tree.Lstat(path.Join(target, unit)); err == nil {
			c.print("enabled\n")
			return 0
		}
	}
	c.print("disabled\n")
	return 1
}

// runStat is stat(1) of a file system or a file: whether it is there.
func runStat(_ context.Context, c call) int {
	name := c.Argv[len(c.Argv)-1]
	if !c.n.tree.exists(c.path(name)) {
		return c.fail("cannot statx '" + name + "': No such file or directory")
	}
	c.print("  File: \"" + name + "\"\n")
	return 0
}
