// SPDX-License-Identifier: Apache-2.0

// Package server serves the web page of a site on one socket: what `ironrail serve` and
// `ironrail apply --ui` run.
package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/web/live"
	"github.com/ironrail/ironrail/web/metrics"
	"github.com/ironrail/ironrail/web/page"
	"github.com/ironrail/ironrail/web/view"
)

// maxConnections bounds the connections that are open at once: those of the page take no file
// descriptors that an apply beside it needs. Further ones wait.
const maxConnections = 512

// Options are what is served, and where.
type Options struct {
	Dir     string                                              // the site's folder
	State   string                                              // its state folder
	Load    func() (*inventory.Inventory, error)                // reads the site's files
	Open    func(*inventory.Inventory) (*provision.Site, error) // opens the site for its report
	Version string                                              // of this program
	Now     func() time.Time
	Listen  Listen
	Change  page.Changer // holds and releases nodes; nil: nothing can be changed

	state func(net.Conn, http.ConnState) // sees connections, in tests
}

// Listen is where the page is, and under which names.
type Listen struct {
	Address          string   // address and port: 127.0.0.1:8470
	Hosts            []string // further names by which browsers know it, with or without the port
	Certificate, Key string   // files; empty: one is made where TLS is needed
}

// Server is an open socket with the page.
type Server struct {
	*socket
	hub     *live.Hub
	keeper  *view.Keeper
	metrics *metrics.Metrics
}

// Open opens the socket. Elsewhere than on loopback it is one of TLS.
func Open(o Options) (*Server, error) {
	at, err := listen(o.Listen, "web page")
	if err != nil {
		return nil, err
	}
	s := &Server{socket: at}
	if err := s.serve(o); err != nil {
		return nil, errors.Join(err, s.ln.Close())
	}
	return s, nil
}

// serve prepares what is served on the socket.
func (s *Server) serve(o Options) error {
	g, err := s.protect(o.Listen, o.State, o.Change != nil, o.Now)
	if err != nil {
		return err
	}
	k := &view.Keeper{Dir: o.Dir, State: o.State, Load: o.Load, Open: o.Open, Version: o.Version, Now: o.Now}
	s.hub, s.keeper = live.New(k), k
	if s.metrics, err = newMetrics(context.Background(), k, o.Version); err != nil {
		return err
	}
	p, err := page.New(page.Options{Keeper: k, Session: g.Session, Who: g.Who, Live: s.hub, Metrics: s.metrics.Handler(), Change: o.Change})
	if err != nil {
		return err
	}
	s.http.Handler, s.http.ConnState = g.Handler(p, p.ServeLogin), o.state
	return nil
}

// CountServices adds to the metrics what the services of this process have counted; f is called for
// scrapes, concurrently.
func (s *Server) CountServices(f func() provision.Counters) { s.metrics.CountServices(f) }

// Review shows a plan, with its Sum, before it is approved; expected is how long it may take,
// in lines. The plan may not be changed any more.
func (s *Server) Review(p *plan.Plan, expected []string) {
	s.keeper.SetReview(view.Review{Plan: p, Expected: expected})
}

// ReviewApproved says that the plan of Review was approved: it is shown until its run has begun.
func (s *Server) ReviewApproved() { s.keeper.ApproveReview() }

// ReviewOver shows the plan of Review no more. Review, ReviewApproved and ReviewOver return at once;
// one goroutine at a time calls them.
func (s *Server) ReviewOver() { s.keeper.EndReview() }

// Serve answers until ctx is done, and then closes the socket.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.hub.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	return s.answer(ctx)
}
