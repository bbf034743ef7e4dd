// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
	"github.com/ironrail/ironrail/provision"
)

// setPrefix has the site's files name another prefix in etcd.
func (c etcdController) setPrefix(t *testing.T, was, is string) {
	t.Helper()
	path := filepath.Join(c.dir, "site.hcl")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), was) {
		t.Fatalf("no %s: %v", was, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), was, is, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPeerStateInEtcd: a state in etcd is copied, checked and printed by either controller, put back
// where nothing is, and moved to a file and into etcd again.
func TestPeerStateInEtcd(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t)
	a, b := newEtcdController(t, cluster), newEtcdController(t, cluster)
	if _, said := a.run(t, 1, "state", "list"); !strings.Contains(said, "there is no state") {
		t.Errorf("before anything was done: %s", said)
	}
	a.run(t, 0, "hold", "n1", "--reason", "riser")
	copied := filepath.Join(t.TempDir(), "lab.db")
	b.run(t, 0, "state", "backup", copied) // of which nothing lies on b
	b.run(t, 0, "state", "check", copied)
	a.run(t, 0, "hold", "n2", "--reason", "gone")
	b.run(t, 0, "state", "rm", "node/n2", "--auto-approve")
	a.run(t, 0, "hold", "n2", "--reason", "fan")
	if out, _ := b.run(t, 0, "state", "check"); !strings.Contains(out, "Nothing is damaged") {
		t.Errorf("check: %s", out)
	}
	if out, _ := b.run(t, 0, "state", "export"); !strings.Contains(out, "riser") || !strings.Contains(out, "fan") {
		t.Errorf("export: %s", out)
	}
	if _, said := a.run(t, 1, "state", "restore", copied, "--auto-approve"); !strings.Contains(said, "has a state under") {
		t.Errorf("over a state: %s", said)
	}
	if _, said := a.run(t, 1, "state", "compact"); !strings.Contains(said, "copy of a state that several controllers share") {
		t.Errorf("compacted: %s", said)
	}
	a.setPrefix(t, "/ironrail/paris", "/ironrail/again")
	b.setPrefix(t, "/ironrail/paris", "/ironrail/again")
	_, said := a.run(t, 0, "state", "restore", copied, "--auto-approve")
	if kept, err := filepath.Glob(filepath.Join(a.dir, provision.StateFolder, "state.db.replaced-*")); err != nil || len(kept) != 1 || !strings.Contains(said, filepath.Base(kept[0])) {
		t.Errorf("what the copy of this controller had that was newer is not kept: %v, %v; %s", kept, err, said)
	}
	for _, c := range []etcdController{a, b} {
		if out, _ := c.run(t, 0, "status"); !strings.Contains(out, "riser") || strings.Contains(out, "fan") {
			t.Errorf("after the restore: %s", out)
		}
	}
	b.run(t, 0, "hold", "n2", "--reason", "psu")

	a.run(t, 0, "state", "move", "file", "--auto-approve")
	site := filepath.Join(a.dir, "site.hcl")
	with, err := os.ReadFile(site)
	if err != nil {
		t.Fatal(err)
	}
	without, _, _ := strings.Cut(string(with), "state \"etcd\"")
	if err := os.WriteFile(site, []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := a.run(t, 0, "status"); !strings.Contains(out, "riser") || !strings.Contains(out, "psu") {
		t.Errorf("from the file: %s", out)
	}
	if _, said := b.run(t, 1, "release", "n2"); !strings.Contains(said, "it is no longer in etcd") {
		t.Errorf("beside the file: %s", said)
	}
	a.run(t, 0, "release", "n2")
	if err := os.WriteFile(site, with, 0o600); err != nil {
		t.Fatal(err)
	}
	a.run(t, 0, "state", "move", "etcd", "--auto-approve")
	if out, _ := b.run(t, 0, "status"); !strings.Contains(out, "riser") || strings.Contains(out, "psu") {
		t.Errorf("in etcd again: %s", out)
	}
}
