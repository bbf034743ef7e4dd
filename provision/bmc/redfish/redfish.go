// SPDX-License-Identifier: Apache-2.0

// Package redfish is the client of one BMC's Redfish service (DMTF DSP0266): its
// session, its certificate, its resources, and the ways in which real services
// differ from the specification. It knows no driver interface and no node.
//
// A Client asks one thing at a time and is not safe for concurrent use. What may
// be asked again without harm is asked again: a BMC that is not ready, one that
// refuses a good token, an ETag that is no longer right. A request whose answer
// got lost is never sent again here.
//
// Errors carry an errkind.Kind: Unreachable (nothing answers), Timeout (an answer
// is missing, also a connection that was closed before it), Auth (the account is
// refused; ErrCredential or ErrLocked is in the chain), Refused (a *Fault says
// why), Unsupported (the service has no such resource), Mismatch (the
// certificate is not the one that is trusted), Internal (an answer that cannot be
// read). All that comes from the BMC is untrusted, cut to one line and not
// escaped.
package redfish

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// DefaultTimeout is how long one answer may take when Config.Timeout is zero.
// Real services take 0.1 to 3 s, and above 10 s for a system while it is in POST.
const DefaultTimeout = 20 * time.Second

// Config says which BMC, and how it is spoken to.
type Config struct {
	Addr     netip.AddrPort
	Username string
	Password secret.Value
	TLS      TLS
	Pinned   string          // SHA-256 of the certificate of the first contact, in hex; "": not known yet
	Serial   string          // serial number of the node: chooses among several systems; may be empty
	Timeout  time.Duration   // longest wait for one answer; zero: DefaultTimeout
	Gap      time.Duration   // shortest time between two requests; zero: none
	Network  network.Network // nil: that of the operating system
	Clock    clock.Clock     // waits between tries; nil: clock.Wall
}

// Client is a connection to one BMC.
type Client struct {
	cfg   Config
	shown func() string // the certificate that was trusted last
	http  *http.Client
	wires *http.Transport

	root    *serviceRoot // nil until the first contact
	token   string       // X-Auth-Token of the session
	session string       // path of the session, for logging out
	basic   bool         // the service has no sessions: Basic authentication
	proven  bool         // these credentials were accepted before
	quirks  quirk.Set
	alone   bool // each request has a connection of its own
	plain   bool // the service does not take "Accept-Encoding: identity"
	slash   bool // the service wants a slash at the end of paths, as far as is known

	place *place    // where system, manager and chassis are; nil until discovered
	last  time.Time // end of the last exchange
	sent  int       // requests that change something, over the client's life
}

// New makes a client; nothing is sent.
func New(cfg Config) (*Client, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Network == nil {
		cfg.Network = network.OS{}
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Wall{}
	}
	wires, shown, err := HTTPS(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, wires: wires, shown: shown}
	c.http = &http.Client{Transport: c.wires, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// HTTPS makes the connections to one service, and tells which certificate they
// trusted last, as Certificate does. Addr, TLS, Pinned, Timeout and Network of cfg
// count, and all are given.
func HTTPS(cfg Config) (wires *http.Transport, certificate func() string, err error) {
	trust, err := newTrust(cfg.TLS, cfg.Pinned, cfg.Addr.Addr())
	if err != nil {
		return nil, nil, err
	}
	return &http.Transport{
		DialContext: func(ctx context.Context, kind, addr string) (net.Conn, error) {
			return cfg.Network.Dial(ctx, kind, addr)
		},
		TLSClientConfig:       trust.config(),
		TLSHandshakeTimeout:   cfg.Timeout,
		ResponseHeaderTimeout: cfg.Timeout,
		IdleConnTimeout:       idleConnection,
		MaxConnsPerHost:       1, // a BMC is a small computer; see quirks 1 and 37
		MaxIdleConnsPerHost:   1,
		DisableCompression:    true, // compression makes services send weak ETags
		WriteBufferSize:       2 << 10,
		ReadBufferSize:        2 << 10,
	}, trust.certificate, nil
}

// idleConnection is how long an unused connection is kept: longer than the
// pauses inside one piece of work, shorter than what BMCs have been seen to cut.
const idleConnection = 25 * time.Second

// Open logs in and finds the node's system; when that was done before, it makes
// sure that the service still answers. The session is kept over lost connections; one
// that this call opened is closed again when it fails, for BMCs have few sessions and
// forget them after half an hour.
func (c *Client) Open(ctx context.Context) error {
	c.wires.CloseIdleConnections()
	if err := c.contact(ctx); err != nil {
		return err
	}
	fresh := c.token == "" && !c.basic
	if fresh {
		if err := c.login(ctx); err != nil {
			_ = c.Close(ctx) // a token may have come before the error
			return err
		}
	}
	_, err := c.where(ctx)
	if err != nil && fresh {
		_ = c.Close(ctx)
	}
	return err
}

// Close logs out, so that one of the BMC's few sessions is free again, and closes
// the connection. A BMC that does not answer is no error: its session expires.
func (c *Client) Close(ctx context.Context) error {
	if c.token != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(c.cfg.Timeout, logoutTime))
		defer cancel()
		c.logout(ctx)
	}
	c.Drop()
	return nil
}

// logoutTime is how long a log-out may take; the process may be ending.
const logoutTime = 3 * time.Second

// Drop forgets the session and closes the connection without a word to the BMC.
func (c *Client) Drop() {
	c.wires.CloseIdleConnections()
	c.token, c.session, c.basic, c.place, c.root = "", "", false, nil, nil
}

// LoggedIn reports whether there is a session, as far as is known.
func (c *Client) LoggedIn() bool { return c.token != "" || c.basic }

// Last returns when the last exchange ended, on the client's clock.
func (c *Client) Last() time.Time { return c.last }

// Sent returns how many requests that change something left for the BMC.
func (c *Client) Sent() int { return c.sent }

// Quirks returns what is known about this kind of BMC after the first contact.
func (c *Client) Quirks() quirk.Set { return c.quirks }

// Certificate returns the SHA-256 of the certificate that the BMC showed and that
// was trusted, in lower-case hex; "" before the first contact.
func (c *Client) Certificate() string { return c.shown() }

// learn adds what is known about a vendor and product.
func (c *Client) learn(vendor, product string) {
	c.quirks |= quirk.Of(quirk.BMC{Vendor: vendor, Model: product})
}

// contact reads the service root, which needs no log-in (DSP0266, 9.2), once.
func (c *Client) contact(ctx context.Context) error {
	a, err := c.do(ctx, request{method: http.MethodGet, path: rootPath, open: true})
	if err != nil && !isStatus(err, http.StatusUnauthorized, http.StatusForbidden) {
		return err
	}
	var root serviceRoot
	if err == nil {
		if err := a.decode(&root); err != nil {
			return err
		}
	}
	c.root = &root
	c.learn(string(root.Vendor), string(root.Product))
	return nil
}

// rootPath is the service root (DSP0266, 8.2).
const rootPath = "/redfish/v1/"

// serviceRoot is what is read of the service root. Its links are missing on some
// BMCs until they are reset (DGX H100), so each has a usual place.
type serviceRoot struct {
	Vendor, Product text
	RedfishVersion  text
	Systems         link
	Managers        link
	Chassis         link
	SessionService  link
	AccountService  link
	UpdateService   link
	TaskService     link `json:"Tasks"`
	Links           struct{ Sessions link }
}
