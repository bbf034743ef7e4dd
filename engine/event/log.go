// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Log writes events as JSON lines into numbered segment files and keeps the
// last of them. It is best effort: nothing fails because a line could not be
// written. Lines that could not are counted, and told as one Note when there is
// room again. The zero values of its limits mean 8 MiB and 8 segments.
type Log struct {
	Dir     string      // made when it is not there
	Size    int64       // bytes after which a new segment begins
	Keep    int         // segments that are kept, the current one included
	Trouble func(error) // is told when events begin to be lost; may be nil

	file    *os.File
	out     *bufio.Writer
	written int64
	number  int
	lost    int64     // events that could not be written, since the last that was
	pause   time.Time // nothing is tried before
	first   error
}

// retry is how long a log that cannot be written waits before it tries again.
const retry = 2 * time.Second

// Follow writes everything from s until ctx is done or the stream ends, then
// what is still ready. It returns the first error of writing; nil when there was none.
func (l *Log) Follow(ctx context.Context, s *Subscription) error {
	defer l.close()
	for {
		e, err := s.Next(ctx)
		for err == nil {
			l.writeOrDrop(e)
			next, ok := s.Ready()
			if !ok {
				break
			}
			e = next
		}
		if l.out != nil {
			l.setFailed(l.out.Flush())
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			l.writeRest(s)
			return l.first
		}
	}
}

// writeRest writes what is ready after the end.
func (l *Log) writeRest(s *Subscription) {
	l.pause = time.Time{}
	for {
		e, ok := s.Ready()
		if !ok {
			return
		}
		l.writeOrDrop(e)
	}
}

// writeOrDrop writes an event, or counts it as lost.
func (l *Log) writeOrDrop(e Event) {
	if time.Now().Before(l.pause) {
		l.lost++
		return
	}
	if l.lost > 0 {
		gap := Event{Seq: e.Seq, Time: e.Time, Type: Note, Total: l.lost, Text: fmt.Sprintf("%d events are missing here: they could not be written (%v)", l.lost, l.first)}
		if l.setFailed(l.write(gap)) {
			return
		}
		l.lost = 0
	}
	l.setFailed(l.write(e))
}

// setFailed gives the segment up after an error and waits for a while. What the
// buffer held is lost.
func (l *Log) setFailed(err error) bool {
	if err == nil {
		return false
	}
	err = fmt.Errorf("event log: %w", err)
	if l.first == nil {
		l.first = err
	}
	if l.lost == 0 && l.Trouble != nil {
		l.Trouble(err)
	}
	l.lost++
	l.pause = time.Now().Add(retry)
	l.close()
	return true
}

func (l *Log) write(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	size := l.Size
	if size <= 0 {
		size = 8 << 20
	}
	if l.file == nil {
		err = l.openSegment(size)
	} else if l.written > 0 && l.written+int64(len(line)) >= size {
		err = l.rotate()
	}
	if err != nil {
		return err
	}
	n, err := l.out.Write(append(line, '\n'))
	l.written += int64(n)
	return err
}

// openSegment continues with the newest segment while it has room, so that many short
// runs do not push a long one out. A line that a dead process left torn ends there.
func (l *Log) openSegment(size int64) error {
	names, err := Segments(l.Dir)
	if err != nil || len(names) == 0 {
		return l.rotate()
	}
	f, err := os.OpenFile(names[len(names)-1], os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return l.rotate()
	}
	st, err := f.Stat()
	if err != nil || st.Size() >= size*9/10 {
		_ = f.Close()
		return l.rotate()
	}
	l.file, l.out, l.written = f, bufio.NewWriter(f), st.Size()
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err == nil && last[0] != '\n' {
		l.written++
		return l.out.WriteByte('\n')
	}
	return nil
}

// rotate begins the segment after the newest there is, and removes the oldest.
func (l *Log) rotate() error {
	if l.out != nil {
		if err := l.out.Flush(); err != nil {
			return err
		}
	}
	l.close()
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	names, err := Segments(l.Dir)
	if err != nil {
		return err
	}
	l.number = 0
	if len(names) > 0 {
		_, _ = fmt.Sscanf(filepath.Base(names[len(names)-1]), segmentName, &l.number)
	}
	keep := l.Keep
	if keep <= 0 {
		keep = 8
	}
	for len(names) >= keep {
		_ = os.Remove(names[0])
		names = names[1:]
	}
	l.number++
	l.file, err = os.OpenFile(filepath.Join(l.Dir, fmt.Sprintf(segmentName, l.number)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		l.file = nil
		return err
	}
	l.out, l.written = bufio.NewWriter(l.file), 0
	return nil
}

const segmentName = "events-%08d.jsonl"

// Segments lists the segment files in a folder, oldest first.
func Segments(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "events-*.jsonl"))
	slices.Sort(names)
	return names, err
}

func (l *Log) close() {
	if l.file == nil {
		return
	}
	_ = l.out.Flush()
	_ = l.file.Close()
	l.file, l.out = nil, nil
}
