// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// conn is one SSH connection with its keep-alive.
type conn struct {
	client *ssh.Client
	stop   chan struct{} // closed to end the keep-alive
	once   sync.Once
	dead   atomic.Bool
	wg     sync.WaitGroup
}

// connectNode dials, checks the host key and logs in, all within cfg.Timeout.
func connectNode(ctx context.Context, cfg Config) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, errSlow)
	defer cancel()
	tcp, err := dialTCP(ctx, cfg)
	if err != nil {
		return nil, dialError(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	defer stop()
	var greeted bool
	sc, chans, reqs, err := ssh.NewClientConn(tcp, cfg.Addr.String(), &ssh.ClientConfig{
		User:              cfg.User,
		Auth:              authMethods(cfg),
		HostKeyAlgorithms: hostKeyAlgorithms(cfg.HostKey),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			greeted = true
			if cfg.HostKey == nil {
				return cfg.Trust(key)
			}
			return checkHostKey(cfg, key)
		},
	})
	if err != nil {
		_ = tcp.Close()
		return nil, handshakeError(ctx, cfg, err, greeted)
	}
	c := &conn{client: ssh.NewClient(sc, chans, reqs), stop: make(chan struct{})}
	c.wg.Go(func() { _ = c.client.Wait(); c.dead.Store(true) })
	c.wg.Go(func() { c.keepAlive(cfg.KeepAlive) })
	return c, nil
}

// authMethods returns how we log in: by key, else by password, which some peers ask for by
// PAM's questions (RFC 4256). A question whose answer is shown is none for a
// password.
func authMethods(cfg Config) []ssh.AuthMethod {
	if cfg.Signer != nil {
		return []ssh.AuthMethod{ssh.PublicKeys(append([]ssh.Signer{cfg.Signer}, cfg.Further...)...)}
	}
	ask := func(_, _ string, questions []string, echos []bool) ([]string, error) {
		answers := make([]string, len(questions))
		for i := range questions {
			if !echos[i] {
				answers[i] = cfg.Password.Reveal()
			}
		}
		return answers, nil
	}
	return []ssh.AuthMethod{ssh.Password(cfg.Password.Reveal()), ssh.KeyboardInteractive(ask)}
}

// dialTCP opens the connection; on the operating system's network the kernel
// probes it too.
func dialTCP(ctx context.Context, cfg Config) (net.Conn, error) {
	if !network.IsOS(cfg.Network) {
		return cfg.Network.Dial(ctx, "tcp", cfg.Addr.String())
	}
	d := net.Dialer{KeepAlive: cfg.KeepAlive}
	return d.DialContext(ctx, "tcp", cfg.Addr.String())
}

// alive reports whether nothing is known to be wrong with the connection.
func (c *conn) alive() bool { return !c.dead.Load() }

// kill ends the connection; it does not wait.
func (c *conn) kill() {
	c.dead.Store(true)
	c.once.Do(func() { close(c.stop) })
	_ = c.client.Close()
}

// close ends the connection and waits for its goroutines.
func (c *conn) close() {
	c.kill()
	c.wg.Wait()
}

// missedProbes is how many keep-alives in a row may stay unanswered.
const missedProbes = 2

// keepAlive probes the peer until the connection ends. Any answer will do, also
// "unknown request".
func (c *conn) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	answered := make(chan struct{}, 1)
	waiting, missed := false, 0
	for {
		select {
		case <-c.stop:
			return
		case <-answered:
			waiting, missed = false, 0
		case <-tick.C:
			if c.dead.Load() {
				return
			}
			if waiting {
				if missed++; missed >= missedProbes {
					c.dead.Store(true)
					_ = c.client.Close()
					return
				}
				continue
			}
			waiting = true
			c.wg.Go(func() {
				if _, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					answered <- struct{}{}
				}
			})
		}
	}
}

// hostKeyAlgorithms returns the signature algorithms of exactly the pinned
// key's type, so that the node cannot offer a key of another type instead.
func hostKeyAlgorithms(key ssh.PublicKey) []string {
	if key == nil {
		return []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

const actionHostKey = "Find out why before going on: the node was reinstalled by somebody else, " +
	"its disk was swapped, or another node answers at this address. " +
	"If the change is intended, rebuild the node so that its new key is learned."

const actionSwitchKey = "Find out why before going on: the switch has a new image, or another device answers at this address. " +
	"If the change is intended, write the new fingerprint as host_key into the switch's block."

// actionOnHostKey is what to do about a host key that is another.
func (c Config) actionOnHostKey() string {
	if c.Switch {
		return actionSwitchKey
	}
	return actionHostKey
}

// checkHostKey compares the key that the node shows with the pinned one.
func checkHostKey(cfg Config, got ssh.PublicKey) error {
	want := cfg.HostKey
	if want.Type() == got.Type() && bytes.Equal(want.Marshal(), got.Marshal()) {
		return nil
	}
	return errkind.New(errkind.Mismatch, "host key changed: the %s shows %s %s, pinned is %s %s",
		cfg.noun(), got.Type(), ssh.FingerprintSHA256(got), want.Type(), ssh.FingerprintSHA256(want)).Do(cfg.actionOnHostKey())
}

// errSlow is the cause of a deadline that is ours, not the caller's.
var errSlow = errors.New("no answer in time")

const (
	actionReach    = "Check that the node is up, that its address is right, and that sshd runs on it."
	actionPassword = "Check the username and the password that the login refers to; a device that asks a remote server (TACACS+, RADIUS) may not reach it."
	actionKey      = "Check that the node's authorized_keys has the controller's public key; installing the node puts it there."
)

// fromContext classifies the end of a context.
func fromContext(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errkind.New(errkind.Interrupted, "interrupted: %w", context.Canceled)
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return errkind.New(errkind.Unreachable, "%w", errSlow).Do(actionReach)
	}
	return errkind.New(errkind.Timeout, "%w", context.DeadlineExceeded)
}

// dialError classifies a TCP connection that did not come about.
func dialError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fromContext(ctx)
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		err = no
	}
	return errkind.New(errkind.Unreachable, "%w", err).Do(actionReach)
}

// handshakeError classifies a failed SSH handshake. greeted says that the node
// has shown its host key: what fails afterwards is the log-in.
func handshakeError(ctx context.Context, cfg Config, err error, greeted bool) error {
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		return e
	}
	_, isNet := errors.AsType[net.Error](err)
	negotiation, differs := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	switch {
	case ctx.Err() != nil:
		return fromContext(ctx)
	case differs && !greeted && cfg.HostKey != nil:
		return errkind.New(errkind.Mismatch, "the %s has no host key of the pinned type (%s %s): %w",
			cfg.noun(), cfg.HostKey.Type(), ssh.FingerprintSHA256(cfg.HostKey), negotiation).Do(cfg.actionOnHostKey())
	case isNet, isGone(err):
		return errkind.New(errkind.Unreachable, "connection broke: %w", err).Do(actionReach)
	case greeted && cfg.Signer == nil:
		return errkind.New(errkind.Auth, "user %s with this password is refused: %w", cfg.User, err).Do(actionPassword)
	case greeted:
		return errkind.New(errkind.Auth, "user %s with key %s is refused: %w",
			cfg.User, ssh.FingerprintSHA256(cfg.Signer.PublicKey()), err).Do(actionKey)
	}
	return errkind.New(errkind.Unreachable, "no ssh at this address: %w", err).Do(actionReach)
}

// isGone reports whether err says that the connection ended.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrDeadlineExceeded)
}
