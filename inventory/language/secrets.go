// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/diag"
)

var secretGo = reflect.TypeFor[secret.Ref]()

// secretOps makes two references to one place equal, though never shows them.
var secretOps = &cty.CapsuleOps{
	GoString:     func(any) string { return "secret" },
	TypeGoString: func(reflect.Type) string { return "secret" },
	Equals: func(a, b any) cty.Value {
		return cty.BoolVal(*a.(*secret.Ref) == *b.(*secret.Ref))
	},
	RawEquals: func(a, b any) bool { return *a.(*secret.Ref) == *b.(*secret.Ref) },
}

// secretForms are the schemes with what must follow them.
var secretForms = []struct {
	scheme, form string
	rest         *lazyregexp.Regexp
}{
	{"env", "env:NAME", lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)},
	{"file", "file:PATH", lazyregexp.New(`^[^\x00-\x1f]+$`)},
	{"age", "age:FILE#KEY", lazyregexp.New(`^[^\x00-\x1f#]+#[^\x00-\x1f#]+$`)},
	{"csv", "csv:FILE#ROW/COLUMN", lazyregexp.New(`^[^\x00-\x1f#]+#[^\x00-\x1f#]+/[^\x00-\x1f#/]+$`)},
	{"vault", "vault:PATH#KEY", lazyregexp.New(`^[^\x00-\x1f#]+#[^\x00-\x1f#]+$`)},
	{"exec", "exec:NAME", lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)},
}

// ParseSecret checks the form of a secret reference. The text is repeated in no
// error: whoever wrote the secret itself there should not see it in a log.
func ParseSecret(text string) (secret.Ref, error) {
	var schemes []string
	scheme, rest, found := strings.Cut(text, ":")
	for _, f := range secretForms {
		schemes = append(schemes, f.form)
		if !found || f.scheme != scheme {
			continue
		}
		if !f.rest.MatchString(rest) || len(rest) > 4096 {
			return "", fmt.Errorf("a secret of this kind is written %q", f.form)
		}
		return secret.Ref(text), nil
	}
	return "", fmt.Errorf("a secret is written as one of %s; it is never given in clear", diag.Quoted(schemes))
}

// secretFunc is secret(): it validates the form and resolves nothing. A path in a
// module is relative to its folder, as those of all functions are.
func (m *module) secretFunc() function.Function {
	return function.New(&function.Spec{
		Description: "secret says where a secret lies; it is resolved only when apply needs it.",
		Params:      []function.Parameter{{Name: "reference", Type: cty.String}},
		Type:        function.StaticReturnType(secretType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			ref, err := ParseSecret(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			scheme, rest, _ := strings.Cut(string(ref), ":")
			if m.by != nil && slices.Contains([]string{"file", "age", "csv"}, scheme) && !filepath.IsAbs(rest) {
				name, key, keyed := strings.Cut(rest, "#")
				if rest = m.file(name); keyed {
					rest += "#" + key
				}
				ref = secret.Ref(scheme + ":" + rest)
			}
			return secretVal(ref), nil
		},
	})
}

func secretVal(ref secret.Ref) cty.Value { return cty.CapsuleVal(secretType, &ref) }
