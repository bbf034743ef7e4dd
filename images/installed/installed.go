// SPDX-License-Identifier: Apache-2.0

// Package installed lists the packages of an image's root file system, by the database of
// its package manager: names, versions, and the licences that they declare.
package installed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/rpmdb"
)

// Formats of packages, as package URLs name them (github.com/package-url/purl-spec).
const (
	Deb = "deb"
	RPM = "rpm"
)

// Package is an installed package.
type Package struct {
	Format              string // Deb or RPM
	Name, Version, Arch string // the version with its epoch, where it has one
	Source              string // what it was built from; "": a source package of its name, or not known
	Supplier            string
	Homepage            string
	License             string // SPDX expression of what it declares; "": not known
}

// List is what is installed.
type List struct {
	Packages []Package
	Unread   string // why there are no packages; "": there are
}

// Read lists what is installed below a root. What cannot be read is said in the list: an
// image is no worse for it.
func Read(root fs.FS) List {
	list, err := read(root)
	if err != nil {
		return List{Unread: err.Error()}
	}
	return List{Packages: list}
}

// unknown are databases of rpm that are not read.
var unknown = []struct{ file, form string }{
	{"var/lib/rpm/Packages", "Berkeley DB"}, {"var/lib/rpm/Packages.db", "ndb"}, {"usr/lib/sysimage/rpm/Packages.db", "ndb"},
}

func read(root fs.FS) (list []Package, err error) {
	for _, file := range append([]string{dpkg.StatusFile}, rpmdb.Files...) {
		if _, err := fs.Stat(root, file); err != nil {
			continue
		}
		if file == dpkg.StatusFile {
			list, err = readDpkg(root)
		} else {
			list, err = readRPM(root, file)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("/%s: %w", file, err)
		case len(list) == 0:
			return nil, fmt.Errorf("/%s names no package", file)
		}
		return list, nil
	}
	for _, u := range unknown {
		if _, err := fs.Stat(root, u.file); err == nil {
			return nil, fmt.Errorf("/%s is a database of rpm in the form of %s; the form of SQLite is read", u.file, u.form)
		}
	}
	return nil, errors.New("there is no database of dpkg or rpm")
}

// Status lists what dpkg's list says alone, without licences.
func Status(status io.Reader) ([]Package, error) {
	list, err := dpkg.Installed(status)
	if err != nil {
		return nil, err
	}
	var all []Package
	for _, p := range list {
		all = append(all, Package{Format: Deb, Name: p.Name, Version: p.Version, Arch: p.Arch, Source: p.Source, Supplier: p.Maintainer, Homepage: p.Homepage})
	}
	return all, nil
}

// maxCopyright bounds a copyright file: those of browsers have some 200 KiB.
const maxCopyright = 2 << 20

func readDpkg(root fs.FS) ([]Package, error) {
	f, err := root.Open(dpkg.StatusFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := Status(f)
	for i, p := range list {
		text, err := readSome(root, path.Join("usr/share/doc", p.Name, "copyright"), maxCopyright)
		if err == nil {
			list[i].License = licenseOfCopyright(text)
		}
	}
	return list, err
}

// readSome reads a file of no more than most bytes.
func readSome(root fs.FS, name string, most int64) (string, error) {
	if !fs.ValidPath(name) {
		return "", fs.ErrInvalid
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fs.ErrInvalid
	}
	return string(b), err
}

func readRPM(root fs.FS, file string) ([]Package, error) {
	if info, err := fs.Stat(root, file+rpmdb.Log); err == nil && info.Size() > 0 {
		return nil, fmt.Errorf("its log of %d bytes has changes that it has not: rpm was stopped while it wrote", info.Size())
	}
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	at, ok := f.(io.ReaderAt)
	if err != nil || !ok || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is no file"))
	}
	list, err := rpmdb.Installed(at, info.Size())
	if err != nil {
		return nil, err
	}
	var all []Package
	for _, p := range list {
		if p.Name == rpmdb.PublicKey {
			continue
		}
		all = append(all, Package{Format: RPM, Name: p.Name, Version: p.Version, Arch: p.Arch, Source: p.SourceRPM, Supplier: p.Vendor, Homepage: p.URL, License: expressionOf(p.License)})
	}
	return all, nil
}
