// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// needs are what an image must hold so that a node boots from it and is reached: any one
// of the files of a row.
var needs = []struct {
	what  string
	files []string
	add   string // packages, as Debian and Ubuntu call them
}{
	{"init (systemd)", []string{"usr/lib/systemd/systemd", "lib/systemd/systemd"}, "systemd-sysv"},
	{"systemd-networkd", []string{"usr/lib/systemd/systemd-networkd", "lib/systemd/systemd-networkd"}, "systemd"},
	{"udev", []string{"usr/bin/udevadm", "bin/udevadm"}, "udev"},
	{"modprobe", []string{"usr/sbin/modprobe", "sbin/modprobe"}, "kmod"},
	{"an SSH server", []string{"usr/sbin/sshd"}, "openssh-server"},
}

// system is what was found in a root file system.
type system struct {
	release distribution.Release
	family  distribution.Family
	kernel  string // release of the newest
}

// inspect looks whether the root is that of a system that can be installed. All that is
// missing is one error.
func (r Recipe) inspect(root *os.Root) (system, error) {
	var s system
	files := linkFS{root}
	text, err := files.read("etc/os-release")
	if err != nil {
		text, err = files.read("usr/lib/os-release")
	}
	if err != nil {
		return s, errkind.New(errkind.Refused, "the image has no /etc/os-release, so that its distribution is not known").Do("Build it from an image of Debian or Ubuntu.")
	}
	if s.release, s.family, err = r.distribution(distribution.ReadOSRelease(text)); err != nil {
		return s, err
	}
	var missing, add []string
	s.kernel, err = bootdisk.NewestKernel(root.FS())
	if err != nil {
		missing, add = append(missing, "a kernel (/boot/vmlinuz-RELEASE)"), append(add, s.family.Kernel[r.Arch])
	} else if !files.exists("lib/modules/" + s.kernel + "/modules.dep") {
		missing, add = append(missing, "the modules of kernel "+s.kernel+" (/lib/modules/"+s.kernel+"/modules.dep)"), append(add, "linux-image-"+s.kernel)
	}
	for _, n := range needs {
		if !anyExists(files, n.files) {
			missing, add = append(missing, n.what+" (/"+n.files[0]+")"), append(add, n.add)
		}
	}
	for _, p := range bootdisk.Programs(r.Storage) {
		if !anyExists(files, []string{"usr/sbin/" + p.Name, "sbin/" + p.Name}) {
			missing, add = append(missing, fmt.Sprintf("%s (/usr/sbin/%s), which disk layouts of its nodes need", p.Name, p.Name)), append(add, p.Package)
		}
	}
	if len(missing) > 0 {
		return s, errkind.New(errkind.Refused, "the image is no system that boots by itself: it lacks %s", strings.Join(missing, ", ")).
			Do("Install in it: " + strings.Join(add, " ") + ". Nothing was erased.")
	}
	return s, r.machine(files, needs[0].files)
}

func anyExists(files linkFS, names []string) bool {
	for _, n := range names {
		if files.exists(n) {
			return true
		}
	}
	return false
}

// distribution compares os-release with the block, and finds how its systems boot.
func (r Recipe) distribution(os map[string]string) (distribution.Release, distribution.Family, error) {
	f, ok := distribution.Find(os["ID"])
	release, known := distribution.ParseRelease(os["ID"], os["VERSION_ID"])
	if !ok || !known || f.Boot.KernelLink == "" {
		return release, f, errkind.New(errkind.Unsupported, "the image is of %q %q by its os-release; disks are made of Debian and Ubuntu", os["ID"], os["VERSION_ID"]).
			Do("Build it from an image of Debian or Ubuntu.")
	}
	if r.OS != "" && r.OS != f.Name {
		return release, f, errkind.New(errkind.Mismatch, "the image block says os %q; os-release of the image says %q", r.OS, os["ID"]).Do("Correct os of the image block, or its source.")
	}
	if want, ok := distribution.ParseRelease(f.Name, r.Release); r.Release != "" && (!ok || want != release) {
		return release, f, errkind.New(errkind.Mismatch, "the image block says release %q; os-release of the image says %q", r.Release, os["VERSION_ID"]).Do("Correct release of the image block, or its source.")
	}
	return release, f, nil
}

// machines are the architectures as ELF has them.
var machines = map[inventory.Arch]elf.Machine{inventory.AMD64: elf.EM_X86_64, inventory.ARM64: elf.EM_AARCH64}

// machine compares the architecture of the first program with that of the block: the
// configuration of an image is what its builder wrote there.
func (r Recipe) machine(files linkFS, names []string) error {
	for _, n := range names {
		f, err := files.open(n)
		if err != nil {
			continue
		}
		defer f.Close()
		e, err := elf.NewFile(f)
		if err != nil {
			return errkind.New(errkind.Invalid, "/%s is no program: %w", n, err)
		}
		if e.Machine != machines[r.Arch] {
			return errkind.New(errkind.Mismatch, "the image block says %s; /%s in the image is for %s", r.Arch, n, e.Machine).
				Do("Name the image of the right architecture in source, or correct arch of the image block.")
		}
		return nil
	}
	return nil
}

// linkFS opens files of a root with links followed as in a chroot: os.Root refuses
// absolute ones.
type linkFS struct{ root *os.Root }

func (l linkFS) open(name string) (*os.File, error) {
	for range maxLinks {
		at, err := l.resolve(name)
		if err != nil {
			return nil, err
		}
		if at == name {
			return l.root.Open(name)
		}
		name = at
	}
	return nil, fs.ErrInvalid
}

// resolve replaces the first link of a name; without one it is the name itself.
func (l linkFS) resolve(name string) (string, error) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		info, err := l.root.Lstat(at)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := l.root.Readlink(at)
		if err != nil {
			return "", err
		}
		if !path.IsAbs(target) {
			target = path.Join("/", path.Dir(at), target)
		}
		return strings.TrimPrefix(path.Join(append([]string{path.Clean(target)}, parts[i+1:]...)...), "/"), nil
	}
	return name, nil
}

func (l linkFS) exists(name string) bool {
	f, err := l.open(name)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// maxText bounds a small text file.
const maxText = 1 << 20

func (l linkFS) read(name string) (string, error) {
	f, err := l.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxText {
		return "", errors.Join(err, errkind.New(errkind.Invalid, "/%s is no small text file", name))
	}
	b := make([]byte, info.Size())
	_, err = f.Read(b)
	return string(b), err
}
