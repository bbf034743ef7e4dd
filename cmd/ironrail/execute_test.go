// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// pipeChild tells a child of TestHangUp that its standard output is read by
// nobody.
const pipeChild = "IRONRAIL_TEST_BROKEN_PIPE"

// TestHangUp: a run whose terminal hangs up drains, and one whose output nobody
// reads any more goes on. Signals are of the whole process: it is a child.
func TestHangUp(t *testing.T) {
	if os.Getenv(pipeChild) != "" {
		os.Exit(interrupted())
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHangUp$")
	cmd.Env = append(os.Environ(), pipeChild+"=1")
	cmd.Stdout = w
	if err := errors.Join(r.Close(), cmd.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it was not drained, or died of its output: %v", err)
	}
}

// interrupted writes to a closed pipe, hangs up, and returns 0 when both were heard.
func interrupted() int {
	drain := make(chan struct{})
	_, stop := watchInterrupts(context.Background(), drain, func(string) {})
	defer stop()
	if _, err := os.Stdout.WriteString("nobody reads this\n"); !errors.Is(err, syscall.EPIPE) {
		return 2
	}
	if syscall.Kill(os.Getpid(), syscall.SIGHUP) != nil {
		return 3
	}
	select {
	case <-drain:
		return 0
	case <-time.After(time.Minute):
		return 4
	}
}
