// SPDX-License-Identifier: Apache-2.0

// Package process names processes so that a later run can end exactly the ones
// that it means: a pid alone is used again by the kernel, a pid with its start
// time is not. Linux only.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ID is a process: its pid and its start time in clock ticks since boot (field
// 22 of /proc/PID/stat, proc(5)). The zero ID is no process.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Of returns the identity of the process that has this pid now.
func Of(pid int) (ID, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	start, state, err := parseStat(string(b))
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if state == "Z" {
		return ID{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return ID{PID: pid, Start: start}, nil
}

// parseStat finds state and start time. The command in parentheses may itself
// hold spaces and parentheses, so the fields are counted from the last ")".
func parseStat(s string) (start uint64, state string, err error) {
	i := strings.LastIndexByte(s, ')')
	if i < 0 {
		return 0, "", errors.New("stat: no command field")
	}
	f := strings.Fields(s[i+1:])
	if len(f) < 20 {
		return 0, "", fmt.Errorf("stat: %d fields after the command, want 20", len(f))
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("stat: start time: %w", err)
	}
	return start, f[0], nil
}

// Alive reports whether this very process still runs; a zombie does not.
func (id ID) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	now, err := Of(id.PID)
	return err == nil && now == id
}

// End sends SIGTERM, waits up to grace, then sends SIGKILL and waits until the
// process is gone or ctx ends. A process that is gone already is no error. The
// handle is a pidfd, taken before the start time is compared: a new process
// with the same pid cannot be hit.
func (id ID) End(ctx context.Context, grace time.Duration) error {
	if id.PID <= 1 {
		return nil
	}
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return fmt.Errorf("process %d: %w", id.PID, err)
	}
	defer func() { _ = p.Release() }()
	if !id.Alive() {
		return nil
	}
	if err := signalProcess(p, syscall.SIGTERM); err != nil {
		return fmt.Errorf("process %d: terminate: %w", id.PID, err)
	}
	soft, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if id.wait(soft) {
		return nil
	}
	if err := signalProcess(p, syscall.SIGKILL); err != nil {
		return fmt.Errorf("process %d: kill: %w", id.PID, err)
	}
	if !id.wait(ctx) {
		return fmt.Errorf("process %d: still there after SIGKILL: %w", id.PID, ctx.Err())
	}
	return nil
}

func signalProcess(p *os.Process, s syscall.Signal) error {
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// wait polls, since only a parent can wait for a process; it reports whether
// the process went away before ctx ended.
func (id ID) wait(ctx context.Context) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for id.Alive() {
		select {
		case <-ctx.Done():
			return !id.Alive()
		case <-tick.C:
		}
	}
	return true
}
