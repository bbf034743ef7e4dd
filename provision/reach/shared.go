// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/selection"
)

// Shared gives one console to any number of readers: a BMC opens its console once. Who comes later
// sees what is printed from then on. It is safe for concurrent use.
type Shared struct {
	open Terminal

	mu     sync.Mutex // guards what follows, and all of each line
	lines  map[line]*sharedLine
	closed bool
}

// sharedLine is one console that is open, or about to be.
type sharedLine struct {
	cancel  context.CancelFunc
	keys    chan string   // what all readers type
	ended   chan struct{} // closed when session and payload are given back
	err     error         // why it ended, once it has
	isUp    bool          // it was open at least once
	ending  bool          // its last reader has left
	readers map[*sharedReader]bool
}

// sharedReader is one reader of a line.
type sharedReader struct {
	up     func()
	failed chan error // takes the error of to

	mu sync.Mutex // guards to, and is held while it is written to, or up is called
	to io.Writer  // nil: it has left
}

// print writes to the reader, unless it has left.
func (r *sharedReader) print(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		return
	}
	if _, err := r.to.Write(b); err != nil {
		r.to = nil
		r.failed <- err // it takes one
	}
}

// opened says that the console is open, unless the reader has left.
func (r *sharedReader) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to != nil && r.up != nil {
		r.up()
	}
}

// end is called once its writer is not to be used any more.
func (r *sharedReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = nil
}

// NewShared shares the consoles that open opens.
func NewShared(open Terminal) *Shared {
	return &Shared{open: open, lines: map[line]*sharedLine{}}
}

// OpenNode is Terminal for the console of a node of the inventory.
func (s *Shared) OpenNode(ctx context.Context, b BMCs, node string, to io.Writer, keys <-chan string, up func()) error {
	if _, err := selection.CheckNames(b.Inv, []string{node}); err != nil {
		return err
	}
	n, _ := b.Inv.Node(node)
	c, err := b.Console(n)
	if err != nil {
		return err
	}
	return s.Terminal(ctx, c, to, keys, up)
}

// Terminal is a Terminal for each reader. It returns once the reader has left, and the last one once the
// console is given back. A reader's writer that fails ends that reader alone.
func (s *Shared) Terminal(ctx context.Context, c Console, to io.Writer, keys <-chan string, up func()) error {
	r := &sharedReader{to: to, up: up, failed: make(chan error, 1)}
	l, err := s.join(ctx, c, r)
	if ctx.Err() != nil && l == nil {
		return nil // the end of ctx is no error, as of bmc.Terminal
	}
	if err != nil {
		return err
	}
	defer s.leave(l, r)
	var pass chan string // nil: there is nothing to pass on
	next := ""
	for {
		from := keys
		if pass != nil { // one text at a time
			from = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return err
		case <-l.ended:
			return l.err
		case next = <-from:
			pass = l.keys
		case pass <- next:
			pass = nil
		}
	}
}

// join makes a reader one of the line, which is opened for the first. A line that ends is waited for.
func (s *Shared) join(ctx context.Context, c Console, r *sharedReader) (*sharedLine, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, errkind.New(errkind.Interrupted, "the process that shares the console is ending").Do("Open the console again.")
		}
		l := s.lines[c.line()]
		if l == nil {
			l = s.begin(ctx, c)
		}
		if !l.ending {
			l.readers[r] = true
			isUp := l.isUp
			s.mu.Unlock()
			if isUp { // without s.mu: a reader that takes nothing is no matter of other consoles
				r.opened()
			}
			return l, nil
		}
		s.mu.Unlock()
		select {
		case <-l.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin opens a line. Called with mu held.
func (s *Shared) begin(ctx context.Context, c Console) *sharedLine {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // of the line, not of its first reader
	l := &sharedLine{cancel: cancel, keys: make(chan string), ended: make(chan struct{}), readers: map[*sharedReader]bool{}}
	s.lines[c.line()] = l
	go func() { // ends with its last reader, which waits for it
		err := s.open(ctx, c, sharedWriter{s, l}, l.keys, func() { s.opened(l) })
		s.mu.Lock()
		defer s.mu.Unlock()
		l.err = err
		delete(s.lines, c.line())
		close(l.ended)
	}()
	return l
}

// Close ends all consoles, and waits until they are given back: a BMC keeps a console that was not for a
// minute. None is opened any more.
func (s *Shared) Close() {
	s.mu.Lock()
	s.closed = true
	lines := slices.Collect(maps.Values(s.lines))
	s.mu.Unlock()
	for _, l := range lines {
		l.cancel()
	}
	for _, l := range lines {
		<-l.ended
	}
}

// opened tells all readers that the console is open.
func (s *Shared) opened(l *sharedLine) {
	s.mu.Lock()
	l.isUp = true
	readers := slices.Collect(maps.Keys(l.readers)) // who joins from now on sees that it is up
	s.mu.Unlock()
	for _, r := range readers {
		r.opened()
	}
}

// leave takes a reader out, and waits for the end of a line without any.
func (s *Shared) leave(l *sharedLine, r *sharedReader) {
	r.end()
	s.mu.Lock()
	delete(l.readers, r)
	last := len(l.readers) == 0
	l.ending = l.ending || last
	s.mu.Unlock()
	if last {
		l.cancel()
		<-l.ended
	}
}

// sharedWriter gives what is printed to all readers, in turn. A slow one delays the others; its writer
// has a bound of its own.
type sharedWriter struct {
	s *Shared
	l *sharedLine
}

// Write implements io.Writer and never fails: a reader whose writer does leaves.
func (w sharedWriter) Write(b []byte) (int, error) {
	w.s.mu.Lock()
	readers := slices.Collect(maps.Keys(w.l.readers))
	w.s.mu.Unlock()
	for _, r := range readers {
		r.print(b)
	}
	return len(b), nil
}
