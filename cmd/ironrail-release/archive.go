// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// setTimes gives all files and folders below a folder one time.
func setTimes(folder string, at time.Time) error {
	return filepath.Walk(folder, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, at, at)
	})
}

// tree writes files into a tar that is the same for the same files: those below from, each
// below to.
type tree struct {
	w  *tar.Writer
	at time.Time
}

func (t tree) add(from, to string, mode int64) error {
	return each(from, func(path, name string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return t.file(to+name, text, mode)
	})
}

func (t tree) file(name string, text []byte, mode int64) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: mode, ModTime: t.at, Format: tar.FormatUSTAR}
	if err := t.w.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.w.Write(text)
	return err
}

// writeArchive writes what a package has as a tar of one folder, for systems without dpkg
// and rpm: nothing in it needs a place of its own.
func (r *release) writeArchive(arch string) (err error) {
	folder := fmt.Sprintf("ironrail_%s_linux_%s", r.version, arch)
	f, err := os.Create(filepath.Join(r.out, folder+".tar.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.compress(f, func(t tree) error {
		return errors.Join(
			t.add(r.programs(arch), folder+"/", 0o755),
			t.add(filepath.Join(r.work, "doc"), folder+"/", 0o644),
			t.add(filepath.Join(r.work, "examples"), folder+"/examples/", 0o644),
			t.add(filepath.Join(r.work, "man1"), folder+"/man1/", 0o644),
			t.add(filepath.Join(r.work, "completion"), folder+"/completion/", 0o644))
	})
}

// compress writes a tar with gzip around it.
func (r *release) compress(to io.Writer, fill func(tree) error) error {
	z := gzip.NewWriter(to)
	w := tar.NewWriter(z)
	return errors.Join(fill(tree{w, r.at}), w.Close(), z.Close())
}

// layer is the one layer of the image for an architecture: the programs and their licences.
func (r *release) layer(arch string) ([]byte, error) {
	var b bytes.Buffer
	err := r.compress(&b, func(t tree) error {
		for _, name := range []string{"LICENSE", "licenses-of-modules.txt"} {
			text, err := os.ReadFile(filepath.Join(r.work, "doc", name))
			if err != nil {
				return err
			}
			if err := t.file("usr/share/doc/ironrail/"+name, text, 0o644); err != nil {
				return err
			}
		}
		return t.add(r.programs(arch), "usr/bin/", 0o755)
	})
	return b.Bytes(), err
}
