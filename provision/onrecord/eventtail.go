// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
)

// EventTail reads the events that are appended to the segment files in a state folder, by whichever
// process. It belongs to one goroutine.
type EventTail struct {
	folder string
	name   string // of the segment that was read last; empty: of none
	at     int64  // where the next event begins in it
}

// OpenEventTail begins behind the newest event that is there.
func OpenEventTail(folder string) (*EventTail, error) {
	t := &EventTail{folder: folder}
	names, err := event.Segments(filepath.Join(folder, "events"))
	if err != nil || len(names) == 0 {
		return t, err
	}
	t.name = names[len(names)-1]
	if err := t.readOn(nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return t, nil
}

// Read gives the events since the last Read to f, oldest first. Those of segments that were removed
// since then are missing. An event that is half written is read the next time.
func (t *EventTail) Read(f func(event.Event)) error {
	names, err := event.Segments(filepath.Join(t.folder, "events"))
	if err != nil {
		return err
	}
	for _, name := range names[max(0, slices.Index(names, t.name)):] {
		if name != t.name {
			t.name, t.at = name, 0
		}
		if err := t.readOn(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readOn reads the rest of a segment; where f is nil it passes over it. A line that is no event is left out, as are those that are too long.
func (t *EventTail) readOn(f func(event.Event)) error {
	file, err := os.Open(t.name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < t.at {
		t.at = 0 // it is another file
	}
	if _, err := file.Seek(t.at, io.SeekStart); err != nil {
		return err
	}
	lines, part := bufio.NewReaderSize(file, maxLine), false
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		t.at += int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			part = true
			continue
		}
		if err != nil {
			return err
		}
		var e event.Event
		if f != nil && !part && json.Unmarshal(line, &e) == nil {
			f(e)
		}
		part = false
	}
}
