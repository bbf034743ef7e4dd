// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory/diag"
)

// Complete reports whether a model with these findings says what its files mean:
// with an error of the language, a name or a reference parts of it are missing.
// One that is complete may be drawn, whatever else is wrong with it.
func Complete(found Diagnostics) bool {
	return !slices.ContainsFunc(found, func(d Diagnostic) bool {
		return d.Severity == diag.Error && slices.ContainsFunc([]string{"language.", "reference.", "name.", "secret."}, func(p string) bool { return strings.HasPrefix(d.Check, p) })
	})
}
