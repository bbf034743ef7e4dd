// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// simulators are the packages that hold numbers of hardware.
var simulators = []string{"metal", "model", "system", "power", "subnet", "chassis"}

// TestNumbers: each number that packages of the simulator hold at their top level, and each
// column of numbers of their tables, is a quantity that TestPhysics changes, is changed as
// evidence, or has a reason why it is neither; and the list has no other.
func TestNumbers(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, name := range simulators {
		files, err := filepath.Glob(filepath.Join("../virtual", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", name, err)
		}
		for _, n := range numbersIn(t, files) {
			have[name+"."+n] = true
		}
	}
	listed := map[string]bool{}
	for _, n := range numbers {
		for _, name := range n.names {
			if listed[name] {
				t.Errorf("%s is listed twice", name)
			}
			listed[name] = true
			if !have[name] {
				t.Errorf("STALE %s: the simulator has no such number", name)
			}
		}
		switch source, _, _ := strings.Cut(n.evidence, " "); {
		case n.quantity != "" && !slices.Contains(quantity.All, n.quantity):
			t.Errorf("%q is no quantity", n.quantity)
		case n.evidence != "" && sources[source] == "":
			t.Errorf("%q is no evidence that is changed", n.evidence)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !listed[name] {
			t.Errorf("MISSING %q: say which quantity it is, or why it is none", name)
		}
	}
}

// numbersIn are the constants and variables of files that are numbers, and the columns of
// tables that are.
func numbersIn(t *testing.T, paths []string) (list []string) {
	t.Helper()
	var specs []*ast.ValueSpec
	structs := map[string]*ast.StructType{}
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				list = append(list, tablesWithin(fn, structs)...)
			}
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					specs = append(specs, s)
				case *ast.TypeSpec:
					if x, ok := s.Type.(*ast.StructType); ok {
						structs[s.Name.Name] = x
					}
				}
			}
		}
	}
	for _, s := range specs {
		for i, n := range s.Names {
			switch {
			case i >= len(s.Values) || !hasNumber(s.Values[i]):
			case len(columnsOf(s.Values[i], structs)) > 0:
				for _, c := range columnsOf(s.Values[i], structs) {
					list = append(list, n.Name+"."+c)
				}
			default:
				list = append(list, n.Name)
			}
		}
	}
	return list
}

// tablesWithin are the columns of numbers of the tables that a function has for itself.
func tablesWithin(fn *ast.FuncDecl, structs map[string]*ast.StructType) (list []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if rows, ok := table.Type.(*ast.ArrayType); ok {
			if _, inline := rows.Elt.(*ast.StructType); inline && hasNumber(table) {
				for _, c := range columnsOf(table, structs) {
					list = append(list, fn.Name.Name+"."+c)
				}
			}
		}
		return true
	})
	return list
}

// hasNumber reports whether an expression has a number in it.
func hasNumber(e ast.Expr) (is bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, function := n.(*ast.FuncLit); function {
			return false
		}
		l, ok := n.(*ast.BasicLit)
		is = is || ok && (l.Kind == token.INT || l.Kind == token.FLOAT)
		return true
	})
	return is
}

// columnsOf are the columns of a table that are numbers.
func columnsOf(e ast.Expr, structs map[string]*ast.StructType) (list []string) {
	table, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var row ast.Expr
	switch t := table.Type.(type) {
	case *ast.ArrayType:
		row = t.Elt
	case *ast.MapType:
		row = t.Value
	default:
		row = t
	}
	s, ok := row.(*ast.StructType)
	if name, is := row.(*ast.Ident); is {
		s, ok = structs[name.Name], structs[name.Name] != nil
	}
	if !ok {
		return nil
	}
	for _, f := range s.Fields.List {
		kind, ok := f.Type.(*ast.Ident)
		if !ok || !slices.Contains([]string{"int", "int64", "float64", "byte", "uint16"}, kind.Name) {
			continue
		}
		for _, n := range f.Names {
			list = append(list, n.Name)
		}
	}
	return list
}
