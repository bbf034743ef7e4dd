// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/bench/donesite"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/provision/resident"
)

// BenchmarkOwner measures what commands ask the owner of 12,500 nodes that are done: status, why, and
// the lists that a command reads which borrows the state. cpu-s/op is of owner and client together.
func BenchmarkOwner(b *testing.B) {
	nodes := 12500
	if testing.Short() {
		nodes = 1000
	}
	dir := benchSite(b, nodes, "")
	site := openBench(b, dir)
	if err := donesite.Fill(b.Context(), dir, site); err != nil {
		b.Fatal(err)
	}
	folder := filepath.Dir(provision.StatePath(dir))
	if info, err := os.Stat(provision.StatePath(dir)); err == nil {
		b.Logf("the state has %d MiB", info.Size()>>20)
	}
	client, name := serveBench(b, folder, site), site.Inv.Nodes[len(site.Inv.Nodes)/2].Name
	measure := func(what string, f func(*testing.B)) {
		b.Run(what, func(b *testing.B) {
			began := cputime.Used()
			for b.Loop() {
				f(b)
			}
			b.ReportMetric((cputime.Used()-began).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
	measure("status", func(b *testing.B) {
		if s, err := client.Status(b.Context()); err != nil || len(s.Nodes) != nodes {
			b.Fatalf("%d nodes, %v", len(s.Nodes), err)
		}
	})
	measure("why", func(b *testing.B) {
		if y, err := client.Why(b.Context(), name); err != nil || !y.Node.Accepted {
			b.Fatalf("%+v, %v", y.Node, err)
		}
	})
	s, err := onrecord.Place{Folder: folder}.Borrow(b.Context(), control.Borrower{Identity: control.Identity{PID: os.Getpid(), Command: "bench"}, Program: "v1"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	measure("list", func(b *testing.B) {
		s.Refresh() // as after an append
		if all, err := state.ReadNodes(b.Context(), s); err != nil || len(all) != nodes {
			b.Fatalf("%d nodes, %v", len(all), err)
		}
	})
}

// serveBench owns a site until the end of the test, and answers for it.
func serveBench(b *testing.B, folder string, site *provision.Site) *control.Client {
	b.Helper()
	o, err := control.AcquireToStay(folder, "serve", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	store, err := state.Open(onrecord.Place{Folder: folder}.File())
	if err != nil {
		b.Fatal(err)
	}
	fence, err := store.Claim(b.Context(), "serve")
	if err != nil {
		b.Fatal(err)
	}
	r, err := resident.Open(b.Context(), resident.Config{Store: store, Fence: fence, Owner: o.Identity, Bus: event.NewBus(100), Boot: resident.BootNever, Version: "v1",
		Load: func(bool) (*provision.Site, *inventory.Sources, error) { return site, nil, nil }})
	if err != nil {
		b.Fatal(err)
	}
	socket, err := o.Listen()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, socket, r, "v1") }()
	b.Cleanup(func() {
		cancel()
		<-served
		_ = r.Close(context.Background())
		_ = store.Close()
		_ = o.Release()
	})
	return control.NewClient(folder)
}
