// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// Distribution is a release of a distribution as drivers count them: Debian and
// RHEL by their major number, Ubuntu by year and month.
type Distribution struct {
	Family  string // "debian", "ubuntu" or "rhel" (Rocky, Alma and Oracle Linux too)
	Release string // "12", "24.04", "9"
}

// String is the release as people say it.
func (d Distribution) String() string {
	return map[string]string{"debian": "Debian", "ubuntu": "Ubuntu", "rhel": "RHEL"}[d.Family] + " " + d.Release
}

// codenames are the releases that go by a name (wiki.debian.org/DebianReleases,
// wiki.ubuntu.com/Releases).
var codenames = map[string]string{
	"bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14",
	"focal": "20.04", "jammy": "22.04", "noble": "24.04", "resolute": "26.04",
}

// DistributionOf returns what an image says to be; false for kinds that do not
// say it (oci, raw, installer, diskless).
func DistributionOf(image *inventory.Image) (Distribution, bool) {
	release := strings.ToLower(strings.TrimSpace(image.Release))
	if number, ok := codenames[release]; ok {
		release = number
	}
	kind := image.Kind
	if image.StandsFor != "" {
		kind = image.StandsFor
	}
	switch kind {
	case "debian", "rhel":
		release, _, _ = strings.Cut(release, ".")
	case "ubuntu":
		parts := strings.Split(release, ".")
		if len(parts) > 2 {
			parts = parts[:2] // a point release is the same distribution
		}
		release = strings.Join(parts, ".")
	default:
		return Distribution{}, false
	}
	if _, err := strconv.ParseFloat(release, 64); err != nil {
		return Distribution{}, false
	}
	return Distribution{kind, release}, true
}
