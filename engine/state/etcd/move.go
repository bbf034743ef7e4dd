// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// A state that is being filled or that was moved away says so in about, which everybody
// reads first. It needs a reader that nobody is, for versions that do not know these words.
const neverRead = math.MaxInt32

// passable refuses a state that nobody may open.
func (a about) passable(k keys) error {
	switch {
	case a.Filling != "":
		return errkind.New(errkind.Refused, "state: etcd has a state under %s that is not whole: a move or a restore into it has not ended", k.prefix).
			Do("Wait until it ends. If its process died, run it again: it begins anew.")
	case a.Moved != "":
		return errMoved(a.Moved)
	}
	return nil
}

// CopyTo reads the state at one revision, by pages.
func (s *Store) CopyTo(ctx context.Context, path string) (p state.Contents, err error) {
	part := path + ".part"
	defer os.Remove(part)
	f := &Follower{store: s}
	m, _, err := f.loadInto(ctx, part)
	if err != nil {
		return p, explainFollow(err)
	}
	last, err := m.Reader().(*state.Bolt).Last(ctx)
	if err = errors.Join(err, m.Close()); err == nil {
		err = s.checkHead(f.head, last)
	}
	if err == nil {
		err = state.MakeOriginal(part)
	}
	if err != nil {
		return p, err
	}
	return state.InstallFile(ctx, part, path, "")
}

// checkHead compares the counters of a head with the last record that was read beside it.
func (s *Store) checkHead(text string, last uint64) error {
	h, err := readHead([]byte(text))
	if err == nil && h.Seq != last {
		err = fmt.Errorf("its head says that record %d is the last, and that is %d", h.Seq, last)
	}
	if err != nil {
		return s.damaged(err)
	}
	return nil
}

// fill makes the state under a prefix where nothing is, from a state file: the same, number for
// number. The error is of kind refused where there is one. What died in the middle of it is
// begun anew.
func fill(ctx context.Context, c Config, from *state.Bolt) error {
	s, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer s.client.Close()
	is := from.Info()
	lock, err := s.beginFilling(ctx, is)
	if err != nil {
		return err
	}
	last, err := from.Last(ctx)
	if err != nil {
		return err
	}
	var end state.Change
	err = from.EachChange(ctx, func(x state.Change) error {
		end = x
		ops, err := s.opsOf(x)
		if err != nil {
			return err
		}
		return s.fillWith(ctx, lock, ops)
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(about{Format: is.Format, Reader: is.Format, Lineage: is.Lineage, Created: is.Created, First: is.First})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return s.fillWith(ctx, lock, []clientv3.Op{clientv3.OpPut(s.keys.about(), string(text)),
		clientv3.OpPut(s.keys.head(), head{Fence: end.Fence, Seq: last, Version: end.Version}.String())})
}

// beginFilling writes about as that of a state that is being filled, and returns its text.
func (s *Store) beginFilling(ctx context.Context, is state.Info) (string, error) {
	text, err := json.Marshal(about{Format: is.Format, Reader: neverRead, Lineage: is.Lineage, Created: is.Created, First: is.First, Filling: state.NewAppendID()})
	if err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	under := s.keys.prefix + "/"
	for {
		resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(under), "=", 0).WithPrefix()).Then(clientv3.OpPut(s.keys.about(), string(text))).
				Else(clientv3.OpGet(s.keys.about())).Commit()
		})
		if err != nil {
			return "", explain("begin", err)
		}
		if resp.Succeeded {
			return string(text), nil
		}
		var was about
		kvs := resp.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 1 && string(kvs[0].Value) == string(text) {
			return string(text), nil // a first try, whose answer was lost
		}
		if len(kvs) != 1 || json.Unmarshal(kvs[0].Value, &was) != nil || was.Filling == "" && (was.Moved == "" || was.Lineage != is.Lineage) {
			return "", errkind.New(errkind.Refused, "state: etcd has something under %s already", s.keys.prefix).
				Do("Name a prefix under which nothing is, in `state` of the site's files. If what is there is of no use any more: etcdctl del --prefix " + under)
		}
		if err := s.fillWith(ctx, string(kvs[0].Value), []clientv3.Op{clientv3.OpDelete(under, clientv3.WithPrefix())}); err != nil {
			return "", err
		}
	}
}

// fillWith writes while about is as this process left it. It can be repeated.
func (s *Store) fillWith(ctx context.Context, lock string, ops []clientv3.Op) error {
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(clientv3.Compare(clientv3.Value(s.keys.about()), "=", lock)).Then(ops...).Else(clientv3.OpGet(s.keys.about())).Commit()
	})
	switch {
	case err != nil:
		return explain("fill", err)
	case resp.Succeeded:
		return nil
	}
	kvs, is := resp.Responses[0].GetResponseRange().Kvs, ""
	for _, kv := range kvs {
		is = string(kv.Value)
	}
	if ends := len(ops) > 0 && ops[0].IsDelete(); ends && is == "" || is != "" && is == lastPut(ops, s.keys.about()) {
		return nil // done by a try whose answer was lost
	}
	return errkind.New(errkind.Conflict, "state: another process fills etcd under %s", s.keys.prefix).Do("Let only one of them do it.")
}

// lastPut is what ops put at a key; "": nothing.
func lastPut(ops []clientv3.Op, key string) (value string) {
	for _, op := range ops {
		if op.IsPut() && string(op.KeyBytes()) == key {
			value = string(op.ValueBytes())
		}
	}
	return value
}

// opsOf are the writes of a change.
func (s *Store) opsOf(c state.Change) (ops []clientv3.Op, err error) {
	for _, b := range c.Blocks {
		ops = append(ops, clientv3.OpPut(s.keys.block(hexOf(state.DigestOf(b))), string(b)))
	}
	for _, o := range c.Objects {
		ops = append(ops, clientv3.OpPut(s.keys.object(o.Key), s.keys.sealObject(o.Key, o.Version, o.Value)))
	}
	for _, r := range c.Records {
		text, err := s.keys.sealRecord(r)
		if err != nil {
			return nil, err
		}
		ops = append(ops, clientv3.OpPut(s.keys.record(r.Seq), text))
	}
	return ops, nil
}

// Restore makes the state of a file that of a prefix under which nothing is; the file becomes a
// copy of it. The error is of kind refused where etcd has a state, or had one that was moved.
func Restore(ctx context.Context, c Config, path string) error {
	is, err := aboutUnder(ctx, c)
	switch {
	case err != nil:
		return err
	case is.Moved != "":
		return errMoved(is.Moved)
	case is.Lineage != "" && is.Filling == "":
		return errkind.New(errkind.Refused, "state: etcd has a state under %s already, and a copy is put back only where nothing is", c.Prefix).
			Do("Name another prefix in state \"etcd\" of the site's files; or, where what is there is of no use any more: etcdctl del --prefix " + c.Prefix + "/")
	}
	kept := path + ".moved"
	if _, err = MoveIn(ctx, c, path, kept); err != nil {
		return err
	}
	return os.Remove(kept)
}

// MoveIn moves the state of a file into etcd, under a prefix where nothing is. It is compared there
// before the file becomes a copy of it, which nothing writes any more; the file as it was stays
// beside it under the name kept. A move that died is continued.
func MoveIn(ctx context.Context, c Config, path, kept string) (p state.Contents, err error) {
	if err := migrated(path); err != nil {
		return p, err
	}
	from, err := state.OpenReadOnly(path)
	if err != nil {
		return p, err
	}
	defer from.Close()
	if err := from.Check(); err != nil {
		return p, err
	}
	is, err := aboutUnder(ctx, c)
	if err != nil {
		return p, err
	}
	if is.Filling != "" || is.Moved != "" || is.Lineage != from.Info().Lineage { // else an earlier try came so far
		if err := fill(ctx, c, from); err != nil {
			return p, err
		}
	}
	s, err := OpenExisting(ctx, c)
	if err != nil {
		return p, err
	}
	defer s.Close()
	there := path + ".moving"
	if p, err = s.CopyTo(ctx, there); err != nil {
		return p, err
	}
	defer os.Remove(there)
	if err := state.CompareFiles(ctx, path, there); err != nil {
		return p, err
	}
	if err := from.Close(); err != nil {
		return p, err
	}
	for _, file := range []string{there, path} { // path before it is kept: whatever fails now, etcd has the state alone
		if err := state.MakeMirror(file); err != nil {
			return p, err
		}
	}
	return state.InstallFile(ctx, there, path, kept)
}

// migrated brings a file to the format of this version, and refuses one that is a copy.
func migrated(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	s, err := state.Open(path)
	if err != nil {
		return err
	}
	return s.Close()
}

// aboutUnder is what a state says about itself, whole or not; the zero about where there is
// none.
func aboutUnder(ctx context.Context, c Config) (is about, err error) {
	s, err := connect(ctx, c)
	if err != nil {
		return is, err
	}
	defer s.client.Close()
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) { return s.client.Get(ctx, s.keys.about()) })
	if err != nil {
		return is, explain("open", err)
	}
	for _, kv := range resp.Kvs {
		if err := json.Unmarshal(kv.Value, &is); err != nil {
			return is, s.damaged(fmt.Errorf("%s: %w", s.keys.about(), err))
		}
	}
	return is, nil
}

// MoveOut moves the state from etcd to the file at path, which replaces the copy there. What
// is in etcd stays, marked as moved to where, so that no controller opens it any more. The
// error is of kind refused while there is an owner. A move that died is continued.
func MoveOut(ctx context.Context, c Config, path, kept, where string) (p state.Contents, err error) {
	next := path + ".moving"
	s, err := OpenExisting(ctx, c)
	if err != nil {
		is, errAbout := aboutUnder(ctx, c)
		if digest, errNext := digestOfFile(ctx, next); errNext != nil || errAbout != nil || is.Moved == "" || is.Digest != digest {
			return p, err
		}
		return state.InstallFile(ctx, next, path, kept)
	}
	defer s.Close()
	if _, err := s.Claim(ctx, "state move"); err != nil {
		return p, err
	}
	if p, err = s.CopyTo(ctx, next); err != nil {
		return p, err
	}
	digest, err := digestOfFile(ctx, next)
	if err != nil {
		return p, err
	}
	if err := s.markMoved(ctx, where, digest); err != nil {
		return p, err
	}
	return state.InstallFile(ctx, next, path, kept)
}

// digestOfFile is the Digest of a state file.
func digestOfFile(ctx context.Context, path string) (string, error) {
	b, err := state.OpenReadOnly(path)
	if err != nil {
		return "", err
	}
	defer b.Close()
	return b.Digest(ctx)
}

// markMoved says in about and in the head that the state is elsewhere: who opens it reads the one,
// and who has it open the other. The digest is that of the file that it is in now: what a move that
// died at another time left is not taken for it. The caller is the owner.
func (s *Store) markMoved(ctx context.Context, where, digest string) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	own := s.owned()
	if own == nil || s.last == nil {
		return fencedError()
	}
	text, err := json.Marshal(about{Format: s.info.Format, Reader: neverRead, Lineage: s.info.Lineage, Created: s.info.Created, First: s.info.First, Moved: where, Digest: digest})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	last := s.last.head
	last.Moved = where
	resp, err := retry(ctx, leaseTTL, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(append(own.holds(s.keys), clientv3.Compare(clientv3.Value(s.keys.head()), "=", s.last.text))...).
			Then(clientv3.OpPut(s.keys.about(), string(text)), clientv3.OpPut(s.keys.head(), last.String())).Else(clientv3.OpGet(s.keys.head())).Commit()
	})
	if err != nil {
		return explain("move", err)
	}
	if kvs := resp.Responses[0].GetResponseRange(); !resp.Succeeded && (len(kvs.Kvs) != 1 || string(kvs.Kvs[0].Value) != last.String()) {
		return fencedError()
	}
	return nil
}

func errMoved(where string) error {
	return errkind.New(errkind.Refused, "state: it is no longer in etcd, but moved: %s", where).
		Do("Use it where it is now, and let `state` in the site's files say so; `ironrail state move` moves it back.")
}
