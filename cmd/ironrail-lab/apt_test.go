// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// aptRoot gives apt-get folders of its own, without package sources, by APT_CONFIG.
func aptRoot(t *testing.T) (lists, archives string) {
	t.Helper()
	peertest.Need(t, "apt-get")
	if os.Geteuid() != 0 {
		t.Skip("needs root: it installs")
	}
	dir := t.TempDir()
	lists, archives = filepath.Join(dir, "lists"), filepath.Join(dir, "cache", "archives")
	for _, d := range []string{lists + "/partial", archives + "/partial", dir + "/dpkg"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := fmt.Sprintf("Dir::State::Lists \"%s\";\nDir::Cache \"%s/cache\";\nDir::State::status \"%s/dpkg/status\";\nDir::Etc::SourceList \"/dev/null\";\nDir::Etc::SourceParts \"/dev/null\";\n", lists, dir, dir)
	for name, text := range map[string]string{"apt.conf": conf, "dpkg/status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("APT_CONFIG", filepath.Join(dir, "apt.conf"))
	return lists, archives
}

// hold takes a lock as apt does (fcntl(2)), which a child of this process then lacks.
func hold(t *testing.T, name string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Close() }
}

// TestPeerInstallWaitsForLocks: a lock that another package manager holds is waited for,
// and the installation goes on when it is free.
func TestPeerInstallWaitsForLocks(t *testing.T) {
	for _, args := range [][]string{{"update"}, {"clean"}} {
		t.Run(args[0], func(t *testing.T) {
			lists, archives := aptRoot(t)
			release := hold(t, filepath.Join(lists, "lock"))
			free := hold(t, filepath.Join(archives, "lock"))
			r, w := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- (&cli{stdout: io.Discard, stderr: w}).aptGet(t.Context(), args)
				_ = w.Close()
			}()
			said := readUntil(t, r, "waiting for it")
			if !strings.Contains(said, fmt.Sprintf("held by process %d", os.Getpid())) {
				t.Errorf("it does not say who holds the lock:\n%s", said)
			}
			release()
			free()
			go io.Copy(io.Discard, r) //nolint:errcheck // ends with the pipe
			if err := <-done; err != nil {
				t.Errorf("with the lock free again: %v", err)
			}
		})
	}
}

// TestPeerInstallEndsWithoutTheLock: what waits is ended by its deadline, with a reason.
func TestPeerInstallEndsWithoutTheLock(t *testing.T) {
	lists, _ := aptRoot(t)
	defer hold(t, filepath.Join(lists, "lock"))()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- (&cli{stdout: io.Discard, stderr: w}).aptGet(ctx, []string{"update"}) }()
	readUntil(t, r, "waiting for it")
	cancel()
	go io.Copy(io.Discard, r) //nolint:errcheck // ends with the pipe
	if err := <-done; err == nil || errkind.Action(err) == "" {
		t.Errorf("got %v, want an error with an action", err)
	}
	_ = w.Close()
}

// TestPeerInstallFails: any other failure of apt-get is one at once.
func TestPeerInstallFails(t *testing.T) {
	aptRoot(t)
	if err := (&cli{stdout: io.Discard, stderr: io.Discard}).aptGet(t.Context(), []string{"install", "--yes", "no-such-package-here"}); err == nil {
		t.Error("a package that does not exist was installed")
	}
}

// readUntil reads up to a text.
func readUntil(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var all strings.Builder
	for b := make([]byte, 4096); !strings.Contains(all.String(), text); {
		n, err := r.Read(b)
		all.Write(b[:n])
		if err != nil {
			t.Fatalf("no %q in %q: %v", text, all.String(), err)
		}
	}
	return all.String()
}
