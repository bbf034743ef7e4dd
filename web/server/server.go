// SPDX-License-Identifier: Apache-2.0

// Package server serves the web page of a site on one socket: what `ironrail serve` and
// `ironrail apply --ui` run.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/web/guard"
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

// Server is an open socket with what it serves.
type Server struct {
	http        *http.Server
	ln          net.Listener
	hub         *live.Hub
	keeper      *view.Keeper
	metrics     *metrics.Metrics
	folder      string // of the state
	host        string // for links
	token       string
	secure      bool
	fingerprint string
}

// Open opens the socket. Elsewhere than on loopback it is one of TLS.
func Open(o Options) (*Server, error) {
	s, err := listen(o)
	if err != nil {
		return nil, err
	}
	if err := s.serve(o); err != nil {
		return nil, errors.Join(err, s.ln.Close())
	}
	return s, nil
}

// listen opens the socket alone.
func listen(o Options) (*Server, error) {
	host, _, err := net.SplitHostPort(o.Listen.Address)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%q is no address with a port: %w", o.Listen.Address, err).Do("Write it as 127.0.0.1:8470 or [::1]:8470.")
	}
	ip := net.ParseIP(host)
	if ip == nil && host != "localhost" {
		return nil, errkind.New(errkind.Invalid, "%q is no IP address to listen on", host).Do("Give an address of this machine with --listen, and names of it with --host.")
	}
	if ip.IsUnspecified() && len(o.Listen.Hosts) == 0 {
		return nil, errkind.New(errkind.Invalid, "%s is every address of this machine, and none that browsers ask for", host).Do("Name those with --host, or listen on one address.")
	}
	ln, err := net.Listen("tcp", o.Listen.Address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, errkind.New(errkind.Conflict, "web page: %w", err).Do("Perhaps another ironrail serves there. Give another port with --listen, or with --ui of apply.")
		}
		return nil, fmt.Errorf("web page: %w", err)
	}
	s := &Server{ln: netutil.LimitListener(ln, maxConnections)}
	s.secure = o.Listen.Certificate != "" || !s.isLoopback() // localhost may be anything
	return s, nil
}

// serve prepares what is served on the socket.
func (s *Server) serve(o Options) error {
	folder := o.State
	hosts, given := o.Listen.names(s.ln.Addr(), s.secure)
	s.host = hosts[0]
	if o.Change != nil || !s.isLoopback() {
		var err error
		if s.token, err = guard.ReadToken(folder, true); err != nil {
			return err
		}
	}
	g := guard.New(guard.Options{Hosts: hosts, Proxy: given, Open: s.isLoopback(), Secure: s.secure, Token: s.token, Now: o.Now})
	k := &view.Keeper{Dir: o.Dir, State: o.State, Load: o.Load, Open: o.Open, Version: o.Version, Now: o.Now}
	s.hub, s.keeper, s.folder = live.New(k), k, folder
	s.metrics = newMetrics(context.Background(), k, o.Version)
	p, err := page.New(page.Options{Keeper: k, Session: g.Session, Who: g.Who, Live: s.hub, Metrics: s.metrics.Handler(), Change: o.Change})
	if err != nil {
		return err
	}
	s.http = &http.Server{Handler: g.Handler(p, p.ServeLogin), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ConnState: o.state,
		ErrorLog: log.New(io.Discard, "", 0)} // what clients do wrong is not for the terminal of a run
	if !s.secure {
		return nil
	}
	c, print, err := guard.LoadCertificate(o.Listen.Certificate, o.Listen.Key, folder, hosts, o.Now())
	if err != nil {
		return err
	}
	s.fingerprint = print
	s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
	return nil
}

func (s *Server) isLoopback() bool {
	a, ok := s.ln.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// URL is where the page is.
func (s *Server) URL() string { return urlOf(s.host, s.secure) }

// Link is where a browser logs in once; empty where nobody needs to.
func (s *Server) Link(now time.Time) string {
	if s.token == "" {
		return ""
	}
	return s.URL() + "login?" + guard.MakeLink(s.token, now)
}

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

// Fingerprint is the SHA-256 of the certificate; empty without TLS.
func (s *Server) Fingerprint() string { return s.fingerprint }

// Close closes the socket of a server that is not served.
func (s *Server) Close() error { return s.ln.Close() }

// Serve answers until ctx is done, and then closes the socket.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { s.hub.Run(ctx) })
	wg.Go(func() { followRuns(ctx, s.folder, s.metrics) })
	defer wg.Wait()
	defer cancel()
	var err error
	if s.secure {
		err = s.http.ServeTLS(s.ln, "", "")
	} else {
		err = s.http.Serve(s.ln)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("web page: %w", err)
	}
	return nil
}
