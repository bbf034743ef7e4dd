// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Made are packages that no source has, since they are made on this controller.
type Made struct {
	Packages []string // their names
	Inputs   string   // what decides them, as far as the site declares it
	Signer   string   // serial number of the certificate whose key signs kernel modules in them; "": none has any
	// Make makes them for an image in dir, an absolute path to an empty folder, and
	// returns the paths of the package files, one of each name. have are those that the
	// sources had. It may take an hour.
	Make func(ctx context.Context, dir string, i Image, have []string, say func(string)) ([]string, error)
}

// make makes the packages that are made here.
func (o Options) make(ctx context.Context, dir string, have []string) ([]string, error) {
	if len(o.Made.Packages) == 0 {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	debs, err := o.Made.Make(ctx, dir, o.Image, have, func(text string) { o.logf("%s", text) })
	if err == nil && len(debs) != len(o.Made.Packages) {
		err = errkind.New(errkind.Internal, "%d packages were made of %q", len(debs), o.Made.Packages)
	}
	return debs, err
}

// ListSources returns the sources of an image and those beside them in the one-line
// format. The keys of the latter are written into keys, an absolute path, and named in
// their lines; those of the image's sources are its keyring's.
func (i Image) ListSources(beside []Source, components []string, keys string) ([]byte, error) {
	sources, err := os.ReadFile(i.Sources)
	if err != nil {
		return nil, err
	}
	list := withComponents(withoutSignedBy(sources), components)
	for n, s := range beside {
		file := ""
		if len(s.Key) > 0 {
			file = filepath.Join(keys, fmt.Sprintf("source-%d.asc", n))
			if err := os.WriteFile(file, s.Key, 0o644); err != nil {
				return nil, err
			}
		}
		list = append(list, s.line(file)...)
	}
	return list, nil
}
