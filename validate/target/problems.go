// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
)

// Asks is what a validation block may ask of a check.
type Asks struct {
	Limits []string // bandwidths that it measures, by the names of their limits
	// Block finds what of the check's own part of the block cannot be tested, and Limit
	// what of one of its limits cannot be held; nil: nothing.
	Block func(g Group, p *Problems)
	Limit func(g Group, l inventory.MeasureLimit, p *Problems)
}

// Problems are what of a validation block cannot be tested.
type Problems struct {
	Diags     hcl.Diagnostics
	InService func(node string) bool // nil: no node is known to be
}

// Add adds what is wrong, or worth knowing.
func (p *Problems) Add(sev hcl.DiagnosticSeverity, at hcl.Range, summary, format string, args ...any) {
	p.Diags = append(p.Diags, &hcl.Diagnostic{Severity: sev, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
}
