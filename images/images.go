// SPDX-License-Identifier: Apache-2.0

// Package images brings the operating systems of a site into the controller's
// store: each kind of image builds, the store keeps, the controller verifies and
// serves. A new kind is a type with the methods of Kind in a folder of its own.
package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/images/sbom"
	"github.com/ironrail/ironrail/images/store"
)

// Ensure returns the digest of the image of a recipe, and builds it first unless
// the store has it. It does not read an image that is there: Store.Verify does.
// Of several callers, also in other processes, one builds and the others wait.
func Ensure(ctx context.Context, r Recipe, s *store.Store, say func(string)) (digest string, err error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	if digest, found, err := s.Find(r.Digest()); err != nil || found {
		return digest, err
	}
	unlock, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if digest, found, err := s.Find(r.Digest()); err != nil || found {
		return digest, err // built while this call waited
	}
	return buildImage(ctx, r, s, say)
}

// Fetch brings the source of a recipe to this controller, so that it can be built without
// the network that the source lies in. It reports whether there is anything to fetch:
// neither is there of an image that is built.
func Fetch(ctx context.Context, r Recipe, s *store.Store, say func(string)) (fetched bool, err error) {
	d, ok := r.(Downloader)
	if !ok {
		return false, nil
	}
	if err := r.Check(); err != nil {
		return false, err
	}
	unlock, err := s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, found, err := s.Find(r.Digest()); err != nil || found {
		return false, err
	}
	dir, err := s.Downloads(r.Digest())
	if err != nil {
		return false, err
	}
	return true, d.Fetch(ctx, dir, say)
}

// buildImage builds and stores. The caller holds the store's lock.
func buildImage(ctx context.Context, r Recipe, s *store.Store, say func(string)) (digest string, err error) {
	start := time.Now()
	if err := s.Sweep(); err != nil {
		return "", err
	}
	dir, discard, err := s.Scratch()
	if err != nil {
		return "", err
	}
	defer func() {
		if e := discard(); e != nil && err == nil {
			err = e
		}
	}()
	built := r
	if d, ok := r.(Downloader); ok {
		downloads, err := s.Downloads(r.Digest())
		if err != nil {
			return "", err
		}
		built = d.WithDownloads(downloads)
	}
	src, err := built.Build(ctx, dir, say)
	if err != nil {
		return "", err
	}
	if err := addSBOM(&src, dir); err != nil {
		return "", fmt.Errorf("%s: its list of packages: %w", r.Name(), err)
	}
	if src.System.PackagesUnread != "" {
		say("packages not read: " + src.System.PackagesUnread)
	}
	if digest, err = s.Put(ctx, src, say); err != nil {
		return "", err
	}
	if err := s.RemoveDownloads(r.Digest()); err != nil {
		return "", err
	}
	say(fmt.Sprintf("built %s in %s: %s", r.Name(), time.Since(start).Round(time.Second), digest))
	return digest, nil
}

// addSBOM lists what is installed in an image, for people and for other programs, and
// counts it, or says why it is not known.
func addSBOM(src *store.Source, dir string) error {
	src.System.PackagesUnread = src.Installed.Unread
	if len(src.Installed.Packages) == 0 {
		return nil
	}
	doc, err := sbom.Marshal(sbom.Image{Name: src.Name, Recipe: src.Recipe, System: src.System, Packages: src.Installed.Packages})
	if err != nil {
		return err
	}
	src.System.Packages, src.Files[SBOMFile] = len(src.Installed.Packages), filepath.Join(dir, SBOMFile)
	return os.WriteFile(src.Files[SBOMFile], doc, 0o644)
}
