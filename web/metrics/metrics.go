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
	"log/slog"
	"net"
	"net/http"
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
	Version  string
	Now      func() time.Time // nil: time.Now
	Status   func(context.Context) (control.Status, error)
	Report   func(context.Context) (report.Input, error)
	Counters func() provision.Counters
}

// Metrics collects what is scraped. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	models   map[string]string // hardware by node
	events   *counters
}

// New makes the metrics of a site. inv gives the models of nodes; it may be nil.
func New(inv *inventory.Inventory, s Source) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), models: map[string]string{}, events: newCounters()}
	if inv != nil {
		for _, n := range inv.Nodes {
			if n.Hardware != nil {
				m.models[n.Name] = n.Hardware.Name
			}
		}
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ironrail_build_info", Help: "1, with the version of ironrail.", ConstLabels: prometheus.Labels{"version": s.Version}})
	build.Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &snapshot{source: s})
	m.registry.MustRegister(m.events.all()...)
	return m
}

// Handler answers scrapes. Whoever mounts it decides who may ask.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: 2 * scrapeTime})
}

// Follow counts events until the stream ends or ctx is done. It is called once.
func (m *Metrics) Follow(ctx context.Context, next func(context.Context) (event.Event, error)) error {
	open := map[string]event.Event{} // the starts of the steps that run
	for {
		e, err := next(ctx)
		switch {
		case errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		m.count(e, open)
	}
}

// Serve answers scrapes on a listener until ctx is done, and closes it.
func (m *Metrics) Serve(ctx context.Context, ln net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, m.Handler())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Metrics for Prometheus are at "+Path+"\n")
	})
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 4 * scrapeTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(stop)
	if err != nil {
		err = server.Close()
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
