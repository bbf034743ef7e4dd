// SPDX-License-Identifier: Apache-2.0

// Package store keeps built images: the disk as a blob of compressed chunks, its
// signed manifest, and the files that travel with it. An image is complete or
// absent: it is built in a folder of its own, synced, and renamed into place.
//
//	recipes/HEX          digest of the image that the recipe sha256:HEX was built into
//	sha256-HEX/          one image: manifest.json, blob and further files
//	work/                builds in progress; what a crash leaves is swept by the next build
//	downloads/HEX/       what was fetched for the recipe sha256:HEX, until it is built
//	lock                 held by the process that builds
package store

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
)

// Names of the files that every image has. A source must not use them.
const (
	ManifestFile = "manifest.json"
	BlobFile     = "blob"
)

// maxManifest bounds a manifest that is read: 100 bytes a chunk make 16 TiB fit.
const maxManifest = 512 << 20

// Short is a digest as people compare it: its first twelve digits.
func Short(digest string) string {
	return digest[:min(len(digest), len("sha256:")+12)]
}

// Store is a folder of images. It is safe for concurrent use; builds are kept
// apart by Lock, also between processes.
type Store struct {
	dir string
	key ed25519.PrivateKey
}

// Open opens the store in dir and makes the folder if it is absent. The key signs
// new images, and images signed by another key are taken for foreign.
func Open(dir string, key ed25519.PrivateKey) (*Store, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errkind.New(errkind.Internal, "image store: the signing key has %d bytes, not %d", len(key), ed25519.PrivateKeySize)
	}
	for _, d := range []string{"recipes", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("image store: %w", err)
		}
	}
	// Tools that build images run in folders of their own.
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return &Store{dir: abs, key: key}, nil
}

// PublicKey returns the key that images are verified with, base64 as the agent
// takes it.
func (s *Store) PublicKey() string {
	return base64.StdEncoding.EncodeToString(s.public())
}

func (s *Store) public() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// Path returns where a file of an image lies below the store, with forward
// slashes: sha256-HEX/FILE. URLs of images use the same form.
func Path(digest, file string) string {
	return strings.Replace(digest, ":", "-", 1) + "/" + file
}

// isDigest reports whether a digest is sha256: and 64 lower-case hex digits, so that
// it can be a file name.
func isDigest(digest string) bool {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// Find returns the digest of the image that a recipe was built into; false when
// there is none that this controller signed and that has its files at their
// sizes. It does not read the files; Verify does.
func (s *Store) Find(recipe string) (digest string, found bool, err error) {
	if !isDigest(recipe) {
		return "", false, errkind.New(errkind.Internal, "image store: recipe %q is no digest", recipe)
	}
	b, err := os.ReadFile(s.recipe(recipe))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("image store: %w", err)
	}
	digest = strings.TrimSpace(string(b))
	m, err := s.Manifest(digest)
	if err != nil || m.Recipe != recipe || !s.whole(digest, m) {
		return "", false, nil // damaged or foreign: as good as absent, a build replaces it
	}
	return digest, true, nil
}

func (s *Store) recipe(recipe string) string {
	return filepath.Join(s.dir, "recipes", strings.TrimPrefix(recipe, "sha256:"))
}

// whole reports whether the files of an image are there and as long as they
// should be.
func (s *Store) whole(digest string, m manifest.Manifest) bool {
	for _, f := range append([]manifest.File{{Name: BlobFile, Size: m.Blob}}, m.Files...) {
		info, err := os.Stat(s.file(digest, f.Name))
		if err != nil || info.Size() != f.Size {
			return false
		}
	}
	return true
}

func (s *Store) file(digest, name string) string {
	return filepath.Join(s.dir, filepath.FromSlash(Path(digest, name)))
}

// Has reports whether an image is in the store, signed by this controller, with
// its files at their sizes. It does not read the files; Verify does.
func (s *Store) Has(digest string) bool {
	m, err := s.Manifest(digest)
	return err == nil && s.whole(digest, m)
}

// Manifest returns the manifest of an image after checking it against the digest
// and the controller's key.
func (s *Store) Manifest(digest string) (manifest.Manifest, error) {
	var m manifest.Manifest
	if !isDigest(digest) {
		return m, errkind.New(errkind.Invalid, "image %q: not a digest of the form sha256:HEX", digest)
	}
	b, err := s.readManifest(digest)
	if errors.Is(err, fs.ErrNotExist) {
		return m, errkind.New(errkind.NotFound, "image %s is not in the store", digest).Do("Build the image again.")
	}
	if err != nil {
		return m, fmt.Errorf("image %s: %w", digest, err)
	}
	if got := manifest.Digest(b); got != digest {
		return m, damagedError(digest, "its manifest has digest %s", got)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, damagedError(digest, "manifest: %w", err)
	}
	if err := m.Verify(s.public()); err != nil {
		return m, errkind.New(errkind.Corrupt, "image %s: %w", digest, err).Do("The image was built under another key or by another ironrail: build it again.")
	}
	for _, f := range m.Files {
		if !plainName(f.Name) || f.Size < 0 {
			return m, damagedError(digest, "file %q has an impossible name or size", f.Name)
		}
	}
	return m, nil
}

func (s *Store) readManifest(digest string) ([]byte, error) {
	info, err := os.Stat(s.file(digest, ManifestFile))
	if err != nil {
		return nil, err
	}
	if info.Size() > maxManifest {
		return nil, damagedError(digest, "its manifest is %d bytes long", info.Size())
	}
	return os.ReadFile(s.file(digest, ManifestFile))
}

// damagedError says that the store's copy is not what was built.
func damagedError(digest, format string, args ...any) error {
	return errkind.New(errkind.Corrupt, "image %s is damaged: %w", digest, fmt.Errorf(format, args...)).
		Do("Check the controller's disk and memory, remove the image from the store and build it again.")
}

// plainName reports whether a name can be a file beside manifest and blob.
func plainName(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\\\x00") && name != ManifestFile && name != BlobFile
}

// Image is one image of the store.
type Image struct {
	Digest   string
	Manifest manifest.Manifest
	Err      error // why the manifest cannot be used; nil when it can
}

// List returns all images by digest, also those whose manifest is damaged.
func (s *Store) List() ([]Image, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var all []Image
	for _, e := range entries {
		digest := strings.Replace(e.Name(), "-", ":", 1)
		if !e.IsDir() || !isDigest(digest) {
			continue
		}
		m, err := s.Manifest(digest)
		all = append(all, Image{Digest: digest, Manifest: m, Err: err})
	}
	slices.SortFunc(all, func(a, b Image) int { return strings.Compare(a.Digest, b.Digest) })
	return all, nil
}

// Where returns the path of a file of an image, for tools that read it. The name
// must be one of the image's own files; anything else is fs.ErrNotExist.
func (s *Store) Where(digest, name string) (string, error) {
	m, err := s.Manifest(digest)
	if err != nil {
		return "", err
	}
	known := name == ManifestFile || name == BlobFile || slices.ContainsFunc(m.Files, func(f manifest.File) bool { return f.Name == name })
	if !known {
		return "", fmt.Errorf("image %s: %s: %w", digest, name, fs.ErrNotExist)
	}
	return s.file(digest, name), nil
}

// Open opens a file of an image for serving, as Where finds it.
func (s *Store) Open(digest, name string) (*os.File, error) {
	path, err := s.Where(digest, name)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Remove takes an image and what points to it out of the store. The caller holds
// Lock. An image that is absent is no error.
func (s *Store) Remove(digest string) error {
	if !isDigest(digest) {
		return errkind.New(errkind.Internal, "image store: %q is no digest", digest)
	}
	recipes, err := os.ReadDir(filepath.Join(s.dir, "recipes"))
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	for _, e := range recipes { // the pointers first: an image is never half there
		path := filepath.Join(s.dir, "recipes", e.Name())
		if b, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(b)) == digest {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("image store: %w", err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Dir(s.file(digest, BlobFile))); err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	return durable.SyncFolder(s.dir)
}
