// SPDX-License-Identifier: Apache-2.0

package ironrail

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

const peertest = "internal/peertest"

// function is a function or variable of tests, with the names that it refers to:
// "dir.name", or "dir.(name)" for a method or field, of whatever type.
type function struct {
	id, name, file string
	refers         map[string]bool
}

// testCode reads the functions and variables of all tests, and of the packages that
// help tests.
func testCode(t *testing.T) (all []function) {
	t.Helper()
	files(t, 0, func(dir, file string, f *ast.File) {
		if !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(dir, "test") && !strings.HasPrefix(dir, peertest+"/") {
			return
		}
		r := references{dir: dir, file: f, imports: map[string]string{}}
		for _, i := range f.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			r.imports[name] = strings.TrimPrefix(p, module)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				id := dir + "." + d.Name.Name
				if d.Recv != nil {
					id = dir + ".(" + d.Name.Name + ")"
				}
				all = append(all, function{id, d.Name.Name, file, r.in(d)})
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, n := range v.Names {
							all = append(all, function{dir + "." + n.Name, n.Name, file, r.in(v)})
						}
					}
				}
			}
		}
	})
	return all
}

// references collects names in the code of one file.
type references struct {
	dir     string
	file    *ast.File
	imports map[string]string // path by name
}

// in returns what a node refers to, be it called or passed on. Names of variables
// within the node are left out.
func (r references) in(n ast.Node) map[string]bool {
	out, done := map[string]bool{}, map[ast.Node]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			done[n.Sel] = true
			if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil && r.imports[x.Name] != "" {
				out[r.imports[x.Name]+"."+n.Sel.Name] = true
			} else {
				out[r.dir+".("+n.Sel.Name+")"] = true
			}
		case *ast.KeyValueExpr:
			done[n.Key] = true
		case *ast.Ident:
			if !done[n] && (n.Obj == nil || n.Obj == r.file.Scope.Lookup(n.Name)) {
				out[r.dir+"."+n.Name] = true
			}
		}
		return true
	})
	return out
}

// reaching are the functions that refer to a name that fits, or to one that does.
func reaching(all []function, fits func(name string) bool) map[string]bool {
	reach := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, f := range all {
			if reach[f.id] {
				continue
			}
			for name := range f.refers {
				if reach[name] || fits(name) {
					reach[f.id], grown = true, true
				}
			}
		}
	}
	return reach
}

// isTest reports whether a function is one that go test runs.
func (f function) isTest() bool {
	return strings.HasSuffix(f.file, "_test.go") && strings.HasPrefix(f.name, "Test") && f.name != "TestMain" && f.id == path.Dir(f.file)+"."+f.name
}

// TestNamesOfLongTests: a test that shortens itself is called TestLong, and only such a
// test: so that what was shortened is run whole by its name.
func TestNamesOfLongTests(t *testing.T) {
	t.Parallel()
	all := testCode(t)
	reach := reaching(all, func(name string) bool { return name == "testing.Short" || strings.HasSuffix(name, "/testscript.Run") })
	found := 0
	for _, f := range all {
		if !f.isTest() || strings.HasPrefix(f.name, "TestPeer") {
			continue
		}
		long := strings.HasPrefix(f.name, "TestLong")
		if long {
			found++
		}
		switch {
		case reach[f.id] && !long:
			t.Errorf("%s: %s shortens itself and is not called TestLong...", f.file, f.name)
		case !reach[f.id] && long:
			t.Errorf("%s: %s does not shorten itself, and is called TestLong...", f.file, f.name)
		}
	}
	if found < 10 {
		t.Errorf("only %d long tests were seen", found)
	}
}

// TestNamesOfPeers: a test that needs a program of others finds it by package
// peertest, and only such a test is called TestPeer: so that a tier without peers is
// one without TestPeer. Fuzz targets and benchmarks may have any name.
func TestNamesOfPeers(t *testing.T) {
	t.Parallel()
	all := testCode(t)
	reach, peers := reaching(all, func(name string) bool { return strings.HasPrefix(name, peertest+".") }), 0
	for _, f := range all {
		if !strings.HasSuffix(f.file, "_test.go") {
			continue
		}
		if f.refers["os/exec.LookPath"] {
			t.Errorf("%s: %s looks for a program itself: use package %s", f.file, f.name, peertest)
		}
		if !f.isTest() || strings.HasPrefix(f.file, peertest) {
			continue
		}
		peer := strings.HasPrefix(f.name, "TestPeer")
		if peer {
			peers++
		}
		switch {
		case reach[f.id] && !peer:
			t.Errorf("%s: %s needs a program of others and is not called TestPeer...", f.file, f.name)
		case !reach[f.id] && peer:
			t.Errorf("%s: %s needs no program of others by package %s, and is called TestPeer...", f.file, f.name, peertest)
		}
	}
	if peers < 30 {
		t.Errorf("only %d tests with peers were seen", peers)
	}
}
