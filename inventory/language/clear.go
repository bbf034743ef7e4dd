// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Secrets in clear are looked for in two ways. By name: a local, the default of a
// variable, an attribute or a key of an object that is called like a secret and
// is text written out. By content: text of an attribute or a local, that of a
// file too, that can hardly be anything else. docs/checks/secret.clear.md says
// the rule in full; both ways give warnings, for neither is sure.

// secretWords are what secrets are called.
var secretWords = []string{"password", "passwd", "passphrase", "secret", "secrets", "token", "community", "credential", "credentials"}

// keyWords before "key" make a key that is secret.
var keyWords = []string{"private", "secret", "api", "access", "signing", "encryption"}

// aboutWords at the end say that the value is not the secret itself.
var aboutWords = []string{"file", "path", "url", "uri", "name", "names", "length", "policy", "user", "username", "id", "ref", "field", "column", "ttl", "age", "lifetime", "expiry", "mode", "type"}

// noSecrets are values that say something about a secret; bgpCommunity is a
// community of another kind.
var (
	noSecrets    = []string{"", "none", "no", "yes", "true", "false", "enabled", "disabled", "required", "optional", "prompt", "random", "*", "!", "!!", "x", "~", "null"}
	bgpCommunity = lazyregexp.New(`^\d+:\d+(:\d+)?$`)
)

// secretName reports whether something of this name is a secret.
func secretName(name string) bool {
	words := strings.FieldsFunc(spaceWords(name), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 || slices.Contains(aboutWords, words[len(words)-1]) {
		return false
	}
	for i, w := range words {
		if slices.Contains(secretWords, w) || w == "key" && i > 0 && slices.Contains(keyWords, words[i-1]) {
			return true
		}
	}
	return false
}

// spaceWords is name in lower case with its words apart: "bmcPassword" too.
func spaceWords(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func secretText(s string) bool {
	if slices.Contains(noSecrets, strings.ToLower(s)) || bgpCommunity.MatchString(s) {
		return false
	}
	_, err := ParseSecret(s)
	return err != nil // "env:NAME" says where a secret lies
}

// writtenOut returns the text of a string without templates.
func writtenOut(expr hclsyntax.Expression) (string, bool) {
	t, ok := stripMeters(expr).(*hclsyntax.TemplateExpr)
	if !ok || len(t.Parts) != 1 {
		return "", false
	}
	l, ok := t.Parts[0].(*hclsyntax.LiteralValueExpr)
	if !ok || l.Val.Type() != cty.String || l.Val.IsNull() || !l.Val.IsKnown() {
		return "", false
	}
	return l.Val.AsString(), true
}

// clearName warns of text that is called like a secret.
func (c *compiler) clearName(name string, expr hclsyntax.Expression, in hcl.Range) {
	text, ok := writtenOut(expr)
	if !ok || !secretName(name) || !secretText(text) {
		return
	}
	sayClear(c.diags, expr.Range(), fmt.Sprintf("%q is written out, and its name says that it is a secret.", name), in)
}

// clearKeys warns of keys of objects that are called like secrets.
func (c *compiler) clearKeys(o *hclsyntax.ObjectConsExpr) {
	for _, item := range o.Items {
		name := hcl.ExprAsKeyword(item.KeyExpr)
		if k, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr); name == "" && ok {
			name, _ = writtenOut(k.Wrapped)
		}
		c.clearName(name, item.ValueExpr, item.ValueExpr.Range())
	}
}

func sayClear(diags *diag.List, at hcl.Range, found string, in hcl.Range) {
	diags.Add("secret.clear", at, "Secret in clear", found+` Everybody who reads the site's files reads it too. Put it elsewhere and say where: secret("env:NAME"), secret("file:PATH"), secret("age:FILE#KEY").`).In(in).Warn()
}

// Forms of text that are secrets whatever they are called. The sources are
// docs/checks/secret.clear.md.
var (
	privateKey  = lazyregexp.New(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	urlPassword = lazyregexp.New(`[a-z][a-z0-9+.-]*://[^/\s:@"'<>]+:([^/\s@"'<>]+)@`)
	wellKnown   = lazyregexp.New(`\b(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|glpat-[A-Za-z0-9_-]{20}|hvs\.[A-Za-z0-9_-]{24})`)
	cloudConfig = lazyregexp.New(`(?mi)^[ \t-]*(password|passwd|plain_text_passwd|hashed_passwd)[ \t]*:[ \t]*["']?([^\s"'#]+)`)
)

// shortestClear is the length of the shortest text that the forms match.
const shortestClear = 10

// clearText names the secret that a text holds; "" when there is none.
func clearText(name, s string) string {
	switch {
	case len(s) < shortestClear:
	case strings.Contains(s, "PRIVATE KEY") && privateKey.MatchString(s):
		return "a private key (PEM)"
	case strings.Contains(s, "://") && hasURLPassword(s):
		return "a URL with a password"
	case len(s) >= 20 && wellKnown.MatchString(s):
		return "an access token"
	case name == "user_data" || strings.HasPrefix(s, "#cloud-config"):
		for _, m := range cloudConfig.FindAllStringSubmatch(s, 100) {
			if secretText(m[2]) && !strings.HasPrefix(m[2], "$") && m[2] != "|" && m[2] != ">" {
				return fmt.Sprintf("a password (%s:)", m[1])
			}
		}
	}
	return ""
}

func hasURLPassword(s string) bool {
	for _, m := range urlPassword.FindAllStringSubmatch(s, 100) {
		if !strings.HasPrefix(m[1], "$") && secretText(m[1]) {
			return true
		}
	}
	return false
}

// clearContent warns of an attribute or a local that holds a secret.
func (p *program) clearContent(name string, v cty.Value, at, in hcl.Range) {
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return
	}
	if what := clearText(name, v.AsString()); what != "" {
		sayClear(p.diags, at, fmt.Sprintf("The text of %s holds %s.", name, what), in)
	}
}
