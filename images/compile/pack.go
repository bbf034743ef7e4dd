// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// programsDir is where programs lie on nodes.
const programsDir = "usr/bin"

// mostProgram is the largest program that is packed, in bytes.
const mostProgram = 1 << 30

// pack makes the package of what was compiled in the folder from. The same files give the
// same bytes.
func (b build) pack(ctx context.Context, p Program, a archive, from string) (string, error) {
	tree := filepath.Join(b.dir, "pack-"+p.Package)
	bin := filepath.Join(tree, filepath.FromSlash(programsDir))
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, f := range p.Files {
		if err := f.collect(root, bin); err != nil {
			return "", err
		}
	}
	if b.of.rpm() {
		return b.packRPM(ctx, p, a, tree)
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: ironrail <root@localhost>\nSection: utils\nPriority: optional\n", p.Package, a.version(), b.of.Arch)
	if len(p.Depends) > 0 {
		control += "Depends: " + strings.Join(p.Depends, ", ") + "\n"
	}
	control += fmt.Sprintf("Description: %s, compiled by ironrail\nIronrail-Source: %s\n", p.About, a.digest)
	return b.packTree(ctx, p.Package, tree, map[string]string{"control": control})
}

// collect copies the programs that match into a folder.
func (f Files) collect(root *os.Root, bin string) error {
	names, err := fs.Glob(root.FS(), f.Glob)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errkind.New(errkind.Refused, "it ended well, and there is no %s", f.Glob).Do("Name the archive of the sources of this program.")
	}
	for _, name := range names {
		to := filepath.Join(bin, strings.TrimSuffix(path.Base(name), f.Trim)+f.Suffix)
		if err := copyProgram(root, name, to); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// copyProgram copies one program. A link that leads out of the folder is not followed.
func copyProgram(root *os.Root, name, to string) error {
	switch info, err := root.Stat(name); { // before it is opened: a named pipe waits for a writer
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o100 == 0:
		return errkind.New(errkind.Refused, "it is no program")
	case info.Size() > mostProgram:
		return errkind.New(errkind.Refused, "it is larger than %d MiB", mostProgram>>20)
	}
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, mostProgram))
	return errors.Join(err, out.Chmod(0o755), out.Close())
}

// setTimes gives all files below a folder the same time.
func setTimes(dir string) error {
	return filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(at, epoch, epoch)
	})
}
