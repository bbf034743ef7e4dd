// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

const (
	loginGrace   = 120 * time.Second // LoginGraceTime, sshd_config(5)
	serverString = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3"
)

// hostKey is always the same for a switch and a seed.
func (s *Switch) hostKey() (ssh.Signer, error) {
	seed := sha256.Sum256(fmt.Appendf(nil, "host key of %s %d", s.cfg.Name, s.cfg.Seed))
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed[:]))
}

// Serve accepts connections until ctx ends, and returns when the last is closed.
// Any key lets the user in: whose keys are on a switch is no part of the site.
func (s *Switch) Serve(ctx context.Context, ln net.Listener) error {
	host, err := s.hostKey()
	if err != nil {
		return err
	}
	cfg := &ssh.ServerConfig{
		Config:        ssh.Config{KeyExchanges: []string{ssh.KeyExchangeCurve25519}, Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR}},
		ServerVersion: serverString, MaxAuthTries: 6,
		PasswordCallback: func(meta ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) {
			if s.cfg.Password != "" && meta.User() == s.cfg.User && subtle.ConstantTimeCompare(given, []byte(s.cfg.Password)) == 1 {
				return nil, nil
			}
			return nil, errors.New("permission denied")
		},
		PublicKeyCallback: func(meta ssh.ConnMetadata, _ ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() == s.cfg.User {
				return nil, nil
			}
			return nil, errors.New("permission denied")
		},
	}
	cfg.AddHostKey(host)
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
		if s.isCut() {
			_ = c.Close()
			continue
		}
		wg.Go(func() { s.connection(ctx, c, cfg) })
	}
}

// connection serves one client until it leaves or ctx ends.
func (s *Switch) connection(ctx context.Context, c net.Conn, cfg *ssh.ServerConfig) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if c.SetDeadline(time.Now().Add(loginGrace)) != nil {
		return
	}
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	wg.Go(func() { ssh.DiscardRequests(requests) })
	for ch := range channels {
		if ch.ChannelType() != "session" {
			_ = ch.Reject(ssh.Prohibited, "open failed")
			continue
		}
		channel, in, err := ch.Accept()
		if err != nil {
			continue
		}
		wg.Go(func() { s.session(ctx, channel, in) })
	}
}

// session runs the one command of a session.
func (s *Switch) session(ctx context.Context, ch ssh.Channel, requests <-chan *ssh.Request) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ch.Close()
	done := make(chan struct{})
	started := false
	for {
		select {
		case r, ok := <-requests:
			if !ok {
				return
			}
			var line struct{ Command string }
			run := r.Type == "exec" && !started && ssh.Unmarshal(r.Payload, &line) == nil
			if r.WantReply {
				_ = r.Reply(run, nil)
			}
			if run {
				started = true
				wg.Go(func() { defer close(done); s.command(ctx, ch, line.Command) })
			}
		case <-done:
			return
		}
	}
}

// command runs a line with the user's shell and reports its end.
func (s *Switch) command(ctx context.Context, ch ssh.Channel, line string) {
	var out bytes.Buffer // written at once, as a pipe does
	st := shell.Streams{In: ch, Out: &out, Err: ch.Stderr()}
	status := runShell(ctx, call{shell.Command{Argv: []string{"sh", "-c", line}, Streams: st}, s, false})
	if ctx.Err() != nil {
		return
	}
	_, _ = io.Copy(ch, &out)
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}
