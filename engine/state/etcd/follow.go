// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Follower keeps a local copy of the state up to date by watching etcd: what reads much
// reads the copy, also while no majority of the members answers.
type Follower struct {
	store *Store
	path  string

	swap sync.RWMutex // held for writing while the copy is replaced; guards copy
	copy *state.Mirror

	head string // text of the head that the copy has; owned by OpenFollower, then by Run

	mu      sync.Mutex    // guards what follows
	at      int64         // revision that the copy has
	changed chan struct{} // closed when at rises
	loads   int           // how often the whole state was read
}

// position is where a copy stands: its cluster, revision and head, and when it was known to
// have all that etcd had. No two writes leave the same head, so that revisions of a snapshot
// that was put back are not taken for those that the copy has.
type position struct {
	cluster  uint64
	revision int64 // 0: nowhere
	at       time.Time
	head     string
}

func (p position) String() string {
	return fmt.Sprintf("%x %d %d %s", p.cluster, p.revision, p.at.Unix(), p.head)
}

// positionOf reads what String wrote; the zero position when it is not that.
func positionOf(text string) (p position) {
	parts := strings.SplitN(text, " ", 4)
	if len(parts) != 4 {
		return position{}
	}
	var at int64
	if _, err := fmt.Sscanf(strings.Join(parts[:3], " "), "%x %d %d", &p.cluster, &p.revision, &at); err != nil {
		return position{}
	}
	p.at, p.head = time.Unix(at, 0), parts[3]
	return p
}

// OpenFollower opens the copy at path, or reads the whole state into a new one when there
// is none, or when it is damaged, or cannot be followed from where it stands. The store is
// to stay open. Run keeps the copy up to date. The error is of kind conflict, and the copy
// stays, when it is of another state, or of a newer one.
func OpenFollower(ctx context.Context, s *Store, path string) (*Follower, error) {
	f := &Follower{store: s, path: path, changed: make(chan struct{})}
	m, err := state.OpenMirror(path)
	switch {
	case err == nil:
		f.copy = m
	case errors.Is(err, os.ErrNotExist), errkind.Of(err) == errkind.Corrupt:
		err = nil
	default:
		return nil, err
	}
	stands := false
	if f.copy != nil {
		switch is := m.Reader().Info(); {
		case is.Lineage != s.info.Lineage:
			err = copyError{otherState(s, path, is.Lineage)}
		case is == s.info:
			stands, err = f.stands(ctx)
		}
	}
	if err == nil && !stands {
		err = f.load(ctx)
	}
	if err != nil {
		return nil, errors.Join(explainFollow(err), f.Close())
	}
	return f, nil
}

// explainFollow says what an error of etcd means; one of the copy says it itself.
func explainFollow(err error) error {
	if own, ok := errors.AsType[copyError](err); ok {
		return own.error
	}
	return explain("follow", err)
}

// stands reports whether etcd had at the copy's revision what the copy has, and still knows
// it, and takes the revision over: the copy can be followed from there.
func (f *Follower) stands(ctx context.Context) (bool, error) {
	p := positionOf(f.copy.Position())
	if p.revision == 0 { // it was never whole
		return false, nil
	}
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return f.store.client.Get(ctx, f.store.keys.head(), clientv3.WithRev(p.revision))
	})
	switch {
	case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, rpctypes.ErrFutureRev):
		return false, nil
	case err != nil:
		return false, err
	case resp.Header.ClusterId != p.cluster, len(resp.Kvs) != 1, string(resp.Kvs[0].Value) != p.head:
		return false, nil
	}
	f.head = p.head
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = p.revision
	return true, nil
}

// Read gives the copy to f: it stays as it is, or is added to, but is not replaced
// meanwhile.
func (f *Follower) Read(read func(state.Reader) error) error {
	f.swap.RLock()
	defer f.swap.RUnlock()
	return read(f.copy.Reader())
}

// Snapshot writes the copy to w as a state file, once it has all that was written before
// the call.
func (f *Follower) Snapshot(ctx context.Context, w io.Writer) error {
	if err := f.Await(ctx); err != nil {
		return err
	}
	f.swap.RLock()
	defer f.swap.RUnlock()
	return f.copy.Snapshot(ctx, w)
}

// Close gives the copy back. Run has ended.
func (f *Follower) Close() error {
	f.swap.Lock()
	defer f.swap.Unlock()
	if f.copy == nil {
		return nil
	}
	return f.copy.Close()
}

// Await returns once the copy has all that was written before the call.
func (f *Follower) Await(ctx context.Context) error {
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return f.store.client.Get(ctx, f.store.keys.head())
	})
	if err != nil {
		return explain("follow", err)
	}
	if len(resp.Kvs) != 1 {
		return f.store.damaged(errors.New("its head is not there"))
	}
	for { // every append writes the head
		f.mu.Lock()
		at, changed := f.at, f.changed
		f.mu.Unlock()
		if at >= resp.Kvs[0].ModRevision {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// copyError is of the copy, or of what etcd has: another try has the same result.
type copyError struct{ error }

// Unwrap returns the error itself.
func (e copyError) Unwrap() error { return e.error }

// Refresh brings the copy up to date, which takes a moment where it was followed before, and
// notes the time. Run is not called meanwhile.
func (f *Follower) Refresh(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	var ran error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stop() // an error ends the wait
		ran = f.Run(following)
	}()
	asked := time.Now()
	err := f.Await(following)
	stop()
	<-ended
	if ran != nil {
		return ran
	}
	if err != nil {
		return err
	}
	p := positionOf(f.copy.Position())
	p.at = asked
	return f.copy.Apply(state.Change{Position: p.String()})
}

// Run follows until ctx ends, and returns nil then. It waits while etcd does not answer. An
// error is of the copy, or of damage, also where the state was removed: the copy stays as it
// was and is not followed any more.
func (f *Follower) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.follow(ctx)
		_, isOwn := errors.AsType[copyError](err)
		if isOwn || err != nil && ctx.Err() == nil && !isPassing(err) {
			return explainFollow(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
	return nil
}

// follow watches until that ends; what cannot be watched is read anew.
func (f *Follower) follow(ctx context.Context) error {
	stands, err := f.stands(ctx)
	if err == nil && stands {
		err = f.watch(ctx)
	}
	if err == nil && !stands || errors.Is(err, rpctypes.ErrCompacted) {
		err = f.load(ctx)
	}
	return err
}

// watch takes changes over until the watch ends.
func (f *Follower) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	f.mu.Lock()
	from := f.at + 1
	f.mu.Unlock()
	for resp := range f.store.client.Watch(ctx, f.store.keys.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(from)) {
		if err := resp.Err(); err != nil {
			return err
		}
		if len(resp.Events) == 0 {
			continue
		}
		if err := f.takeAll(resp.Header.ClusterId, resp.Events); err != nil {
			return copyError{err}
		}
	}
	return nil
}

// takeAll takes over what a watch reports, which never has a revision in part. Where blocks
// are removed it goes by revisions: one may come again in the next.
func (f *Follower) takeAll(cluster uint64, events []*clientv3.Event) error {
	var c state.Change
	for i, e := range events {
		add := f.addPut
		if e.Type == clientv3.EventTypeDelete {
			add = f.addDeleted
		}
		if err := add(&c, e.Kv); err != nil {
			return f.store.damaged(err)
		}
		last := i+1 == len(events)
		if !last && (len(c.Dropped) == 0 || events[i+1].Kv.ModRevision == e.Kv.ModRevision) {
			continue
		}
		c.Position = position{cluster, e.Kv.ModRevision, time.Now(), f.head}.String()
		if err := f.take(c, e.Kv.ModRevision); err != nil {
			return err
		}
		c = state.Change{}
	}
	return nil
}

// take applies a change, after which the copy has a revision.
func (f *Follower) take(c state.Change, at int64) error {
	f.swap.RLock()
	err := f.copy.Apply(c)
	f.swap.RUnlock()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = at
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// addPut adds a key that was written.
func (f *Follower) addPut(c *state.Change, kv *mvccpb.KeyValue) error {
	k, key := f.store.keys, string(kv.Key)
	switch part, rest := k.split(key); part {
	case "head":
		e, err := readHead(kv.Value)
		if err != nil {
			return err
		}
		c.Fence, c.Version, f.head = e.Fence, e.Version, e.text
	case "about":
		var is about
		if err := json.Unmarshal(kv.Value, &is); err != nil || is.Lineage != f.store.info.Lineage {
			return errors.New("it is another state now")
		}
	case "r":
		r, err := k.openRecord(key, kv.Value)
		if err != nil {
			return err
		}
		c.Records = append(c.Records, r)
	case "o":
		o, err := k.openObject(keyOf(rest), kv.Value)
		if err != nil {
			return err
		}
		c.Objects = append(c.Objects, o)
	case "b":
		if digestOf(rest) != state.DigestOf(kv.Value) {
			return fmt.Errorf("block %s has another content", rest)
		}
		c.Blocks = append(c.Blocks, kv.Value)
	}
	return nil
}

// addDeleted adds a key that was deleted, of those that are deleted while there is a state.
func (f *Follower) addDeleted(c *state.Change, kv *mvccpb.KeyValue) error {
	switch part, rest := f.store.keys.split(string(kv.Key)); part {
	case "o":
		c.Objects = append(c.Objects, state.Object{Key: keyOf(rest)})
	case "b":
		c.Dropped = append(c.Dropped, digestOf(rest))
	case "about", "head", "r":
		return fmt.Errorf("%s was removed", kv.Key)
	}
	return nil
}

// load reads the whole state at one revision, by pages, into a new copy that then takes the
// place of the old one.
func (f *Follower) load(ctx context.Context) error {
	if err := f.checkHistory(ctx); err != nil {
		return err
	}
	fresh := f.path + ".new"
	m, at, err := f.loadInto(ctx, fresh)
	if err != nil {
		_ = os.Remove(fresh)
		return err
	}
	f.swap.Lock()
	defer f.swap.Unlock()
	err = m.Close()
	if f.copy != nil {
		err = errors.Join(err, f.copy.Close())
	}
	if err = errors.Join(err, os.Rename(fresh, f.path)); err != nil {
		return copyError{fmt.Errorf("state: mirror: %w", err)}
	}
	if f.copy, err = state.OpenMirror(f.path); err != nil {
		return copyError{err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = at
	f.loads++
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

func (f *Follower) loadInto(ctx context.Context, path string) (m *state.Mirror, at int64, err error) {
	for reloads := 0; ; reloads++ {
		if m, err = state.CreateMirror(path, f.store.info); err != nil {
			return nil, 0, copyError{err}
		}
		if at, err = f.copyPages(ctx, m); err == nil {
			return m, at, nil
		}
		err = errors.Join(err, m.Close())
		if !errors.Is(err, rpctypes.ErrCompacted) || reloads >= mostReloads {
			return nil, 0, err
		}
	}
}

// copyPages copies every key under the prefix at one revision. Objects come before records,
// so that the position is written with the last page only.
func (f *Follower) copyPages(ctx context.Context, m *state.Mirror) (at int64, err error) {
	start := f.store.keys.prefix + "/"
	p := f.store.pagesOf(start, clientv3.GetPrefixRangeEnd(start))
	f.head = ""
	for more := true; more; {
		var kvs []*mvccpb.KeyValue
		if kvs, more, err = p.next(ctx); err != nil {
			return 0, err
		}
		var c state.Change
		for _, kv := range kvs {
			if err := f.addPut(&c, kv); err != nil {
				return 0, copyError{f.store.damaged(err)}
			}
		}
		if !more && f.head == "" { // the state was removed, and the copy before it stays
			return 0, copyError{f.store.damaged(errors.New("its head is not there"))}
		}
		if !more {
			c.Position = position{p.cluster, p.revision, time.Now(), f.head}.String()
		}
		if err := m.Apply(c); err != nil {
			return 0, copyError{err}
		}
	}
	return p.revision, nil
}

// split cuts a key into what it is of, and the rest.
func (k keys) split(key string) (part, rest string) {
	part, rest, _ = strings.Cut(strings.TrimPrefix(key, k.prefix+"/"), "/")
	return part, rest
}

// keyOf reads kind/name.
func keyOf(text string) state.Key {
	kind, name, _ := strings.Cut(text, "/")
	return state.Key{Kind: kind, Name: name}
}

func digestOf(digits string) state.Digest { return state.Digest("sha256:" + digits) }
