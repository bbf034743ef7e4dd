// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/u-root/u-root/pkg/cpio"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// PackTools writes the segment with programs of an installed system, root: the programs
// themselves, the shared libraries that they need with those that these need, the dynamic
// linker, and further files by name. They lie below wire.ToolsFolder as bin, lib and etc,
// with the linker as lib/ld.so, so that nothing depends on where a distribution has them.
func PackTools(ctx context.Context, w io.Writer, root fs.FS, programs []string, etc map[string]string) error {
	c := closure{root: root, files: map[string][]byte{}}
	for _, name := range programs {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := c.program(name); err != nil {
			return fmt.Errorf("install ramdisk: program %s of the image: %w", name, err)
		}
	}
	for name, text := range etc {
		c.files["etc/"+name] = []byte(text)
	}
	t := tree{dir: strings.TrimPrefix(wire.ToolsFolder, "/")}
	records := t.layout(c.files)
	for i, r := range records {
		name := strings.TrimPrefix(r.Name, t.dir+"/")
		if strings.HasPrefix(name, "bin/") || name == linker {
			records[i].Mode = cpio.S_IFREG | 0o755
		}
	}
	if _, err := packRecords(w, records); err != nil {
		return fmt.Errorf("install ramdisk: %w", err)
	}
	return nil
}

// linker is the dynamic linker in the segment.
const linker = "lib/ld.so"

// folders are where a system has programs and libraries.
var (
	programFolders = []string{"usr/sbin", "sbin", "usr/bin", "bin"}
	libraryFolders = []string{"usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu", "usr/lib64", "lib64", "usr/lib", "lib"}
)

// closure collects files of a system by their place in the segment.
type closure struct {
	root  fs.FS
	files map[string][]byte
}

// program adds a program and what it needs.
func (c *closure) program(name string) error {
	b, err := c.find(programFolders, name)
	if err != nil {
		return err
	}
	c.files["bin/"+name] = b
	interpreter, err := c.needs(b)
	if err != nil {
		return err
	}
	if interpreter == "" {
		return errkind.New(errkind.Unsupported, "it is static, or not a program")
	}
	if c.files[linker] == nil {
		if c.files[linker], err = c.read(strings.TrimPrefix(interpreter, "/")); err != nil {
			return err
		}
	}
	return nil
}

// needs adds the libraries that an ELF file needs, and returns its interpreter.
func (c *closure) needs(b []byte) (interpreter string, err error) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return "", errkind.New(errkind.Invalid, "%w", err)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return "", err
	}
	for _, l := range libraries {
		if path.Base(l) != l || c.files["lib/"+l] != nil {
			continue
		}
		lib, err := c.find(libraryFolders, l)
		if err != nil {
			return "", err
		}
		c.files["lib/"+l] = lib
		if _, err := c.needs(lib); err != nil {
			return "", fmt.Errorf("%s: %w", l, err)
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			text, err := io.ReadAll(p.Open())
			if err != nil {
				return "", err
			}
			return strings.TrimRight(string(text), "\x00"), nil
		}
	}
	return "", nil
}

// find reads the first file of a name in some folders.
func (c *closure) find(folders []string, name string) ([]byte, error) {
	for _, dir := range folders {
		b, err := c.read(path.Join(dir, name))
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, errkind.New(errkind.NotFound, "the image has no %s", name).Do("Add the package that has it to the image.")
}

// mostLinks bounds the links on the way to one file.
const mostLinks = 40

// read reads a file of the system. Links are followed as they are meant there: one that
// begins with a slash leads to its root.
func (c *closure) read(name string) ([]byte, error) {
	links := 0
	parts := strings.Split(path.Clean(name), "/")
	done := "."
	for len(parts) > 0 {
		next := path.Join(done, parts[0])
		if next == ".." || strings.HasPrefix(next, "../") {
			return nil, fs.ErrNotExist
		}
		info, err := fs.Lstat(c.root, next)
		if err != nil {
			return nil, err
		}
		parts = parts[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > mostLinks {
			return nil, errkind.New(errkind.Invalid, "%s leads through too many links", name)
		}
		target, err := fs.ReadLink(c.root, next)
		if err != nil {
			return nil, err
		}
		if path.IsAbs(target) {
			done = "."
		}
		parts = slices.Concat(strings.Split(strings.Trim(path.Clean(target), "/"), "/"), parts)
	}
	return fs.ReadFile(c.root, done)
}
