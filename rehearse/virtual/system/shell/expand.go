// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"io"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// environ is a shell's parameters and variables as package expand asks for them.
type environ struct{ *Shell }

// Get implements expand.Environ.
func (e environ) Get(name string) expand.Variable {
	text := func(s string) expand.Variable { return expand.Variable{Set: true, Kind: expand.String, Str: s} }
	switch name {
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: e.Args}
	case "#":
		return text(strconv.Itoa(len(e.Args)))
	case "?":
		return text(strconv.Itoa(e.status))
	case "$":
		return text(strconv.Itoa(e.PID))
	case "0":
		return text(e.Name)
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(e.Args) {
			return text(e.Args[n-1])
		}
		return expand.Variable{}
	}
	if v, ok := e.vars[name]; ok {
		return text(v)
	}
	if v, ok := e.Env[name]; ok {
		return text(v)
	}
	return expand.Variable{}
}

// Each implements expand.Environ; nothing that POSIX has asks for all variables.
func (environ) Each(func(string, expand.Variable) bool) {}

// Set implements expand.WriteEnviron.
func (e environ) Set(name string, v expand.Variable) error {
	e.vars[name] = v.String()
	return nil
}

// config lets package expand run substitutions in a shell of their own. Patterns are
// not replaced by names of files: it gets no folders.
func (s *Shell) config(ctx context.Context, st Streams) *expand.Config {
	return &expand.Config{Env: environ{s}, CmdSubst: func(w io.Writer, c *syntax.CmdSubst) error {
		s.status = s.subshell(ctx, c.Stmts, Streams{st.In, w, st.Err})
		return nil
	}}
}

// fields makes the arguments of words.
func (s *Shell) fields(ctx context.Context, words []*syntax.Word, st Streams) []string {
	list, err := expand.Fields(s.config(ctx, st), words...)
	s.check(err, st)
	return list
}

// text makes one string of a word, as for an assignment; nil is empty.
func (s *Shell) text(ctx context.Context, w *syntax.Word, st Streams) string {
	text, err := expand.Literal(s.config(ctx, st), w)
	s.check(err, st)
	return text
}

// check ends a script with a word that cannot be expanded.
func (s *Shell) check(err error, st Streams) {
	if err != nil {
		s.complain(st.Err, strings.TrimSpace(err.Error()))
		panic(ended{2})
	}
}
