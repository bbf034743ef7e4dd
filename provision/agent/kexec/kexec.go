// SPDX-License-Identifier: Apache-2.0

// Package kexec finds the kernel that the boot loader of an installed system starts, and has the
// kernel of the ramdisk start it in the loader's place (kexec_file_load(2)): without the
// self-test of the firmware.
package kexec

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Entry is what a boot loader starts: files below the root of the system, and the arguments of
// the kernel.
type Entry struct {
	Kernel, Initrd string
	Args           string
}

// Files of boot loaders below the root of a system.
const (
	menu    = "boot/grub/grub.cfg"
	ofNode  = "boot/grub/ironrail.cfg"
	entries = "boot/loader/entries/*.conf"
	env     = "boot/grub2/grubenv"
	written = "# Written by ironrail;" // begins a menu that is ironrail's own
)

// Find returns what the loader of a system starts by itself: the one entry of a menu that
// ironrail wrote, or of entries of the Boot Loader Specification the saved one. Other menus are
// of kind Unsupported: they may ask questions.
func Find(system fs.FS) (Entry, error) {
	if names, err := fs.Glob(system, entries); err == nil && len(names) > 0 {
		return fromEntries(system, names)
	}
	text, err := fs.ReadFile(system, menu)
	if err != nil || !strings.HasPrefix(string(text), written) {
		return Entry{}, errkind.New(errkind.Unsupported, "/%s is not a menu that ironrail wrote", menu)
	}
	own, _ := fs.ReadFile(system, ofNode) // without it the menu's own arguments count
	args := setting(string(text), "ironrail_args")
	if s := setting(string(own), "ironrail_args"); s != "" {
		args = s
	}
	return whole(parse(string(text), strings.NewReplacer("$ironrail_args", args)), menu)
}

// setting is the value that the last line `set NAME="..."` of a menu gives.
func setting(text, name string) (value string) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "set "+name+"="); ok {
			value = strings.Trim(v, `"`)
		}
	}
	return value
}

// fromEntries is the entry that the environment of GRUB names, else the last by its name.
func fromEntries(system fs.FS, names []string) (Entry, error) {
	slices.Sort(names)
	name := names[len(names)-1]
	b, _ := fs.ReadFile(system, env) // one that is not there saves nothing
	for line := range strings.Lines(string(b)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "saved_entry="); ok {
			saved := path.Join(path.Dir(name), id+".conf")
			if slices.Contains(names, saved) {
				name = saved
			}
		}
	}
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return Entry{}, err
	}
	e := parse(string(text), strings.NewReplacer("$tuned_params", "", "$tuned_initrd", ""))
	return whole(e, name)
}

// parse reads the lines linux, initrd and options of an entry, or of a menu with one entry.
func parse(text string, variables *strings.Replacer) (e Entry) {
	for line := range strings.Lines(text) {
		words := strings.Fields(variables.Replace(line))
		if len(words) < 2 {
			continue
		}
		switch rest := strings.Join(words[2:], " "); words[0] {
		case "linux":
			e.Kernel, e.Args = words[1], strings.TrimSpace(e.Args+" "+rest)
		case "options":
			e.Args = strings.TrimSpace(e.Args + " " + strings.Join(words[1:], " "))
		case "initrd":
			e.Initrd = words[1]
			if rest != "" {
				e.Initrd = "" // several are put together by the loader alone
			}
		}
	}
	return e
}

// whole checks an entry of a file. Paths of the Boot Loader Specification are relative to the file
// system with /boot: where that is not the root, the loader's way is another.
func whole(e Entry, file string) (Entry, error) {
	if e.Kernel == "" || e.Initrd == "" || e.Args == "" || strings.Contains(e.Args, "$") {
		return Entry{}, errkind.New(errkind.Unsupported, "/%s gives no kernel with one initrd and its arguments", file)
	}
	return e, nil
}

// graphics are modules that leave a GPU in a state which the next driver of it may not take
// (github.com/NVIDIA/open-gpu-kernel-modules, issue 1230).
var graphics = []string{"amdgpu", "nouveau", "nvidia", "radeon", "xe"}

// Prepare has the running kernel load what a system starts, and says which, or why not. running
// is the root of the running system, whose modules and state of kexec are looked at; load is Load,
// or what stands for it.
func Prepare(running sysfs.FS, system fs.FS, load func(fs.FS, Entry) error) wire.Kexec {
	for _, m := range graphics {
		if running.Exists("sys/module", m) {
			return wire.Kexec{Problem: "module " + m + " of a GPU is loaded in the ramdisk"}
		}
	}
	e, err := Find(system)
	if err == nil {
		err = load(system, e)
	}
	if err == nil && !Loaded(running) {
		err = errkind.New(errkind.Unsupported, "the kernel says that none is loaded")
	}
	if err != nil {
		return wire.Kexec{Problem: err.Error()}
	}
	return wire.Kexec{Kernel: e.Kernel, Args: e.Args}
}

// Loaded reports whether the running kernel has another one loaded that it can start.
func Loaded(running sysfs.FS) bool { return running.Text("sys/kernel/kexec_loaded") == "1" }
