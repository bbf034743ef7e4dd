// SPDX-License-Identifier: Apache-2.0

// Package page measures the web page of a site of 12,500 nodes: processor time and bytes of
// each page, and how often the site is read for them.
package page

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/examples/csv-12500/nodes"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/page"
	"github.com/ironrail/ironrail/web/view"
	"github.com/ironrail/ironrail/web/webtest"
)

// The site that is measured.
const (
	size    = 12_500
	small   = 1_250 // where it is shortened
	perRack = 8
	perNode = 10  // steps
	badOf   = 100 // one of so many nodes is quarantined
)

// hall is a site of 12,500 nodes with its state, and its page.
type hall struct {
	inv   *inventory.Inventory
	state string
	page  *page.Server
	now   *atomic.Int64 // nanoseconds
	loads *atomic.Int64 // how often the site's files were read
}

var (
	once sync.Once
	dir  string
	fail error
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// open serves the site; its folder is made once.
func open(t testing.TB) hall {
	t.Helper()
	once.Do(func() { dir, fail = build() })
	if fail != nil {
		t.Fatal(fail)
	}
	inv, err := webtest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := hall{inv: inv, state: filepath.Join(dir, provision.StateFolder), now: &atomic.Int64{}, loads: &atomic.Int64{}}
	h.now.Store(time.Now().UnixNano())
	h.page, err = page.New(page.Options{Keeper: &view.Keeper{Dir: dir, State: h.state, Version: "bench", Open: webtest.OpenSite, Now: func() time.Time { return time.Unix(0, h.now.Load()) },
		Load: func() (*inventory.Inventory, error) { h.loads.Add(1); return inv, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// sizeOf is how many nodes the site has.
func sizeOf() int {
	if testing.Short() {
		return small
	}
	return size
}

// build makes the folder: all nodes accepted but one in badOf, ten steps of each.
func build() (string, error) {
	dir, err := os.MkdirTemp("", "ironrail-bench")
	if err != nil {
		return dir, err
	}
	if err := webtest.Copy(dir, "../../examples/csv-12500"); err != nil {
		return dir, err
	}
	list, err := os.Create(filepath.Join(dir, "nodes.csv"))
	if err != nil {
		return dir, err
	}
	if err := nodes.Write(list, sizeOf()); err != nil {
		return dir, err
	}
	if err := list.Close(); err != nil {
		return dir, err
	}
	inv, err := webtest.Load(dir)
	if err != nil {
		return dir, err
	}
	memory, ctx := state.NewMemory(), context.Background()
	fence, err := memory.Claim(ctx, "bench")
	if err != nil {
		return dir, err
	}
	for i, n := range inv.Nodes {
		b, err := batch(i, n.Name)
		if err == nil {
			_, err = memory.Append(ctx, fence, b)
		}
		if err != nil {
			return dir, err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, provision.StateFolder), 0o700); err != nil {
		return dir, err
	}
	return dir, memory.SaveAs(ctx, provision.StatePath(dir))
}

// batch is what the state has of one node.
func batch(i int, name string) (b state.Batch, err error) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	put := func(k state.Key, v any) {
		p, perr := state.PutOf(k, v)
		if err == nil {
			err = perr
		}
		b.Puts = append(b.Puts, p)
	}
	n := state.Node{Name: name, Run: "run-1", Accepted: i%badOf != 0, AcceptedAt: at}
	if !n.Accepted {
		n.Quarantine = &state.Quarantine{At: at, Run: "run-1", Finding: stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(name), Part: "GPU"}},
			Cause: fmt.Sprintf("GPU %d is not on the PCI bus", i%8), Action: "Replace the board.", Step: name + "/install.inspect"}}
	}
	put(state.NodeKey(name), n)
	for s := range perNode {
		id := plan.StepID(fmt.Sprintf("%s/stage.step-%d", name, s))
		begin := at.Add(time.Duration(s) * time.Minute)
		step := state.Step{ID: id, State: state.StepIsDone, Plan: "plan-1", Run: "run-1", Started: begin, Ended: begin.Add(30 * time.Second)}
		put(state.StepKey(id), step)
		b.Records = append(b.Records, state.Record{Time: step.Ended, Run: "run-1", Kind: state.StepDone, Step: string(id), Subject: subject.OfNode(name)}.With(step))
	}
	return b, err
}

// get asks for a page.
func (h hall) get(t testing.TB, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.page.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1"+path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%.300s", path, w.Code, err, body)
	}
	return string(body)
}

// measured are the pages that are measured, with the most bytes that each may have.
var measured = []struct {
	name, path string
	most       int
}{
	{"overview", "/", 700 << 10},
	{"nodes", "/nodes", 64 << 10},
	{"last nodes", "/nodes?page=125", 64 << 10},
	{"quarantined", "/nodes?state=quarantined", 96 << 10},
	{"node", "/node/n00101", 64 << 10},
	{"rack", "/rack/r0001", 32 << 10},
	{"findings", "/findings", 96 << 10},
	{"fabric", "/fabric/compute", 128 << 10},
	{"search", "/search?q=n001", 32 << 10},
}

// TestLongPages: of 12,500 nodes each page has as many rows as it should, and bounded bytes;
// all of them together read the site once, until it has changed.
func TestLongPages(t *testing.T) {
	h := open(t)
	for range 2 {
		for _, p := range measured {
			if body := h.get(t, p.path); len(body) > p.most {
				t.Errorf("%s has %d bytes, and may have %d", p.name, len(body), p.most)
			}
		}
	}
	size := sizeOf()
	bad := (size + badOf - 1) / badOf
	for path, want := range map[string]int{"/": len(h.inv.Racks), "/nodes": view.NodesPerPage, "/nodes?page=12": view.NodesPerPage, "/nodes?state=quarantined": min(bad, view.NodesPerPage),
		"/search?q=n0": view.MostHits, "/rack/r0001": 2 * perRack} {
		row := `<a class="go" href="/node/`
		switch path {
		case "/":
			row = `class="tile go`
		case "/rack/r0001":
			row = `href="/node/`
		}
		if rows := strings.Count(h.get(t, path), row); rows != want {
			t.Errorf("%s has %d rows, not %d", path, rows, want)
		}
	}
	var all view.Nodes
	if err := json.Unmarshal([]byte(h.get(t, "/api/v1/nodes?page=3")), &all); err != nil || all.All != size || all.Number != 3 || all.Pages != (size+view.NodesPerPage-1)/view.NodesPerPage {
		t.Errorf("page %d of %d with %d in all: %v", all.Number, all.Pages, all.All, err)
	}
	first, err := h.page.Keeper.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Generation != 1 || h.loads.Load() != 1 {
		t.Errorf("for all that the state was read %d times and the files %d times", first.Generation, h.loads.Load())
	}
	m := onrecord.Marker{Place: onrecord.Place{Folder: h.state}, Command: "bench", Now: time.Now}
	if err := m.Hold(t.Context(), h.inv.Nodes[1].Name, "ann", ""); err != nil {
		t.Fatal(err)
	}
	h.now.Add(int64(time.Hour))
	h.get(t, "/")
	second, err := h.page.Keeper.Current(t.Context())
	if err != nil || second.Generation != 2 || len(second.ChangesSince(first).Nodes) != 1 {
		t.Errorf("after one change: %d readings, %d nodes changed, %v", second.Generation, len(second.ChangesSince(first).Nodes), err)
	}
	if err := m.Release(t.Context(), h.inv.Nodes[1].Name, "ann"); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkPages is processor time, bytes, and bytes as they travel, of each page of a site
// that has not changed.
func BenchmarkPages(b *testing.B) {
	h := open(b)
	for _, p := range measured {
		b.Run(strings.ReplaceAll(p.name, " ", "-"), func(b *testing.B) {
			body := h.get(b, p.path)
			for b.Loop() {
				h.get(b, p.path)
			}
			b.ReportMetric(float64(len(body)), "bytes")
			var packed strings.Builder
			z := gzip.NewWriter(&packed)
			_, _ = io.WriteString(z, body)
			_ = z.Close()
			b.ReportMetric(float64(packed.Len()), "bytes-gzip")
		})
	}
}

// BenchmarkReading is one reading of the state, as it is made after each change.
func BenchmarkReading(b *testing.B) {
	h := open(b)
	h.get(b, "/nodes")
	for b.Loop() {
		h.page.Keeper.Forget()
		if _, err := h.page.Keeper.Current(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
