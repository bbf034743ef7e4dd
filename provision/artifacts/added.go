// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
)

// AddedPackage is a package file that was added to those of a driver.
type AddedPackage struct {
	Driver  string `json:"driver"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Arch    string `json:"arch"`
	Digest  string `json:"digest"` // sha256:HEX
	File    string `json:"file"`   // on this controller
}

// addedFolder is where the files of a driver are kept, each in a folder called after its digest.
func (a Artifacts) addedFolder(driver string) string { return a.path("added", driver) }

// AddPackage keeps a package file for the repositories of a driver, once its proof was looked at:
// it is on offer there beside what the driver's sources have. Twice is the same as once.
func (a Artifacts) AddPackage(ctx context.Context, file, driver string, p repo.Proof) (AddedPackage, error) {
	if _, err := a.chosenStacks([]string{driver}); err != nil {
		return AddedPackage{}, err
	}
	c, err := repo.Inspect(ctx, file, p)
	if err != nil {
		return AddedPackage{}, err
	}
	at := filepath.Join(a.addedFolder(driver), c.Digest[len("sha256:"):], filepath.Base(file))
	done := AddedPackage{driver, c.Name, c.Version, c.Arch, c.Digest, at}
	if exists(at) {
		return done, nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return done, err
	}
	if err := copyWhole(at, file); err != nil {
		return done, err
	}
	if _, err := repo.Inspect(ctx, at, repo.Proof{Sum: c.Digest}); err != nil { // it changed meanwhile
		return done, errors.Join(err, os.Remove(at))
	}
	return done, nil
}

// copyWhole copies a file under another name first.
func copyWhole(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "copy-")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(0o644), out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return os.Rename(out.Name(), to)
}

// added are the files that were added to those of a driver, of one format.
func (a Artifacts) added(driver string, rpm bool) (list []repo.Added, err error) {
	suffix := ".deb"
	if rpm {
		suffix = ".rpm"
	}
	folders, err := os.ReadDir(a.addedFolder(driver))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		if !repo.IsSum(f.Name()) {
			return nil, errkind.New(errkind.Corrupt, "%s is no folder of an added package", filepath.Join(a.addedFolder(driver), f.Name())).Do("Remove it.")
		}
		files, err := filepath.Glob(filepath.Join(a.addedFolder(driver), f.Name(), "*"+suffix))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			list = append(list, repo.Added{File: file, Sum: f.Name()})
		}
	}
	return list, nil
}
