// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// Limits of the service's own.
const (
	headerTimeout = 30 * time.Second
	bodyTimeout   = 10 * time.Minute // a firmware image on a slow network
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
	maxBody       = 1 << 20
	maxImage      = 512 << 20
)

// Serve answers on ln, TLS inside, until ctx ends; then it closes ln and every
// connection, waits for them and returns nil. While the chassis is not live it
// accepts connections and says nothing on them. It is called once per BMC.
func Serve(ctx context.Context, ln net.Listener, c *chassis.Chassis, p Personality, o Options) error {
	s := newServer(ctx, c, p, o)
	var open sync.WaitGroup
	var http1 http.Protocols
	http1.SetHTTP1(true) // what BMCs speak
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: bodyTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, Protocols: &http1,
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Done()
			}
		},
	}
	quiet := &gate{Listener: ln, live: c.Live}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(tls.NewListener(quiet, s.tls()))
	_ = srv.Close()
	s.cancel()
	quiet.drop()
	open.Wait()
	s.work.Wait()
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// gate keeps connections that come while the BMC is dead: open and silent, as
// a dead address looks to a client, for as long as a client would wait.
type gate struct {
	net.Listener
	live func() bool

	mu   sync.Mutex
	held map[net.Conn]*time.Timer
}

// holdFor is longer than a client's patience.
const holdFor = 2 * time.Minute

// Accept returns the next connection of a live BMC.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil || g.live() {
			return c, err
		}
		g.hold(c)
	}
}

func (g *gate) hold(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = map[net.Conn]*time.Timer{}
	}
	g.held[c] = time.AfterFunc(holdFor, func() {
		_ = c.Close()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.held, c)
	})
}

// drop closes what is held.
func (g *gate) drop() {
	g.mu.Lock()
	held := g.held
	g.held = nil
	g.mu.Unlock()
	for c, t := range held {
		t.Stop()
		_ = c.Close()
	}
}
