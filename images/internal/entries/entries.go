// SPDX-License-Identifier: Apache-2.0

// Package entries looks whether a system whose kernels are in entries of the Boot Loader
// Specification can be set up by editing files.
package entries

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Check looks whether the kernels' entries (Boot Loader Specification) can be given
// the node's arguments: the text of the menu, a file of boot, takes them in, and each has its kernel and
// its initrd there.
func Check(boot fs.FS, menu, text string) error {
	if !strings.Contains(text, "blscfg") {
		return errkind.New(errkind.Unsupported, "/boot/%s does not take in the entries of /boot/loader/entries (blscfg)", menu).
			Do("Write GRUB_ENABLE_BLSCFG=true to /etc/default/grub in the image, and run grub2-mkconfig.")
	}
	names, err := fs.Glob(boot, "loader/entries/*.conf")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errkind.New(errkind.NotFound, "there is no entry in /boot/loader/entries: GRUB starts no kernel").Do("Run `kernel-install add` in the image, for its kernel.")
	}
	for _, name := range names {
		text, err := fs.ReadFile(boot, name)
		if err != nil {
			return err
		}
		if err := checkEntry(boot, string(text)); err != nil {
			return fmt.Errorf("/boot/%s: %w", name, err)
		}
	}
	return nil
}

// checkEntry looks at one entry.
func checkEntry(boot fs.FS, text string) error {
	fields := map[string][]string{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 {
			fields[words[0]] = words[1:]
		}
	}
	for _, what := range []string{"linux", "initrd"} {
		words := fields[what]
		if len(words) == 0 {
			return errkind.New(errkind.Unsupported, "it has no %s", what)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path.Clean(words[0]), "/"), "boot/")
		if !distribution.Holds(boot, name) {
			return errkind.New(errkind.NotFound, "its %s %s is not there", what, words[0]).Do("Remove the entry from the image, or bring the file.")
		}
	}
	if len(fields["options"]) == 0 {
		return errkind.New(errkind.Unsupported, "it has no options, which the kernel gets its root from")
	}
	return nil
}

// Where dracut.conf(5) has settings; of files of one name, that of /etc counts.
var dracutFolders = []string{"usr/lib/dracut/dracut.conf.d", "etc/dracut.conf.d"}

// CheckDracut looks whether dracut makes initrds for any machine: the last setting counts.
func CheckDracut(root fs.FS) error {
	files := map[string]string{} // by their names
	for _, dir := range dracutFolders {
		names, err := fs.Glob(root, dir+"/*.conf")
		if err != nil {
			return err
		}
		for _, name := range names {
			files[path.Base(name)] = name
		}
	}
	var order []string
	for base := range files {
		order = append(order, base)
	}
	slices.Sort(order)
	paths := []string{"etc/dracut.conf"}
	for _, base := range order {
		paths = append(paths, files[base])
	}
	at, hostonly := "", false
	for _, name := range paths {
		text, _ := fs.ReadFile(root, name) // one that is not there sets nothing
		for line := range strings.Lines(string(text)) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if ok && strings.TrimSpace(key) == "hostonly" {
				value, _, _ = strings.Cut(value, "#")
				at, hostonly = name, strings.Trim(strings.TrimSpace(value), `"'`) == "yes"
			}
		}
	}
	if hostonly {
		return errkind.New(errkind.Unsupported, "the initrd has the drivers of the machine that it was made on (hostonly in /%s)", at).
			Do("Install dracut-config-generic in the image, and run dracut --regenerate-all --force.")
	}
	return nil
}

// CheckLabels looks whether a system with SELinux can give labels to the files that are
// written to it from outside: it does that at its first boot.
func CheckLabels(root fs.FS) error {
	text, err := fs.ReadFile(root, "etc/selinux/config")
	if err != nil {
		return nil // without SELinux
	}
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			set[key] = value
		}
	}
	mode, on := set["SELINUX"]
	switch {
	case !on || mode == "disabled":
	case !distribution.Holds(root, "usr/libexec/selinux/selinux-autorelabel"):
		return errkind.New(errkind.Unsupported, "SELinux is %s, and there is no /usr/libexec/selinux/selinux-autorelabel: the files of the node would have no labels", mode).
			Do("Install policycoreutils in the image.")
	case set["AUTORELABEL"] == "0":
		return errkind.New(errkind.Unsupported, "SELinux is %s, and /etc/selinux/config has AUTORELABEL=0: the first boot would wait at a console for somebody to give the files their labels", mode).
			Do("Take that line out of the image.")
	}
	return nil
}
