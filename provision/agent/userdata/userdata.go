// SPDX-License-Identifier: Apache-2.0

// Package userdata runs the user data of a site on its node, once.
package userdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/tail"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// mostOutput is how much of what a script printed is kept: its end.
const mostOutput = 16 << 10

// Runner runs the script of a node.
type Runner struct {
	Root  func() (rootfs.Root, error) // opens the root file system
	Clock clock.Clock
	// Run runs the program of a path until it ends or ctx does. It writes what the program
	// prints to out, and returns its exit status; 128 and the signal where one ended it.
	Run func(ctx context.Context, path string, out io.Writer) (int, error)
}

// Once runs the script and records how it ended. One that was begun before is not run again,
// whatever came of it: it may not be harmless to do it twice.
func (r Runner) Once(ctx context.Context) (userdata.Record, error) {
	root, err := r.Root()
	if err != nil {
		return userdata.Record{}, err
	}
	defer root.Close()
	text, err := fs.ReadFile(root.FS(), userdata.ScriptFile)
	if err != nil {
		return userdata.Record{}, fmt.Errorf("user data: %w", err)
	}
	if rootfs.Exists(root, userdata.RecordFile) {
		return userdata.Record{}, fmt.Errorf("user data was begun before: /%s is there", userdata.RecordFile)
	}
	boot, err := fs.ReadFile(root.FS(), "proc/sys/kernel/random/boot_id")
	if err != nil {
		return userdata.Record{}, fmt.Errorf("user data: %w", err)
	}
	rec := userdata.Record{Digest: userdata.Digest(string(text)), Boot: strings.TrimSpace(string(boot)), Began: r.Clock.Now().UTC()}
	if err := save(root, rec); err != nil { // before it begins
		return rec, err
	}
	out := &tail.Tail{Most: mostOutput}
	bounded, cancel := r.Clock.WithTimeout(ctx, userdata.Limit)
	defer cancel()
	exit, err := r.Run(bounded, "/"+userdata.ScriptFile, out)
	switch {
	case ctx.Err() != nil:
		rec.Error = "the system was shut down while it ran"
	case bounded.Err() != nil:
		rec.Error = fmt.Sprintf("it took longer than %s and was ended", userdata.Limit)
	case err != nil:
		rec.Error = err.Error()
	}
	rec.Exit, rec.Ended, rec.Output = exit, r.Clock.Now().UTC(), textOf(out)
	return rec, save(root, rec)
}

// save writes the record; rootfs.Write replaces a file at once.
func save(root rootfs.Root, rec userdata.Record) error {
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return rootfs.WriteText(root, userdata.RecordFile, string(text)+"\n", 0o600)
}

// textOf is what was kept of a program's output, as text.
func textOf(t *tail.Tail) string {
	kept, lost := t.Bytes()
	text := strings.ToValidUTF8(string(kept), "?")
	if lost {
		text = "[...] " + text
	}
	return text
}

// Command runs a program of this system, in a process group of its own that ends with it. What
// it prints goes to the journal as well.
func Command(ctx context.Context, path string, out io.Writer) (int, error) {
	const grace = 10 * time.Second
	c := exec.CommandContext(ctx, path)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "LANG=C.UTF-8"}
	c.Dir, c.Stdout = "/", io.MultiWriter(out, os.Stderr)
	c.Stderr = c.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = grace
	err := c.Run()
	if c.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what ignored the first signal; none is left otherwise
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		if s, ok := ended.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return 128 + int(s.Signal()), nil
		}
		return ended.ExitCode(), nil
	case errors.Is(err, exec.ErrWaitDelay): // a child of its keeps its output open: a service that it started
		return 0, nil
	}
	return 0, err
}
