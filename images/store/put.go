// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
)

// Source is what a build has made.
type Source struct {
	Name   string            // KIND.NAME of the image block
	Recipe string            // digest of what it was built from
	Disk   string            // path of the whole-disk image, or of what Form says; a sparse file is fine
	Files  map[string]string // further files: name -> path
	System manifest.System   // what is on the disk
	// Installed are its packages; the zero value: nobody looked. Put does not read it: package
	// images makes the list of it.
	Installed installed.List
	Vendor    *manifest.Vendor // who signed what it was made of; nil: not asked for
	Initrd    string           // as manifest.Manifest has it
	Form      string           // likewise
}

// Put takes an image into the store and returns the digest of its manifest. It
// reads the disk once, compresses on two processors, and is durable when it
// returns. The caller holds Lock. Putting the same bytes twice is no error.
func (s *Store) Put(ctx context.Context, src Source, say func(string)) (digest string, err error) {
	if !isDigest(src.Recipe) {
		return "", errkind.New(errkind.Internal, "image store: recipe %q is no digest", src.Recipe)
	}
	dir, discard, err := s.Scratch()
	if err != nil {
		return "", err
	}
	defer func() {
		if e := discard(); e != nil && err == nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}()
	m := manifest.Manifest{Format: manifest.Format, Name: src.Name, Recipe: src.Recipe, Vendor: src.Vendor, Initrd: src.Initrd, Form: src.Form}
	if src.System != (manifest.System{}) {
		m.System = &src.System
	}
	if err := packDisk(ctx, &m, src.Disk, filepath.Join(dir, BlobFile), say); err != nil {
		return "", fmt.Errorf("image %s: %w", src.Name, err)
	}
	if m.Files, err = copyAll(ctx, dir, src.Files); err != nil {
		return "", fmt.Errorf("image %s: %w", src.Name, err)
	}
	if digest, err = s.seal(dir, m); err != nil {
		return "", fmt.Errorf("image %s: %w", src.Name, err)
	}
	return digest, durable.Write(s.recipe(src.Recipe), []byte(digest+"\n"), 0o644)
}

// seal signs the manifest and renames the finished folder into place.
func (s *Store) seal(dir string, m manifest.Manifest) (string, error) {
	if err := m.Sign(s.key); err != nil {
		return "", err
	}
	b, digest, err := m.Marshal()
	if err != nil {
		return "", err
	}
	if err := durable.Write(filepath.Join(dir, ManifestFile), b, 0o644); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	to := filepath.Dir(s.file(digest, ManifestFile))
	return digest, folder.Replace(dir, to) // what has the name is the same image, or a damaged copy
}

// copyAll copies the further files and returns them sorted by name.
func copyAll(ctx context.Context, dir string, files map[string]string) ([]manifest.File, error) {
	var all []manifest.File
	for name, path := range files {
		if !plainName(name) {
			return nil, errkind.New(errkind.Internal, "file %q cannot be part of an image", name)
		}
		f, err := copyOne(ctx, filepath.Join(dir, name), path)
		if err != nil {
			return nil, err
		}
		f.Name = name
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b manifest.File) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func copyOne(ctx context.Context, to, from string) (manifest.File, error) {
	in, err := os.Open(from)
	if err != nil {
		return manifest.File{}, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return manifest.File{}, err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), meter.WithContext(ctx, in))
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return manifest.File{}, err
	}
	return manifest.File{Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
