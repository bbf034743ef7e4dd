// SPDX-License-Identifier: Apache-2.0

package language

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
)

// wrongType reports a value that does not convert to the attribute's type.
func (p *program) wrongType(t *template, a *attrSyntax, spec *Attr, v cty.Value, err error, in instance) {
	at := a.expr.Range()
	if path, ok := errors.AsType[cty.PathError](err); ok && len(path.Path) > 0 {
		if step, ok := path.Path[0].(cty.IndexStep); ok && step.Key.Type() == cty.Number {
			n, _ := step.Key.AsBigFloat().Int64()
			at = elementRange(a.expr, int(n))
		}
	}
	check, summary := "language.type", fmt.Sprintf("Wrong type of %s", spec.Name)
	detail := fmt.Sprintf("%s is %s; %s is wanted.%s", spec.Name, withArticle(v.Type().FriendlyName()), spec.Type.Words, in.words())
	if _, isSecret := SecretOf(v); isSecret {
		detail = fmt.Sprintf("%s is a secret; %s is wanted, and secrets are only for attributes that hold one.%s", spec.Name, spec.Type.Words, in.words())
	}
	p.diags.Add(check, at, summary, detail).In(t.decl)
}

func withArticle(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) && word != useRoot {
		return "an " + word
	}
	return "a " + word
}

// toTitle returns a word or two with a capital.
func toTitle(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// wrongValue reports a value of the right type that means nothing.
func (p *program) wrongValue(t *template, a *attrSyntax, spec *Attr, err error, in instance) {
	check, summary, at := "language.value", fmt.Sprintf("Wrong value of %s", spec.Name), a.expr.Range()
	if problem, ok := errors.AsType[*Problem](err); ok {
		if problem.Check != "" {
			check, summary = problem.Check, problem.Summary
		}
		if problem.Element >= 0 {
			at = elementRange(a.expr, problem.Element)
		}
	}
	p.diags.Add(check, at, summary, toSentence(err.Error())+in.words()).In(t.decl)
}

// elementRange is the place of element i, when the elements are written one by
// one, else that of the expression.
func elementRange(expr hclsyntax.Expression, i int) hcl.Range {
	if list, diags := hcl.ExprList(expr); !diags.HasErrors() && i < len(list) {
		return list[i].Range()
	}
	return expr.Range()
}

// toSentence ends text with a full stop.
func toSentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// report imports what an evaluation found, with better words where we know more,
// and with the instance that it was found in.
func (p *program) report(found hcl.Diagnostics, words string) {
	for _, d := range found {
		if p.tornAt(d) || p.unknownIndex(d, words) {
			continue
		}
		c := *d
		if c.Summary != limitSummary {
			c.Detail = toSentence(c.Detail) + words
		}
		p.diags.Import(hcl.Diagnostics{&c}, "language.expression")
	}
}

// tornAt reports whether d is about a file that the parser gave up on: what is
// left of its expressions says nothing more.
func (p *program) tornAt(d *hcl.Diagnostic) bool {
	return d.Subject != nil && p.torn[d.Subject.Filename] || d.Context != nil && p.torn[d.Context.Filename]
}

// unknownIndex reports hardware[name] with a name that does not exist.
func (p *program) unknownIndex(d *hcl.Diagnostic, words string) bool {
	index, ok := d.Expression.(*hclsyntax.IndexExpr)
	if !ok || d.Summary != "Invalid index" || d.EvalContext == nil {
		return false
	}
	coll, ok := stripMeters(index.Collection).(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(coll.Traversal) != 1 || !p.roots[coll.Traversal.RootName()] {
		return false
	}
	key, found := index.Key.Value(d.EvalContext)
	if found.HasErrors() || key.IsNull() || !key.IsKnown() || key.Type() != cty.String {
		return false
	}
	root, name := coll.Traversal.RootName(), key.AsString()
	if !p.partial {
		p.diags.Add("reference.unknown", index.Key.Range(), fmt.Sprintf("Unknown %s", root),
			fmt.Sprintf("There is no %s %q.%s%s", wordOf(root), name, diag.DidYouMean(name, p.names(root)), words)).In(index.SrcRange)
	}
	return true
}
