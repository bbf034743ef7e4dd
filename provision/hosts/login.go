// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Login is how hosts are logged in to. No secret of it is written anywhere.
type Login struct {
	User       string                                                        // of hosts without one
	KeyFile    string                                                        // private key; empty: the agent's keys, then those in Home
	Agent      string                                                        // socket of ssh-agent; empty: none
	Home       string                                                        // folder of the user
	Passphrase func(ctx context.Context, keyFile string) ([]byte, error)     // asks for it; nil: nobody can be asked
	KnownHosts []string                                                      // files; the first gets the keys that are confirmed
	Confirm    func(ctx context.Context, unknown []UnknownKey) (bool, error) // asks once about all unknown host keys; nil: none is believed
	Jump       *Host                                                         // that all hosts are reached through; nil: none
	Sudo       bool                                                          // run commands of a user that is not root by sudo -n
}

// agentWait bounds every question to ssh-agent.
const agentWait = 10 * time.Second

// signers returns our keys; done ends the connection to the agent.
func (l Login) signers(ctx context.Context) (list []ssh.Signer, done func(), err error) {
	done = func() {}
	if l.KeyFile != "" {
		s, err := l.readKey(ctx, l.KeyFile)
		return []ssh.Signer{s}, done, err
	}
	var agentErr error
	if l.Agent != "" {
		list, done, agentErr = agentKeys(ctx, l.Agent)
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		if len(list) > 0 {
			break // more than a few are refused by sshd (MaxAuthTries)
		}
		path := filepath.Join(l.Home, ".ssh", name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s, err := l.readKey(ctx, path)
		if err != nil {
			return nil, done, err
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		const action = "Name a private key with --key FILE, or start ssh-agent and add one with ssh-add."
		if agentErr != nil {
			return nil, done, errkind.New(errkind.Auth, "there is no key to log in with: ssh-agent: %w", agentErr).Do(action)
		}
		return nil, done, errkind.New(errkind.Auth, "there is no key to log in with: ssh-agent has none, and %s has neither", filepath.Join(l.Home, ".ssh")).Do(action)
	}
	return list, done, nil
}

// agentKeys are the keys of ssh-agent.
func agentKeys(ctx context.Context, socket string) ([]ssh.Signer, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, agentWait)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, func() {}, err
	}
	_ = c.SetDeadline(time.Now().Add(agentWait))
	list, err := agent.NewClient(c).Signers()
	_ = c.SetDeadline(time.Time{}) // a key may ask its owner at each use; log-ins have deadlines of their own
	return list, func() { _ = c.Close() }, err
}

// readKey reads a private key, with its passphrase where it has one.
func (l Login) readKey(ctx context.Context, path string) (ssh.Signer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errkind.New(errkind.NotFound, "private key: %w", err)
	}
	s, err := ssh.ParsePrivateKey(content)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if l.Passphrase == nil {
			return nil, errkind.New(errkind.Auth, "the key %s has a passphrase, and nobody can be asked for it", path).Do("Add it to ssh-agent: ssh-add " + path)
		}
		secret, asked := l.Passphrase(ctx, path)
		if asked != nil {
			return nil, asked
		}
		s, err = ssh.ParsePrivateKeyWithPassphrase(content, secret)
		clear(secret)
	}
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "private key %s: %w", path, err)
	}
	return s, nil
}
