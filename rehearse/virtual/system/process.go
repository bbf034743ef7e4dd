// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

// processes are the process groups of a node: one for each command that came
// over SSH. It is safe for concurrent use.
type processes struct {
	mu   sync.Mutex // guards what follows
	last int
	kill map[int]context.CancelCauseFunc // by process group
}

// firstPID is the last process id that the start of the system used up.
const firstPID = 600

// errKilled ends a process group.
var errKilled = errors.New("killed")

func (p *processes) init() { p.last, p.kill = firstPID, map[int]context.CancelCauseFunc{} }

func (p *processes) start(kill context.CancelCauseFunc) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.kill[p.last] = kill
	return p.last
}

func (p *processes) end(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kill, pid)
}

// signal ends a process group and reports whether there was one.
func (p *processes) signal(pid int) bool {
	p.mu.Lock()
	kill := p.kill[pid]
	p.mu.Unlock()
	if kill == nil {
		return false
	}
	kill(errKilled)
	return true
}

// longestArgument is what Linux takes as one argument of a program, with the byte that
// ends it (MAX_ARG_STRLEN, 32 pages; execve(2)).
const longestArgument = 128 << 10

// login runs the command line of one session with the user's shell and reports
// its end.
func (n *node) login(ctx context.Context, ch ssh.Channel, line string) {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	pid := n.procs.start(kill)
	defer n.procs.end(pid)
	in := &input{r: ch}
	out := &output{w: ch}
	status := 126
	if len(line) < longestArgument {
		status = n.script(ctx, pid, line, "sh", nil, "/root", nil, shell.Streams{In: in, Out: out, Err: ch.Stderr()})
	} else { // sshd gives the line to the shell as one argument
		_, _ = io.WriteString(ch.Stderr(), "/bin/sh: Argument list too long\n")
	}
	out.flush()
	if context.Cause(ctx) == errKilled {
		_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Name    string
			Core    bool
			Message string
			Lang    string
		}{"KILL", false, "", ""}))
		return
	}
	if ctx.Err() == nil {
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
	}
}

// input is the standard input of a command. A command that never reads it costs
// nothing.
type input struct{ r io.Reader }

func (i *input) Read(b []byte) (int, error) { return i.r.Read(b) }

// output is the standard output of a command: what one program writes is sent
// when it is much, or when the program ends, as with a pipe. One goroutine uses it.
type output struct {
	w   io.Writer
	buf []byte
}

// fullOutput is when it is sent, bytes.
const fullOutput = 4 << 10

func (o *output) Write(b []byte) (int, error) {
	o.buf = append(o.buf, b...)
	if len(o.buf) >= fullOutput {
		o.flush()
	}
	return len(b), nil
}

// flush sends what was kept. A connection that is gone is seen elsewhere.
func (o *output) flush() {
	if len(o.buf) > 0 {
		_, _ = o.w.Write(o.buf)
		o.buf = o.buf[:0]
	}
}

// atOnce sends what is written without waiting for the program's end.
type atOnce struct{ w io.Writer }

func (a atOnce) Write(b []byte) (int, error) {
	n, err := a.w.Write(b)
	if o, ok := a.w.(*output); ok {
		o.flush()
	}
	return n, err
}

// script runs a script as a shell named name.
func (n *node) script(ctx context.Context, pid int, src, name string, args []string, dir string, env map[string]string, st shell.Streams) int {
	parsed, err := shell.Parse(src)
	if err != nil {
		_, _ = io.WriteString(st.Err, name+": 1: "+err.Error()+"\n")
		return 2
	}
	s := shell.Shell{Sys: programs{n, pid}, PID: pid, Name: name, Args: args, Dir: dir, Env: env}
	return s.Run(ctx, parsed, st)
}

// programs is a node as a shell of one process group sees it.
type programs struct {
	n   *node
	pid int
}

// call is one run of a program.
type call struct {
	shell.Command
	n   *node
	pid int // of its process group
}

// program is what a name stands for.
type program struct {
	pkg string // that it comes with; "": every image has it
	run func(ctx context.Context, c call) int
}

// Run implements shell.System.
func (p programs) Run(ctx context.Context, c shell.Command) int {
	if ctx.Err() != nil {
		return 137
	}
	name := c.Argv[0]
	if slices.ContainsFunc(c.Argv, func(a string) bool { return len(a) >= longestArgument }) {
		_, _ = io.WriteString(c.Err, "sh: 1: "+name+": Argument list too long\n")
		return 126
	}
	run, ok := p.n.find(name)
	if !ok {
		what := "not found"
		if p.n.tree.exists(relativeName(p.abs(c.Dir, name))) && strings.Contains(name, "/") {
			what = "Permission denied"
			_, _ = io.WriteString(c.Err, "sh: 1: "+name+": "+what+"\n")
			return 126
		}
		_, _ = io.WriteString(c.Err, "sh: 1: "+name+": "+what+"\n")
		return 127
	}
	status := run(ctx, call{c, p.n, p.pid})
	if o, ok := c.Out.(*output); ok {
		o.flush()
	}
	if ctx.Err() != nil {
		return 137
	}
	return status
}

func (programs) abs(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return dir + "/" + name
}

// binaries are the folders that a command's path may name.
var binaries = []string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/lib/systemd/"}

// starters are the programs that start jobs of Open MPI, which RHEL has in a folder of its own that
// is in no path.
var starters = []string{"mpirun", "mpiexec", "orterun"}

const rhelStarters = "/usr/lib64/openmpi/bin/"

// has reports whether a package is there, by the name that either distribution gives it.
func (n *node) has(pkg string) bool {
	return n.hasPackage(pkg) || slices.ContainsFunc(depends[pkg], n.hasPackage)
}

// find returns the program of a name, when its package is installed.
func (n *node) find(name string) (func(context.Context, call) int, bool) {
	if name == agentPath {
		return agentProgram, n.tree.exists(relativeName(agentPath))
	}
	if rest, ok := strings.CutPrefix(name, rhelStarters); ok && slices.Contains(starters, rest) {
		return runMpirun, n.hasPackage(rhelMPI)
	} else if slices.Contains(starters, name) && !n.hasPackage(pkgMPI) {
		return nil, false
	}
	base := name
	if strings.Contains(name, "/") {
		if p, ok := measuring[path.Base(name)]; ok {
			return p.run, n.tree.exists(relativeName(name))
		}
		for _, dir := range binaries {
			if rest, ok := strings.CutPrefix(name, dir); ok && !strings.Contains(rest, "/") {
				base = rest
			}
		}
	}
	p, ok := lookupProgram(base)
	if !ok || p.pkg != "" && !n.has(p.pkg) {
		return nil, false
	}
	return p.run, true
}

// relativeName makes a name of package fs from an absolute one.
func relativeName(name string) string {
	if name = strings.TrimPrefix(name, "/"); name == "" {
		return "."
	}
	return name
}

func (t *tree) exists(name string) bool {
	_, err := t.Stat(name)
	return err == nil
}

// Open implements shell.System.
func (p programs) Open(name string) ([]byte, error) {
	if name == "/dev/null" {
		return nil, nil
	}
	return p.n.tree.ReadFile(relativeName(name))
}

// IsDir implements shell.System.
func (p programs) IsDir(name string) bool {
	i, err := p.n.tree.Stat(relativeName(name))
	return err == nil && i.IsDir()
}

// fail prints a line of complaint as GNU programs do.
func (c call) fail(text string) int {
	_, _ = io.WriteString(c.Err, c.name()+": "+text+"\n")
	return 1
}

// name is the program's own name.
func (c call) name() string { return c.Argv[0][strings.LastIndexByte(c.Argv[0], '/')+1:] }

// print writes to the standard output.
func (c call) print(text string) { _, _ = io.WriteString(c.Out, text) }

// path makes a name of the command's own an fs name.
func (c call) path(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = c.Dir + "/" + name
	}
	return relativeName(cleanPath(name))
}

// all reads the whole standard input, or until ctx ends.
func (c call) all(ctx context.Context) ([]byte, error) {
	type answer struct {
		b   []byte
		err error
	}
	got := make(chan answer, 1)
	go func() { // ends with the input, at the latest when its connection is closed
		b, err := io.ReadAll(io.LimitReader(c.In, maxInput))
		got <- answer{b, err}
	}()
	select {
	case a := <-got:
		return a.b, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// maxInput bounds what a command reads.
const maxInput = 64 << 20

// run starts another program in the same process group.
func (c call) run(ctx context.Context, argv []string, env map[string]string) int {
	inner := c.Command
	inner.Argv, inner.Env = argv, env
	return programs{c.n, c.pid}.Run(ctx, inner)
}

// written collects what is written and hands it over when it is closed.
type written struct {
	bytes.Buffer
	put func([]byte) error
}

// Close implements io.Closer.
func (w *written) Close() error { return w.put(w.Bytes()) }

func itoa(n int) string { return strconv.Itoa(n) }
