// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

type shown struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shown) Write(b []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(b) }
func (s *shown) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// TestPeerSSHConsole reads and types at a console that a real sshd gives: what is typed comes through a terminal, a
// server that was started again is called again, and another host key is refused before anything is sent.
func TestPeerSSHConsole(t *testing.T) {
	t.Parallel()
	cfg, restart := startSSHD(t, "ForceCommand stty raw -echo; echo ready; exec cat\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out shown
	keys, up, done := make(chan string), make(chan struct{}, 4), make(chan error, 1)
	go func() { done <- Console(ctx, cfg, "\x00break\x00", &out, keys, func() { up <- struct{}{} }) }()
	until := func(text string) {
		t.Helper()
		for by := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), text); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(by) {
				t.Fatalf("%q, want %q", out.String(), text)
			}
		}
	}
	<-up
	until("ready")
	keys <- "root\x03\r"
	until("root\x03\r")
	keys <- "\x00break\x00" // sshd passes it by
	restart()
	<-up
	keys <- "again"
	until("again")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	other, _ := startSSHD(t, "")
	other.Addr = cfg.Addr
	if err := Console(t.Context(), other, "", &out, nil, nil); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("another host key: %v", err)
	}
}
