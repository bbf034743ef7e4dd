// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/internal/errkind"
)

// mostLine is more than any entry takes, in bytes.
const mostLine = 64 << 10

// ReadHead reads the end of a folder's chain. Without a chain the head is zero. A chain
// that is broken has its head all the same, and an error that says where.
func ReadHead(dir string) (Head, error) {
	log, err := os.Open(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, nil
	}
	if err != nil {
		return Head{}, err
	}
	defer log.Close()
	head, _, err := scanEnd(log)
	if err != nil {
		return Head{}, err
	}
	_, err = walk(dir, head, func(Entry) error { return nil })
	return head, err
}

// scanEnd returns the head of a log and how many bytes its whole lines have.
func scanEnd(r io.Reader) (head Head, size int64, err error) {
	lines := bufio.NewReaderSize(r, mostLine)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // what has no end is torn
			return head, size, nil
		}
		if err != nil {
			return head, size, err
		}
		size += int64(len(line))
		head = Head{head.Entries + 1, digestOf(bytes.TrimSuffix(line, []byte("\n")))}
	}
}

// walk reads a chain up to a head, shows each entry, and says at which one the chain
// breaks first. It returns how many entries are right.
func walk(dir string, head Head, see func(Entry) error) (right int, err error) {
	path := filepath.Join(dir, logName)
	log, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("chain of evidence: %w", err)
	}
	defer log.Close()
	broken := func(format string, values ...any) error {
		return errkind.New(errkind.Corrupt, "%s: the chain of evidence breaks at line %d: %w", path, right+1, fmt.Errorf(format, values...))
	}
	lines := bufio.NewReaderSize(log, mostLine)
	for prev := ""; right < head.Entries; right++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return right, broken("it ends there, and had %d lines", head.Entries)
		}
		if err != nil {
			return right, err
		}
		var e Entry
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch err := json.Unmarshal(line, &e); {
		case err != nil:
			return right, broken("it is no entry: %v", err)
		case e.Number != right+1:
			return right, broken("entry %d stands there: lines were taken out, put in or moved", e.Number)
		case e.Prev != prev:
			return right, broken("%s follows a line with the SHA-256 %q, and the line before has %q: that was changed", e, e.Prev, prev)
		}
		if err := see(e); err != nil {
			return right, broken("%s: %w", e, err)
		}
		prev = digestOf(line)
		if right+1 == head.Entries && prev != head.SHA256 {
			return right, broken("%s has the SHA-256 %s, and the report names %s: that entry, or all up to it, were written anew", e, prev, head.SHA256)
		}
	}
	return right, nil
}

// Verify reads the chain of a folder up to the head that a report names, and every raw
// output in it. It returns how many entries there are. The error says the first place
// that is not as it was. refs are what the report names itself: each must be in
// that part of the chain. Raw outputs that are in the chain and not among refs may be
// missing, as where only those of a report were handed over.
func Verify(dir string, head Head, refs []string) (missing int, err error) {
	named := map[string]bool{}
	for _, ref := range refs {
		path, _ := Path(dir, ref)
		named[path] = true
	}
	seen := map[string]bool{} // by file: the same content is read once
	_, err = walk(dir, head, func(e Entry) error {
		path, _ := Path(dir, e.Ref)
		if seen[path] {
			return nil
		}
		seen[path] = true
		err := verifyContent(dir, e.Ref)
		if errors.Is(err, fs.ErrNotExist) && !named[path] {
			missing++
			return nil
		}
		return err
	})
	if err != nil {
		return missing, err
	}
	for _, ref := range refs {
		if path, _ := Path(dir, ref); !seen[path] {
			return missing, errkind.New(errkind.Corrupt, "evidence %s is not in the first %d entries of the chain", ref, head.Entries)
		}
	}
	return missing, nil
}

// VerifyNamed reads the raw outputs that a report without a chain names.
func VerifyNamed(dir string, refs []string) error {
	for _, ref := range refs {
		if err := verifyContent(dir, ref); err != nil {
			return err
		}
	}
	return nil
}
