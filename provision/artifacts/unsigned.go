// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images"
)

// Unsigned are the errors of a plan about images in the store that were built before nodes of
// theirs booted with Secure Boot, such as one that is pinned: they bring no signed loaders,
// so that nothing could be offered to these nodes. digests are those of images, by name.
func (a Artifacts) Unsigned(digests map[string]string) (found hcl.Diagnostics) {
	for _, i := range a.inv.Images {
		digest := digests[i.Name]
		if !i.SecureBoot || digest == "" || a.Images == nil || !a.Images.Has(digest) {
			continue
		}
		for _, file := range images.SignedLoaders(i.Arch) {
			if _, err := a.Images.Where(digest, file); err == nil {
				continue
			}
			found = append(found, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Image without signed loaders", Subject: &i.Decl,
				Detail: fmt.Sprintf("Image %q as it is in the store has no %s, and some of its nodes boot with Secure Boot: it was built before they did. Build it again with `ironrail image build %s`, without a digest that pins the older one.", i.Name, file, i.Name)})
			break
		}
	}
	return found
}
