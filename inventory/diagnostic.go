package inventory

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

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
