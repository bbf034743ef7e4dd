// SPDX-License-Identifier: Apache-2.0

package burn_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/agent/burn"
)

// TestHostAsksFirst: a program is asked to end before it is killed, and what it
// printed until then is kept.
func TestHostAsksFirst(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	h := &burn.Host{}
	out, err := h.Run(ctx, []string{"sh", "-c", `trap 'echo stopped; exit 3' TERM; : >"$1"; while :; do sleep 0.05; done`, "sh", ready})
	if err != nil || strings.TrimSpace(string(out.Stdout)) != "stopped" || out.Exit != 3 {
		t.Errorf("%q %q %d: %v", out.Stdout, out.Stderr, out.Exit, err)
	}
	if _, err := h.Run(t.Context(), []string{"/nonexistent/dcgmi"}); err == nil {
		t.Error("a program that is not there was run")
	}
}

// TestHostLock: nobody else gets the lock while it is held, and also not while a
// program that was started under it runs.
func TestHostLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lock")
	first, second := &burn.Host{File: file}, &burn.Host{File: file}
	release, err := first.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := second.Lock(soon); err == nil || !strings.Contains(err.Error(), "another burn-in runs") {
		t.Fatalf("a lock that is held was given: %v", err)
	}
	release()
	again, err := second.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}
