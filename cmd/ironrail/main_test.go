// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := c.CommandPath()
		if c.Short == "" || len(c.Short) > 60 || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1] {
			t.Errorf("%s: short help %q is not one short line without a full stop", path, c.Short)
		}
		if len(c.Long) < len(c.Short) || c.HasParent() && !strings.HasSuffix(c.Long, ".") {
			t.Errorf("%s: long help %q says less than the short one, or is no sentence", path, c.Long)
		}
		if c.HasParent() && !strings.Contains(c.Example, path) {
			t.Errorf("%s: no example", path)
		}
		for _, l := range strings.Split(c.Long, "\n") {
			if len(l) > 84 {
				t.Errorf("%s: %q is too long for a terminal", path, l)
			}
		}
		if c.Runnable() && c.Args == nil {
			t.Errorf("%s does not check its arguments", path)
		}
	}
	walk(newApp(nil, nil).root())
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	signals, drain := make(chan os.Signal), make(chan struct{})
	said := make(chan string, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan struct{})
	go func() {
		handleSignals(ctx, signals, drain, cancel, func(s string) { said <- s })
		close(ended)
	}()
	signals <- os.Interrupt
	<-drain
	if s := <-said; !strings.Contains(s, "Ctrl-C again") || !strings.Contains(s, "`ironrail apply` goes on") {
		t.Errorf("the first Ctrl-C says %q", s)
	}
	if ctx.Err() != nil {
		t.Fatal("the first Ctrl-C stops at once")
	}
	signals <- os.Interrupt
	<-ended
	if errkind.Of(context.Cause(ctx)) != errkind.Interrupted {
		t.Errorf("the second Ctrl-C: %v", context.Cause(ctx))
	}
}

func TestInterruptsEndWithTheRun(t *testing.T) {
	t.Parallel()
	for _, drained := range []bool{false, true} {
		signals, drain := make(chan os.Signal, 1), make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		if drained {
			signals <- os.Interrupt
		} else {
			cancel(nil)
		}
		ended := make(chan struct{})
		go func() {
			handleSignals(ctx, signals, drain, cancel, func(string) {})
			close(ended)
		}()
		if drained {
			<-drain
			cancel(nil)
		}
		<-ended
	}
}

func TestOutcomeOfARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outcome string
		nodes   []apply.NodeOutcome
		left    []plan.UnmanagedReason
		err     error
		want    int
		says    string
	}{
		{"all done", state.RunDone, []apply.NodeOutcome{apply.NodeDone}, nil, nil, exitDone, ""},
		{"done, and nodes are unmanaged", state.RunDone, []apply.NodeOutcome{apply.NodeDone}, []plan.UnmanagedReason{plan.OutsideTarget, plan.RunsUnknown}, nil, exitChanges, ""},
		{"done, and the targets leave nodes out", state.RunDone, []apply.NodeOutcome{apply.NodeDone}, []plan.UnmanagedReason{plan.OutsideTarget}, nil, exitDone, ""},
		{"some failed, and nodes are unmanaged", state.RunSomeFailed, []apply.NodeOutcome{apply.NodeQuarantined, apply.NodeDone}, []plan.UnmanagedReason{plan.OnHold}, nil, exitSomeFailed, ""},
		{"some failed", state.RunSomeFailed, []apply.NodeOutcome{apply.NodeQuarantined, apply.NodeDone}, nil, nil, exitSomeFailed, ""},
		{"all failed", state.RunSomeFailed, []apply.NodeOutcome{apply.NodeQuarantined}, nil, nil, exitFailed, ""},
		{"drained", state.RunDrained, nil, nil, nil, exitInterrupted, "`ironrail apply` goes on from here"},
		{"interrupted", state.RunInterrupted, nil, nil, nil, exitInterrupted, "`ironrail apply` goes on from here"},
		{"the lease ended", state.RunInterrupted, nil, nil, fmt.Errorf("run r1 stopped: %w", state.ErrLeaseEnded), exitOwned, "another controller may have taken over"},
		{"records lost", state.RunInterrupted, nil, nil, errors.New("disk full"), exitFailed, "disk full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var talk bytes.Buffer
			a := newApp(nil, &talk)
			res := apply.Result{Outcome: c.outcome}
			for _, o := range c.nodes {
				res.Nodes = append(res.Nodes, apply.NodeResult{Outcome: o})
			}
			for _, r := range c.left {
				res.Unmanaged = append(res.Unmanaged, plan.Unmanaged{Reason: r, Nodes: []string{"n9"}})
			}
			err := c.err
			if err == nil {
				err = a.exitOf(res)
			}
			if got := a.codeOf(err); got != c.want || !strings.Contains(talk.String(), c.says) {
				t.Errorf("exit code %d, want %d; says %q", got, c.want, talk.String())
			}
		})
	}
}

func TestErrorsAreShownOneByOneWithTheirHints(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	a := newApp(nil, &talk)
	code := a.codeOf(exit{exitOwned, errors.Join(errkind.New(errkind.Refused, "first\x1b[2J").Do("do this"), errors.New("second"))})
	if want := "error: first\\x1b[2J\nhint: do this\nerror: second\n"; code != exitOwned || talk.String() != want {
		t.Errorf("code %d, says %q, want %q", code, talk.String(), want)
	}
}

// TestAnErrorBesideAnExitIsShown: an exit that says nothing does not hide what else went wrong.
func TestAnErrorBesideAnExitIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{exit{code: exitSomeFailed}, exitSomeFailed, ""},
		{errors.Join(exit{code: exitSomeFailed}, errors.New("nothing is kept")), exitSomeFailed, "error: nothing is kept\n"},
		{errors.Join(exit{exitOwned, errors.New("first")}, errors.New("second")), exitOwned, "error: first\nerror: second\n"},
	} {
		var talk bytes.Buffer
		if code := newApp(nil, &talk).codeOf(c.err); code != c.code || talk.String() != c.want {
			t.Errorf("%v: code %d, says %q", c.err, code, talk.String())
		}
	}
}

func TestErrorsOfTheDiskHaveANextAction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&os.PathError{Op: "open", Path: "lock", Err: syscall.EACCES}, "hint: Run it as the user who owns that file"},
		{&os.PathError{Op: "mkdir", Path: ".ironrail", Err: syscall.EROFS}, "hint: The file system is mounted read-only"},
		{&os.PathError{Op: "write", Path: "state.db", Err: syscall.ENOSPC}, "hint: The disk is full"},
		{errkind.New(errkind.Refused, "%w", syscall.EACCES).Do("its own"), "hint: its own\n"},
	} {
		var talk bytes.Buffer
		newApp(nil, &talk).complain(c.err)
		if !strings.Contains(talk.String(), c.want) {
			t.Errorf("%v: says %q, want %q", c.err, talk.String(), c.want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, got, want string }{
		{"size of bytes", formatSize(9000), "9000 B"},
		{"size of KiB", formatSize(10 << 10), "10 KiB"},
		{"size of MiB", formatSize(10 << 20), "10 MiB"},
		{"size of GiB", formatSize(3 << 40), "3072 GiB"},
		{"clip leaves what fits", clipLine("abc", 3), "abc"},
		{"clip counts characters", clipLine("äöüß", 3), "äö…"},
		{"clip to nothing", clipLine("abc", 1), "…"},
		{"progress without a total", addProgress("x", 5, 0), "x"},
		{"progress by count", addProgress("round", 1, 3), "round (1 of 3)"},
		{"progress in bytes", addProgress("writing", 1<<40, 4<<40), "writing 25% of 4096 GiB"},
		{"span of today", formatSpan(fixtureTime, fixtureTime.Add(time.Hour), now), "since 15:04:05 (10m0s), until 16:04:05"},
		{"span of another day", formatSpan(fixtureTime, time.Time{}, now.Add(24*time.Hour)), "since 2026-01-02 15:04:05 (24h10m)"},
		{"span of nothing", formatSpan(time.Time{}, time.Time{}, now), ""},
		{"span that begins later", formatSpan(now.Add(time.Second), time.Time{}, now), "since 15:14:06 (0s)"},
		{"shorten leaves few", shortenNames([]string{"a", "b"}, 2), "a, b"},
		{"shorten counts", shortenNames([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestLinesEscapeEveryKindOfText(t *testing.T) {
	t.Parallel()
	var p page
	p.linef("%s %s %s %s %d", "a\x1b", errors.New("b\x1b"), plan.StepID("c\x1b"), event.Type("d\x1b"), 7)
	if want := "a\\x1b b\\x1b c\\x1b d\\x1b 7\n"; p.String() != want {
		t.Errorf("got %q, want %q", p.String(), want)
	}
}
