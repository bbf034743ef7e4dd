// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"3.4.0": true, "3.4.23": true, "3.10.1": true, "4.0.0-rc.1": true, "3.3.27": false, "2.3.8": false, "3": false, "": false, "x.y": false} {
		if got := isRecent(version); got != want {
			t.Errorf("version %q: %t", version, got)
		}
	}
}

// TestConfig: what cannot be connected with is refused before anything is sent.
func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]Config{
		"no endpoint":        {Prefix: "/a"},
		"no slash":           {Endpoints: []string{"https://127.0.0.1:2379"}, Prefix: "a"},
		"a slash at the end": {Endpoints: []string{"https://127.0.0.1:2379"}, Prefix: "/a/"},
		"no authority":       {Endpoints: []string{"https://127.0.0.1:2379"}, Prefix: "/a", CA: filepath.Join(dir, "none")},
	} {
		if _, err := Open(t.Context(), c); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPeerRefusals: what is wrong with a cluster, a certificate or a state is said by its
// kind, and nothing is written.
func TestPeerRefusals(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	check := func(name string, c Config, want errkind.Kind) {
		t.Helper()
		s, err := Open(t.Context(), c)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || errkind.Of(err) != want {
			t.Errorf("%s: %v, want kind %v", name, err, want)
		}
	}
	good := r.config("refusals", r.Endpoints())
	other := good
	other.CA, other.Cert, other.Key = r.Other()
	check("members of an unknown authority", other, errkind.Auth)
	other.CA = good.CA
	check("a certificate that the members refuse", other, errkind.Auth)
	gone := good
	gone.Endpoints = []string{"https://127.0.0.1:1"}
	check("nobody", gone, errkind.Unreachable)
	both := good
	both.Endpoints = []string{r.Endpoints()[0], r.Another(t).Endpoints()[0]}
	check("members of two clusters", both, errkind.Conflict)
	most := good
	most.Endpoints = append([]string{gone.Endpoints[0]}, r.Endpoints()...)
	if s, err := Open(t.Context(), most); err != nil {
		t.Errorf("a member that is gone: %v", err)
	} else {
		_ = s.Close()
	}

	c, k := r.client(t), keys{good.Prefix}
	for text, want := range map[string]errkind.Kind{
		`{"format":99,"minimum_reader":99}`: errkind.Unsupported,
		`{`:                                 errkind.Corrupt,
		`{"format":0,"minimum_reader":0}`:   errkind.Corrupt,
	} {
		if _, err := c.Put(t.Context(), k.about(), text); err != nil {
			t.Fatal(err)
		}
		check(text, good, want)
	}
}

// TestPeerOneOwner: a claim is refused while another controller lives, and says who.
func TestPeerOneOwner(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	a, b := r.open(t, "x"), r.open(t, "x")
	f, err := a.Claim(t.Context(), "controller a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Claim(t.Context(), "controller b")
	if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "controller a") {
		t.Errorf("beside an owner: %v", err)
	}
	if _, err := b.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.Note}}}); !errors.Is(err, state.ErrFenced) {
		t.Errorf("with the fence of another: %v", err)
	}
	until, ends := a.Lease(f).Until()
	if left := time.Until(until); !ends || left <= 0 || left > leaseTTL-leaseMargin {
		t.Errorf("the lease lives for %v", left)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := b.Claim(t.Context(), "controller b") // it was given back: nobody waits
	if err != nil || next.Number != f.Number+1 {
		t.Errorf("after it: %v %v", next, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPeerDamage: a value that is not as it was written is found, and not used.
func TestPeerDamage(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	s := r.open(t, "x").(*Store)
	defer s.Close()
	f := beOwner(t, s)
	key := state.Key{Kind: "thing", Name: "a"}
	for i := range 3 {
		if _, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.Note}}, Puts: []state.Put{{Key: key, Want: state.Any, Value: json.RawMessage(strconv.Itoa(i))}}}); err != nil {
			t.Fatal(err)
		}
	}
	c := r.client(t)
	flip := func(name string) {
		t.Helper()
		resp, err := c.Get(t.Context(), name)
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatal(name, err)
		}
		v := slices.Clone(resp.Kvs[0].Value)
		v[len(v)-1] ^= 1
		if _, err := c.Put(t.Context(), name, string(v)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() error { return s.Read(t.Context(), 1, func(state.Record) error { return nil }) }
	if err := read(); err != nil {
		t.Fatal(err)
	}
	flip(s.keys.object(key))
	if _, _, err := s.Object(t.Context(), key); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("a damaged object: %v", err)
	}
	if _, err := s.Objects(t.Context(), key.Kind); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("a damaged object of a kind: %v", err)
	}
	if _, err := c.Delete(t.Context(), s.keys.record(2)); err != nil {
		t.Fatal(err)
	}
	if err := read(); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "record 3 is where 2 is due") {
		t.Errorf("a record that is missing: %v", err)
	}
	flip(s.keys.record(1))
	if err := read(); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("a damaged record: %v", err)
	}
	if _, err := c.Delete(t.Context(), s.keys.head()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.Note}}}); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("without a head: %v", err)
	}
}
