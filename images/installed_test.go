// SPDX-License-Identifier: Apache-2.0

package images

import (
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
)

// Installed returns what a package repository for an image of the store is
// resolved against. An image without a package list, of another kind, is an error.
func Installed(s *store.Store, digest string) (repo.Image, error) {
	i := repo.Image{Digest: digest}
	for name, to := range map[string]*string{StatusFile: &i.Status, SourcesFile: &i.Sources, KeyringFile: &i.Keyring} {
		path, err := s.Where(digest, name)
		if err != nil {
			return repo.Image{}, err
		}
		*to = path
	}
	return i, nil
}
