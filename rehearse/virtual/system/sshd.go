// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/rehearse/virtual/sshd"
)

const (
	hostKeyFile  = "etc/ssh/ssh_host_ed25519_key"
	maxSessions  = 10 // MaxSessions
	serverString = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7"
)

// authorizedFiles are sshd's defaults for AuthorizedKeysFile.
var authorizedFiles = []string{"root/.ssh/authorized_keys", "root/.ssh/authorized_keys2"}

// hostKey reads the host key of the root file system.
func (n *node) hostKey() (ssh.Signer, error) {
	b, err := n.tree.ReadFile(hostKeyFile)
	if err != nil {
		return nil, errkind.New(errkind.NotFound, "sshd: no hostkeys available -- exiting: %w", err)
	}
	key, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "sshd: /%s: %w", hostKeyFile, err)
	}
	return key, nil
}

// serve accepts connections until ctx ends, and returns when the last is closed.
func (n *node) serve(ctx context.Context, ln net.Listener, host ssh.Signer) error {
	cfg := sshd.OpenSSH(serverString)
	cfg.PublicKeyCallback = func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if meta.User() == "root" && n.authorized(key, meta.RemoteAddr()) {
			return nil, nil
		}
		return nil, errors.New("not authorized")
	}
	cfg.AddHostKey(host)
	// With ctx of the node: a command outlives its connection.
	session := func(_ context.Context, _ string, ch ssh.Channel, requests <-chan *ssh.Request) {
		n.session(ctx, ch, requests)
	}
	return sshd.Server{Config: cfg, Sessions: maxSessions, Session: session}.Serve(ctx, ln)
}

// authorized reports whether root may log in with that key from there.
func (n *node) authorized(key ssh.PublicKey, from net.Addr) bool {
	for _, name := range authorizedFiles {
		rest, err := n.tree.ReadFile(name)
		for err == nil && len(rest) > 0 {
			var k ssh.PublicKey
			var options []string
			if k, _, options, rest, err = ssh.ParseAuthorizedKey(rest); err == nil && bytes.Equal(k.Marshal(), key.Marshal()) && n.lets(options, from) {
				return true
			}
		}
	}
	return false
}

// lets reads the options of a key that restrict where and until when it is good.
func (n *node) lets(options []string, from net.Addr) bool {
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "expiry-time":
			until, err := time.Parse("20060102150405Z", value)
			if err != nil || time.Now().After(until) { // the time of day is the controller's, however fast hardware is
				return false
			}
		case "from":
			ap, err := netip.ParseAddrPort(from.String())
			if err != nil || !matchesList(value, ap.Addr().Unmap()) {
				return false
			}
		}
	}
	return true
}

// matchesList holds an address against a list of addresses and prefixes.
func matchesList(list string, a netip.Addr) bool {
	for one := range strings.SplitSeq(list, ",") {
		if p, err := netip.ParsePrefix(one); err == nil && p.Contains(a) {
			return true
		}
		if b, err := netip.ParseAddr(one); err == nil && a == b {
			return true
		}
	}
	return false
}

// session runs the one command of a session. Closing the channel leaves the
// command running, as in OpenSSH; so does a lost connection.
func (n *node) session(ctx context.Context, ch ssh.Channel, requests <-chan *ssh.Request) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ch.Close()
	started := false
	done := make(chan struct{})
	for {
		select {
		case r, ok := <-requests:
			if !ok {
				if started {
					<-done
				}
				return
			}
			var line struct{ Command string }
			run := r.Type == "exec" && !started && ssh.Unmarshal(r.Payload, &line) == nil
			// "env" is refused but for LANG and LC_*, "signal" for root.
			if r.WantReply {
				_ = r.Reply(run, nil)
			}
			if run {
				started = true
				wg.Go(func() {
					defer close(done)
					n.login(ctx, ch, line.Command)
				})
			}
		case <-done:
			return
		}
	}
}
