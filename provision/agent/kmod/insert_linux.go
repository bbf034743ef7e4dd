// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"
)

// insert gives one module file to the kernel. One that is loaded already is no error.
func insert(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if strings.HasSuffix(file, ".ko") {
		err = unix.FinitModule(int(f.Fd()), "", 0)
	} else {
		var image []byte
		if image, err = unpack(f, filepath.Ext(file)); err == nil {
			err = unix.InitModule(image, "")
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// unpack decompresses a module by the end of its file's name.
func unpack(r io.Reader, ext string) ([]byte, error) {
	switch ext {
	case ".zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return readAll(d)
	case ".xz":
		d, err := xz.NewReader(r)
		if err != nil {
			return nil, err
		}
		return readAll(d)
	case ".gz":
		d, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return readAll(d)
	}
	return nil, errors.New("unknown compression " + ext)
}

// Coldplug loads the drivers of every device that is there, as a uevent of each
// would. A driver brings new devices (a virtio bus, a disk), so it goes round
// until nothing new appears. Called again, it looks only at what is new since.
// Devices without a module are normal; what could not
// be loaded is returned, and stops nothing.
func (t *Tree) Coldplug(sys string) (loaded int, failed error) {
	var errs []error
	for range 6 {
		fresh := modaliases(sys, t.seen)
		if len(fresh) == 0 {
			break
		}
		for _, a := range fresh {
			for _, m := range t.Modules(a) {
				if _, done := t.tried[m]; done || t.builtin[m] {
					continue
				}
				if err := t.load(m, 0); err != nil {
					errs = append(errs, err)
					continue
				}
				loaded++
			}
		}
	}
	return loaded, errors.Join(errs...)
}

// modaliases returns the aliases of the devices below sys that are not seen yet.
func modaliases(sys string, seen map[string]bool) []string {
	var fresh []string
	filepath.WalkDir(filepath.Join(sys, "devices"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "modalias" {
			return nil // a device that has gone meanwhile
		}
		b, err := os.ReadFile(p)
		a := strings.TrimSpace(string(b))
		if err == nil && a != "" && !seen[a] {
			seen[a] = true
			fresh = append(fresh, a)
		}
		return nil
	})
	return fresh
}
