// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// Snapshot writes the whole state file, as it stands now, to w. Appends go on
// meanwhile.
func (b *Bolt) Snapshot(ctx context.Context, w io.Writer) error {
	return b.view(ctx, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Copier is a store that can be copied whole, whatever it lies in. Those that keep the state of a
// site are: a file and etcd.
type Copier interface {
	Store
	// CopyTo makes a state file at path of all that the store holds at one moment: the same
	// records, objects, blocks, numbers, versions and fence. It is whole and durable, and was
	// read back with every checksum, or it is not there. A file that is there is replaced.
	// Appends continue meanwhile.
	CopyTo(ctx context.Context, path string) (Contents, error)
}

var _ Copier = (*Bolt)(nil)

// CopyTo copies the file.
func (b *Bolt) CopyTo(ctx context.Context, path string) (Contents, error) {
	return SaveCopy(ctx, path, func(w io.Writer) error { return b.Snapshot(ctx, w) })
}

// Contents is what a state file holds, in numbers.
type Contents struct {
	Info
	Bytes   int64             `json:"bytes"`
	Records uint64            `json:"records"`
	Last    uint64            `json:"last"` // number of the newest record
	Objects map[string]uint64 `json:"objects"`
}

// CountContents counts what the file holds.
func (b *Bolt) CountContents(ctx context.Context) (p Contents, err error) {
	p.Info, p.Objects = b.info, map[string]uint64{}
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		p.Bytes, p.Last = tx.Size(), tx.Bucket(journalBucket).Sequence()
		p.Records = p.Last + 1 - b.info.First
		c := tx.Bucket(objectBucket).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			if _, ok := isBlock(k); !ok {
				p.Objects[string(kindOf(k))]++
			}
		}
		return nil
	})
	return p, err
}

// SaveCopy makes the file at path from what write writes: whole and read back with
// every checksum, or not at all. A file that is there is replaced.
func SaveCopy(ctx context.Context, path string, write func(io.Writer) error) (Contents, error) {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return Contents{}, fmt.Errorf("state: copy: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	var p Contents
	if err == nil {
		p, err = VerifyFile(ctx, part)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(part)
		return p, fmt.Errorf("state: copy to %s: %w", path, FullDisk(err))
	}
	return p, nil
}

// VerifyFile reads all of a state file, with every checksum, and returns what it
// holds. The error is of kind mismatch when it is damaged.
func VerifyFile(ctx context.Context, path string) (Contents, error) {
	b, err := OpenReadOnly(path)
	if err != nil {
		return Contents{}, err
	}
	defer b.Close()
	p, err := b.CountContents(ctx)
	if err == nil {
		err = b.Check()
	}
	return p, err
}

// Newer is what a state has that an earlier copy of it has not.
type Newer struct {
	Records uint64   `json:"records"`           // written after the copy
	Nodes   []string `json:"nodes,omitempty"`   // that stand otherwise now
	Unknown string   `json:"unknown,omitempty"` // why the two could not be compared
}

// CompareCopy says what is lost when the copy takes the place of the state at path.
// The error is of kind refused when they are not of one site's state.
func CompareCopy(ctx context.Context, path, copied string) (Newer, error) {
	from, err := OpenReadOnly(copied)
	if err != nil {
		return Newer{}, err
	}
	defer from.Close()
	now, err := OpenReadOnly(path)
	if errors.Is(err, os.ErrNotExist) {
		return Newer{Unknown: "there is no state now"}, nil
	}
	if errkind.Of(err) == errkind.Corrupt {
		return Newer{Unknown: err.Error()}, nil
	}
	if err != nil {
		return Newer{}, err
	}
	defer now.Close()
	if a, b := now.info.Lineage, from.info.Lineage; a != b {
		return Newer{}, errkind.New(errkind.Refused, "state: %s is of another state (lineage %s, not %s)", copied, b, a).
			Do("Take a copy of this site's state. If this one is meant, move the present file away first.")
	}
	was, err := from.CountContents(ctx)
	if err != nil {
		return Newer{}, err
	}
	is, err := now.CountContents(ctx)
	if err != nil {
		return Newer{}, err
	}
	n := Newer{Records: is.Last - min(was.Last, is.Last)}
	n.Nodes, err = compareNodes(ctx, now, from)
	if errkind.Of(err) == errkind.Corrupt {
		n.Unknown, err = err.Error(), nil
	}
	return n, err
}

// compareNodes lists the nodes that two stores do not know alike.
func compareNodes(ctx context.Context, a, b *Bolt) (names []string, err error) {
	version := map[string]uint64{}
	for _, s := range []*Bolt{a, b} {
		nodes, err := s.Objects(ctx, string(subject.Node))
		if err != nil {
			return nil, err
		}
		for _, o := range nodes {
			if v, ok := version[o.Key.Name]; ok && v == o.Version {
				delete(version, o.Key.Name)
				continue
			}
			version[o.Key.Name] = o.Version
		}
	}
	return slices.Sorted(maps.Keys(version)), nil
}

// restored is added to the versions of a state that was put back: a plan that was
// made from what came after the copy never fits it by chance.
const restored = 1 << 32

// Restoration says that the state was put back from a copy. What was done after the copy
// was made is not known to it.
type Restoration struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`   // name of the copy
	Record uint64    `json:"record"` // the last one of the copy
}

// LastRestoration is the key of the last Restoration.
var LastRestoration = Key{"restored", "last"}

// Restoring says how a copy is put back.
type Restoring struct {
	At time.Time
	// Void reports which objects are left out: what they say held at the moment of the
	// copy only.
	Void func(Key) bool
}

// RestoreCopy puts a copy in the place of the state at path, which nobody has open.
// The replaced file stays beside it, under the name that is returned ("" when there was
// none). What goes wrong leaves it as it was. The last run of the copy is marked as
// restored, and a Restoration is recorded.
func RestoreCopy(ctx context.Context, path, copied string, how Restoring) (kept string, err error) {
	if _, err := VerifyFile(ctx, copied); err != nil {
		return "", err
	}
	from, err := OpenReadOnly(copied)
	if err != nil {
		return "", err
	}
	defer from.Close()
	next := path + ".next"
	if err := from.rewrite(next, keep{versions: restored, change: markRestored,
		objects: func(key, _ []byte) bool {
			kind, name, _ := strings.Cut(string(key), "/")
			return !how.Void(Key{kind, name})
		}}); err != nil {
		return "", err
	}
	err = noteRestored(ctx, next, Restoration{At: how.At.UTC(), From: filepath.Base(copied)})
	if err == nil {
		_, err = VerifyFile(ctx, next)
	}
	if err != nil {
		_ = os.Remove(next)
		return "", err
	}
	kept = path + ".replaced-" + how.At.UTC().Format("20060102T150405")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		kept = ""
	}
	return kept, installFile(next, path, kept)
}

// noteRestored records in a new file that it was made from a copy.
func noteRestored(ctx context.Context, path string, r Restoration) (err error) {
	s, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := s.CountContents(ctx)
	if err != nil {
		return err
	}
	r.Record = p.Last
	f, err := s.Claim(ctx, "state restore")
	if err != nil {
		return err
	}
	put, err := PutOf(LastRestoration, r)
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, f, Batch{Records: []Record{Record{Kind: Note, Time: r.At}.With("restored from " + r.From)}, Puts: []Put{put}})
	return err
}

// markRestored changes the run that was started last, if it is that.
func markRestored(key, value []byte) ([]byte, error) {
	if string(key) != LastRun.String() {
		return value, nil
	}
	var r Run
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, err
	}
	r.Restored = true
	return json.Marshal(r)
}

// The automatic copies: one a day, the last few, of files that are copied in less
// than a second.
const (
	dailyKept  = 3
	dailyBytes = 64 << 20
)

// SaveDailyCopy copies the file of b to dir, once a day, and keeps the last three of such
// copies. A file above 64 MiB is left to the operator. It returns the copy's path, "" when
// none was made.
func SaveDailyCopy(ctx context.Context, b *Bolt, dir string, now time.Time) (string, error) {
	path := filepath.Join(dir, "daily-"+now.UTC().Format(time.DateOnly)+".db")
	p, err := b.CountContents(ctx)
	if err != nil || p.Bytes > dailyBytes || p.Last == 0 {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("state: copy: %w", err)
	}
	if _, err := b.CopyTo(ctx, path); err != nil {
		return "", err
	}
	names, err := filepath.Glob(filepath.Join(dir, "daily-*.db"))
	slices.Sort(names)
	for len(names) > dailyKept {
		_ = os.Remove(names[0])
		names = names[1:]
	}
	return path, err
}
