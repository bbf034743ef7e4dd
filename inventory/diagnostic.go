// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// Diagnostic is one finding about the files of a site.
type Diagnostic = diag.Diagnostic

// Diagnostics is a list of findings, sorted by file and byte.
type Diagnostics = diag.List

// Files is the source of the site's files by name, for excerpts.
type Files = diag.Files

// SecretRef returns the secret reference that an evaluated attribute holds.
func SecretRef(v cty.Value) (secret.Ref, bool) { return language.SecretOf(v) }

// RefName returns the type and the name of the block that an evaluated attribute
// refers to: "controller", "head1".
func RefName(v cty.Value) (block, name string, ok bool) { return language.RefOf(v) }

// sortHCL sorts diagnostics by file and byte, since gohcl yields them in the
// order of a map.
func sortHCL(diags hcl.Diagnostics) {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		if a.Subject == nil || b.Subject == nil {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Subject.Filename, b.Subject.Filename), cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte), cmp.Compare(a.Summary, b.Summary))
	})
}
