// SPDX-License-Identifier: Apache-2.0

package language

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

var errOutside = errors.New("the path leads out of the site's folder; only files within it are read")

// readText reads a file for an expression, once.
func (p *program) readText(name string) (string, error) {
	at, err := p.module.locate(p.opt.Allowed, name)
	if err != nil {
		return "", err
	}
	inside := at.file("")
	key := "file\x00" + inside
	if v, ok := p.memo[key]; ok {
		return v.AsString(), nil
	}
	src, err := ReadFile(at.fsys, at.dir, p.opt.Limits.FileBytes)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", inside, causeOf(err))
	}
	if !utf8.Valid(src) {
		return "", fmt.Errorf("%s is no text in UTF-8", inside)
	}
	text := strings.TrimPrefix(string(src), "\ufeff") // spreadsheets write it before the first column's name
	if !p.budget.produce(len(text)) {
		return "", errTooMuch
	}
	p.memo[key] = cty.StringVal(text)
	return p.memo[key].AsString(), nil
}

// locate finds the file system that may be read for a path, and the path in it:
// relative ones start in the module's folder and stay within the site.
func (f folder) locate(allowed []string, name string) (folder, error) {
	if filepath.IsAbs(name) {
		clean := filepath.Clean(name)
		for _, dir := range allowed {
			if rest, ok := strings.CutPrefix(clean, filepath.Clean(dir)+string(filepath.Separator)); ok {
				root, err := os.OpenRoot(dir)
				if err != nil {
					return folder{}, fmt.Errorf("%s cannot be read: %s", dir, causeOf(err))
				}
				return folder{root.FS(), filepath.Clean(dir), filepath.ToSlash(rest)}, nil
			}
		}
		return folder{}, errOutside
	}
	clean := path.Join(f.dir, filepath.ToSlash(name))
	if name == "" || !fs.ValidPath(clean) || strings.ContainsRune(clean, 0) {
		return folder{}, errOutside
	}
	return folder{f.fsys, f.outer, clean}, nil
}

func (p *program) fileFunc() function.Function {
	return function.New(&function.Spec{
		Description: "file returns the text of a file of the site's folder.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := p.readText(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}

func (p *program) fileExistsFunc() function.Function {
	return function.New(&function.Spec{
		Description: "fileexists reports whether a file of the site's folder exists.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			at, err := p.module.locate(p.opt.Allowed, args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			info, err := fs.Stat(at.fsys, at.dir)
			return cty.BoolVal(err == nil && info.Mode().IsRegular()), nil
		},
	})
}

func (p *program) templateFileFunc() function.Function {
	return function.New(&function.Spec{
		Description: "templatefile returns the text of a file of the site's folder with its templates filled in.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			text, err := p.readText(name)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			ty := args[1].Type()
			if !ty.IsObjectType() && !ty.IsMapType() {
				return cty.NilVal, argError(1, "a map of the template's variables is wanted")
			}
			out, err := p.fill(name, text, args[1].AsValueMap())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return out, nil
		},
	})
}

// fill evaluates a template with vars as its only names.
func (p *program) fill(name, text string, vars map[string]cty.Value) (cty.Value, error) {
	if deepTemplate(text, p.opt.Limits) {
		return cty.NilVal, errors.New("the template is too deeply nested")
	}
	expr, found := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
	if found.HasErrors() {
		return cty.NilVal, templateError(found)
	}
	ctx := p.standard.NewChild()
	ctx.Variables, ctx.Functions = vars, maps.Clone(p.base.Functions)
	delete(ctx.Functions, templateFile)
	v, found := addMeters(expr, p.budget).Value(ctx)
	if found.HasErrors() {
		return cty.NilVal, templateError(found)
	}
	return convert.Convert(v, cty.String)
}

func templateError(found hcl.Diagnostics) error {
	for _, d := range found {
		if d.Severity == hcl.DiagError && d.Subject != nil {
			return fmt.Errorf("%s:%d,%d: %s; %s", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column, d.Summary, strings.TrimSuffix(d.Detail, "."))
		}
	}
	return found
}
