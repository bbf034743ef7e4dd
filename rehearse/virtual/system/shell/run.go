// Package shell runs the small POSIX shell scripts that controllers send to nodes
// over SSH, on a node that has no shell: commands, pipes, lists, if, for, quoting,
// parameters, substitution, redirections, `set -eC` and `trap EXIT`. Patterns
// (globs), functions, arithmetic, here-documents and jobs are not known: a script
// that needs them ends with a syntax error, or takes them as they stand.
package shell

import (
	"bytes"
	"context"
	"io"
	"maps"
	"strconv"
	"strings"
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
	status := s.protected(ctx, script.list, st)
	if s.trap != "" && ctx.Err() == nil {
		if t, err := Parse(s.trap); err == nil {
			s.trap, s.exitOnly = "", false
			s.protected(ctx, t.list, st)
		}
	}
	return status
}

// protected runs a list and catches exit.
func (s *Shell) protected(ctx context.Context, l list, st Streams) (status int) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ended:
			status = e.status
		default:
			panic(e)
		}
	}()
	return s.list(ctx, l, st, false)
}

// list runs a list. tested says that somebody looks at the status, so that set -e
// does not act.
func (s *Shell) list(ctx context.Context, l list, st Streams, tested bool) int {
	for _, a := range l {
		s.status = s.andOr(ctx, a, st, tested)
		if ctx.Err() != nil {
			panic(ended{137})
		}
	}
	return s.status
}

func (s *Shell) andOr(ctx context.Context, a andOr, st Streams, tested bool) int {
	status := 0
	for i, p := range a.pipes {
		if i > 0 && (a.ops[i-1] == "&&") != (status == 0) {
			continue
		}
		last := i == len(a.pipes)-1
		status = s.pipeline(ctx, p, st, tested || !last || p.not)
		s.status = status
		if status != 0 && s.exitOnly && !tested && last && !p.not {
			panic(ended{status})
		}
	}
	return status
}

// pipeline runs commands one after another, each on the whole output of the one
// before: nodes of a rehearsal write little.
func (s *Shell) pipeline(ctx context.Context, p pipeline, st Streams, tested bool) int {
	status, in := 0, st.In
	for i, c := range p.commands {
		if i == len(p.commands)-1 {
			status = s.command(ctx, c, Streams{in, st.Out, st.Err}, tested)
			break
		}
		var out bytes.Buffer
		s.command(ctx, c, Streams{in, &out, st.Err}, true)
		in = &out
	}
	if p.not {
		if status == 0 {
			return 1
		}
		return 0
	}
	return status
}

func (s *Shell) command(ctx context.Context, c command, st Streams, tested bool) int {
	if s.steps++; s.steps > maxSteps {
		panic(ended{2})
	}
	st, done, ok := s.redirect(ctx, c.redirs, st)
	if !ok {
		done()
		return 2
	}
	defer done()
	switch c.kind {
	case group:
		if !c.sub {
			return s.list(ctx, c.body, st, tested)
		}
		inner := *s
		inner.vars, inner.trap = maps.Clone(s.vars), ""
		return inner.protected(ctx, c.body, st)
	case ifs:
		for i, test := range c.tests {
			if s.list(ctx, test, st, true) == 0 {
				s.status = 0
				return s.list(ctx, c.thens[i], st, tested)
			}
		}
		s.status = 0
		return s.list(ctx, c.orElse, st, tested)
	case loop:
		s.status = 0
		for _, w := range c.over {
			for _, v := range s.expand(ctx, w, st) {
				s.vars[c.loop] = v
				s.list(ctx, c.body, st, tested)
			}
		}
		return s.status
	}
	return s.simple(ctx, c, st)
}

func (s *Shell) simple(ctx context.Context, c command, st Streams) int {
	var argv []string
	for _, w := range c.words {
		argv = append(argv, s.expand(ctx, w, st)...)
	}
	if len(argv) == 0 {
		s.status = 0
		for _, a := range c.assigns {
			s.vars[a.name] = s.joined(ctx, a.value, st)
		}
		return s.status
	}
	env := s.Env
	if len(c.assigns) > 0 {
		if env = maps.Clone(s.Env); env == nil {
			env = map[string]string{}
		}
		for _, a := range c.assigns {
			env[a.name] = s.joined(ctx, a.value, st)
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
func (s *Shell) redirect(ctx context.Context, list []redirect, st Streams) (out Streams, done func(), ok bool) {
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
		name := s.joined(ctx, r.target, st)
		if r.op == ">&" {
			if w, known := map[string]io.Writer{"1": st.Out, "2": st.Err}[name]; known {
				st = put(st, r.fd, w)
				continue
			}
			s.complain(complain, name+": bad file descriptor")
			return st, done, false
		}
		full := s.path(name)
		if r.op == "<" {
			b, err := s.Sys.Open(full)
			if err != nil {
				s.complain(complain, "cannot open "+name+": "+reason(err))
				return st, done, false
			}
			st.In = bytes.NewReader(b)
			continue
		}
		how := Truncate
		if r.op == ">>" {
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
		st = put(st, r.fd, w)
	}
	return st, done, true
}

func put(st Streams, fd int, w io.Writer) Streams {
	switch fd {
	case 1:
		st.Out = w
	case 2:
		st.Err = w
	}
	return st
}

// complain prints as dash does.
func (s *Shell) complain(w io.Writer, text string) {
	_, _ = io.WriteString(w, s.Name+": 1: "+text+"\n")
}

// expand makes fields of a word.
func (s *Shell) expand(ctx context.Context, w word, st Streams) []string {
	var f fields
	for _, p := range w {
		if p.kind == parameter && p.text == "@" && p.quoted {
			for i, a := range s.Args {
				if i > 0 {
					f.end()
				}
				f.add(a)
			}
			continue
		}
		value := s.value(ctx, p, st)
		if p.kind != literal && !p.quoted {
			f.split(value)
		} else if p.quoted || value != "" {
			f.add(value)
		}
	}
	// A lone "$@" without arguments is no field at all.
	if f.begun && !(len(s.Args) == 0 && loneArgs(w)) {
		f.end()
	}
	return f.list
}

// fields collects the fields of a word.
type fields struct {
	list  []string
	last  strings.Builder // the field that has not ended
	begun bool            // there is one, even if it is empty
}

func (f *fields) add(text string) {
	f.last.WriteString(text)
	f.begun = true
}

func (f *fields) end() {
	f.list = append(f.list, f.last.String())
	f.last.Reset()
}

// split adds a value that stands in no quotes: blanks in it separate fields.
func (f *fields) split(value string) {
	for i, text := range strings.Fields(value) {
		if i > 0 || strings.ContainsAny(value[:1], " \t\n") && f.begun {
			f.end()
		}
		f.add(text)
	}
}

func loneArgs(w word) bool {
	args := false
	for _, p := range w {
		if p.kind == parameter && p.text == "@" {
			args = true
		} else if p.text != "" {
			return false
		}
	}
	return args
}

// joined makes one string of a word, as for an assignment.
func (s *Shell) joined(ctx context.Context, w word, st Streams) string {
	var b strings.Builder
	for _, p := range w {
		b.WriteString(s.value(ctx, p, st))
	}
	return b.String()
}

func (s *Shell) value(ctx context.Context, p part, st Streams) string {
	switch p.kind {
	case parameter:
		if v, ok := s.parameter(p.text); ok && (v != "" || p.alt == "") {
			return v
		}
		return p.alt
	case substitution:
		return s.substitute(ctx, p.text, st)
	}
	return p.text
}

func (s *Shell) parameter(name string) (string, bool) {
	switch name {
	case "@", "*":
		return strings.Join(s.Args, " "), true
	case "#":
		return strconv.Itoa(len(s.Args)), true
	case "?":
		return strconv.Itoa(s.status), true
	case "$":
		return strconv.Itoa(s.PID), true
	case "0":
		return s.Name, true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(s.Args) {
			return s.Args[n-1], true
		}
		return "", false
	}
	if v, ok := s.vars[name]; ok {
		return v, true
	}
	v, ok := s.Env[name]
	return v, ok
}

func (s *Shell) substitute(ctx context.Context, src string, st Streams) string {
	script, err := Parse(src)
	if err != nil {
		s.complain(st.Err, err.Error())
		panic(ended{2})
	}
	var out bytes.Buffer
	inner := *s
	inner.vars, inner.trap = maps.Clone(s.vars), ""
	s.status = inner.protected(ctx, script.list, Streams{st.In, &out, st.Err})
	s.steps = inner.steps
	return strings.TrimRight(out.String(), "\n")
}
