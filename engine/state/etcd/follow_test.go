// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/peertest"
)

// contents is all that a reader has of the kinds that writeSome writes.
func contents(t *testing.T, r state.Reader) string {
	t.Helper()
	var out strings.Builder
	err := r.Read(t.Context(), 1, func(rec state.Record) error {
		b, err := json.Marshal(rec)
		fmt.Fprintf(&out, "%s\n", b)
		return err
	})
	for _, kind := range []string{"thing", "plan", "fact"} {
		os, errs := r.Objects(t.Context(), kind)
		if err == nil {
			err = errs
		}
		for _, o := range os {
			fmt.Fprintf(&out, "%s %d %s\n", o.Key, o.Version, o.Value)
			ds, _ := state.NamedBlocks(o.Key, o.Value)
			for _, d := range ds {
				b, errs := r.Block(t.Context(), d)
				if err == nil {
					err = errs
				}
				fmt.Fprintf(&out, "  %s\n", b)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// writeSome changes a state in every way that there is.
func writeSome(t *testing.T, s *Store, f state.Fence, round string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	object := func(name, value string) state.Put {
		return state.Put{Key: state.Key{Kind: "thing", Name: name}, Want: state.Any, Value: json.RawMessage(value)}
	}
	for i := range 10 {
		_, err := s.Append(t.Context(), f, state.Batch{
			Records: []state.Record{state.Record{Kind: state.Note, Run: round}.With(i), state.Record{Kind: state.Note}.With("second")},
			Puts:    []state.Put{object(fmt.Sprint(i%3), fmt.Sprint(i)), object(round, `1`)},
		})
		must(err)
	}
	gone := object("0", "")
	gone.Value = nil
	ds, err := s.PutBlocks(t.Context(), f, []byte("block of "+round))
	must(err)
	_, err = s.Append(t.Context(), f, state.Batch{Puts: []state.Put{gone, {Key: state.PlanKey("p"), Want: state.Any,
		Value: fmt.Appendf(nil, `{"blocks":["%s"],"bytes":1,"parts":[1]}`, ds[0])}}})
	must(err)
	large, err := json.Marshal(strings.Repeat(round, 200<<10/len(round)))
	must(err)
	put, record, err := state.PutFact(t.Context(), s, f, fact.Fact{Key: fact.Key{Name: "links.up"}, Value: large})
	must(err)
	_, err = s.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.FactLearned, Data: record}}, Puts: []state.Put{put}})
	must(err)
	_, err = s.Sweep(t.Context(), f) // the block of the round before
	must(err)
}

// follow runs a follower until stop is called.
func follow(t *testing.T, f *Follower) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("following ends with %v", err)
		}
	}
}

// TestPeerFollow: a copy has what etcd has, after changes, after it stood still, after what it
// missed was compacted away; it is read without etcd, and stays where the state was replaced by another.
func TestPeerFollow(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	s := r.open(t, "x").(*Store)
	fence := beOwner(t, s)
	path := filepath.Join(t.TempDir(), "copy.db")
	reopen := func(s *Store, loads int) *Follower {
		t.Helper()
		f, err := OpenFollower(t.Context(), s, path)
		if err != nil {
			t.Fatal(err)
		}
		if f.loads != loads {
			t.Errorf("the whole state was read %d times, want %d", f.loads, loads)
		}
		return f
	}
	same := func(f *Follower, when string) {
		t.Helper()
		if err := f.Await(t.Context()); err != nil {
			t.Fatal(when, err)
		}
		_ = f.Read(func(copy state.Reader) error {
			if got, want := contents(t, copy), contents(t, s); got != want || copy.Info() != s.Info() {
				t.Errorf("%s: the copy has\n%s\nand etcd has\n%s", when, got, want)
			}
			return nil
		})
	}
	writeSome(t, s, fence, "before")
	f := reopen(s, 1)
	same(f, "loaded")
	stop := follow(t, f)
	writeSome(t, s, fence, "followed")
	same(f, "followed")
	if _, err := s.Claim(t.Context(), "owner again"); err != nil {
		t.Fatal(err)
	}
	fence.Number++
	same(f, "claimed")
	stop()

	writeSome(t, s, fence, "missed")
	stop = follow(t, f)
	same(f, "continued")
	stop()
	if f.loads != 1 {
		t.Errorf("the whole state was read %d times though nothing was compacted", f.loads)
	}

	writeSome(t, s, fence, "compacted")
	r.compact(t)
	stop = follow(t, f)
	same(f, "compacted")
	stop()
	if f.loads != 2 {
		t.Errorf("the whole state was read %d times, want once more", f.loads)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	f = reopen(s, 0) // it continues where it stood
	writeSome(t, s, fence, "reopened")
	stop = follow(t, f)
	same(f, "reopened")
	stop()
	want := contents(t, s)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := r.client(t).Delete(t.Context(), s.keys.prefix+"/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	checkCopy(t, path, want)
	other := r.open(t, "x").(*Store)
	defer other.Close()
	if _, err := OpenFollower(t.Context(), other, path); errkind.Of(err) != errkind.Conflict {
		t.Errorf("a copy of another state: %v", err)
	}
	checkCopy(t, path, want)
}

// checkCopy: a copy is a sound state file that is read without etcd, and written by nobody
// else.
func checkCopy(t *testing.T, path, want string) {
	t.Helper()
	b, err := state.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		t.Errorf("check: %v", err)
	}
	if got := contents(t, b); got != want {
		t.Errorf("the copy has\n%s\nwant\n%s", got, want)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(path); errkind.Of(err) != errkind.Refused {
		t.Errorf("a copy is opened as an original: %v", err)
	}
	if _, err := state.Compact(t.Context(), path, 1, false); errkind.Of(err) != errkind.Refused {
		t.Errorf("a copy is compacted as an original: %v", err)
	}
	own := filepath.Join(t.TempDir(), "own.db")
	o, err := state.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	_ = o.Close()
	if _, err := state.OpenMirror(own); errkind.Of(err) != errkind.Refused {
		t.Errorf("a state of its own is opened as a copy: %v", err)
	}
}

// TestPeerFollowCut: while etcd is out of reach a copy is read as it was, and it continues
// afterwards.
func TestPeerFollowCut(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	writer, reader := r.open(t, "x").(*Store), r.open(t, "x").(*Store)
	fence := beOwner(t, writer)
	writeSome(t, writer, fence, "before")
	was := contents(t, writer)
	f, err := OpenFollower(t.Context(), reader, filepath.Join(t.TempDir(), "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	stop := follow(t, f)
	r.route(reader).Cut(true)
	writeSome(t, writer, fence, "meanwhile")
	ctx, cancel := context.WithTimeout(t.Context(), retryPause)
	defer cancel()
	if err := f.Await(ctx); err == nil {
		t.Error("a copy that is cut off says that it is up to date")
	}
	_ = f.Read(func(copy state.Reader) error {
		if got := contents(t, copy); got != was {
			t.Errorf("cut off, the copy has\n%s\nwant\n%s", got, was)
		}
		return nil
	})
	r.route(reader).Cut(false)
	if err := f.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = f.Read(func(copy state.Reader) error {
		if got, want := contents(t, copy), contents(t, writer); !slices.Equal(strings.Split(got, "\n"), strings.Split(want, "\n")) {
			t.Errorf("afterwards the copy has\n%s\nwant\n%s", got, want)
		}
		return nil
	})
	stop()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPeerFollowFrom: a copy that is damaged, or whose revision has another content in etcd
// than it had, as after a snapshot was put back, is made anew.
func TestPeerFollowFrom(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	s := r.open(t, "x").(*Store)
	fence := beOwner(t, s)
	writeSome(t, s, fence, "before")
	want := contents(t, s)
	path := filepath.Join(t.TempDir(), "copy.db")
	spoil := func(at func(*position)) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			m, err := state.OpenMirror(path)
			if err != nil {
				t.Fatal(err)
			}
			p := positionOf(m.Position())
			at(&p)
			if err := errors.Join(m.Apply(state.Change{Position: p.String()}), m.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(*testing.T)
		loads int
	}{
		{"there is none", func(*testing.T) {}, 1},
		{"it is as it was", spoil(func(*position) {}), 0},
		{"another head", spoil(func(p *position) { p.head = strings.Replace(p.head, `"fence":1`, `"fence":2`, 1) }), 1},
		{"another cluster", spoil(func(p *position) { p.cluster++ }), 1},
		{"a later revision", spoil(func(p *position) { p.revision += 1000 }), 1},
		{"no position", spoil(func(p *position) { p.revision = 0 }), 1},
		{"it is damaged", func(t *testing.T) {
			t.Helper()
			if err := os.WriteFile(path, []byte("no state"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		c.spoil(t)
		f, err := OpenFollower(t.Context(), s, path)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_ = f.Read(func(copy state.Reader) error {
			if got := contents(t, copy); got != want || f.loads != c.loads {
				t.Errorf("%s: the whole state was read %d times, want %d; the copy has\n%s\nwant\n%s", c.name, f.loads, c.loads, got, want)
			}
			return nil
		})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPeerFollowRemoved: where the state is removed from etcd, a copy that follows it says so
// and stays as it was.
func TestPeerFollowRemoved(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	s := r.open(t, "x").(*Store)
	fence := beOwner(t, s)
	writeSome(t, s, fence, "before")
	want := contents(t, s)
	path := filepath.Join(t.TempDir(), "copy.db")
	f, err := OpenFollower(t.Context(), s, path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Run(t.Context()) }()
	if _, err := r.client(t).Delete(t.Context(), s.keys.prefix+"/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if errkind.Of(err) != errkind.Corrupt {
			t.Errorf("following a state that was removed ends with %v", err)
		}
	case <-time.After(takeoverTime):
		t.Fatal("nobody notices that the state was removed")
	}
	r.compact(t)
	if err := f.Run(t.Context()); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("following a state that was removed long ago ends with %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	checkCopy(t, path, want)
}
