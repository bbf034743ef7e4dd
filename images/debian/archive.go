// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
)

// ownMirror is where mmdebstrap takes the packages of Debian from when no mirror is
// named.
const ownMirror = "http://deb.debian.org/debian"

// Archives returns the archives that a build of the recipe needs. Those that mmdebstrap
// adds by itself, for updates and security, are not among them. It does no I/O.
func (r Recipe) Archives() (list []images.Archive) {
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
