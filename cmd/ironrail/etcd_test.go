// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/keys"
)

// etcdController is one of two controllers of the tiny site, whose state is in etcd.
type etcdController struct {
	dir   string
	route *etcdtest.Route
}

// newEtcdController makes a controller whose files have the state block of docs/controllers.md.
func newEtcdController(t *testing.T, cluster *etcdtest.Cluster) etcdController {
	t.Helper()
	c := etcdController{t.TempDir(), cluster.Route(t)}
	page, err := os.ReadFile("../../docs/controllers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```hcl\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("docs/controllers.md shows no state block")
	}
	for old, new := range map[string]string{"https://10.20.0.11:2379": c.route.Endpoints[0], "https://10.20.0.12:2379": c.route.Endpoints[1], "https://10.20.0.13:2379": c.route.Endpoints[2],
		"/etc/ironrail/etcd-ca.pem": cluster.CA, "/etc/ironrail/etcd.pem": cluster.Cert, "/etc/ironrail/etcd.key": cluster.Key} {
		if !strings.Contains(block, old) {
			t.Fatalf("the block of docs/controllers.md has no %s", old)
		}
		block = strings.Replace(block, old, new, 1)
	}
	site, err := os.ReadFile("testdata/site.hcl")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "site.hcl"), append(site, block...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a command on the controller and returns what it printed.
func (c etcdController) run(t *testing.T, code int, args ...string) (out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr, environ: os.LookupEnv, now: time.Now}
	if got := a.run(t.Context(), append([]string{"-C", c.dir}, args...)); got != code {
		t.Fatalf("%v ends with %d, want %d: %s%s", args, got, code, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// TestPeerControllers: the commands of two controllers on one state in etcd, as
// docs/controllers.md has them.
func TestPeerControllers(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t)
	a, b := newEtcdController(t, cluster), newEtcdController(t, cluster)
	a.run(t, 0, "check")
	a.run(t, 0, "plan")
	a.run(t, 0, "hold", "n1", "--reason", "riser")
	if out, said := b.run(t, 0, "status"); !strings.Contains(out, "riser") || said != "" {
		t.Errorf("status of the other one: %s%s", out, said)
	}
	if out, _ := b.run(t, 0, "why", "n1"); !strings.Contains(out, "riser") {
		t.Errorf("why of the other one: %s", out)
	}
	if _, err := os.Stat(filepath.Join(b.dir, provision.StateFolder)); err == nil {
		t.Error("looking made a state folder")
	}
	b.run(t, 0, "release", "n1")
	if out, _ := a.run(t, 0, "status"); strings.Contains(out, "riser") {
		t.Errorf("status after the release: %s", out)
	}
	b.run(t, 0, "report")
	a.run(t, 0, "events")

	_, end := served(t, a.dir, "--listen", "127.0.0.1:0", "--boot", "never")
	host, _ := os.Hostname()
	if _, said := b.run(t, exitOwned, "hold", "n2"); !strings.Contains(said, "in use by serve (pid ") || !strings.Contains(said, " on "+host) {
		t.Errorf("a hold beside the owner: %s", said)
	}
	if _, said := b.run(t, exitOwned, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(said, "in use by serve (pid ") {
		t.Errorf("a second serve: %s", said)
	}
	a.run(t, 0, "hold", "n2", "--reason", "fan")
	if out, said := b.run(t, 0, "status"); !strings.Contains(out, "fan") || !strings.Contains(said, "note: the state belongs to serve (pid ") {
		t.Errorf("status beside the owner: %s%s", out, said)
	}
	if out, _ := b.run(t, 0, "state", "show", "node/n2"); !strings.Contains(out, `"fan"`) {
		t.Errorf("what the state has of a node, beside the owner: %s", out)
	}
	b.route.Cut(true)
	if out, said := b.run(t, 0, "status"); !strings.Contains(out, "fan") || !strings.Contains(said, "warning: etcd does not answer") {
		t.Errorf("status without etcd: %s%s", out, said)
	}
	b.run(t, 1, "hold", "n1")
	b.route.Cut(false)

	copyKeys(t, a, b)
	stop := b.standBy(t)
	lost := a.lose(t, end)
	t.Logf("serve that is cut off ends after %.1f s", lost.Seconds())
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := control.NewClient(filepath.Join(b.dir, provision.StateFolder)).Hold(t.Context(), "n1", control.HoldRequest{By: "test", Reason: "taken over"})
		if err == nil { // who answers is the owner
			break
		}
		if time.Since(began) > 35*time.Second {
			t.Fatalf("the standby does not take over: %v", err)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("the standby that has taken over ends with %d", code)
	}
	a.route.Cut(false)
	if out, _ := a.run(t, 0, "status"); !strings.Contains(out, "taken over") {
		t.Errorf("status of the lost one: %s", out)
	}
	if _, err := os.Stat(filepath.Join(a.dir, provision.StateFolder, "state.db")); err != nil {
		t.Error(err)
	}
}

// copyKeys copies the keys of one controller to another.
func copyKeys(t *testing.T, from, to etcdController) {
	t.Helper()
	at := func(c etcdController) string { return filepath.Join(c.dir, provision.StateFolder, keys.Folder) }
	if err := os.RemoveAll(at(to)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(at(to), os.DirFS(at(from))); err != nil {
		t.Fatal(err)
	}
	for _, name := range keys.ListFiles() {
		if err := os.Chmod(filepath.Join(at(to), name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// standBy runs a serve that waits to be the owner until the function that it returns is
// called, which gives its exit code.
func (c etcdController) standBy(t *testing.T) (end func() int) {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	code := -1
	wg.Go(func() {
		a := &app{in: strings.NewReader(""), out: io.Discard, err: w, environ: os.LookupEnv, now: time.Now}
		code = a.run(ctx, []string{"-C", c.dir, "serve", "--standby", "--listen", "127.0.0.1:0", "--boot", "never"})
		_ = w.Close()
	})
	said := bufio.NewScanner(r)
	for said.Scan() && !strings.Contains(said.Text(), "serve is a standby") { // what comes before is a link that logs in
	}
	wg.Go(func() { _, _ = io.Copy(io.Discard, r) })
	return func() int { cancel(); wg.Wait(); return code }
}

// lose cuts a serve off from etcd, which ends by itself.
func (c etcdController) lose(t *testing.T, end func() int) time.Duration {
	t.Helper()
	began, code := time.Now(), make(chan int, 1)
	c.route.Cut(true)
	time.Sleep(8 * time.Second) // longer than it takes its lease for
	go func() { code <- end() }()
	if got := <-code; got != exitOwned {
		t.Errorf("serve without etcd ends with %d, want %d", got, exitOwned)
	}
	return time.Since(began)
}
