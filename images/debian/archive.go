// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
)

// ownMirror is where mmdebstrap takes the packages of Debian from when no mirror is
// named.
const ownMirror = "http://deb.debian.org/debian"

// Archives returns the archives that a build of the recipe needs. Those that mmdebstrap
// adds by itself, for updates and security, are not among them. It does no I/O.
func (r Recipe) Archives() []images.Archive {
	list := r.ownArchives()
	if r.takesSigned() {
		for _, s := range r.loaders() {
			if l := (images.Archive{URL: s.URL, Suite: s.Suite}); !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}

// takesSigned reports whether signed loaders are taken from an archive, which a controller's packages
// have none of.
func (r Recipe) takesSigned() bool { return r.otherArch() != "" || r.SecureBoot }

// loaders are where signed loaders come from: Debian's from the first archive, another release;
// Ubuntu's from those that the image is made of, in their newest versions.
func (r Recipe) loaders() (list []repo.Source) {
	own := r.ownArchives()
	if r.family().Name == distribution.Ubuntu {
		for _, a := range own {
			list = append(list, repo.Source{URL: a.URL, Suite: a.Suite, Components: []string{"main"}})
		}
		return list
	}
	s := repo.Source{URL: ownMirror, Suite: bootdisk.SignedRelease, Components: []string{"main"}}
	if len(own) > 0 {
		s.URL = own[0].URL
	}
	return []repo.Source{s}
}

// ownArchives are those that packages come from.
func (r Recipe) ownArchives() (list []images.Archive) {
	mirrors := r.Mirrors
	if len(mirrors) == 0 {
		mirrors = []string{ownMirror}
	}
	for _, m := range mirrors {
		words := strings.Fields(m)
		if len(words) > 0 && words[0] == "deb" { // one-line format: options in brackets stand before the URL
			words = words[1:]
			if len(words) > 0 && strings.HasPrefix(words[0], "[") {
				end := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, "]") })
				words = words[end+1:]
			}
			if len(words) > 1 {
				list = append(list, images.Archive{URL: words[0], Suite: words[1]})
			}
			continue
		}
		if strings.Contains(m, "://") {
			list = append(list, images.Archive{URL: m, Suite: r.Release})
		}
	}
	return list
}
