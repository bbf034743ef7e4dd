// SPDX-License-Identifier: Apache-2.0

// Package console writes the agent's log for people: at the screen or the serial
// line of a node that boots the install ramdisk.
package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// console writes one plain line for each record, "ironrail: text key=value", for
// people at a screen or a serial line. Text from outside is quoted, so that it
// cannot move the cursor.
type console struct {
	w     io.Writer
	mu    *sync.Mutex // one line at a time
	debug bool
	attrs string
}

// New returns a logger for the console of a node. It holds a lock while it writes
// to w, so that lines stay whole.
func New(w io.Writer, debug bool) *slog.Logger {
	return slog.New(console{w: w, mu: &sync.Mutex{}, debug: debug})
}

// Enabled is slog.Handler.
func (c console) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || c.debug
}

// Handle is slog.Handler.
func (c console) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("ironrail: ")
	if r.Level >= slog.LevelWarn {
		b.WriteString(strings.ToLower(r.Level.String()) + ": ")
	}
	b.WriteString(clean(r.Message))
	b.WriteString(c.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(attribute(a))
		return true
	})
	b.WriteString("\r\n") // serial consoles in raw mode need both
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(c.w, b.String())
	return err
}

// WithAttrs is slog.Handler.
func (c console) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		c.attrs += attribute(a)
	}
	return c
}

// WithGroup is slog.Handler; groups have no place on a console.
func (c console) WithGroup(string) slog.Handler { return c }

// attribute prints one; an empty value is left out, a stack keeps its lines.
func attribute(a slog.Attr) string {
	text := fmt.Sprint(a.Value.Resolve().Any())
	switch {
	case text == "":
		return ""
	case a.Key == "stack":
		return "\r\n" + strings.ReplaceAll(text, "\n", "\r\n")
	case a.Key == "hint":
		return "\r\nironrail:   next: " + clean(text)
	}
	if strings.ContainsAny(text, " \"=") || clean(text) != text {
		text = strconv.Quote(text)
	}
	return " " + a.Key + "=" + text
}

// clean replaces what is not printable.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '.'
	}, text)
}
