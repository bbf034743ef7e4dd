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
)

// Log writes events as JSON lines into numbered segment files and keeps the
// last of them. It is best effort: no step fails because a line could not be
// written. The zero values of its limits mean 8 MiB and 8 segments.
type Log struct {
	Dir     string // made when it is not there
	Size    int64  // bytes after which a new segment begins
	Keep    int    // segments that are kept, the current one included
	file    *os.File
	out     *bufio.Writer
	written int64
	number  int
}

// Follow writes everything from s until ctx is done or the stream ends, then
// what is still ready. It returns the first error of writing; nil at the end.
func (l *Log) Follow(ctx context.Context, s *Subscription) error {
	defer l.close()
	for {
		e, err := s.Next(ctx)
		for err == nil {
			if err := l.write(e); err != nil {
				return err
			}
			next, ok := s.Ready()
			if !ok {
				break
			}
			e = next
		}
		if l.out != nil {
			if err := l.out.Flush(); err != nil {
				return fmt.Errorf("event log: %w", err)
			}
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return l.rest(s)
		}
	}
}

// rest writes what is ready after the end.
func (l *Log) rest(s *Subscription) error {
	for {
		e, ok := s.Ready()
		if !ok {
			return nil
		}
		if err := l.write(e); err != nil {
			return err
		}
	}
}

func (l *Log) write(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	size := l.Size
	if size <= 0 {
		size = 8 << 20
	}
	if l.file == nil || l.written > 0 && l.written+int64(len(line)) >= size {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("event log: %w", err)
		}
	}
	n, err := l.out.Write(append(line, '\n'))
	l.written += int64(n)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// rotate begins the segment after the newest there is, and removes the oldest.
func (l *Log) rotate() error {
	l.close()
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	names, err := Segments(l.Dir)
	if err != nil {
		return err
	}
	if l.number == 0 && len(names) > 0 {
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
