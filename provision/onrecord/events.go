// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
)

// maxLine bounds one event in a segment file, in bytes.
const maxLine = 1 << 20

// KeptEvents gives every event of the segment files in a state folder to f, oldest first,
// until f fails.
func KeptEvents(folder string, f func(event.Event) error) error {
	names, err := event.Segments(filepath.Join(folder, "events"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := readSegment(name, f); err != nil {
			return err
		}
	}
	return nil
}

// readSegment passes over lines that are torn: a process may have died in one.
// A segment that was rotated away since it was listed has no events.
func readSegment(name string, f func(event.Event) error) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		var e event.Event
		if json.Unmarshal(line, &e) == nil {
			if err := f(e); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull): // what is too long is no event
			return err
		}
	}
}

// keptEvidence is what the boot services saw of a node, and of clients that belong to
// nobody, in the last run whose events are kept.
func (s Site) keptEvidence(node string) ([]event.Event, error) {
	out := []event.Event{}
	err := KeptEvents(s.State, func(e event.Event) error {
		switch {
		case e.Type == event.RunStarted:
			out = out[:0]
		case e.Type == event.Evidence && (e.Node == node || e.Node == ""):
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// maxSegment bounds what is read of one segment, in bytes: a little more than event.Log
// writes by default.
const maxSegment = 16 << 20

// NewestEvents gives the events of the segment files in a state folder to f, newest first,
// until f returns false. A segment above 16 MiB is read from there.
func NewestEvents(folder string, f func(event.Event) bool) error {
	names, err := event.Segments(filepath.Join(folder, "events"))
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		text, err := readEnd(name, maxSegment)
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away meanwhile
		}
		if err != nil {
			return err
		}
		for len(text) > 0 {
			text = bytes.TrimSuffix(text, []byte("\n"))
			begin := bytes.LastIndexByte(text, '\n') + 1
			var e event.Event
			if json.Unmarshal(text[begin:], &e) == nil && !f(e) {
				return nil
			}
			text = text[:begin]
		}
	}
	return nil
}

// readEnd reads at most so many bytes of the end of a file.
func readEnd(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(max(0, info.Size()-most), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, most))
}
