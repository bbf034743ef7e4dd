// SPDX-License-Identifier: Apache-2.0

// Package sshd is what the SSH servers of a virtual rack have in common: they accept connections, let
// clients log in, and open sessions. What a session does is each server's own.
package sshd

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// loginGrace is how long a client has to log in (LoginGraceTime, sshd_config(5)).
const loginGrace = 120 * time.Second

// Server is an SSH server. Config and Session must be set.
type Server struct {
	Config   *ssh.ServerConfig // with a host key
	Cut      func() bool       // reports whether a new connection is lost at once; nil: none is
	Sessions int               // at a time, of one connection; 0: any number
	// Session serves one session of a user; ctx ends with the connection, or with that of Serve.
	Session func(ctx context.Context, user string, ch ssh.Channel, requests <-chan *ssh.Request)
}

// HostKey is always the same for a server and a seed.
func HostKey(server string, seed uint64) (ssh.Signer, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "host key of %s %d", server, seed))
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(sum[:]))
}

// OpenSSH is how sshd of a version appears. It has one key exchange, and few ciphers, of those that OpenSSH
// offers: the cheapest, since thousands of nodes share a few cores.
func OpenSSH(version string) *ssh.ServerConfig {
	return &ssh.ServerConfig{
		Config:        ssh.Config{KeyExchanges: []string{ssh.KeyExchangeCurve25519}, Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR}},
		ServerVersion: version,
		MaxAuthTries:  6,
	}
}

// Serve accepts connections until ctx ends, and returns when the last is closed.
func (s Server) Serve(ctx context.Context, ln net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if s.Cut != nil && s.Cut() {
			_ = c.Close()
			continue
		}
		wg.Go(func() { s.connection(ctx, c) })
	}
}

// connection serves one client until it leaves or ctx ends.
func (s Server) connection(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if c.SetDeadline(time.Now().Add(loginGrace)) != nil {
		return
	}
	conn, channels, requests, err := ssh.NewServerConn(c, s.Config)
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	wg.Go(func() { ssh.DiscardRequests(requests) }) // a keep-alive is answered: unknown
	var open atomic.Int64
	for ch := range channels {
		switch {
		case ch.ChannelType() != "session":
			_ = ch.Reject(ssh.Prohibited, "open failed")
			continue
		case s.Sessions > 0 && open.Load() >= int64(s.Sessions):
			_ = ch.Reject(ssh.ResourceShortage, "open failed")
			continue
		}
		channel, in, err := ch.Accept()
		if err != nil {
			continue
		}
		open.Add(1)
		wg.Go(func() {
			defer open.Add(-1)
			s.Session(ctx, conn.User(), channel, in)
		})
	}
}
