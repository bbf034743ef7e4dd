// SPDX-License-Identifier: Apache-2.0

package language

import (
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/ironrail/ironrail/inventory/diag"
)

// Format returns the source of one *.hcl file in its usual form: only spaces
// change. Of a source with mistakes in its syntax it returns these instead.
func Format(name string, src []byte) ([]byte, diag.List) {
	f := &sourceFile{name: name, src: src}
	f.parse(Limits{}.withDefaults())
	if f.diags.HasErrors() {
		return nil, f.diags
	}
	return hclwrite.Format(src), nil
}
