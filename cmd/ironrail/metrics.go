// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/web/metrics"
	"github.com/ironrail/ironrail/web/server"
)

// addMetrics defines the flag of commands that run a plan.
func (a *app) addMetrics(c *cobra.Command) {
	c.Flags().StringVar(&a.metrics.Address, "metrics", "", "serve metrics for Prometheus at `[ADDRESS:]PORT` while it runs; without an address on 127.0.0.1, and elsewhere over TLS, with the token of the site")
	addListen(c, &a.metrics, "metrics-")
}

// readListenAddress reads "9477", ":9477" or "10.20.0.2:9477"; without an address it is
// that of this machine alone.
func readListenAddress(text string) (netip.AddrPort, error) {
	host, port, found := cutLast(text, ":")
	if !found {
		host, port = "", text
	}
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if host != "" {
		var err error
		if addr, err = netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%q is no IP address", host)
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no port: it is a number up to 65535", port)
	}
	return netip.AddrPortFrom(addr, uint16(n)), nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// scrapes is the socket for scrapes of one run; without one nothing is served.
type scrapes struct{ *server.Scrapes }

// listenMetrics opens the socket for scrapes, where one is asked for.
func (a *app) listenMetrics() (scrapes, error) {
	l := a.metrics
	if l.Address == "" {
		return scrapes{}, nil
	}
	at, err := readListenAddress(l.Address)
	if err != nil {
		return scrapes{}, exit{exitUsage, fmt.Errorf("--metrics: %w", err)}
	}
	if err := checkCertificate(l); err != nil {
		return scrapes{}, err
	}
	l.Address = at.String()
	s, err := server.OpenScrapes(l, a.stateDir(), a.now)
	return scrapes{s}, err
}

// serve answers scrapes until ctx is done.
func (s scrapes) serve(ctx context.Context, wg *sync.WaitGroup, say func(string), run *provision.Running, bus *event.Bus, source metrics.Source) {
	if s.Scrapes == nil {
		return
	}
	m := metrics.New(run.Site().Inv, source)
	m.CountServices(run.Counters)
	say("metrics: " + strings.TrimSuffix(s.URL(), "/") + metrics.Path)
	if print := s.Fingerprint(); print != "" {
		say("Metrics need the token of .ironrail/web.token. SHA-256 of the certificate: " + print)
	}
	events := bus.Subscribe(0)
	wg.Go(func() { _ = m.Follow(ctx, events.Next) }) // of a bus, which ends and does not fail
	wg.Go(func() {
		if err := s.Serve(ctx, m); err != nil {
			say("warning: metrics are not served any more: " + err.Error())
		}
	})
}

// close closes the socket of a run that did not begin.
func (s scrapes) close() {
	if s.Scrapes != nil {
		_ = s.Close()
	}
}
