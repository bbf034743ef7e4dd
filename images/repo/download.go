// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Download fetches single packages of archives, in their newest versions and without what they need,
// and returns their files. apt checks each of them against the archives' signed lists. dir is a
// folder for apt alone, keyring has the keys of archives without their own, arch is that of the packages.
func Download(ctx context.Context, dir, arch, keyring string, from []Source, names ...string) ([]string, error) {
	for _, s := range from {
		if err := s.check(); err != nil {
			return nil, errkind.New(errkind.Refused, "%w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	i := Image{Arch: arch, Keyring: keyring, Status: filepath.Join(dir, "status"), Sources: filepath.Join(dir, "sources")}
	if err := errors.Join(os.WriteFile(i.Status, nil, 0o644), os.WriteFile(i.Sources, nil, 0o644)); err != nil {
		return nil, err
	}
	run, err := readLists(ctx, Options{Image: i, Sources: from}, dir)
	if err != nil {
		return nil, err
	}
	if err := run.Run(ctx, nil, append([]string{"apt-get", "-q", "download", "--"}, names...)...); err != nil {
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(run.Dir, "*.deb"))
	if err == nil && len(debs) != len(names) {
		err = errkind.New(errkind.NotFound, "%d of %d packages were downloaded", len(debs), len(names))
	}
	return debs, err
}
