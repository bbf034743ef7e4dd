// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
)

// lineTarget is the BMC of the serial line of these tests.
var lineTarget = Console{BMC: bmc.Target{Node: "n1", Addr: serialBMC, Username: "admin", Password: secret.NewValue("correct-horse-9")}}

// safeBuffer is a buffer that a test reads while it is written to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}
func (s *safeBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// brokenWriter fails.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestShared: a console is opened once for several readers, each of whom may type; who leaves leaves
// the others, and after the last it is given back.
func TestShared(t *testing.T) {
	t.Parallel()
	line := &serial{}
	s := NewShared(line.open)
	read := func(keys <-chan string, to io.Writer) (stop context.CancelFunc, done chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		up := make(chan struct{})
		done = make(chan error, 1)
		go func() { done <- s.Terminal(ctx, lineTarget, to, keys, func() { close(up) }) }()
		<-up
		return cancel, done
	}
	var first, second safeBuffer
	keys := make(chan string)
	stopFirst, doneFirst := read(nil, &first)
	line.print("one ")
	stopSecond, doneSecond := read(keys, &second)
	_, doneBroken := read(nil, brokenWriter{})
	line.print("two ")
	if err := <-doneBroken; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a writer that fails: %v", err)
	}
	keys <- "x"
	keys <- bmc.Break
	stopFirst()
	if err := <-doneFirst; err != nil {
		t.Error(err)
	}
	line.print("three")
	keys <- "y" // so that those before are with the line
	stopSecond()
	if err := <-doneSecond; err != nil {
		t.Error(err)
	}
	if first.String() != "one two " || second.String() != "two three" {
		t.Errorf("%q, %q", first.String(), second.String())
	}
	line.mu.Lock()
	typed, open := line.typed, line.to != nil
	line.mu.Unlock()
	if open || typed != "x"+bmc.Break && typed != "x"+bmc.Break+"y" {
		t.Errorf("typed %q, still open: %t", typed, open)
	}
	var again safeBuffer
	stop, done := read(nil, &again)
	line.print("four")
	stop()
	if err := <-done; err != nil || again.String() != "four" {
		t.Errorf("opened again: %q, %v", again.String(), err)
	}
}

// TestSharedStuck: a reader that takes nothing keeps nobody from other consoles.
func TestSharedStuck(t *testing.T) {
	t.Parallel()
	s := NewShared(func(ctx context.Context, _ Console, _ io.Writer, _ <-chan string, up func()) error {
		up()
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() {
		done <- s.Terminal(ctx, lineTarget, io.Discard, nil, func() { close(stuck); <-goOn })
	}()
	<-stuck
	other, open := lineTarget, make(chan struct{})
	other.BMC.Addr = netip.AddrPortFrom(serialBMC.Addr().Next(), serialBMC.Port())
	go func() { done <- s.Terminal(ctx, other, io.Discard, nil, func() { close(open) }) }()
	<-open
	close(goOn)
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestSharedRefused: an error of the console is that of each reader.
func TestSharedRefused(t *testing.T) {
	t.Parallel()
	theirs := &serial{to: io.Discard}
	s := NewShared(theirs.open)
	if err := s.Terminal(t.Context(), lineTarget, io.Discard, nil, nil); err == nil {
		t.Error("a console of somebody else is opened")
	}
}

// TestSharedCloses: all consoles are given back before Close returns, their readers end, and none is opened
// any more.
func TestSharedCloses(t *testing.T) {
	t.Parallel()
	line := &serial{}
	s := NewShared(line.open)
	up, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Terminal(t.Context(), lineTarget, io.Discard, nil, func() { close(up) }) }()
	<-up
	s.Close()
	if !line.give(io.Discard) {
		t.Error("the console was not given back")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Terminal(t.Context(), lineTarget, io.Discard, nil, nil); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("after the end: %v", err)
	}
}
