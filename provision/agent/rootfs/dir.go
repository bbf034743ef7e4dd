// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

// Open returns the root that is a folder of this very node. The caller closes it.
func Open(dir string) (Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return folder{root}, nil
}

// folder is a Root by os.Root, which refuses every way out.
type folder struct{ *os.Root }

// Put writes under another name, syncs, renames, and syncs the folder, so that a
// loss of power leaves the old file or the new one.
func (r folder) Put(name string, content io.Reader, mode fs.FileMode) error {
	temp := path.Join(path.Dir(name), ".ironrail-"+rand.Text())
	f, err := r.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = r.Rename(temp, name)
	}
	if err != nil {
		_ = r.Root.Remove(temp) // what matters is why
		return err
	}
	d, err := r.Root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
