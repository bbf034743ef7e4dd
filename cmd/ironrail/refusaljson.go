// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/gaps"
)

// diagnosed is an error with the findings about the site's files that led to it. They
// were shown already.
type diagnosed struct {
	error
	diags inventory.Diagnostics
	gaps  gaps.List
}

// Unwrap returns the error.
func (d diagnosed) Unwrap() error { return d.error }

// refusalJSON is what is printed as data where a command has none to print.
type refusalJSON struct {
	Error       string                `json:"error"`
	Kind        errkind.Kind          `json:"kind,omitempty"`
	Reasons     []reasonJSON          `json:"reasons"`
	Diagnostics inventory.Diagnostics `json:"diagnostics"` // as check --json has them
	Gaps        gaps.List             `json:"gaps"`        // likewise
}

// reasonJSON is one reason, or several that are alike.
type reasonJSON struct {
	Cause  string   `json:"cause"`
	Action string   `json:"do,omitempty"`
	Check  string   `json:"check,omitempty"`
	Count  int      `json:"count"`
	Places []string `json:"places,omitempty"` // in the site's files: site.hcl:12,3-9
}

// asJSON prints why a command failed, as data, where its data was asked for. The error
// stays what it is.
func (a *app) asJSON(err error) error {
	if e, ok := errors.AsType[exit](err); err == nil || !a.json || ok && (e.err == nil || e.code == exitUsage) {
		return err
	}
	if perr := a.printJSON(refusalOf(err)); perr != nil {
		return errors.Join(err, perr)
	}
	return err
}

// refusalOf is an error as data.
func refusalOf(err error) refusalJSON {
	out := refusalJSON{Error: errkind.Line(err), Kind: errkind.Of(err), Reasons: []reasonJSON{}}
	if d, ok := errors.AsType[diagnosed](err); ok {
		out.Kind, out.Diagnostics, out.Gaps = errkind.Refused, d.diags, d.gaps
	}
	out.Reasons = append(out.Reasons, reasonsOf(out.Diagnostics)...)
	if len(out.Reasons) == 0 {
		for _, e := range leavesOf(err) {
			out.Reasons = append(out.Reasons, reasonJSON{Cause: errkind.Line(e), Action: hintOf(e), Count: 1})
		}
	}
	return out
}

// reasonsOf groups the errors among findings.
func reasonsOf(diags inventory.Diagnostics) (list []reasonJSON) {
	var about []fold.Finding
	var from []inventory.Diagnostic
	for _, d := range diags {
		if d.Severity == diag.Error {
			about, from = append(about, fold.Finding{Kind: "finding", Apart: d.Check, Cause: d.Summary + ": " + d.Detail}), append(from, d)
		}
	}
	for _, g := range fold.Findings(about) {
		first := from[g.Members[0]]
		r := reasonJSON{Cause: first.Summary, Action: first.Detail, Check: first.Check, Count: len(g.Members)}
		for _, m := range g.Members {
			if at := from[m].Subject; at != nil {
				r.Places = append(r.Places, at.String())
			}
		}
		list = append(list, r)
	}
	return list
}

// leavesOf are the errors that were joined one by one.
func leavesOf(err error) []error {
	if e, ok := err.(exit); ok {
		err = e.err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leavesOf(e)...)
	}
	return all
}
