// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/web/webtest"
)

// run is an owner with events and nothing else.
type run struct {
	control.Backend
	bus *event.Bus
}

func (r run) Status(context.Context) (control.Status, error) { return control.Status{}, nil }
func (r run) Events(from uint64) *event.Subscription         { return r.bus.Subscribe(from) }

// TestMetrics: a server that stays counts what happens in one run after the other.
func TestMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, Options{})
	scrape := func() string {
		t.Helper()
		resp, err := http.Get(s.URL() + "metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v", resp.StatusCode, err)
		}
		return string(b)
	}
	for n, want := range []string{`ironrail_steps_slow_total{stage="install"} 1`, `ironrail_steps_slow_total{stage="install"} 2`} {
		o, err := control.AcquireFolder(filepath.Join(dir, provision.StateFolder), "apply", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ln, err := o.Listen()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r := run{bus: event.NewBus(10)}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := control.Serve(ctx, ln, r, "test"); err != nil {
				t.Error(err)
			}
		})
		r.bus.Emit(event.Event{Type: event.StepSlow, Node: webtest.Healthy, Stage: "install", Step: webtest.Healthy + "/install.write"})
		for end := time.Now().Add(time.Minute); !strings.Contains(scrape(), want); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("run %d: %s", n+1, scrape())
			}
		}
		r.bus.Close()
		cancel()
		wg.Wait()
		if err := o.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
