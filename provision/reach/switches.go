// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/remote"
)

// largestOutput is the most that is read of what a switch prints, bytes.
const largestOutput = 32 << 20

// Switches reaches the switches of the inventory that have a login, over SSH. It
// implements switchos.Switches and is safe for concurrent use.
type Switches struct {
	Inv     *inventory.Inventory
	Pool    *remote.Pool
	Secrets Secrets
	Own     ssh.Signer // for logins without a secret
	Facts   func(fact.Key) (fact.Fact, bool)

	mu   sync.Mutex               // guards what follows
	seen map[string]ssh.PublicKey // host keys of this run, by switch
}

// Run implements switchos.Switches.
func (s *Switches) Run(ctx context.Context, name string, c onnode.Command) (onnode.Output, error) {
	cfg, err := s.config(name)
	if err != nil {
		return onnode.Output{}, err
	}
	cmd := sshCommand(c)
	cmd.MaxOutput = largestOutput
	r, err := s.Pool.Run(ctx, cfg, cmd)
	return outputOf(c, r, err)
}

// HostKey implements switchos.Switches.
func (s *Switches) HostKey(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.seen[name]; key != nil {
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	}
	return ""
}

// config is how a switch is reached. Its secrets are resolved here, and only here.
func (s *Switches) config(name string) (remote.Config, error) {
	sw := s.find(name)
	if sw == nil || sw.Login == nil {
		return remote.Config{}, errkind.New(errkind.NotFound, "switch %s has no login in the inventory", name).Do("Give it one, or its fabric: `login = login.NAME`.")
	}
	if !sw.Address.IsValid() {
		return remote.Config{}, errkind.New(errkind.NotFound, "switch %s has no address", name).Do("Give its block the address of its management port.")
	}
	cfg := remote.Config{Node: name, Switch: true, Addr: netip.AddrPortFrom(sw.Address, sw.Login.Port), User: sw.Login.Username}
	if err := authenticate(&cfg, "switch "+name, sw.Login, s.Secrets, s.Own); err != nil {
		return cfg, err
	}
	return cfg, s.setHostKey(&cfg, sw)
}

func (s *Switches) find(name string) *inventory.Switch {
	for _, sw := range s.Inv.Switches {
		if sw.Name == name {
			return sw
		}
	}
	return nil
}

// authenticate sets the key or the password of a login. whose is what it is for, for error texts.
func authenticate(cfg *remote.Config, whose string, g *inventory.Login, secrets Secrets, own ssh.Signer) error {
	ref := g.Password
	if g.Key != "" {
		ref = g.Key
	}
	if ref == "" && own == nil {
		return errkind.New(errkind.Auth, "login %q of %s has no secret, and this controller has no key yet", g.Name, whose).
			Do("`ironrail apply` makes the key in .ironrail/keys; put its public half on the " + strings.Fields(whose)[0] + ". Or give the login a password or a key.")
	}
	if ref == "" {
		cfg.Signer = own
		return nil
	}
	v, err := secrets.Resolve(ref)
	if err != nil {
		return errkind.New(errkind.Auth, "login %q of %s: %w", g.Name, whose, err).Do("Make the secret available to this command, then run it again.")
	}
	if g.Key == "" {
		cfg.Password = v
		return nil
	}
	if cfg.Signer, err = ssh.ParsePrivateKey([]byte(v.Reveal())); err != nil {
		return errkind.New(errkind.Auth, "the key of login %q cannot be read: it is no OpenSSH private key without a passphrase", g.Name) // err may quote it
	}
	return nil
}

// setHostKey pins the host key: the one of the files, the one that was learned, or the
// first one that is shown.
func (s *Switches) setHostKey(cfg *remote.Config, sw *inventory.Switch) error {
	s.mu.Lock()
	seen := s.seen[cfg.Node]
	s.mu.Unlock()
	if seen != nil {
		cfg.HostKey = seen
		return nil
	}
	if f, ok := s.Facts(switchos.HostKeyFact.Of(switchos.Of(sw))); ok && sw.HostKey == "" {
		line, err := switchos.HostKeyFact.Get(f)
		if err != nil {
			return err
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return errkind.New(errkind.Corrupt, "the host key of switch %s in the state: %w", cfg.Node, err)
		}
		cfg.HostKey = key
		return nil
	}
	name, want := cfg.Node, sw.HostKey
	cfg.Trust = func(key ssh.PublicKey) error {
		if want != "" {
			if err := checkFingerprint(key, "switch", want); err != nil {
				return err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seen == nil {
			s.seen = map[string]ssh.PublicKey{}
		}
		s.seen[name] = key
		return nil
	}
	return nil
}

// checkFingerprint refuses a host key that is not the one of the files.
func checkFingerprint(key ssh.PublicKey, device, want string) error {
	got := ssh.FingerprintSHA256(key)
	if got == want {
		return nil
	}
	return errkind.New(errkind.Mismatch, "the %s shows the host key %s %s, and the site says %s", device, key.Type(), got, want).
		Do("Find out why before going on: another device may answer at this address. Compare with `ssh-keygen -lf` on the " + device + " itself; it may have a key of another type than the one written down.")
}
