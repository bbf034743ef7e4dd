// SPDX-License-Identifier: Apache-2.0

package ironrail

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Bounds of a function outside of tests.
const (
	mostLines      = 60
	mostComplexity = 15
)

// measure is how large a function is.
type measure struct{ lines, complexity int }

// measured reads every function outside of tests, named as "folder.Name" or
// "folder.Type.Method".
func measured(t *testing.T) map[string]measure {
	t.Helper()
	out, set := map[string]measure{}, token.NewFileSet()
	files(t, 0, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := dir + "." + receiver(fn) + fn.Name.Name
			lines := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			was := out[name] // the same name in files for different systems
			out[name] = measure{max(lines, was.lines), max(complexity(fn), was.complexity)}
		}
	}, set)
	return out
}

// receiver is the type of a method with a dot behind it, or nothing.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if x, ok := t.(*ast.IndexExpr); ok {
		t = x.X
	}
	if n, ok := t.(*ast.Ident); ok {
		return n.Name + "."
	}
	return "?."
}

// complexity is McCabe's, counted as gocyclo does: one, and one for each if, for,
// range, case, communication clause, && and ||. Functions within count as their own.
func complexity(n ast.Node) int {
	c := 1
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			c++
		case *ast.CaseClause:
			if n.List != nil {
				c++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				c++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				c++
			}
		}
		return true
	})
	return c
}

// TestFunctionsAreSmall: no function has more lines or branches than the bounds.
func TestFunctionsAreSmall(t *testing.T) {
	t.Parallel()
	all := measured(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m := all[name]; m.lines > mostLines || m.complexity > mostComplexity {
			t.Errorf("%s has %d lines and a complexity of %d; the most are %d and %d", name, m.lines, m.complexity, mostLines, mostComplexity)
		}
	}
	if len(all) < 5000 {
		t.Errorf("only %d functions were read", len(all))
	}
}
