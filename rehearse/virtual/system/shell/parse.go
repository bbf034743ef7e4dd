// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Script is a script that was read and can be run many times.
type Script struct{ stmts []*syntax.Stmt }

// ErrSyntax is the error of a script that cannot be read, or is not supported.
type ErrSyntax struct{ What string }

// Error says it as dash does.
func (e ErrSyntax) Error() string { return "Syntax error: " + e.What }

// longestScript bounds a script, bytes: the parser nests as deep as its input does.
const longestScript = 256 << 10

// Parse reads a script of a POSIX shell. What is none, and what this shell does not
// run, is an ErrSyntax. Scripts that were read lately are kept: all nodes of a site are
// sent the same.
func Parse(src string) (*Script, error) {
	if s := kept.get(src); s != nil {
		return s, nil
	}
	if len(src) > longestScript {
		return nil, ErrSyntax{"script is too long"}
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(src), "")
	if err == nil {
		err = supported(f)
	}
	if err != nil {
		return nil, ErrSyntax{err.Error()}
	}
	s := &Script{f.Stmts}
	kept.put(src, s)
	return s, nil
}

// supported reports the first thing in a script that this shell does not run.
func supported(f *syntax.File) (err error) {
	syntax.Walk(f, func(n syntax.Node) bool {
		if err != nil || n == nil {
			return false
		}
		if what := unsupported(n); what != "" {
			err = fmt.Errorf("%s: %s is not known", n.Pos(), what)
		}
		return err == nil
	})
	return err
}

// unsupported names what this shell does not run of a node itself; empty: it runs.
func unsupported(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background {
			return "a command in the background"
		}
	case *syntax.Redirect:
		switch n.Op {
		case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.DplOut:
		default:
			return "redirection " + n.Op.String()
		}
	case *syntax.WordIter:
		if !n.InPos.IsValid() {
			return "for without in"
		}
	case *syntax.Word:
		// Package expand replaces both as bash does, and looks up users of this computer.
		if l, ok := n.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(l.Value, "~") {
			return "~"
		}
		if w := *n; syntax.SplitBraces(&w) {
			return "a word with {,}"
		}
	case *syntax.CallExpr, *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.ForClause:
	case syntax.Command:
		return strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax.")
	}
	return ""
}
