// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
)

// quota is the room of the members of tests: what the suite writes, and little more to fill.
const quota = "67108864"

// rig opens stores on a cluster, each by its own way to the members.
type rig struct {
	*etcdtest.Cluster

	mu     sync.Mutex // guards routes
	routes map[state.Store]*etcdtest.Route
}

func newRig(t *testing.T) *rig {
	t.Helper()
	peertest.Need(t, "etcd")
	return &rig{Cluster: etcdtest.Start(t, "--quota-backend-bytes="+quota), routes: map[state.Store]*etcdtest.Route{}}
}

// config is of a state whose name is that of a folder.
func (r *rig) config(dir string, endpoints []string) Config {
	sum := sha256.Sum256([]byte(dir))
	return Config{Endpoints: endpoints, Prefix: "/ironrail/" + hex.EncodeToString(sum[:8]), CA: r.CA, Cert: r.Cert, Key: r.Key}
}

func (r *rig) open(t *testing.T, dir string) state.Store {
	t.Helper()
	way := r.Route(t)
	s, err := Open(t.Context(), r.config(dir, way.Endpoints))
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.routes[s] = way
	return s
}

// beOwner makes a store the owner.
func beOwner(t *testing.T, s state.Store) state.Fence {
	t.Helper()
	f, err := s.Claim(t.Context(), "owner")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (r *rig) route(s state.Store) *etcdtest.Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[s]
}

// client is one of the test itself.
func (r *rig) client(t *testing.T) *clientv3.Client {
	t.Helper()
	config := r.config("", r.Endpoints())
	trust, err := tlsOf(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(config, trust)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// awaitNoOwner waits until the lease of the owner has run out in etcd.
func (r *rig) awaitNoOwner(t *testing.T, k keys) {
	t.Helper()
	c := r.client(t)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		resp, err := c.Get(t.Context(), k.owner())
		if err == nil && len(resp.Kvs) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the lease of a lost owner does not run out: %v", err)
		}
	}
}

func (r *rig) compact(t *testing.T) {
	t.Helper()
	c := r.client(t)
	resp, err := c.Get(t.Context(), "nothing")
	if err == nil {
		_, err = c.Compact(t.Context(), resp.Header.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// leader is the number of the member that leads the others.
func (r *rig) leader(t *testing.T) int {
	t.Helper()
	for i, e := range r.Endpoints() {
		resp, err := r.client(t).Status(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Leader == resp.Header.MemberId {
			return i
		}
	}
	t.Fatal("no member leads the others")
	return 0
}

// fill takes all room of the members, and returns what gives it back.
func (r *rig) fill(t *testing.T) (more func()) {
	t.Helper()
	c, block := r.client(t), strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		if _, err := c.Put(t.Context(), "/ballast/"+string(rune('a'+i%26))+string(rune('a'+i/26)), block); err != nil {
			if errkind.Of(explain("fill", err)) != errkind.Interrupted {
				t.Fatal(err)
			}
			break
		}
	}
	return func() {
		if _, err := c.Delete(t.Context(), "/ballast/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		r.compact(t)
		for _, e := range r.Endpoints() {
			if _, err := c.Defragment(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPeerEtcdStore: the store on three real members keeps the contract, also while they
// are cut off, full, slow, or compact what is being read.
func TestPeerEtcdStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	statetest.Run(t, statetest.Harness{
		Open: r.open,
		EndLease: func(t *testing.T, s state.Store) {
			r.route(s).Cut(true)
			r.awaitNoOwner(t, s.(*Store).keys)
		},
		CutOff: func(_ *testing.T, s state.Store, when statetest.Moment) func() {
			if when == statetest.BeforeCommit {
				r.route(s).Cut(true)
				return func() { r.route(s).Cut(false) }
			}
			r.route(s).Mute(true)
			return func() { r.route(s).Mute(false) }
		},
		FillDisk: func(t *testing.T, _ string, s state.Store) func() state.Store {
			more := r.fill(t)
			return func() state.Store { more(); return s }
		},
		SlowDown: func(t *testing.T, _ state.Store) {
			leader := r.leader(t)
			r.Stop(leader)
			t.Cleanup(func() { r.Continue(leader); r.Await(leader) })
		},
		Compact: func(t *testing.T, _ state.Store) { r.compact(t) },
		Twin: func(t *testing.T, dir string, s state.Store) state.Store {
			twin := r.open(t, dir).(*Store)
			t.Cleanup(func() { _ = twin.client.Close() }) // its lease is that of s
			twin.own = s.(*Store).owned()
			return twin
		},
	})
}
