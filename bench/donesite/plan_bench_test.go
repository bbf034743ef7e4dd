// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/bench/donesite"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision"
)

// BenchmarkPlan plans a site all of which was done: nothing has changed, the
// drivers of the role of every node have, and the same site with an empty state.
// The state is read from its file each time. MiB-more is how much the peak of the
// resident process grows over what it is with the site loaded.
func BenchmarkPlan(b *testing.B) {
	for _, nodes := range []int{1_000, 12_500} {
		dir := benchSite(b, nodes, "")
		var changed string
		if err := donesite.Fill(b.Context(), dir, openBench(b, dir)); err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name  string
			steps int // a node at least; 0: none at all
		}{{"nochange", 0}, {"role", 3}, {"fresh", 9}} {
			b.Run(c.name+"/"+strconv.Itoa(nodes), func(b *testing.B) {
				at, from := dir, state.Reader(state.Empty{})
				if c.name == "role" {
					if changed == "" {
						changed = benchSite(b, nodes, `"htop", `)
					}
					at = changed
				}
				if c.name != "fresh" {
					store, err := state.OpenReadOnly(provision.StatePath(dir))
					if err != nil {
						b.Fatal(err)
					}
					defer store.Close()
					from = store
				}
				benchPlan(b, openBench(b, at), from, nodes, c.steps)
			})
		}
	}
}

// benchPlan plans again and again.
func benchPlan(b *testing.B, site *provision.Site, from state.Reader, nodes, perNode int) {
	defer provision.LimitMemory(nodes)() // as the commands do
	debug.FreeOSMemory()
	before := rss(b)
	counted := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
	var cpu time.Duration
	var p *plan.Plan
	for b.Loop() {
		b.StopTimer()
		p = nil
		debug.FreeOSMemory() // what the one before left is not its cost
		b.StartTimer()
		began := cputime.Used()
		p = makePlan(b, site, from)
		cpu += cputime.Used() - began
	}
	if len(p.Steps) < perNode*nodes || perNode == 0 && !p.Empty() {
		b.Fatalf("%d steps: %v", len(p.Steps), p.Steps[0])
	}
	b.ReportMetric(float64(len(p.Steps)), "steps")
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
	if counted {
		b.ReportMetric(peak(b)-before, "MiB-more")
	}
}

func makePlan(b *testing.B, site *provision.Site, from state.Reader) *plan.Plan {
	p, diags, err := site.Plan(context.Background(), from, provision.PlanOptions{Now: time.Now(), Trust: 168 * time.Hour})
	if err != nil || diags.HasErrors() {
		b.Fatal(err, diags)
	}
	return p
}

// benchSite writes a site of so many nodes.
func benchSite(b *testing.B, nodes int, packages string) string {
	dir := b.TempDir()
	if err := donesite.Write(dir, "../../examples/csv-12500", nodes, packages); err != nil {
		b.Fatal(err)
	}
	return dir
}

// silent is a network on which nobody answers.
type silent struct{ network.Network }

func (silent) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no route to host")
}

func openBench(b *testing.B, dir string) *provision.Site {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	site, err := donesite.Open(dir, silent{network.OS{}})
	if err != nil {
		b.Fatal(err)
	}
	return site
}

// rss is the resident size of this process in MiB.
func rss(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}
