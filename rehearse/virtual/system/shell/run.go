// SPDX-License-Identifier: Apache-2.0

// Package shell runs the small POSIX shell scripts that controllers send to nodes
// over SSH, on a node that has no shell: commands, pipes, lists, if, for, quoting,
// parameters, substitution, arithmetic, redirections, `set -eC` and `trap EXIT`.
// Scripts are read and words are expanded by mvdan.cc/sh; what runs, and on which
// files, is System's alone, so that nothing of this computer is reached. Loops on a
// condition, case, functions, here-documents and jobs are not known: a script that
// needs them ends with a syntax error. Patterns (globs) are taken as they stand.
package shell

import (
	"bytes"
	"context"
	"io"
	"maps"

	"mvdan.cc/sh/v3/syntax"
)

// Streams are the three standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Command is one program as the shell starts it.
type Command struct {
	Argv []string
	Env  map[string]string // what was assigned before the command or exported; may be nil
	Dir  string            // working folder, absolute
	Streams
}

// System is what a script works on. Its methods may block; ctx ends them.
type System interface {
	// Run runs a program to its end and returns its status; 127 when there is none
	// of that name.
	Run(ctx context.Context, c Command) int
	// Open returns what a file holds. name is absolute.
	Open(name string) ([]byte, error)
	// Create opens a file for writing: anew, at its end, or only if it is not there
	// yet. What was written is in the file when Close returns. name is absolute.
	Create(name string, how CreateMode, mask uint32) (io.WriteCloser, error)
	// IsDir reports whether a folder is there. name is absolute.
	IsDir(name string) bool
}

// CreateMode says how Create treats a file that is there.
type CreateMode uint8

// The modes.
const (
	Truncate CreateMode = iota
	Append
	Exclusive // fs.ErrExist when it is there
)

// Shell is one running shell. It is used by one goroutine.
type Shell struct {
	Sys  System
	PID  int      // $$
	Name string   // $0, in front of complaints
	Args []string // $1 ...
	Dir  string   // "" means /
	Env  map[string]string

	vars     map[string]string
	status   int
	exitOnly bool // set -e
	noClob   bool // set -C
	mask     uint32
	trap     string
	steps    int
}

// ended is how exit leaves a script.
type ended struct{ status int }

// maxSteps bounds how many commands one script runs.
const maxSteps = 10_000

// Run runs a script and returns its status.
func (s *Shell) Run(ctx context.Context, script *Script, st Streams) int {
	if s.vars == nil {
		s.vars, s.mask = map[string]string{}, 0o022
	}
	if s.Dir == "" {
		s.Dir = "/"
	}
	status := s.protected(ctx, script.stmts, st)
	if s.trap != "" && ctx.Err() == nil {
		if t, err := Parse(s.trap); err == nil {
			s.trap, s.exitOnly = "", false
			s.protected(ctx, t.stmts, st)
		}
	}
	return status
}

// protected runs statements and catches exit.
func (s *Shell) protected(ctx context.Context, list []*syntax.Stmt, st Streams) (status int) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ended:
			status = e.status
		default:
			panic(e)
		}
	}()
	return s.list(ctx, list, st, false)
}

// subshell runs statements in a shell of their own: its variables end with it.
func (s *Shell) subshell(ctx context.Context, list []*syntax.Stmt, st Streams) int {
	inner := *s
	inner.vars, inner.trap = maps.Clone(s.vars), ""
	status := inner.protected(ctx, list, st)
	s.steps = inner.steps
	return status
}

// list runs statements one after another. tested says that somebody looks at the
// status, so that set -e does not act.
func (s *Shell) list(ctx context.Context, list []*syntax.Stmt, st Streams, tested bool) int {
	for _, x := range list {
		s.status = s.statement(ctx, x, st, tested)
		if ctx.Err() != nil {
			panic(ended{137})
		}
	}
	return s.status
}

func (s *Shell) statement(ctx context.Context, x *syntax.Stmt, st Streams, tested bool) int {
	status := 0
	if b, ok := x.Cmd.(*syntax.BinaryCmd); ok {
		status = s.binary(ctx, b, st, tested || x.Negated)
	} else {
		status = s.command(ctx, x, st, tested || x.Negated)
		if status != 0 && s.exitOnly && !tested && !x.Negated {
			panic(ended{status})
		}
	}
	switch {
	case x.Negated && status == 0:
		status = 1
	case x.Negated:
		status = 0
	}
	s.status = status
	return status
}

// binary runs two statements with &&, || or a pipe between them. Those of a pipe run
// one after another, each on the whole output of the one before: nodes of a rehearsal
// write little.
func (s *Shell) binary(ctx context.Context, b *syntax.BinaryCmd, st Streams, tested bool) int {
	if b.Op == syntax.Pipe {
		var out bytes.Buffer
		s.statement(ctx, b.X, Streams{st.In, &out, st.Err}, true)
		return s.statement(ctx, b.Y, Streams{&out, st.Out, st.Err}, tested)
	}
	status := s.statement(ctx, b.X, st, true)
	if (b.Op == syntax.AndStmt) == (status == 0) {
		return s.statement(ctx, b.Y, st, tested)
	}
	return status
}

func (s *Shell) command(ctx context.Context, x *syntax.Stmt, st Streams, tested bool) int {
	if s.steps++; s.steps > maxSteps {
		panic(ended{2})
	}
	st, done, ok := s.redirect(ctx, x.Redirs, st)
	defer done()
	if !ok {
		return 2
	}
	switch c := x.Cmd.(type) {
	case *syntax.Block:
		return s.list(ctx, c.Stmts, st, tested)
	case *syntax.Subshell:
		return s.subshell(ctx, c.Stmts, st)
	case *syntax.IfClause:
		return s.branch(ctx, c, st, tested)
	case *syntax.ForClause:
		over := c.Loop.(*syntax.WordIter)
		s.status = 0
		for _, item := range s.fields(ctx, over.Items, st) {
			s.vars[over.Name.Value] = item
			s.list(ctx, c.Do, st, tested)
		}
		return s.status
	case *syntax.CallExpr:
		return s.call(ctx, c, st)
	}
	return 0 // redirections alone
}

// branch runs if, elif and else: else has no condition.
func (s *Shell) branch(ctx context.Context, c *syntax.IfClause, st Streams, tested bool) int {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 || s.list(ctx, c.Cond, st, true) == 0 {
			s.status = 0
			return s.list(ctx, c.Then, st, tested)
		}
	}
	return 0
}

// call runs a program or a builtin, or assigns variables.
func (s *Shell) call(ctx context.Context, c *syntax.CallExpr, st Streams) int {
	argv, env := s.fields(ctx, c.Args, st), s.Env
	if len(argv) == 0 {
		s.status = 0
		for _, a := range c.Assigns {
			s.vars[a.Name.Value] = s.text(ctx, a.Value, st)
		}
		return s.status
	}
	if len(c.Assigns) > 0 {
		env = maps.Clone(s.Env)
		if env == nil {
			env = map[string]string{}
		}
		for _, a := range c.Assigns {
			env[a.Name.Value] = s.text(ctx, a.Value, st)
		}
	}
	if argv[0] == "exec" && len(argv) > 1 {
		s.trap = "" // there is no shell any more that could run it
		panic(ended{s.Sys.Run(ctx, Command{Argv: argv[1:], Env: env, Dir: s.Dir, Streams: st})})
	}
	if b := builtins[argv[0]]; b != nil {
		return b(s, argv, st)
	}
	return s.Sys.Run(ctx, Command{Argv: argv, Env: env, Dir: s.Dir, Streams: st})
}

// redirect opens files. done closes them; a file that could not be written is
// complained about then.
func (s *Shell) redirect(ctx context.Context, list []*syntax.Redirect, st Streams) (out Streams, done func(), ok bool) {
	var open []io.Closer
	complain := st.Err
	done = func() {
		for _, c := range open {
			if err := c.Close(); err != nil {
				s.complain(complain, err.Error())
			}
		}
	}
	for _, r := range list {
		name := s.text(ctx, r.Word, st)
		if r.Op == syntax.DplOut {
			if w, known := map[string]io.Writer{"1": st.Out, "2": st.Err}[name]; known {
				st = put(st, r.N, w)
				continue
			}
			s.complain(complain, name+": bad file descriptor")
			return st, done, false
		}
		full := s.path(name)
		if r.Op == syntax.RdrIn {
			b, err := s.Sys.Open(full)
			if err != nil {
				s.complain(complain, "cannot open "+name+": "+reason(err))
				return st, done, false
			}
			st.In = bytes.NewReader(b)
			continue
		}
		how := Truncate
		if r.Op == syntax.AppOut {
			how = Append
		} else if s.noClob && full != "/dev/null" {
			how = Exclusive
		}
		w, err := s.Sys.Create(full, how, s.mask)
		if err != nil {
			s.complain(complain, "cannot create "+name+": "+reason(err))
			return st, done, false
		}
		open = append(open, w)
		st = put(st, r.N, w)
	}
	return st, done, true
}

// put makes w the output of a number; nil is the standard output.
func put(st Streams, fd *syntax.Lit, w io.Writer) Streams {
	switch {
	case fd == nil || fd.Value == "1":
		st.Out = w
	case fd.Value == "2":
		st.Err = w
	}
	return st
}

// complain prints as dash does.
func (s *Shell) complain(w io.Writer, text string) {
	_, _ = io.WriteString(w, s.Name+": 1: "+text+"\n")
}
