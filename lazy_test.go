// SPDX-License-Identifier: Apache-2.0

package ironrail

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const lazy = module + "internal/lazyregexp"

// TestPatternsAreLazy: the variables of packages hold no compiled pattern, which each
// start of a program would pay for, and every pattern that is compiled at its first
// use does compile. Those that functions put together are for the tests of their
// packages.
func TestPatternsAreLazy(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	patterns := map[string]map[string]ast.Expr{} // by folder, the constants and variables
	var calls []compilation
	files(t, 0, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || dir == "internal/lazyregexp" || under(dir, "bench") {
			return
		}
		if patterns[dir] == nil {
			patterns[dir] = map[string]ast.Expr{}
		}
		for _, d := range f.Decls {
			g, isVar := d.(*ast.GenDecl)
			if isVar {
				values(g, patterns[dir])
			}
			for _, c := range compilationsIn(d) {
				calls = append(calls, compilation{dir, set.Position(c.Pos()), c, isVar})
			}
		}
	}, set)
	read := 0
	for _, c := range calls {
		pattern, constant := text(c.call.Args[0], patterns[c.dir])
		of := c.call.Fun.(*ast.SelectorExpr).X.(*ast.Ident).Name
		switch {
		case of == "regexp" && c.top:
			t.Errorf("%s: compiled at each start of a program: use package %s", c.at, strings.TrimPrefix(lazy, module))
		case of == "regexp":
		case constant:
			read++
			if _, err := regexp.Compile(pattern); err != nil {
				t.Errorf("%s: %v", c.at, err)
			}
		case c.top:
			t.Errorf("%s: the pattern is not made of constants, so that nobody knows whether it compiles", c.at)
		}
	}
	if read < 500 {
		t.Errorf("only %d patterns were read", read)
	}
}

// compilation is a call of regexp.MustCompile or lazyregexp.New; top: by a variable of a
// package.
type compilation struct {
	dir  string
	at   token.Position
	call *ast.CallExpr
	top  bool
}

// compilationsIn returns the calls of regexp.MustCompile and lazyregexp.New in a declaration.
func compilationsIn(d ast.Decl) (calls []*ast.CallExpr) {
	ast.Inspect(d, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			x, _ := s.X.(*ast.Ident)
			if x != nil && (x.Name == "regexp" && s.Sel.Name == "MustCompile" || x.Name == "lazyregexp" && s.Sel.Name == "New") {
				calls = append(calls, c)
			}
		}
		return true
	})
	return calls
}

// values adds what a declaration gives to names.
func values(g *ast.GenDecl, to map[string]ast.Expr) {
	for _, s := range g.Specs {
		if v, ok := s.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
			for i, n := range v.Names {
				to[n.Name] = v.Values[i]
			}
		}
	}
}

// text is the value of literals, names and their sums.
func text(e ast.Expr, names map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.ParenExpr:
		return text(e.X, names)
	case *ast.Ident:
		if of := names[e.Name]; of != nil && e.Name != "_" {
			return text(of, names)
		}
	case *ast.BinaryExpr:
		a, okA := text(e.X, names)
		b, okB := text(e.Y, names)
		return a + b, okA && okB
	}
	return "", false
}
