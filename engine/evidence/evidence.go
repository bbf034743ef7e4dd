// SPDX-License-Identifier: Apache-2.0

// Package evidence keeps the raw outputs of a site: each in a file that its SHA-256 names,
// and in a log whose entries are chained, so that no entry is changed, taken out or put in
// unseen once a report has named the last one.
//
// The log is the file "chain" of the folder, one JSON object a line. An entry's prev is the
// SHA-256 of the line before, without its line end: `sed -n 7p chain | tr -d '\n' |
// sha256sum` is what line 8 says.
package evidence

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/durable"
)

// logName is the file of the chain, in the folder of the evidence.
const logName = "chain"

// Entry is one line of the chain.
type Entry struct {
	Number int       `json:"number"` // from 1
	At     time.Time `json:"at"`
	Run    string    `json:"run,omitempty"`
	Step   string    `json:"step,omitempty"`
	// Ref is the reference that Add returned.
	Ref  string `json:"ref"`
	Size int64  `json:"size"` // bytes of the raw output
	// Found: the file lay in the folder when the chain began.
	Found bool   `json:"found,omitempty"`
	Prev  string `json:"prev"` // SHA-256 of the line before, hexadecimal; empty: it is the first
}

// Head is the end of a chain: what a report names, so that its signature holds the chain.
type Head struct {
	Entries int    `json:"entries"`
	SHA256  string `json:"sha256"` // of the last line, hexadecimal
}

// Folder is where evidence is kept. It is safe for concurrent use, by several processes
// as well.
type Folder struct {
	Path string

	mu   sync.Mutex // guards what follows
	head Head       // as it was written last
	size int64      // of the log then
}

// Add stores raw output by its content and enters it into the chain, both durably, and
// returns its reference. The same content is stored once and entered each time.
func (f *Folder) Add(e Entry, name string, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	e.Ref, e.Size = refOf(digest, name), int64(len(content))
	store := func() error { return storeContent(f.Path, digest, content) }
	// Before the chain begins nothing is stored without its lock: it would be taken for
	// what lay there.
	if f.hasBegun() {
		if err := store(); err != nil {
			return "", err
		}
		store = func() error { return nil }
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return e.Ref, f.enter(e, store)
}

func (f *Folder) hasBegun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head.Entries > 0
}

// enter stores what an entry is about and appends it to the log, under its lock.
func (f *Folder) enter(e Entry, store func() error) (err error) {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(f.Path, logName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // it gives back the lock too
	if err := unix.Flock(int(log.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if err := f.readEnd(log); err != nil {
		return err
	}
	all := []Entry{e}
	if f.head.Entries == 0 {
		older, err := listOlder(f.Path, e)
		if err != nil {
			return err
		}
		all = append(older, e)
	}
	if err := store(); err != nil {
		return err
	}
	head, text, err := f.head.follow(all)
	if err != nil {
		return err
	}
	if _, err = log.WriteAt(text, f.size); err == nil {
		err = log.Sync()
	}
	if err != nil {
		_ = log.Truncate(f.size) // a torn line is cut off by the next one too
		return err
	}
	if f.size == 0 {
		err = durable.SyncFolder(f.Path)
	}
	f.head, f.size = head, f.size+int64(len(text))
	return err
}

// readEnd learns the end of the log, if others have written to it, and cuts off a line
// that a crash tore: no report names what it was about.
func (f *Folder) readEnd(log *os.File) error {
	st, err := log.Stat()
	if err != nil || st.Size() == f.size {
		return err
	}
	head, size, err := scanEnd(io.NewSectionReader(log, 0, st.Size()))
	if err == nil && size < st.Size() {
		err = log.Truncate(size)
	}
	if err == nil {
		f.head, f.size = head, size
	}
	return err
}

// follow returns the lines of entries that follow a head, and the new head.
func (h Head) follow(list []Entry) (Head, []byte, error) {
	var text []byte
	for _, e := range list {
		e.Number, e.Prev = h.Entries+1, h.SHA256
		line, err := json.Marshal(e)
		if err != nil {
			return h, nil, err
		}
		h = Head{e.Number, digestOf(line)}
		text = append(append(text, line...), '\n')
	}
	return h, text, nil
}

// listOlder are entries of what lay in the folder before there was a chain: all but what
// the first entry is about.
func listOlder(dir string, first Entry) (list []Entry, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "??", "*"))
	for _, p := range paths {
		ref := refOf(filepath.Base(p), "")
		at, is := Path(dir, ref)
		if !is || at != p {
			continue
		}
		st, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if own, _ := Path(dir, first.Ref); own != p {
			list = append(list, Entry{At: st.ModTime().UTC().Truncate(time.Second), Ref: ref, Size: st.Size(), Found: true})
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Ref, b.Ref)) })
	return list, err
}

// digestOf is the SHA-256 of a line without its end.
func digestOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// String says of an entry what a reader looks for it by.
func (e Entry) String() string {
	return fmt.Sprintf("entry %d (%s, of %s at %s)", e.Number, e.Ref, cmp.Or(e.Step, "an earlier version"), e.At.UTC().Format(time.RFC3339))
}
