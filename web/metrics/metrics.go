// SPDX-License-Identifier: Apache-2.0

// Package metrics is what Prometheus scrapes of a site: where nodes and steps stand, how
// long stages take on each model of node, findings, measurements against their limits,
// errors of BMCs, and what the boot services answered. Labels have closed or bounded sets
// of values; no node, part, serial number or text is one.
package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

const (
	// Path is where the metrics are served.
	Path = "/metrics"
	// scrapeTime bounds what is read of the state for one scrape.
	scrapeTime = 8 * time.Second
	// reportAge is for how long a report is shown again: it reads all results of the site.
	reportAge = time.Minute
	// scrapes is how many scrapes are answered at once.
	scrapes = 4
)

// Source is where the values come from. Its functions are called for scrapes,
// concurrently; what is nil has no metrics.
type Source struct {
	Version string
	Now     func() time.Time // nil: time.Now
	Status  func(context.Context) (control.Status, error)
	Report  func(context.Context) (report.Input, error)
	// Events gives the events since its last call, for who does not Follow. One call at a time.
	Events func(func(event.Event)) error
}

// Metrics collects what is scraped. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	snapshot *snapshot
	read     func(func(event.Event)) error // Source.Events

	mu     sync.Mutex             // guards open, and calls of read
	open   map[string]event.Event // the starts of the steps that run
	models map[string]string      // hardware by node
	events *counters
}

// New makes the metrics of a site. inv gives the models of nodes; it may be nil.
func New(inv *inventory.Inventory, s Source) *Metrics {
	if s.Now == nil {
		s.Now = time.Now
	}
	m := &Metrics{registry: prometheus.NewRegistry(), snapshot: &snapshot{source: s}, read: s.Events, open: map[string]event.Event{}, models: map[string]string{}, events: newCounters()}
	if inv != nil {
		for _, n := range inv.Nodes {
			if n.Hardware != nil {
				m.models[n.Name] = n.Hardware.Name
			}
		}
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ironrail_build_info", Help: "1, with the version of ironrail.", ConstLabels: prometheus.Labels{"version": s.Version}})
	build.Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.snapshot)
	m.registry.MustRegister(m.events.all()...)
	return m
}

// CountServices adds what the services of a run have counted; f is called for scrapes,
// concurrently.
func (m *Metrics) CountServices(f func() provision.Counters) { m.snapshot.counters.Store(&f) }

// Handler answers scrapes. Whoever mounts it decides who may ask.
func (m *Metrics) Handler() http.Handler {
	h := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: 2 * scrapeTime})
	if m.read == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.snapshot.setUnread(m.readEvents())
		h.ServeHTTP(w, r)
	})
}

// readEvents counts what has happened since the last scrape.
func (m *Metrics) readEvents() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read(func(e event.Event) { m.count(e, m.open) })
}

// Follow counts events until the stream ends or ctx is done. It is called once.
func (m *Metrics) Follow(ctx context.Context, next func(context.Context) (event.Event, error)) error {
	for {
		e, err := next(ctx)
		switch {
		case errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		m.mu.Lock()
		m.count(e, m.open)
		m.mu.Unlock()
	}
}
