// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Type is the type of an attribute: what its expression must convert to, and how
// the result becomes a Go value. The zero Type is not usable.
type Type struct {
	Words string // in messages: "an IP address such as 10.20.0.1"
	value cty.Type
	parse func(cty.Value) (any, error) // of a known value that is not null
}

// Problem is an error of parse with a check of its own.
type Problem struct {
	Check, Summary, Detail string
	Element                int // index in a list; -1: the whole
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// The plain types.
var (
	String = Type{"a string", cty.String, func(v cty.Value) (any, error) { return refusePassword(v.AsString()) }}
	Text   = Type{"a string", cty.String, func(v cty.Value) (any, error) { return v.AsString(), nil }}
	Bool   = Type{"true or false", cty.Bool, func(v cty.Value) (any, error) { return v.True(), nil }}
	Float  = Type{"a number", cty.Number, func(v cty.Value) (any, error) {
		f, _ := v.AsBigFloat().Float64()
		return f, nil
	}}
	Strings   = List(String)
	StringMap = Type{"a map of strings", cty.Map(cty.String), func(v cty.Value) (any, error) {
		out := map[string]string{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if !e.IsNull() {
				out[k.AsString()] = e.AsString()
			}
		}
		return out, nil
	}}
	Any = Type{"a value", cty.DynamicPseudoType, func(v cty.Value) (any, error) { return v, nil }}
)

// refusePassword refuses text that hides a password in a URL.
func refusePassword(s string) (any, error) {
	if scheme, rest, ok := strings.Cut(s, "://"); ok && !strings.ContainsAny(scheme, " \n\"") {
		authority, _, _ := strings.Cut(rest, "/")
		if user, _, ok := strings.Cut(authority, "@"); ok && strings.Contains(user, ":") {
			return nil, &Problem{Check: "secret.clear", Summary: "Password in clear in a URL", Element: -1,
				Detail: "The URL holds a user name with a password. Take the password out of it; passwords are given as secret(\"env:NAME\") and the like, where an attribute wants one."}
		}
	}
	return s, nil
}

// Int is a whole number from low to high.
func Int(low, high int) Type {
	words := fmt.Sprintf("a whole number from %d to %d", low, high)
	return Type{words, cty.Number, func(v cty.Value) (any, error) {
		n, acc := v.AsBigFloat().Int64()
		if acc != big.Exact || n < int64(low) || n > int64(high) {
			return nil, fmt.Errorf("%s is not %s", v.AsBigFloat().Text('g', 12), words)
		}
		return int(n), nil
	}}
}

// OneOf is one of the given strings, as a Go string.
func OneOf(allowed ...string) Type {
	return Type{"one of " + diag.Quoted(allowed), cty.String, func(v cty.Value) (any, error) {
		s := v.AsString()
		if slices.Contains(allowed, s) {
			return s, nil
		}
		hint := ""
		if near := diag.Nearest(s, allowed); near != "" {
			hint = fmt.Sprintf(" Did you mean %q?", near)
		}
		return nil, fmt.Errorf("%q is not one of %s.%s", s, diag.Quoted(allowed), hint)
	}}
}

// Parsed is text that parse turns into a T.
func Parsed[T any](words string, parse func(string) (T, error)) Type {
	return Type{words, cty.String, func(v cty.Value) (any, error) {
		out, err := parse(v.AsString())
		if err != nil {
			return nil, err
		}
		return out, nil
	}}
}

// Custom is a value of any shape that parse turns into a T.
func Custom[T any](words string, parse func(cty.Value) (T, error)) Type {
	return Type{words, cty.DynamicPseudoType, func(v cty.Value) (any, error) {
		out, err := parse(v)
		if err != nil {
			return nil, err
		}
		return out, nil
	}}
}

// List is a list of elem, as []any of what elem gives; see GetList.
func List(elem Type) Type {
	value := cty.DynamicPseudoType
	if elem.value != cty.DynamicPseudoType {
		value = cty.List(elem.value)
	}
	return Type{"a list, each " + elem.Words, value, func(v cty.Value) (any, error) {
		if !v.CanIterateElements() || v.Type().IsObjectType() || v.Type().IsMapType() {
			return nil, fmt.Errorf("a list is wanted, each element %s", elem.Words)
		}
		out := make([]any, 0, v.LengthInt())
		i := 0
		for it := v.ElementIterator(); it.Next(); i++ {
			_, e := it.Element()
			if e.IsNull() {
				return nil, &Problem{Detail: fmt.Sprintf("element %d is null; %s is wanted", i, elem.Words), Element: i}
			}
			x, err := elem.parse(e)
			if err != nil {
				return nil, atElement(err, i)
			}
			out = append(out, x)
		}
		return out, nil
	}}
}

// atElement says which element of a list err is about.
func atElement(err error, i int) error {
	p, ok := err.(*Problem) //nolint:errorlint // made by parse itself, never wrapped
	if !ok {
		return &Problem{Detail: err.Error(), Element: i}
	}
	out := *p
	out.Element = i
	return &out
}

// Ref is a reference to a block of that type, without quotes, as the Go type
// RefName.
func Ref(block string) Type {
	words := fmt.Sprintf("a reference such as %s.name, without quotes", block)
	return Type{words, cty.DynamicPseudoType, func(v cty.Value) (any, error) {
		kind, name, ok := RefOf(v)
		switch {
		case ok && kind == block:
			return RefName(name), nil
		case ok:
			return nil, &Problem{Check: "language.type", Summary: "Reference to the wrong kind of block", Element: -1,
				Detail: fmt.Sprintf("This refers to %s.%s; %s is wanted here.", kind, name, withArticle(block))}
		case v.Type() == cty.String:
			return nil, fmt.Errorf("%q is a string; a reference is wanted, written without quotes: %s.%s", v.AsString(), block, v.AsString())
		}
		return nil, fmt.Errorf("%s is no block; %s is wanted", v.Type().FriendlyName(), words)
	}}
}

// RefName is the name of the block that a reference means.
type RefName string

// idAttr is the attribute of every block's value that says which block it is:
// "network.oob".
const idAttr = "id"

// RefOf returns the type and the name of the block whose value v is.
func RefOf(v cty.Value) (kind, name string, ok bool) {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(idAttr) {
		return "", "", false
	}
	id := v.GetAttr(idAttr)
	if id.IsNull() || !id.IsKnown() || id.Type() != cty.String {
		return "", "", false
	}
	return strings.Cut(id.AsString(), ".")
}

// Secret is a secret reference, made by secret(), as secret.Ref. Text in its
// place is an error that does not repeat the text.
var Secret = Type{`a secret such as secret("env:NAME")`, cty.DynamicPseudoType, func(v cty.Value) (any, error) {
	if ref, ok := SecretOf(v); ok {
		return ref, nil
	}
	return nil, &Problem{Check: "secret.clear", Summary: "Secret in clear", Element: -1,
		Detail: `A secret is never written into the site's files. Say where it lies: secret("env:NAME"), secret("file:PATH"), secret("age:FILE#KEY"), secret("csv:FILE#ROW/COLUMN"), secret("vault:PATH#KEY") or secret("exec:NAME").`}
}}

// secretType is the type of secret()'s values: opaque, so that no template or
// function can take them apart.
var secretType = cty.CapsuleWithOps("secret", secretGo, secretOps)

// SecretOf returns the secret reference that v is.
func SecretOf(v cty.Value) (secret.Ref, bool) {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().Equals(secretType) {
		return "", false
	}
	return *v.EncapsulatedValue().(*secret.Ref), true
}
