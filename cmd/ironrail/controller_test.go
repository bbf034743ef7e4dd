// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/keys"
)

// TestControllerNeedsASharedState: a site whose state is a file gives its keys to no other.
func TestControllerNeedsASharedState(t *testing.T) {
	t.Parallel()
	c := etcdController{dir: tinySite(t)}
	key, said := c.run(t, 0, "controller", "key")
	if !strings.HasPrefix(key, "age1") || !strings.Contains(said, "made anew") {
		t.Errorf("key: %s%s", key, said)
	}
	if again, said := c.run(t, 0, "controller", "key"); again != key || strings.Contains(said, "made anew") {
		t.Errorf("key again: %s%s", again, said)
	}
	out := filepath.Join(c.dir, "head2.age")
	_, said = c.run(t, 1, "controller", "invite", "head2", "--to", strings.TrimSpace(key), "--out", out, "--auto-approve")
	if _, err := os.Stat(out); err == nil || !strings.Contains(said, "which no other shares") {
		t.Errorf("invited: %s", said)
	}
}

// TestPeerControllerJoin: a second controller gets the keys of a site whose state is in etcd by
// the commands of docs/controllers.md, also while serve owns the state on the first one.
func TestPeerControllerJoin(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t)
	a, b := newEtcdController(t, cluster), newEtcdController(t, cluster)
	a.run(t, 0, "state", "keys", "--new", "--auto-approve")
	key, _ := b.run(t, 0, "controller", "key")
	key = strings.TrimSpace(key)
	file := filepath.Join(t.TempDir(), "head2.age")
	invite := []string{"controller", "invite", "head2", "--to", key, "--out", file}
	if _, said := a.run(t, 1, invite...); !strings.Contains(said, "SHA256:") || !strings.Contains(said, "not a terminal") {
		t.Errorf("not approved: %s", said)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file before it was approved")
	}
	a.run(t, 0, append(invite, "--auto-approve")...)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, end := served(t, a.dir, "--listen", "127.0.0.1:0", "--boot", "never")
	if _, said := a.run(t, 0, append(invite, "--auto-approve")...); !strings.Contains(said, "for controller head2 alone") {
		t.Errorf("invited beside serve: %s", said)
	}
	second, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, said := b.run(t, exitOwned, append(invite, "--auto-approve")...); !strings.Contains(said, "in use by serve") {
		t.Errorf("invited by who does not own the state: %s", said)
	}
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, said := b.run(t, 1, "controller", "join", file); !strings.Contains(said, "not the last one") {
		t.Errorf("joined by an old file: %s", said)
	}
	if err := os.WriteFile(file, second, 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(t, 0, "controller", "join", file)
	for _, name := range keys.ListFiles() {
		from, err := os.ReadFile(filepath.Join(a.dir, provision.StateFolder, keys.Folder, name))
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.ReadFile(filepath.Join(b.dir, provision.StateFolder, keys.Folder, name))
		if err != nil || string(from) != string(to) {
			t.Errorf("%s is another one: %v", name, err)
		}
	}
	if code := end(); code != 0 {
		t.Errorf("serve ends with %d", code)
	}
	if out, _ := b.run(t, 0, "controller", "list"); !strings.Contains(out, "head2") || !strings.Contains(out, "keys of now, this controller") {
		t.Errorf("list: %s", out)
	}
	piped, _ := a.run(t, 0, "controller", "invite", "head2", "--to", key, "--out", "-", "--auto-approve")
	var said bytes.Buffer
	there := &app{in: strings.NewReader(piped), out: &said, err: &said, environ: os.LookupEnv, now: time.Now}
	if code := there.run(t.Context(), []string{"-C", b.dir, "controller", "join", "-"}); code != 0 || !strings.Contains(said.String(), "has these keys already") {
		t.Errorf("joined through a pipe: %d, %s", code, said.String())
	}
	b.run(t, 0, "plan")
	b.run(t, 0, "hold", "n1", "--reason", "riser")
	if out, _ := b.run(t, 0, "state", "keys"); strings.Count(out, "as recorded") != len(keys.ListFiles()) {
		t.Errorf("the keys of the second one: %s", out)
	}
	exported, _ := a.run(t, 0, "state", "export")
	for _, secret := range []string{string(first[:40]), string(second[:40]), "AGE-SECRET"} {
		if strings.Contains(exported, secret) {
			t.Errorf("etcd has %q", secret)
		}
	}
	if !strings.Contains(exported, key) {
		t.Error("etcd has not the public key of the second controller")
	}
}
