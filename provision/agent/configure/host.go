// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// What may stand in the settings of the host.
var (
	sysctlKey   = lazyregexp.New(`^[a-z][a-z0-9_-]*([./][A-Za-z0-9_:-]+)+$`)
	sysctlValue = lazyregexp.New(`^[!-~]+( [!-~]+)*$`)
	localeName  = lazyregexp.New(`^[A-Za-z0-9_.@-]+$`)
	groupName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	packageName = lazyregexp.New(`^[a-z0-9][a-z0-9+.*_-]*$`)
)

// hostValues are the values of the host's settings with their form.
func (s settings) hostValues() []checked {
	h := s.Host
	list := []checked{
		{"sysctl", sysctlKey, slices.Sorted(maps.Keys(h.Sysctl))},
		{"value of a sysctl", sysctlValue, slices.Sorted(maps.Values(h.Sysctl))},
		{"locale", localeName, optional(h.Locale)},
		{"group", groupName, h.SudoGroups},
	}
	if k := h.HoldKernel; k != nil {
		list = append(list, checked{"name of a package", packageName, slices.Concat(k.Dpkg, k.Dnf)})
	}
	return list
}

// host writes what can be changed later too. Whether the system has what it takes, such
// as a package manager that holds the kernel, is looked at once it runs.
func (s settings) host(root rootfs.Root) error {
	h := s.Host
	type file struct {
		name, text string
		mode       fs.FileMode
	}
	var list []file
	if len(h.Sysctl) > 0 {
		list = append(list, file{hostfile.SysctlFile, hostfile.Sysctl(h.Sysctl), 0o644})
	}
	if h.Locale != "" {
		list = append(list, file{hostfile.LocaleFile, hostfile.Locale(h.Locale), 0o644})
		if rootfs.Exists(root, dpkg.StatusFile) {
			list = append(list, file{hostfile.DebianLocaleFile, hostfile.Locale(h.Locale), 0o644})
		}
	}
	if len(h.SudoGroups) > 0 {
		list = append(list, file{hostfile.SudoersFile, hostfile.Sudoers(h.SudoGroups), 0o440})
	}
	if h.NoUpdates && rootfs.Exists(root, "etc/apt") {
		list = append(list, file{hostfile.NoUpdatesFile, hostfile.NoUpdates, 0o644})
	}
	for _, f := range list {
		if err := rootfs.WriteText(root, f.name, f.text, f.mode); err != nil {
			return err
		}
	}
	if err := s.maskUpdates(root); err != nil {
		return err
	}
	return s.holdKernel(root)
}

// maskUpdates masks the units that bring updates by themselves, those that are there.
func (s settings) maskUpdates(root rootfs.Root) error {
	if !s.Host.NoUpdates {
		return nil
	}
	for _, unit := range hostfile.UpdateUnits {
		if !rootfs.Exists(root, "usr/lib/systemd/system/"+unit) && !rootfs.Exists(root, "lib/systemd/system/"+unit) {
			continue
		}
		if err := rootfs.Link(root, "/dev/null", "etc/systemd/system/"+unit); err != nil {
			return err
		}
	}
	return nil
}

// holdKernel holds the kernel in the files of dpkg, of dnf, or of both.
func (s settings) holdKernel(root rootfs.Root) error {
	k := s.Host.HoldKernel
	if k == nil {
		return nil
	}
	for name, change := range map[string]func([]byte) []byte{
		dpkg.StatusFile:  func(b []byte) []byte { out, _ := hostfile.HoldInStatus(b, k.Dpkg); return out },
		hostfile.DnfConf: func(b []byte) []byte { return []byte(hostfile.Exclude(string(b), k.Dnf, true)) },
	} {
		if !rootfs.Exists(root, name) {
			continue
		}
		was, err := fs.ReadFile(root.FS(), name)
		if err != nil {
			return fmt.Errorf("/%s: %w", name, err)
		}
		if now := string(change(was)); now != string(was) {
			if err := rootfs.Write(root, name, strings.NewReader(now), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
