// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
	"github.com/ironrail/ironrail/inventory"
)

// controllers are two that share a state in a real etcd cluster, each with a way to it and what was
// said to who runs its commands.
type controllers struct {
	place [2]Place
	route [2]*etcdtest.Route
	said  [2]*strings.Builder
}

func newControllers(t *testing.T) controllers {
	t.Helper()
	cluster := etcdtest.Start(t)
	var c controllers
	for i := range c.place {
		c.route[i], c.said[i] = cluster.Route(t), &strings.Builder{}
		c.place[i] = Place{Folder: filepath.Join(t.TempDir(), "state"), Say: func(s string) { c.said[i].WriteString(s + "\n") }, Etcd: func() (*etcd.Config, error) {
			return EtcdOf(&inventory.Inventory{State: inventory.StateStore{Kind: "etcd", Endpoints: c.route[i].Endpoints, Prefix: "/ironrail/test",
				Authority: cluster.CA, Certificate: cluster.Cert, Key: cluster.Key}}), nil
		}}
		if err := os.MkdirAll(c.place[i].Folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c controllers) own(t *testing.T, i int) Owned {
	t.Helper()
	o, err := c.place[i].Own(t.Context(), "test", false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// read returns the value of an object as a controller reads it, and what was said meanwhile.
func (c controllers) read(t *testing.T, i int) (value, said string) {
	t.Helper()
	c.said[i].Reset()
	r, done, err := c.place[i].Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	o, _, err := r.Object(t.Context(), state.Key{Kind: "test", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Value), c.said[i].String()
}

func put(ctx context.Context, o Owned, value string) error {
	raw, err := json.Marshal(value)
	if err == nil {
		_, err = o.Store.Append(ctx, o.Fence, state.Batch{Puts: []state.Put{{Key: state.Key{Kind: "test", Name: "a"}, Want: state.Any, Value: raw}}})
	}
	return err
}

// TestPeerTwoControllers: one of two controllers owns the state, the other reads what it
// writes, also while etcd is away, and owns it afterwards.
func TestPeerTwoControllers(t *testing.T) {
	t.Parallel()
	c := newControllers(t)
	if v, said := c.read(t, 1); v != "" || said != "" {
		t.Fatalf("before there is a state: %q, %q", v, said)
	}
	if _, err := os.Stat(c.place[1].File()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("looking made a state: %v", err)
	}
	o := c.own(t, 0)
	if until, ends := o.Store.Lease(o.Fence).Until(); !ends || time.Until(until) > 6*time.Second {
		t.Errorf("the lease ends in %v: calls of %v that began before have no time", time.Until(until), longestCall)
	}
	if err := put(t.Context(), o, "one"); err != nil {
		t.Fatal(err)
	}
	v, said := c.read(t, 1)
	host, _ := os.Hostname()
	if v != `"one"` || !strings.Contains(said, "belongs to test (pid ") || !strings.Contains(said, " on "+host) {
		t.Errorf("beside an owner: %q, %q", v, said)
	}
	_, err := c.place[1].Own(t.Context(), "second", false, time.Now())
	if _, owned := errors.AsType[OwnedError](err); !owned || !strings.Contains(err.Error(), "in use by test (pid ") || !strings.Contains(errkind.Action(err), "within 35 seconds") {
		t.Errorf("a second owner: %v; %s", err, errkind.Action(err))
	}
	_, _, err = c.place[0].Read(t.Context())
	if _, owned := errors.AsType[OwnedError](err); !owned {
		t.Errorf("beside an owner on the same controller: %v", err)
	}
	if err := errors.Join(put(t.Context(), o, "two"), o.Close()); err != nil {
		t.Fatal(err)
	}
	if v, said := c.read(t, 1); v != `"two"` || said != "" {
		t.Errorf("after the owner: %q, %q", v, said)
	}
	c.cutOff(t)
	o = c.own(t, 1)
	if err := errors.Join(put(t.Context(), o, "three"), o.Close()); err != nil {
		t.Fatal(err)
	}
	if v, _ := c.read(t, 0); v != `"three"` {
		t.Errorf("after the second owner: %q", v)
	}
}

// cutOff: while etcd does not answer the second controller, what it reads is the copy, whose
// age is said. Two commands read at a time.
func (c controllers) cutOff(t *testing.T) {
	t.Helper()
	c.route[1].Cut(true)
	r, done, err := c.place[1].Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if v, said := c.read(t, 1); v != `"two"` || !strings.Contains(said, "warning: etcd does not answer") || !strings.Contains(said, "s ago.") {
		t.Errorf("while etcd is away: %q, %q", v, said)
	}
	if _, err := c.place[1].Own(t.Context(), "test", false, time.Now()); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("an owner while etcd is away: %v", err)
	}
	c.route[1].Cut(false)
	if v, _ := c.read(t, 1); v != `"two"` { // another command has the copy open
		t.Errorf("beside another reader: %q", v)
	}
	if r.Info().Lineage == "" {
		t.Error("the copy has no lineage")
	}
}

// TestPeerOtherPlace: a state of its own is not taken for a copy, nor a copy for a state.
func TestPeerOtherPlace(t *testing.T) {
	t.Parallel()
	c := newControllers(t)
	file := Place{Folder: c.place[0].Folder}
	o, err := file.Own(t.Context(), "test", false, time.Now())
	if err == nil {
		err = o.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.place[0].Own(t.Context(), "test", false, time.Now()); err == nil {
		t.Error("a state of its own was taken for a copy")
	}
	config, _ := c.place[1].Etcd()
	if _, err := etcd.OpenExisting(t.Context(), *config); !errors.Is(err, etcd.ErrNoState) {
		t.Errorf("a refused owner has made a state in etcd, where a move needs room: %v", err)
	}
	if err := c.own(t, 1).Close(); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]struct {
		place Place
		want  string
	}{
		"a state as a copy": {c.place[0], "a state of its own"},
		"a copy as a state": {Place{Folder: c.place[1].Folder}, "is a copy of a state"},
	} {
		if _, _, err := p.place.Read(t.Context()); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), p.want) {
			t.Errorf("read %s: %v", name, err)
		}
		if _, err := p.place.Own(t.Context(), "test", false, time.Now()); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), p.want) {
			t.Errorf("own %s: %v", name, err)
		}
	}
}

// TestPeerOtherState: a copy is what is left where etcd has lost the state, or has another one under
// the prefix that the files name now: it stays, and no state is made in its place.
func TestPeerOtherState(t *testing.T) {
	t.Parallel()
	c := newControllers(t)
	o := c.own(t, 0)
	if err := errors.Join(put(t.Context(), o, "one"), o.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range c.place {
		at, _ := c.place[i].Etcd()
		at.Prefix += "/other"
		c.place[i].Etcd = func() (*etcd.Config, error) { return at, nil }
	}
	c.keepsCopy(t, errkind.NotFound)
	config, _ := c.place[0].Etcd()
	if _, err := etcd.OpenExisting(t.Context(), *config); !errors.Is(err, etcd.ErrNoState) {
		t.Errorf("a state was made beside a copy of another: %v", err)
	}
	if err := c.own(t, 1).Close(); err != nil {
		t.Fatal(err)
	}
	c.keepsCopy(t, errkind.Conflict)
}

// keepsCopy: a controller whose copy is of another state refuses to read and to own this one.
func (c controllers) keepsCopy(t *testing.T, want errkind.Kind) {
	t.Helper()
	if _, _, err := c.place[0].Read(t.Context()); errkind.Of(err) != want {
		t.Errorf("read: %v, want kind %s", err, want)
	}
	o, err := c.place[0].Own(t.Context(), "test", false, time.Now())
	if err == nil {
		_ = o.Close()
	}
	if errkind.Of(err) != want || !strings.Contains(errkind.Action(err), c.place[0].File()) {
		t.Errorf("own: %v, want kind %s; %s", err, want, errkind.Action(err))
	}
	r, _, err := c.place[0].openCopy()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, _, err := r.Object(t.Context(), state.Key{Kind: "test", Name: "a"}); err != nil || string(got.Value) != `"one"` {
		t.Errorf("the copy has %q: %v", got.Value, err)
	}
}
