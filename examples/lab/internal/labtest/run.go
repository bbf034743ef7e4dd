// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
)

// Run is an apply in the background.
type Run struct {
	lab  *Lab
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex   // guards out
	out bytes.Buffer // both streams
}

// Start starts `ironrail ARGS` and returns when it owns the state.
func (l *Lab) Start(args ...string) *Run {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), applyLimit)
	argv := append([]string{"exec", "--dir", l.machines, "--", l.bin + "/ironrail", "-C", l.site}, args...)
	r := &Run{lab: l, cmd: exec.CommandContext(ctx, l.bin+"/ironrail-lab", argv...), done: make(chan struct{})}
	r.cmd.Env = environment()
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer cancel()
		defer close(r.done)
		_ = r.cmd.Wait() // its end is read from ProcessState
	}()
	l.t.Cleanup(func() {
		cancel()
		<-r.done
	})
	for until := time.Now().Add(commandLimit); ; time.Sleep(50 * time.Millisecond) {
		if _, owned, err := control.FindOwner(l.State()); err == nil && owned && l.socket() {
			return r
		}
		select {
		case <-r.done:
			l.t.Fatalf("%q ended at once: %s", args, r.Result())
		default:
		}
		if time.Now().After(until) {
			l.t.Fatalf("%q does not own the state: %s", args, r.Result())
		}
	}
}

// socket reports whether the owner answers.
func (l *Lab) socket() bool {
	_, err := os.Stat(filepath.Join(l.State(), "control.sock"))
	return err == nil
}

// State is the product's state folder.
func (l *Lab) State() string { return filepath.Join(l.site, stateFolder) }

// Write collects what the run prints.
func (r *Run) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

// Result is what the run printed so far, and its exit code when it has ended.
func (r *Run) Result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	code := -1
	select {
	case <-r.done:
		code = r.cmd.ProcessState.ExitCode()
	default:
	}
	return Result{Code: code, Stderr: r.out.String()}
}

// Wait waits for the end.
func (r *Run) Wait() Result {
	<-r.done
	res := r.Result()
	r.lab.noSecret("the run", res)
	return res
}

// Until waits for an event that is asked for, as a second process sees it by
// `ironrail events --follow --json`, and returns it.
func (r *Run) Until(what string, is func(event.Event) bool) event.Event {
	t := r.lab.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), applyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.lab.bin+"/ironrail", "-C", r.lab.site, "events", "--follow", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for d := json.NewDecoder(out); ; {
		var e event.Event
		if err := d.Decode(&e); err != nil {
			t.Fatalf("the events ended before %s (%v): %s", what, err, r.Result())
		}
		if is(e) {
			return e
		}
	}
}

// Kill ends the run at once, by the process id that owner.json names.
func (r *Run) Kill() {
	r.lab.t.Helper()
	r.signal(syscall.SIGKILL)
	if res := r.Wait(); res.Code != -1 {
		r.lab.t.Fatalf("the run was not killed: %s", res)
	}
}

// Interrupt is Ctrl-C.
func (r *Run) Interrupt() {
	r.lab.t.Helper()
	r.signal(syscall.SIGINT)
	time.Sleep(200 * time.Millisecond) // two signals at once are one
}

func (r *Run) signal(s syscall.Signal) {
	r.lab.t.Helper()
	var owner control.Identity
	b, err := os.ReadFile(filepath.Join(r.lab.State(), "owner.json"))
	if err == nil {
		err = json.Unmarshal(b, &owner)
	}
	if err != nil || owner.PID == 0 {
		r.lab.t.Fatalf("owner.json %q: %v", b, err)
	}
	if err := syscall.Kill(owner.PID, s); err != nil {
		r.lab.t.Fatal(err)
	}
}

// HasState reports whether a run was ever begun.
func (l *Lab) HasState() bool {
	_, err := os.Stat(filepath.Join(l.State(), "state.db"))
	return err == nil
}

// Journal returns the records of the state; no run may own it.
func (l *Lab) Journal() (records []state.Record) {
	l.t.Helper()
	s := l.store()
	defer s.Close()
	err := s.Read(l.t.Context(), 1, func(r state.Record) error {
		records = append(records, r)
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return records
}

func (l *Lab) store() state.Store {
	l.t.Helper()
	s, err := state.OpenReadOnly(filepath.Join(l.State(), "state.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}
