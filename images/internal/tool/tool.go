// SPDX-License-Identifier: Apache-2.0

// Package tool runs the distribution's own programs: an argument vector and no
// shell, a context, a deadline for cleaning up, and errors that carry what the
// program said last.
package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// grace is how long a tool may take to clean up after it was told to stop.
const grace = 30 * time.Second

// lastLines is how much of a tool's talk an error carries.
const lastLines = 12

// Runner says where tools run. The zero value runs them in this process's folder
// and environment, in the C locale.
type Runner struct {
	Dir  string
	Env  []string // added to this process's environment
	Jail *Jail    // in which tools run; nil: in none
}

// Run runs a tool to its end. Its lines go to each, when given; an error carries
// the last of them. When ctx ends, the tool and its children are told to stop and
// have half a minute to clean up.
func (r Runner) Run(ctx context.Context, each func(line string), argv ...string) error {
	t := &talk{each: each}
	from, to := io.Pipe()
	cmd := r.command(ctx, argv)
	cmd.Stdout, cmd.Stderr = to, to
	var wait sync.WaitGroup
	wait.Go(func() { t.read(from) })
	err := runGroup(ctx, cmd)
	to.Close()
	wait.Wait()
	return outcomeOf(ctx, argv[0], err, strings.Join(t.last, "\n"))
}

// Output runs a tool and returns what it wrote to standard output.
func (r Runner) Output(ctx context.Context, argv ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := r.command(ctx, argv)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := runGroup(ctx, cmd)
	return stdout.Bytes(), outcomeOf(ctx, argv[0], err, strings.TrimSpace(stderr.String()))
}

func (r Runner) command(ctx context.Context, argv []string) *exec.Cmd {
	if r.Jail != nil {
		argv = jailed(argv)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = r.Dir
	cmd.Env = append(append(cmd.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC"), r.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children are told, too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if r.Jail != nil {
		r.Jail.enclose(cmd, r.Env)
	}
	return cmd
}

// runGroup runs a command. Children that outlive a command that was told to stop
// are killed: they would go on writing into a folder that is about to be removed.
func runGroup(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nobody is left
	}
	return err
}

// outcomeOf makes an error of how a tool ended.
func outcomeOf(ctx context.Context, name string, err error, said string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errkind.New(errkind.Of(ctx.Err()), "%s: %w", name, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return errkind.New(errkind.Unsupported, "%w", err)
	}
	return fmt.Errorf("%s: %w: %s", name, err, said)
}

// talk is what a tool says.
type talk struct {
	each func(string)
	last []string
}

// read takes lines until the tool is done. A line that is too long for a scanner
// must not stop the tool, so what is left is thrown away.
func (t *talk) read(r io.Reader) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if line == "" {
			continue
		}
		t.last = append(t.last, line)
		t.last = t.last[max(0, len(t.last)-lastLines):]
		if t.each != nil {
			t.each(line)
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

// MmdebstrapPhases passes on mmdebstrap's own lines about its phases.
func MmdebstrapPhases(say func(string)) func(line string) {
	return func(line string) {
		if text, ok := strings.CutPrefix(line, "I: "); ok {
			say(text)
		}
	}
}
