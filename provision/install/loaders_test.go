// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestSignedFor: a node is given the shim of the distribution whose kernel it boots, which for one
// without an image is that of an image that is made for Secure Boot.
func TestSignedFor(t *testing.T) {
	t.Parallel()
	image := func(kind, name, os string, secure bool) *inventory.Image {
		return &inventory.Image{Block: inventory.Block{Kind: kind, Name: name}, OS: os, Arch: inventory.AMD64, SecureBoot: secure}
	}
	debian, ubuntu, other, rhel := image("debian", "a", "", false), image("ubuntu", "b", "", true), image("ubuntu", "c", "", true), image("rhel", "d", "", true)
	inv := &inventory.Inventory{Images: []*inventory.Image{debian, ubuntu, rhel, other}}
	plain, secure := &inventory.Hardware{}, &inventory.Hardware{SecureBoot: true}
	for name, c := range map[string]struct {
		node   inventory.Node
		want   string
		images int
	}{
		"debian":                  {inventory.Node{Image: debian, Hardware: plain}, "debian", 1},
		"ubuntu":                  {inventory.Node{Image: ubuntu, Hardware: secure}, "ubuntu", 1},
		"rhel":                    {inventory.Node{Image: rhel, Hardware: secure}, "rhel", 1},
		"in memory":               {inventory.Node{Image: image("diskless", "m", "ubuntu", true), Hardware: secure}, "ubuntu", 1},
		"without an image":        {inventory.Node{Hardware: secure}, "ubuntu", 2},
		"without Secure Boot too": {inventory.Node{Hardware: plain}, "debian", 4},
		"of arm64":                {inventory.Node{Hardware: &inventory.Hardware{Arch: inventory.ARM64, SecureBoot: true}}, "debian", 0},
	} {
		if got, list := SignedFor(inv, &c.node), RamdiskImages(inv, &c.node); got != c.want || len(list) != c.images {
			t.Errorf("%s: %q of %d images, want %q of %d", name, got, len(list), c.want, c.images)
		}
	}
}
