// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// Where GRUB of systems with entries of the Boot Loader Specification has its settings.
const (
	entriesMenu   = "boot/grub2/grub.cfg"
	entriesGlob   = "boot/loader/entries/*.conf"
	grubEnv       = "boot/grub2/grubenv"
	kernelCmdline = "etc/kernel/cmdline" // of kernel-install(8), for further kernels
	grubDefaults  = "etc/default/grub"   // of grub2-mkconfig
)

// hasEntries reports whether GRUB of a system takes its kernels from entries.
func hasEntries(root rootfs.Root) bool {
	names, err := fs.Glob(root.FS(), entriesGlob)
	return err == nil && len(names) > 0 && rootfs.Exists(root, entriesMenu)
}

// entries gives every kernel its root and the node's arguments: those that are there, and
// those that are installed later.
func (s settings) entries(root rootfs.Root, rootDevice string) error {
	names, err := fs.Glob(root.FS(), entriesGlob)
	if err != nil {
		return err
	}
	slices.Sort(names)
	env, _ := fs.ReadFile(root.FS(), grubEnv) // one that is not there sets nothing
	variables := environment(string(env))
	var further []string // for kernels that are installed later: as the one that GRUB starts has
	for _, name := range names {
		text, err := fs.ReadFile(root.FS(), name)
		if err != nil {
			return err
		}
		edited, options := editEntry(string(text), strings.Fields(variables["kernelopts"]), rootDevice, s.arguments(), s.Console != "")
		if options == nil {
			return errkind.New(errkind.Invalid, "/%s gives its kernel no options", name).Do("Correct it in the image.")
		}
		if err := rootfs.WriteText(root, name, edited, 0o644); err != nil {
			return err
		}
		id := strings.TrimSuffix(path.Base(name), ".conf")
		if id == variables["saved_entry"] || further == nil && !strings.Contains(id, "-0-rescue") {
			further = options
		}
	}
	if further == nil {
		return errkind.New(errkind.Invalid, "/%s has none but rescue entries", path.Dir(entriesGlob)).Do("Take an image with a kernel that boots.")
	}
	further = slices.DeleteFunc(slices.Clone(further), func(w string) bool { return strings.HasPrefix(w, "$") })
	if err := rootfs.WriteText(root, kernelCmdline, strings.Join(further, " ")+"\n", 0o644); err != nil {
		return err
	}
	defaults, _ := fs.ReadFile(root.FS(), grubDefaults) // made where it is not there
	return rootfs.WriteText(root, grubDefaults, editDefaults(string(defaults), s.arguments(), s.Console != ""), 0o644)
}

// environment reads the block that GRUB keeps variables in (grub-editenv).
func environment(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok && !strings.HasPrefix(line, "#") {
			all[key] = value
		}
	}
	return all
}

// editEntry gives the kernel of an entry its root and more arguments, and returns them;
// nil: it has none. $kernelopts stands for shared; other variables stay.
func editEntry(text string, shared []string, rootDevice string, more []string, console bool) (edited string, options []string) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "options" {
			out.WriteString(line)
			continue
		}
		var given []string
		for _, w := range words[1:] {
			if w == "$kernelopts" {
				given = append(given, shared...)
			} else {
				given = append(given, w)
			}
		}
		options = append([]string{"root=" + rootDevice}, kernelArguments(given, more, console)...)
		fmt.Fprintf(&out, "options %s\n", strings.Join(options, " "))
	}
	return out.String(), options
}

// editDefaults puts the arguments into GRUB_CMDLINE_LINUX, and takes what does not go with
// them out of both variables.
func editDefaults(text string, more []string, console bool) string {
	var out strings.Builder
	set := false
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || key != "GRUB_CMDLINE_LINUX" && key != "GRUB_CMDLINE_LINUX_DEFAULT" {
			out.WriteString(line)
			continue
		}
		add := more
		if key == "GRUB_CMDLINE_LINUX" {
			set = true
		} else {
			add = nil
		}
		fmt.Fprintf(&out, "%s=\"%s\"\n", key, strings.Join(kernelArguments(strings.Fields(strings.Trim(value, `"'`)), add, console), " "))
	}
	if !set {
		if text != "" && !strings.HasSuffix(text, "\n") {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "GRUB_CMDLINE_LINUX=\"%s\"\n", strings.Join(more, " "))
	}
	return out.String()
}

// Where SELinux has its settings, and asks for labels.
const (
	selinuxConfig = "etc/selinux/config"
	autorelabel   = ".autorelabel"
)

// relabel has a system with SELinux give labels to all files at its first boot, which
// restarts once for that: what is written from outside has none.
func relabel(root rootfs.Root) error {
	text, err := fs.ReadFile(root.FS(), selinuxConfig)
	if err != nil {
		return nil // without SELinux
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "SELINUX="); ok && value != "disabled" {
			return rootfs.WriteText(root, autorelabel, "", 0o644)
		}
	}
	return nil
}
