// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"io"
	"sync"
)

// lineBuffer is what a BMC holds of the serial line for a console that does not
// keep up; what comes beyond it is lost.
const lineBuffer = 16 << 10

// Line is the serial line from a node to its BMC. As with a real one nobody waits
// for whoever reads it, and what nobody reads is lost. It is safe for concurrent
// use.
type Line struct {
	mu   sync.Mutex
	read bool   // a console is open
	held []byte // not sent yet
	more chan struct{}

	typed chan byte // to the node; what it does not read is lost beyond that
}

// NewLine returns a line that nobody reads.
func NewLine() *Line { return &Line{more: make(chan struct{}, 1), typed: make(chan byte, typedBuffer)} }

// typedBuffer is what the UART of a node and its firmware hold of what is typed.
const typedBuffer = 256

// Typed is what comes to the node.
func (l *Line) Typed() <-chan byte { return l.typed }

// press gives characters to the node, and never waits.
func (l *Line) press(text []byte) {
	for _, c := range text {
		select {
		case l.typed <- c:
		default:
		}
	}
}

// Write is what the node prints. It never waits and never fails.
func (l *Line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read {
		return len(b), nil
	}
	l.held = append(l.held, b[:min(len(b), lineBuffer-len(l.held))]...)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

// Attach gives the line to somebody else than a BMC, with a port of its own, until ctx ends or the port fails: what the
// node prints, and to the node what comes. False: somebody reads the line already. run starts each direction; reading
// the port must end with the port.
func (l *Line) Attach(ctx context.Context, port io.ReadWriter, run func(func())) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read {
		return false
	}
	l.read, l.held = true, nil
	ctx, end := context.WithCancel(ctx)
	run(func() {
		defer end()
		b := make([]byte, typedBuffer)
		for {
			n, err := port.Read(b)
			l.press(b[:n])
			if err != nil {
				return
			}
		}
	})
	run(func() {
		defer l.open(false)
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.more:
			}
			b := l.peek(lineBuffer)
			if _, err := port.Write(b); err != nil {
				return
			}
			l.drop(len(b))
		}
	})
	return true
}

// open begins or ends that somebody reads.
func (l *Line) open(read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read, l.held = read, nil
}

// peek returns up to most characters that were not sent yet.
func (l *Line) peek(most int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]byte(nil), l.held[:min(most, len(l.held))]...)
}

// drop forgets characters that were sent.
func (l *Line) drop(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = l.held[min(n, len(l.held)):]
}
