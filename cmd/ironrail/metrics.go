// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/web/metrics"
)

// addMetrics defines the flag of commands that run a plan.
func (a *app) addMetrics(c *cobra.Command) {
	c.Flags().StringVar(&a.metrics, "metrics", "", "serve metrics for Prometheus at `[ADDRESS:]PORT` while it runs; without an address on 127.0.0.1")
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
type scrapes struct{ ln net.Listener }

// listenMetrics opens the socket for scrapes, where one is asked for.
func (a *app) listenMetrics() (scrapes, error) {
	if a.metrics == "" {
		return scrapes{}, nil
	}
	at, err := readListenAddress(a.metrics)
	if err != nil {
		return scrapes{}, exit{exitUsage, fmt.Errorf("--metrics: %w", err)}
	}
	ln, err := net.Listen("tcp", at.String())
	if err != nil {
		return scrapes{}, fmt.Errorf("--metrics: %w", err)
	}
	return scrapes{ln}, nil
}

// serve answers scrapes until ctx is done.
func (s scrapes) serve(ctx context.Context, wg *sync.WaitGroup, say func(string), inv *inventory.Inventory, bus *event.Bus, source metrics.Source) {
	if s.ln == nil {
		return
	}
	m := metrics.New(inv, source)
	say(fmt.Sprintf("metrics: http://%s%s", s.ln.Addr(), metrics.Path))
	events := bus.Subscribe(0)
	wg.Go(func() { _ = m.Follow(ctx, events.Next) }) // of a bus, which ends and does not fail
	wg.Go(func() {
		if err := m.Serve(ctx, s.ln); err != nil {
			say("warning: metrics are not served any more: " + err.Error())
		}
	})
}

// close closes the socket of a run that did not begin.
func (s scrapes) close() {
	if s.ln != nil {
		_ = s.ln.Close()
	}
}
