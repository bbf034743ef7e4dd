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

// TestFunctionsAreSmall: a function of more lines or branches than the bounds is one
// of the lists below. Who shortens one takes it off; none is added.
func TestFunctionsAreSmall(t *testing.T) {
	t.Parallel()
	all := measured(t)
	for _, c := range []struct {
		what  string
		known []string
		over  func(measure) bool
	}{
		{"has more than 60 lines", long, func(m measure) bool { return m.lines > mostLines }},
		{"has a complexity of more than 15", complicated, func(m measure) bool { return m.complexity > mostComplexity }},
	} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			m := all[name]
			switch known := slices.Contains(c.known, name); {
			case c.over(m) && !known:
				t.Errorf("%s %s: %d lines, complexity %d", name, c.what, m.lines, m.complexity)
			case !c.over(m) && known:
				t.Errorf("%s no longer %s: take it off the list", name, c.what)
			}
		}
		for _, name := range c.known {
			if _, ok := all[name]; !ok {
				t.Errorf("there is no %s: take it off the list", name)
			}
		}
	}
}

// long are the functions that still have more than 60 lines.
var long = []string{
}

// complicated are the functions whose complexity is still above 15.
var complicated = []string{
}
