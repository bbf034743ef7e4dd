// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/entries"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/sysdisk"
)

// checkMounts looks whether what fstab(5) mounts is in the image: the boot would wait
// for anything else, and the agent mounts /boot by it.
func (b *builder) checkMounts(root fs.FS) error {
	text, err := fs.ReadFile(root, "etc/fstab")
	if err != nil {
		return err
	}
	b.fstab = sysdisk.ReadFstab(string(text))
	for _, m := range b.fstab {
		options := strings.Split(m.Options, ",")
		if m.Dir == "/" || !sysdisk.IsDevice(m.Device) || m.Dir != "/boot" && (slices.Contains(options, "noauto") || slices.Contains(options, "nofail")) {
			continue // the agent names the root by its UUID
		}
		if err := b.checkMount(m); err != nil {
			return err
		}
	}
	return nil
}

// apart are folders that are in the root file system, since the agent writes below them.
var apart = []string{"/etc", "/root", "/usr", "/usr/local", "/var", "/var/lib"}

// checkMount looks at one line of fstab(5), which a boot needs.
func (b *builder) checkMount(m sysdisk.Mount) error {
	at := fmt.Sprintf("/etc/fstab line %d, %s", m.Line, m.Dir)
	p, err := sysdisk.Find(b.parts, m.Device)
	switch {
	case m.Dir == "/boot/efi":
		if err == nil && p.Type != gpt.EFISystem {
			return errkind.New(errkind.Refused, "%s: %s is partition %d, which is no EFI system partition", at, m.Device, p.Number)
		}
	case err != nil:
		return errkind.New(errkind.Refused, "%s: %w; a node would wait for it when it boots", at, err).Do("Correct fstab in the image, or write nofail there.")
	case m.Dir == "/boot" && !isMountable(p):
		return errkind.New(errkind.Unsupported, "%s: partition %d is neither ext4 nor xfs", at, p.Number)
	case slices.Contains(apart, m.Dir):
		return errkind.New(errkind.Unsupported, "%s is a file system of its own: a system is configured with /boot apart and nothing else", at)
	}
	return nil
}

// bootPart finds the partition of /boot, where it is a file system of its own.
func (b *builder) bootPart() (p sysdisk.Part, apart bool, err error) {
	for _, m := range b.fstab {
		if m.Dir != "/boot" {
			continue
		}
		p, err := sysdisk.Find(b.parts, m.Device)
		if err != nil {
			return p, false, errkind.New(errkind.Refused, "/etc/fstab line %d, /boot: %w", m.Line, err).Do("Correct fstab in the image.")
		}
		return p, true, nil
	}
	return p, false, nil
}

// withBoot calls do with the folder that the kernels lie in: of the root file system, or
// a file system of its own.
func (b *builder) withBoot(ctx context.Context, root fs.FS, do func(boot fs.FS) error) error {
	if p, apart, err := b.bootPart(); err != nil {
		return err
	} else if apart {
		b.say(fmt.Sprintf("/boot: partition %d, %s, %d MiB", p.Number, p.Kind, p.Size()>>20))
		return b.mounted(ctx, p, do)
	}
	boot, err := fs.Sub(root, "boot")
	if err != nil {
		return err
	}
	return do(boot)
}

// checkLoader looks whether the menu of GRUB can be given the node's arguments.
func (b *builder) checkLoader(root, boot fs.FS) error {
	names, err := fs.Glob(root, "etc/default/grub.d/*.cfg")
	if err != nil {
		return err
	}
	for _, name := range append([]string{"etc/default/grub"}, names...) {
		text, _ := fs.ReadFile(root, name) // one that is not there forces nothing
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "GRUB_FORCE_PARTUUID="); ok && value != "" {
				return errkind.New(errkind.Unsupported, "the image boots without its initrd (GRUB_FORCE_PARTUUID in /%s): its kernel would have to have the drivers of the node built in", name).
					Do("Take the image that is not minimized, or take that line out of it and run update-grub.")
			}
		}
	}
	menu := b.family.Disk.Menu
	text, err := fs.ReadFile(boot, menu)
	if err != nil {
		return errkind.New(errkind.NotFound, "GRUB has no menu: %w", err).Do("Make it in the image, by update-grub or grub2-mkconfig.")
	}
	if b.family.Disk.Entries {
		return entries.Check(boot, menu, string(text))
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "linux" {
			return nil
		}
	}
	if names, _ := fs.Glob(boot, "loader/entries/*.conf"); len(names) > 0 {
		return errkind.New(errkind.Unsupported, "the kernels are in /boot/loader/entries (%d of them), and not in /boot/%s: such entries are not configured", len(names), menu)
	}
	return errkind.New(errkind.Unsupported, "/boot/%s starts no kernel", menu).Do("Run update-grub in the image.")
}

// locksOut are settings of sshd_config(5) that may keep root out, which the controller
// logs in as.
var locksOut = []string{"allowusers", "denyusers", "allowgroups", "denygroups", "authenticationmethods"}

// rootByKey are the values of PermitRootLogin with which root logs in by key.
var rootByKey = []string{"yes", "prohibit-password", "without-password"}

// checkSSH looks whether the settings of the node come before those of the image: of a
// setting, sshd takes the first value.
func checkSSH(root fs.FS) error {
	const main, folder = "etc/ssh/sshd_config", "etc/ssh/sshd_config.d"
	names, err := fs.Glob(root, folder+"/*.conf")
	if err != nil {
		return err
	}
	includes := false
	for _, name := range append([]string{main}, names...) {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return errkind.New(errkind.NotFound, "the SSH server has no settings: %w", err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			words := strings.Fields(strings.ReplaceAll(line, "=", " "))
			if len(words) < 2 || strings.HasPrefix(words[0], "#") {
				continue
			}
			if strings.EqualFold(words[0], "include") && strings.Contains(line, folder) {
				includes = true
			}
			early := name == main && !includes || name != main && name < folder+"/10-ironrail.conf"
			if keepsOut(words, early) {
				return errkind.New(errkind.Refused, "/%s line %d, %s: root could not log in by key, which the node is driven by", name, n, words[0]).Do("Take it out of the image; ironrail writes settings of its own.")
			}
		}
	}
	if !includes {
		return errkind.New(errkind.Unsupported, "/%s does not include %s/*.conf, where the settings of the node go", main, folder)
	}
	return nil
}

// keepsOut reports whether a setting may keep root out. early: it comes before those of
// the node.
func keepsOut(words []string, early bool) bool {
	switch key := strings.ToLower(words[0]); key {
	case "permitrootlogin":
		return early && !slices.Contains(rootByKey, strings.ToLower(words[1]))
	case "authorizedkeysfile":
		return !slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasSuffix(w, ".ssh/authorized_keys") })
	default:
		return slices.Contains(locksOut, key)
	}
}

// checkInitrd looks whether the initrd is one for any machine.
func checkInitrd(root fs.FS) error {
	names, err := fs.Glob(root, "etc/initramfs-tools/conf.d/*")
	if err != nil {
		return err
	}
	for _, name := range append([]string{"etc/initramfs-tools/initramfs.conf"}, names...) {
		text, _ := fs.ReadFile(root, name) // without one it has what most machines need
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) == "MODULES=dep" {
				return errkind.New(errkind.Unsupported, "the initrd has the drivers of the machine that it was made on (MODULES=dep in /%s)", name).
					Do("Write MODULES=most there, and run update-initramfs -u.")
			}
		}
	}
	return nil
}
