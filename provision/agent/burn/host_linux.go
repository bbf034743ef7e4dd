// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

const (
	// lockFile is held by a load and by its program: an agent that was killed lets
	// go of it only when its program has ended as well.
	lockFile = "/run/ironrail-burn.lock"
	// lockWait is how long a load that is about to end may take: dcgmi waits 25 s
	// for its diagnosis to stop.
	lockWait = 90 * time.Second
	// stopGrace is how long a program may take to end when it is asked to.
	stopGrace = 40 * time.Second
)

// Host runs programs of this system. Lock must be taken before a program that
// shall hold it runs.
type Host struct {
	File string // empty: lockFile
	lock *os.File
}

// Lock waits for the lock.
func (h *Host) Lock(ctx context.Context) (func(), error) {
	name := h.File
	if name == "" {
		name = lockFile
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errkind.New(errkind.Internal, "lock of the burn-in: %w", err)
	}
	for waited := time.Duration(0); ; waited += time.Second {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			h.lock = f
			return func() { _ = f.Close() }, nil
		}
		if err = (clock.Wall{}).Sleep(ctx, time.Second); err == nil && waited < lockWait {
			continue
		}
		_ = f.Close()
		return nil, errkind.New(errkind.Refused, "another burn-in runs on this node, and did not end in %s", lockWait).
			Do("Look for dcgmi or rvs on the node (fuser " + name + "), end it, and apply again.")
	}
}

// Run runs a program in a process group of its own, which is asked to end when
// ctx ends or this process is gone, and killed when it does not.
func (h *Host) Run(ctx context.Context, argv []string) (Output, error) {
	runtime.LockOSThread() // Pdeathsig is about the thread that starts the program
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	if h.lock != nil {
		cmd.ExtraFiles = []*os.File{h.lock}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return Output{}, errkind.New(errkind.Unsupported, "%w", err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever of its group is left
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && ctx.Err() == nil {
		return Output{}, errkind.New(errkind.Internal, "%s: %w", argv[0], err)
	}
	return Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: cmd.ProcessState.ExitCode()}, nil
}

// IsRunning reports whether a burn-in, or its program, runs on this node. It makes no file.
func IsRunning() bool {
	f, err := os.Open(lockFile)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
