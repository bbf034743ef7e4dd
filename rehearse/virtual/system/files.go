// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

func runDirname(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	for _, name := range names {
		c.print(path.Dir(name) + "\n")
	}
	return 0
}

func runBasename(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "s")
	if len(names) == 0 {
		return c.fail("missing operand")
	}
	base := path.Base(names[0])
	if len(names) > 1 && base != names[1] {
		base = strings.TrimSuffix(base, names[1])
	}
	c.print(base + "\n")
	return 0
}

func runMkdir(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "m")
	status := 0
	for _, name := range names {
		if !hasOption(o, 'p') && c.n.tree.exists(c.path(name)) {
			status = c.fail("cannot create directory '" + name + "': File exists")
			continue
		}
		if err := c.n.tree.MkdirAll(c.path(name), modeOf(o, 0o755)); err != nil {
			status = c.fail("cannot create directory '" + name + "': " + describeErrno(err))
		}
	}
	return status
}

// modeOf reads the option -m.
func modeOf(o map[byte]string, otherwise fs.FileMode) fs.FileMode {
	if n, err := strconv.ParseUint(o['m'], 8, 12); err == nil {
		return fs.FileMode(n).Perm()
	}
	return otherwise
}

func runMktemp(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "p")
	pattern := "/tmp/tmp.XXXXXXXXXX"
	if len(names) > 0 {
		pattern = names[0]
	}
	stem := strings.TrimRight(pattern, "X")
	if len(pattern)-len(stem) < 3 {
		return c.fail("too few X's in template '" + pattern + "'")
	}
	name := stem + rand.Text()[:min(len(pattern)-len(stem), 20)]
	err := error(nil)
	if hasOption(o, 'd') {
		if err = c.n.tree.MkdirAll(path.Dir(c.path(name)), 0o755); err == nil {
			err = c.n.tree.MkdirAll(c.path(name), 0o700)
		}
	} else {
		err = c.n.tree.write(c.path(name), nil, 0o600)
	}
	if err != nil {
		return c.fail("failed to create file via template '" + pattern + "': " + describeErrno(err))
	}
	c.print(name + "\n")
	return 0
}

func runChmod(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	if len(names) < 2 {
		return c.fail("missing operand")
	}
	mode, err := strconv.ParseUint(names[0], 8, 12)
	if err != nil && names[0] != "+x" {
		return c.fail("invalid mode: '" + names[0] + "'")
	}
	status := 0
	for _, name := range names[1:] {
		m := fs.FileMode(mode)
		if i, err := c.n.tree.Stat(c.path(name)); err == nil && names[0] == "+x" {
			m = i.Mode().Perm() | 0o111
		}
		if err := c.n.tree.Chmod(c.path(name), m.Perm()); err != nil {
			status = c.fail("cannot access '" + name + "': " + describeErrno(err))
		}
	}
	return status
}

// runPresent is for programs that change nothing here: chown, sync.
func runPresent(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	if c.name() == "chown" && len(names) > 0 {
		names = names[1:]
	}
	for _, name := range names {
		if _, err := c.n.tree.Lstat(c.path(name)); err != nil {
			return c.fail("error opening '" + name + "': " + describeErrno(err))
		}
	}
	return 0
}

func runMv(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	if len(names) != 2 {
		return c.fail("missing file operand")
	}
	to := c.path(names[1])
	if i, err := c.n.tree.Stat(to); err == nil && i.IsDir() {
		if hasOption(o, 'T') {
			return c.fail("cannot overwrite directory '" + names[1] + "' with non-directory")
		}
		to = path.Join(to, path.Base(names[0]))
	}
	if err := c.n.tree.rename(c.path(names[0]), to); err != nil {
		return c.fail("cannot move '" + names[0] + "' to '" + names[1] + "': " + describeErrno(err))
	}
	return 0
}

func runCp(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	if len(names) != 2 {
		return c.fail("missing file operand")
	}
	b, err := c.n.tree.ReadFile(c.path(names[0]))
	if err != nil {
		return c.fail("cannot stat '" + names[0] + "': " + describeErrno(err))
	}
	to := c.path(names[1])
	if i, err := c.n.tree.Stat(to); err == nil && i.IsDir() {
		to = path.Join(to, path.Base(names[0]))
	}
	if err := c.n.tree.write(to, bytes.Clone(b), 0o644); err != nil {
		return c.fail("cannot create regular file '" + names[1] + "': " + describeErrno(err))
	}
	return 0
}

func runRm(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	status := 0
	for _, name := range names {
		i, err := c.n.tree.Lstat(c.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && hasOption(o, 'f'):
			continue
		case err == nil && i.IsDir() && !hasOption(o, 'r') && !hasOption(o, 'R'):
			status = c.fail("cannot remove '" + name + "': Is a directory")
			continue
		case err == nil:
			err = c.n.tree.removeAll(c.path(name))
		}
		if err != nil {
			status = c.fail("cannot remove '" + name + "': " + describeErrno(err))
		}
	}
	return status
}

func runRmdir(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	status := 0
	for _, name := range names {
		if err := c.n.tree.Remove(c.path(name)); err != nil {
			status = c.fail("failed to remove '" + name + "': " + describeErrno(err))
		}
	}
	return status
}

func runLn(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	if len(names) != 2 || !hasOption(o, 's') {
		return c.fail("only symbolic links are made here")
	}
	if hasOption(o, 'f') {
		_ = c.n.tree.Remove(c.path(names[1])) // its absence is what -f allows
	}
	if err := c.n.tree.Symlink(names[0], c.path(names[1])); err != nil {
		return c.fail("failed to create symbolic link '" + names[1] + "': " + describeErrno(err))
	}
	return 0
}

// runInstall is install(1) for folders (-d) and single files.
func runInstall(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "mog")
	if hasOption(o, 'd') {
		for _, name := range names {
			err := c.n.tree.MkdirAll(c.path(name), 0o755)
			if err == nil {
				err = c.n.tree.Chmod(c.path(name), modeOf(o, 0o755))
			}
			if err != nil {
				return c.fail("cannot create directory '" + name + "': " + describeErrno(err))
			}
		}
		return 0
	}
	if len(names) != 2 {
		return c.fail("missing file operand")
	}
	b, err := c.n.tree.ReadFile(c.path(names[0]))
	if err == nil {
		err = c.n.tree.write(c.path(names[1]), bytes.Clone(b), modeOf(o, 0o755))
	}
	if err != nil {
		return c.fail("cannot create regular file '" + names[1] + "': " + describeErrno(err))
	}
	return 0
}

// runLs knows -1, -a, -d and -l in a short form.
func runLs(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	if len(names) == 0 {
		names = []string{"."}
	}
	show := func(name string, i fs.FileInfo) {
		if hasOption(o, 'l') {
			c.print(fmt.Sprintf("%s 1 root root %8d Jan  1 00:00 ", i.Mode(), i.Size()))
		}
		c.print(name + "\n")
	}
	status := 0
	for _, name := range names {
		i, err := c.n.tree.Stat(c.path(name))
		if err != nil {
			c.fail("cannot access '" + name + "': " + describeErrno(err))
			status = 2
			continue
		}
		if !i.IsDir() || hasOption(o, 'd') {
			show(name, i)
			continue
		}
		list, err := c.n.tree.ReadDir(c.path(name))
		if err != nil {
			return c.fail("cannot open directory '" + name + "': " + describeErrno(err))
		}
		for _, d := range list {
			if i, err := d.Info(); err == nil && (hasOption(o, 'a') || !strings.HasPrefix(d.Name(), ".")) {
				show(d.Name(), i)
			}
		}
	}
	return status
}

func runTouch(_ context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	for _, name := range names {
		if c.n.tree.exists(c.path(name)) {
			continue
		}
		if err := c.n.tree.write(c.path(name), nil, 0o644); err != nil {
			return c.fail("cannot touch '" + name + "': " + describeErrno(err))
		}
	}
	return 0
}

func runReadlink(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	for _, name := range names {
		if hasOption(o, 'f') || hasOption(o, 'e') {
			at, err := c.n.tree.resolve(c.path(name), true)
			if err != nil {
				return 1
			}
			c.print("/" + at + "\n")
			continue
		}
		to, err := c.n.tree.ReadLink(c.path(name))
		if err != nil {
			return 1
		}
		c.print(to + "\n")
	}
	return 0
}

func runTee(ctx context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	b, err := c.all(ctx)
	if err != nil {
		return 1
	}
	_, _ = c.Out.Write(b)
	for _, name := range names {
		all := b
		if old, err := c.n.tree.ReadFile(c.path(name)); err == nil && hasOption(o, 'a') {
			all = append(bytes.Clone(old), b...)
		}
		if err := c.n.tree.write(c.path(name), all, 0o644); err != nil {
			return c.fail(name + ": " + describeErrno(err))
		}
	}
	return 0
}
