// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/tail"
	"github.com/ironrail/ironrail/inventory"
)

const (
	maxOutput  = 64 << 10 // bytes of a program's output that are kept: the last ones
	lastLines  = 5        // of the output, in a finding
	lastBytes  = 512      // of one of these lines
	outputWait = 2 * time.Second
	path       = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// start runs a hook's program to its end. Whatever it left running in its process
// group is killed then.
func (s *Stage) start(ctx context.Context, run stage.Run, h *inventory.Hook, c Call) error {
	stdin, err := json.Marshal(c)
	if err != nil {
		return err
	}
	run.Emit(event.Event{Type: event.StepProgress, Node: c.Node.Name, Text: "runs " + h.Command[0], Until: run.Clock().Now().Add(h.Timeout)})
	limited, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	out := &tail.Tail{Most: maxOutput}
	err = s.program(limited, h.Command, s.environ(c), s.dir, append(stdin, '\n'), out)
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well; something that it had started held its output
		run.Emit(event.Event{Type: event.Note, Node: c.Node.Name, Text: "hook " + h.Command[0] + " left processes behind; they were killed"})
		err = nil
	}
	ref, kept := "", error(nil)
	if text := textOf(out); len(text) > 0 {
		ref, kept = run.Attach(fmt.Sprintf("hook-%s-%s-%s.txt", h.Stage, h.When, c.Node.Name), text)
	}
	if kept != nil {
		return kept
	}
	if err == nil {
		if ref != "" {
			run.Emit(event.Event{Type: event.Evidence, Node: c.Node.Name, Text: "output of " + h.Command[0] + ": " + ref})
		}
		return nil
	}
	if ctx.Err() != nil { // the run was stopped, not the program at fault
		return context.Cause(ctx)
	}
	return blameHook(ctx, run, h, c, runError(limited, h, err), ref, out)
}

// environ is all of the environment that a program sees.
func (s *Stage) environ(c Call) []string {
	return []string{path, "IRONRAIL_SITE=" + c.Site, "IRONRAIL_NODE=" + c.Node.Name, "IRONRAIL_STAGE=" + c.Stage, "IRONRAIL_WHEN=" + c.When, "IRONRAIL_KEY=" + c.Key}
}

// runProgram runs a program in a process group of its own and kills the group when
// ctx is done, and once the program has ended.
func runProgram(ctx context.Context, argv, environ []string, dir string, stdin []byte, out io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environ, dir, outputWait
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), out, out
	killGroup := func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.Cancel = killGroup
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	_ = killGroup() // mostly there is nobody left
	return err
}

// runError returns the error of a program. Nothing that it was to do is known to be
// undone.
func runError(limited context.Context, h *inventory.Hook, err error) error {
	name := h.Command[0]
	if limited.Err() != nil {
		return errkind.New(errkind.Timeout, "%s did not end within its timeout of %s and was killed with all that it had started", name, h.Timeout).
			Do(fmt.Sprintf("Find out what %s waits for, or give hook %q %q a longer timeout; then `ironrail apply` runs it again.", name, h.When, h.Stage))
	}
	var x *exec.ExitError
	if errors.As(err, &x) {
		return errkind.New(errkind.Refused, "%s ended with %s", name, x.ProcessState).
			Do(fmt.Sprintf("Read what %s said, fix what it objects to, then `ironrail apply` runs it again.", name))
	}
	return errkind.New(errkind.NotFound, "%s cannot be run: %w", name, err).
		Do(fmt.Sprintf("Put the program there and make it executable, or correct hook %q %q (%s:%d).", h.When, h.Stage, h.Decl.Filename, h.Decl.Start.Line))
}

// blameHook makes a finding of a failed hook, with what it said last.
func blameHook(ctx context.Context, run stage.Run, h *inventory.Hook, c Call, err error, ref string, out *tail.Tail) error {
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(c.Node.Name)}},
		Cause: fmt.Sprintf("the site's hook %s %s failed: %v", h.When, h.Stage, err), Evidence: linesOf(out, lastLines), Action: errkind.Action(err)}
	if ref != "" {
		f.Evidence = append(f.Evidence, ref)
	}
	return errors.Join(run.Blame(ctx, f), err)
}

// textOf is what was kept of a program's output, with a line that says when something is
// missing.
func textOf(t *tail.Tail) []byte {
	kept, lost := t.Bytes()
	if !lost {
		return kept
	}
	return append([]byte("[the beginning was left out]\n"), kept...)
}

// linesOf are the last lines of it, in a form that does no harm to a terminal.
func linesOf(t *tail.Tail, n int) []string {
	kept, _ := t.Bytes()
	all := strings.Split(strings.TrimRight(string(kept), "\n"), "\n")
	var out []string
	for _, l := range all[max(0, len(all)-n):] {
		if l = event.Escape(l); l != "" {
			out = append(out, l[max(0, len(l)-lastBytes):])
		}
	}
	return out
}
