// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

// defaultMaxOutput is how many bytes of each output stream are kept when
// Command.MaxOutput is zero.
const defaultMaxOutput = 1 << 20

// Command is one program to run on a node. Secrets go through Stdin, never
// through Argv: arguments are visible to every user of the node.
type Command struct {
	Argv []string // program and arguments; no shell takes them apart
	// Stdin is read to its end, or until the command ends. A reader that blocks
	// forever keeps a goroutine.
	Stdin io.Reader
	// MaxOutput is how many bytes of stdout and of stderr are kept, each: of a
	// longer stream its first half and its last half. Zero: defaultMaxOutput.
	MaxOutput int
	// Stdout and Stderr, where they are set, are given all of their stream while it
	// comes, each from one goroutine, and nothing after Run has returned. Their
	// errors are ignored. While a Write does not return, the command waits.
	Stdout, Stderr io.Writer
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr []byte // where bytes are left out, a line between the ends says so
	Omitted        int64  // bytes of both streams that were not kept
	Exit           int    // exit status; -1 when a signal ended the command
	Signal         string // the signal's name without SIG, or ""
}

// Run runs a command and waits for its end. A status other than 0 is no error:
// the caller knows what it means. When ctx ends, the command is killed and what
// it wrote until then is returned beside the error. An error of kind Unreachable
// after the command was accepted means that nobody knows how it ended.
func (c *Client) Run(ctx context.Context, cmd Command) (Result, error) {
	if _, err := quoteArgs(cmd.Argv); err != nil {
		return Result{}, c.cfg.wrap("run", err)
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return Result{}, c.cfg.wrap("run "+cmd.Argv[0], fromContext(ctx))
	}
	defer func() { <-c.slots }()
	conn, session, err := c.session(ctx)
	if err != nil {
		return Result{}, c.cfg.wrap("run "+cmd.Argv[0], err)
	}
	defer func() { _ = session.Close() }()
	r, err := runSession(ctx, conn, session, cmd)
	return r, c.cfg.wrap("run "+cmd.Argv[0], err)
}

// openTries is how often a session is asked for that the node refuses: sshd
// counts a session that has just ended for a moment longer (seen on 9.2).
const openTries = 6

// session opens a session; a connection that turns out to be dead is replaced
// once. Nothing was sent to it yet, so nothing can be done twice.
func (c *Client) session(ctx context.Context) (*conn, *ssh.Session, error) {
	replaced := false
	for try := 1; ; try++ {
		on, err := c.connected(ctx)
		if err != nil {
			return nil, nil, err
		}
		s, err := on.open(ctx, c.cfg.Timeout)
		switch kind := errkind.Of(err); {
		case err == nil:
			return on, s, nil
		case kind == errkind.Unreachable && !replaced && ctx.Err() == nil:
			replaced = true
			on.kill()
		case kind == errkind.Refused && try < openTries:
			if err := (clock.Wall{}).Sleep(ctx, 10*time.Millisecond<<try); err != nil {
				return nil, nil, fromContext(ctx)
			}
		default:
			return nil, nil, err
		}
	}
}

// open asks the node for a session.
func (c *conn) open(ctx context.Context, longest time.Duration) (*ssh.Session, error) {
	type opened struct {
		s   *ssh.Session
		err error
	}
	answer := make(chan opened, 1)
	go func() { // ends with the answer or with the connection
		s, err := c.client.NewSession()
		answer <- opened{s, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, longest, errSlow)
	defer cancel()
	select {
	case o := <-answer:
		if _, refused := errors.AsType[*ssh.OpenChannelError](o.err); refused {
			return nil, errkind.New(errkind.Refused, "%w", o.err)
		}
		if o.err != nil {
			return nil, errkind.New(errkind.Unreachable, "connection broke: %w", o.err).Do(actionReach)
		}
		return o.s, nil
	case <-ctx.Done():
		go func() { // give a late session back
			if o := <-answer; o.s != nil {
				_ = o.s.Close()
			}
		}()
		return nil, fromContext(ctx)
	}
}

// killGrace is how long a killed command may take to be reported as ended.
const killGrace = 2 * time.Second

// runSession starts the command and waits for it or for ctx.
func runSession(ctx context.Context, on *conn, s *ssh.Session, cmd Command) (Result, error) {
	most := cmd.MaxOutput
	if most <= 0 {
		most = defaultMaxOutput
	}
	stdout, stderr := &ends{most: most, consumer: cmd.Stdout}, &ends{most: most, consumer: cmd.Stderr}
	mark := newMark()
	head, errHead := newLeader(mark, stdout), newLeader(mark, stderr)
	line, err := quoteArgs(ledCommand(mark, cmd.Argv))
	if err != nil {
		return Result{}, err
	}
	s.Stdout, s.Stderr = head, errHead
	source := &failing{r: cmd.Stdin}
	in, err := s.StdinPipe()
	if err != nil {
		return Result{}, errkind.New(errkind.Internal, "%w", err)
	}
	ended := make(chan error, 1)
	go func() { // ends with the command or with the connection
		err := s.Start("exec " + line)
		if err == nil {
			go feedInput(in, source)
			err = s.Wait()
		}
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		stopSession(on, s, head, ended)
		err = fromContext(ctx)
	}
	head.finish()
	errHead.finish()
	r := Result{Stdout: stdout.bytes(), Stderr: stderr.bytes(), Omitted: stdout.omitted() + stderr.omitted()}
	if err = r.end(err); err == nil && source.failure() != nil {
		err = errkind.New(errkind.Of(source.failure()), "the command's input ended early: %w", source.failure())
	}
	return r, err
}

// feedInput copies the input to the command and closes it. It must not begin before
// the command was accepted: sshd drops what comes earlier, also the end. The
// library's own copying takes a command that does not read all of its input for
// a failed one. feed ends with the input, or with the session when there is
// more.
func feedInput(in io.WriteCloser, source *failing) {
	if source.r != nil {
		_, _ = io.Copy(in, source)
	}
	_ = in.Close()
}

// failing remembers why an input ended before its end.
type failing struct {
	r io.Reader

	mu  sync.Mutex // guards err: the reader is another goroutine
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

func (f *failing) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// stopSession kills the command with all of its process group. A peer that does not
// even report the end is taken for dead.
func stopSession(on *conn, s *ssh.Session, head *leader, ended <-chan error) {
	slow := time.AfterFunc(killGrace, on.kill)
	defer slow.Stop()
	select {
	case <-ended:
		return
	case <-head.known:
		if killer, err := on.client.NewSession(); err == nil {
			_ = killer.Run("kill -s KILL -- -" + head.group())
			_ = killer.Close()
		}
	case <-on.stop:
	}
	_ = s.Close()
	<-ended
}

// end fills in how the command ended.
func (r *Result) end(err error) error {
	if err == nil {
		return nil
	}
	r.Exit = -1
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		return e
	}
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		if r.Signal = exit.Signal(); r.Signal == "" {
			r.Exit = exit.ExitStatus()
		}
		return nil
	}
	return errkind.New(errkind.Unreachable, "connection broke while the command ran: %w", err).
		Do("Look at the node: it is not known whether the command has ended.")
}
