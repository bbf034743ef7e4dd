// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines is a writer that wakes who waits for its first bytes.
type lines struct {
	mu    sync.Mutex
	text  strings.Builder
	first chan struct{}
	once  sync.Once
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once.Do(func() { close(l.first) })
	return l.text.Write(b)
}

// TestNotice: what takes long is said in one line, which makes room for what is printed
// meanwhile, and is gone in the end.
func TestNotice(t *testing.T) {
	t.Parallel()
	out := &lines{first: make(chan struct{})}
	n := &notice{w: out, what: "Planning 2 nodes", over: make(chan struct{}), gone: make(chan struct{})}
	go n.run(0)
	<-out.first
	n.interrupt(func() { _, _ = io.WriteString(out, "a line\n") })
	close(n.over)
	<-n.gone
	got := out.text.String() // on a busy machine the line came more than once
	if !strings.HasPrefix(got, "\rPlanning 2 nodes (0s)\x1b[K") || !strings.Contains(got, "\r\x1b[Ka line\n") || !strings.HasSuffix(got, "a line\n") && !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("%q", got)
	}
}

// TestNoticeShort: what is over within its time writes nothing.
func TestNoticeShort(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n := &notice{w: &out, what: "Planning", over: make(chan struct{}), gone: make(chan struct{})}
	go n.run(time.Hour)
	close(n.over)
	<-n.gone
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}

// TestNoTerminalNoNotice: what is no terminal gets none.
func TestNoTerminalNoNotice(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newApp(io.Discard, &out)
	done := a.during("Planning")
	if a.notice != nil {
		t.Error("there is a notice")
	}
	done()
}

// TestNoticeTerminal: on a terminal, a command that takes long says what it does.
func TestNoticeTerminal(t *testing.T) {
	t.Parallel()
	terminal, user := pseudoTerminal(t)
	a := newApp(io.Discard, io.Discard)
	a.err = terminal
	done := a.during("Reading and checking the files of the site")
	got := make([]byte, 256)
	n, err := user.Read(got) // a second later
	done()
	if err != nil || !strings.Contains(string(got[:n]), "Reading and checking the files of the site (") {
		t.Errorf("%q (%v)", got[:n], err)
	}
}
