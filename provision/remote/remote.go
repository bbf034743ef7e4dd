// SPDX-License-Identifier: Apache-2.0

// Package remote runs commands on installed nodes and on switches over SSH and puts
// files there. It never learns why.
//
// A Client is one node: it keeps one connection, runs many commands over it at
// the same time, notices a dead peer by keep-alives, and connects again after
// the node was rebooted. The node's host key is pinned; of a switch the caller may
// decide (Config.Trust). A Pool keeps one Client for each node and bounds how many commands
// run at a time over all of them.
//
// Errors carry an errkind.Kind: Unreachable (nothing answers, or the connection
// broke), Auth (the node does not take our key), Mismatch (the host key is not
// the pinned one), Timeout (the context's deadline passed), Interrupted,
// Refused (the node's sshd said no). Output of commands is untrusted text.
package remote

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// Defaults of Config.
const (
	defaultTimeout   = 10 * time.Second
	defaultKeepAlive = 15 * time.Second
)

// Config is everything that is needed to reach one node.
type Config struct {
	Node    string // the node's name, for error texts
	Switch  bool   // it is a switch, for error texts
	Addr    netip.AddrPort
	User    string
	HostKey ssh.PublicKey // pinned: the only key, of the only algorithm, that is accepted
	// Trust decides about the host key that is shown where none is pinned, before
	// anything secret is sent. nil: nothing is believed.
	Trust  func(ssh.PublicKey) error
	Signer ssh.Signer // our key
	// Further are keys that are offered after Signer, where several may be the right one.
	Further []ssh.Signer
	// Password logs in where there is no Signer.
	Password secret.Value
	// Network is where the node is dialled. Nil: the operating system's, or that
	// of the Pool.
	Network network.Network
	// Timeout is the longest wait for the connection with its log-in, and for
	// the node to accept a new command. Zero: defaultTimeout.
	Timeout time.Duration
	// KeepAlive is how often an open connection is probed; after two probes
	// without an answer it counts as dead. Zero: defaultKeepAlive.
	KeepAlive time.Duration
}

// check refuses a configuration that cannot work and fills in defaults.
func (c Config) check() (Config, error) {
	switch {
	case !c.Addr.IsValid() || c.Addr.Port() == 0:
		return c, c.wrap("configuration", errkind.New(errkind.Invalid, "address %q is not complete", c.Addr))
	case c.HostKey == nil && c.Trust == nil:
		return c, c.wrap("configuration", errkind.New(errkind.NotFound, "no host key is known").
			Do("Install the node first: its host key is learned then."))
	case c.Signer == nil && c.Password.IsZero() || c.User == "":
		return c, c.wrap("configuration", errkind.New(errkind.Internal, "user, or client key and password, are missing"))
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.KeepAlive <= 0 {
		c.KeepAlive = defaultKeepAlive
	}
	return c, nil
}

// wrap puts the node and the address in front of err.
func (c Config) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return errkind.New(errkind.Of(err), "%s %s: ssh %s: %s: %w", c.noun(), c.Node, c.Addr, what, err).Do(errkind.Action(err))
}

// noun is what the far end is.
func (c Config) noun() string {
	if c.Switch {
		return "switch"
	}
	return "node"
}

// same reports whether o leads to the same place with the same keys. Networks are
// not compared: a pool has one.
func (c Config) same(o Config) bool {
	return c.Node == o.Node && c.Addr == o.Addr && c.User == o.User && c.Password.Reveal() == o.Password.Reveal() &&
		c.HostKey != nil && o.HostKey != nil && string(c.HostKey.Marshal()) == string(o.HostKey.Marshal()) &&
		(c.Signer == nil) == (o.Signer == nil) &&
		(c.Signer == nil || string(c.Signer.PublicKey().Marshal()) == string(o.Signer.PublicKey().Marshal()))
}

// sessionsPerNode is how many commands run at a time on one connection. OpenSSH
// refuses the eleventh by default (MaxSessions 10); one that it refuses is tried again.
const sessionsPerNode = 10

// Client runs commands on one node. It is safe for concurrent use.
type Client struct {
	cfg   Config
	slots chan struct{} // one token for each command that runs

	turn   chan struct{} // holds one token; its owner owns the fields below
	conn   *conn
	closed bool
}

// Dial connects to a node and logs in. The caller closes the client.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, slots: make(chan struct{}, sessionsPerNode), turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	if _, err := c.connected(ctx); err != nil {
		return nil, cfg.wrap("connect", err)
	}
	return c, nil
}

// connected returns the open connection, or a new one when there is none.
func (c *Client) connected(ctx context.Context) (*conn, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, fromContext(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	if c.closed {
		return nil, errkind.New(errkind.Interrupted, "the client is closed")
	}
	if c.conn != nil && c.conn.alive() {
		return c.conn, nil
	}
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
	conn, err := connectNode(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	return conn, nil
}

// Close ends the connection; commands that run end with an error.
func (c *Client) Close() error {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	c.closed = true
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
	return nil
}
