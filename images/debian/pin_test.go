// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/inventory"
)

// TestRecipesKeepTheirDigests: an image that was built, or locked, by an older ironrail
// stays the right one. A change here builds and installs every image again, and wants
// another Version and a word in the changelog.
func TestRecipesKeepTheirDigests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		image          inventory.Image
		digest, inputs string
	}{
		{inventory.Image{Block: inventory.Block{Name: "os"}, Release: "bookworm", Packages: []string{"chrony"}}, "sha256:cfb772efbead0f32a81a852f9b5374b878e9b21bd809d0149c205e2960ce56b3", "sha256:6861be22c5d13bdce5013cb1ca1eeaa40fe9312f1aae6fbc651a1064270c470e"},
		{inventory.Image{Block: inventory.Block{Name: "os"}, Release: "13", Kernel: "linux-image-cloud-amd64"}, "sha256:14221b30e40c455ec63ea17ea16150ca74beafd163004ce8b060a83099b41bd7", "sha256:5ff9ae0f7515ffb7c2efb5840ea710a5a3a11f766be272574440a3120bca7079"},
	} {
		var r images.Recipe = Kind{}.Recipe(&c.image, "")
		if r.Digest() != c.digest || r.Inputs() != c.inputs {
			t.Errorf("image of Debian %s has digest %q and inputs %q", c.image.Release, r.Digest(), r.Inputs())
		}
	}
}
