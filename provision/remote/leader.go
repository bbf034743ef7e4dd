// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"io"
	"strconv"
	"sync"
)

// lead is run by the user's shell in place of a command. It says its process id,
// which is also that of its process group, since sshd makes every command the
// leader of a session, and becomes the command. $1 is a mark that nothing else
// prints; it stands on both streams, so that what the user's profile prints can
// be told from what the command prints.
//
// The id is needed to end the command: OpenSSH's "signal" request is refused for
// root, whose sessions have no privilege separation (seen on 9.2), and closing
// the channel leaves the command running.
const lead = `printf '%s %s\n' "$1" "$$"; printf '%s %s\n' "$1" "$$" >&2; shift; exec "$@"`

// leader takes the line with the process id out of one output stream of a
// command, and what the user's profile printed before it.
type leader struct {
	mark []byte
	out  *ends

	mu    sync.Mutex // guards the fields below
	buf   []byte     // output while the mark was not seen
	seen  bool
	known chan struct{} // closed when pid is set
	pid   int
}

// maxPreface is how much output may come before the mark. Past it there is no
// mark, and all is the command's.
const maxPreface = 64 << 10

func newMark() string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	return "ironrail-" + hex.EncodeToString(random)
}

func newLeader(mark string, out *ends) *leader {
	return &leader{mark: []byte(mark), out: out, known: make(chan struct{})}
}

// ledCommand returns the command that runs argv and says its process id first.
func ledCommand(mark string, argv []string) []string {
	return append([]string{"/bin/sh", "-c", lead, "sh", mark}, argv...)
}

// Write looks for the mark and passes on what comes after it.
func (l *leader) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen {
		return l.out.Write(p)
	}
	l.buf = append(l.buf, p...)
	start := bytes.Index(l.buf, l.mark)
	if start < 0 {
		if len(l.buf) > maxPreface {
			l.release()
		}
		return len(p), nil
	}
	line, rest, whole := bytes.Cut(l.buf[start+len(l.mark):], []byte("\n"))
	if !whole {
		return len(p), nil
	}
	if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 1 {
		l.pid = pid
		close(l.known)
	}
	l.buf = rest
	l.release()
	return len(p), nil
}

// ReadFrom is Write of all that r gives, by pieces of firstRead, and of readSize once one
// was full: io.Copy would take much more for each stream of each command, and most
// commands print a few lines or nothing.
func (l *leader) ReadFrom(r io.Reader) (int64, error) {
	piece := make([]byte, firstRead)
	for total := int64(0); ; {
		n, err := r.Read(piece)
		_, _ = l.Write(piece[:n]) // never fails
		total += int64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		if n == len(piece) && n < readSize {
			piece = make([]byte, readSize)
		}
	}
}

// How many bytes of an output stream are taken at a time.
const (
	firstRead = 512
	readSize  = 4 << 10
)

// release passes on what was kept back; l.mu is held.
func (l *leader) release() {
	l.seen = true
	_, _ = l.out.Write(l.buf)
	l.buf = nil
}

// finish ends the search: without a mark, all is output of the user's shell.
func (l *leader) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen {
		l.release()
	}
}

// group returns the process group, once known is closed.
func (l *leader) group() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strconv.Itoa(l.pid)
}
