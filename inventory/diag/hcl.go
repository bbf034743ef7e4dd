// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// names maps the HCL library's summaries to our checks. What is not here and was
// found while parsing is language.syntax, else language.expression.
var names = map[string]string{
	"Unsupported argument":                  "language.attribute",
	"Extraneous JSON object property":       "language.attribute",
	"Duplicate argument":                    "language.attribute",
	"Attribute redefined":                   "language.attribute",
	"Unsupported block type":                "language.block",
	"Missing required argument":             "language.required",
	"Call to unknown function":              "language.function",
	"Error in function call":                "language.function",
	"Invalid function argument":             "language.function",
	"Not enough function arguments":         "language.function",
	"Too many function arguments":           "language.function",
	"Evaluation past its limit":             "language.limit",
	"Unknown variable":                      "reference.unknown",
	"Unsupported attribute":                 "language.reference",
	"Missing map element":                   "language.reference",
	"Invalid index":                         "language.reference",
	"Inconsistent conditional result types": "language.type",
	"Invalid operand":                       "language.type",
	"Invalid template interpolation value":  "language.type",
}

// Import appends diagnostics of the HCL library; fallback is the check of those
// that have no name of their own.
func (l *List) Import(diags hcl.Diagnostics, fallback string) {
	for _, d := range diags {
		check, ok := names[d.Summary]
		switch {
		case ok:
		case strings.HasPrefix(d.Summary, "Extraneous label"), strings.HasPrefix(d.Summary, "Missing ") && strings.Contains(d.Summary, " for "):
			check = "language.label"
		default:
			check = fallback
		}
		out := Diagnostic{Check: check, Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			out.Severity = Warning
		}
		switch {
		case d.Subject != nil && d.Subject.Filename != "":
			r := FromHCL(*d.Subject)
			out.Subject = &r
		case d.Context != nil: // a place in an expression that was not parsed to its end
			r := Range{File: d.Context.Filename, Start: FromHCL(*d.Context).Start, End: FromHCL(*d.Context).Start}
			out.Subject = &r
		}
		if d.Context != nil && d.Context.End.Byte > d.Context.Start.Byte {
			r := FromHCL(*d.Context)
			out.Context = &r
		}
		*l = append(*l, out)
	}
}
