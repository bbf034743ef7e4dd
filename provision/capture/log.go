// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Folder is where the logs of consoles are, in a state folder.
const Folder = "consoles"

// fileMost is when a log begins another file, bytes; the one before it is kept.
const fileMost = 128 << 10

// Line is one line of a log.
type Line struct {
	At   time.Time
	Text string // what the node printed, escaped; or a remark
	Note bool   // a remark of who reads the console, such as that it was lost
}

// Marks between the time of a line and its text.
const (
	printed = " | "
	remark  = " # "
)

// encode returns the line as it stands in a log.
func (l Line) encode() string {
	mark := printed
	if l.Note {
		mark = remark
	}
	return l.At.UTC().Format(time.RFC3339Nano) + mark + l.Text + "\n"
}

// parseLine reads a line of a log; false for what is none, such as one that a full disk cut off.
func parseLine(s string) (l Line, ok bool) {
	stamp, rest, found := strings.Cut(s, " ")
	if !found || len(rest) < 2 || rest[1] != ' ' || rest[0] != '|' && rest[0] != '#' {
		return l, false
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return Line{At: at, Text: rest[2:], Note: rest[0] == '#'}, err == nil
}

// logPath is the log of a node, and the one before it.
func logPath(folder, node string) (now, before string) {
	now = filepath.Join(folder, node+".log")
	return now, now + ".1"
}

// log is the log of one node, which is being written: two files of fileMost bytes at most. It is used by one
// goroutine at a time.
type log struct {
	folder, node string
	file         *os.File // nil until the first line
	size         int64
	broken       bool // it could not be written: nothing more is
}

// write appends a line. The error of the first that cannot be written is returned, and nothing is written
// any more.
func (l *log) write(x Line) error {
	if l.broken {
		return nil
	}
	err := l.append(x.encode())
	l.broken = err != nil
	return err
}

func (l *log) append(text string) (err error) {
	path, before := logPath(l.folder, l.node)
	if l.file != nil && l.size+int64(len(text)) > fileMost {
		if err = errors.Join(l.close(), os.Rename(path, before)); err != nil {
			return err
		}
	}
	if l.file == nil {
		if err = os.MkdirAll(l.folder, 0o700); err != nil {
			return err
		}
		// What a node prints may be anything, also what only its administrators are to read.
		if l.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return err
		}
		if l.size, err = l.file.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		last := []byte{'\n'}
		if _, err = l.file.ReadAt(last, max(l.size-1, 0)); err != nil && err != io.EOF {
			return err
		}
		if last[0] != '\n' { // a process died in the middle of a line
			text = "\n" + text
		}
	}
	n, err := l.file.WriteString(text)
	l.size += int64(n)
	return err
}

// close ends the log; a later line begins it again.
func (l *log) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Read gives the lines of a node's log in a state folder to f, oldest first. It is of kind NotFound where the
// node has none.
func Read(state, node string, f func(Line) error) error {
	now, before := logPath(filepath.Join(state, Folder), node)
	any := false
	for _, path := range []string{before, now} {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		any = true
		err = readLines(file, f)
		_ = file.Close()
		if err != nil {
			return err
		}
	}
	if !any {
		return errkind.New(errkind.NotFound, "nothing is kept of the console of %s", node).
			Do("A run keeps it from the first power action on a node until the node is accepted, where the node has a console that ironrail can read.")
	}
	return nil
}

// readLines reads one file, whose last line may be cut off.
func readLines(r io.Reader, f func(Line) error) error {
	in := bufio.NewScanner(io.LimitReader(r, 2*fileMost))
	in.Buffer(nil, fileMost)
	for in.Scan() {
		if l, ok := parseLine(in.Text()); ok {
			if err := f(l); err != nil {
				return err
			}
		}
	}
	return in.Err()
}
