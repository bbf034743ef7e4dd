// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/bmc-toolbox/bmclib/v2"
	"github.com/go-logr/logr"
	"github.com/jacobweinstock/registrar"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// Options tune a session. The zero value is right for real BMCs.
type Options struct {
	Clock clock.Clock   // waits between questions and in a power cycle; nil: clock.Wall
	Gap   time.Duration // shortest time between two requests to one BMC; zero: none
	// Network is where BMCs are dialled. Nil: the operating system's.
	Network network.Network
}

// Session is one connection to one BMC. It is not safe for concurrent use: a BMC
// is a slow, single-threaded computer; Pool serialises. When the connection is
// lost, the next question opens a new one; a command that changes something is
// never what finds out about it, since each asks first.
type Session struct {
	target Target
	lib    *bmclib.Client
	drv    driver
	clk    clock.Clock
	known  bool // the driver's quirks are settled
}

// Open connects and logs in. The caller closes the session.
func Open(ctx context.Context, t Target, o Options) (*Session, error) {
	t = t.withDefaults()
	if err := t.check(); err != nil {
		return nil, t.wrap("open", err)
	}
	if o.Clock == nil {
		o.Clock = clock.Wall{}
	}
	drv, err := newDriver(t, o)
	if err != nil {
		return nil, t.wrap("open", err)
	}
	s := &Session{target: t, drv: drv, clk: o.Clock}
	registry := registrar.NewRegistry()
	as := registered[t.Protocol]
	registry.Register(as.name, as.protocol, as.features, nil, s.drv)
	// Password and user stay in the driver; of bmclib's own providers none is
	// registered but by a driver that guards it.
	s.lib = bmclib.NewClient(t.Addr.String(), "", "",
		bmclib.WithRegistry(registry), bmclib.WithLogger(logr.Discard()), bmclib.WithHTTPClient(&http.Client{}),
		bmclib.WithPerProviderTimeout(longest))
	if err := plain(s.lib.Open(ctx)); err != nil {
		return nil, t.wrap("open session", err)
	}
	return s, nil
}

// longest is how long one call through the library may take. Drivers have bounds
// of their own for each answer and each wait; the library's, 30 s, would end them
// in the middle.
const longest = 10 * time.Minute

// newDriver makes the driver of the target's protocol.
func newDriver(t Target, o Options) (driver, error) {
	switch t.Protocol {
	case Redfish:
		return newRedfish(t, o)
	case RPC:
		return newRPC(t, o)
	}
	return &ipmiDriver{target: t, network: o.Network, clk: o.Clock, gap: o.Gap}, nil
}

// Certificate returns the SHA-256, in lower-case hex, of the certificate that the
// BMC has shown and that was trusted; "" for IPMI. With TLSPinFirstSeen the
// caller records it and gives it as Target.Pinned from then on.
func (s *Session) Certificate() string { return s.drv.certificate() }

// Close logs out and closes the connection.
func (s *Session) Close(ctx context.Context) error {
	return s.target.wrap("close session", s.drv.Close(ctx))
}

// Identity asks who BMC and node are. What the BMC does not report is listed in
// Identity.Gaps and is no error.
func (s *Session) Identity(ctx context.Context) (Identity, error) {
	var id Identity
	err := s.again(ctx, func() (err error) { id, err = s.drv.identity(ctx); return err })
	s.known = s.known || err == nil
	return id, s.target.wrap("identify", err)
}

// learnQuirks settles the driver's quirks; it is also the question that each
// write asks first.
func (s *Session) learnQuirks(ctx context.Context) error {
	if last, _ := s.drv.used(); s.known && s.clk.Now().Sub(last) < freshFor {
		return nil
	}
	err := s.again(ctx, func() error { return s.drv.ping(ctx) })
	s.known = s.known || err == nil
	return err
}

// freshFor is how long a session that just answered is taken to be alive.
const freshFor = 2 * time.Second

// again asks a question; when the session turns out to be lost it opens a new
// one and asks once more.
func (s *Session) again(ctx context.Context, ask func() error) error {
	err := ask()
	if err == nil || !isLost(err) || ctx.Err() != nil {
		return err
	}
	if err := plain(s.lib.Open(ctx)); err != nil {
		return err
	}
	return ask()
}

// plain takes our own error out of bmclib's multi-line collection; bmclib's
// provider list says nothing where there is one driver.
func plain(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		return e
	}
	return classify(context.Background(), err)
}
