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
