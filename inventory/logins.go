// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/language"
)

// HostKeyMode is how the host key of a switch is believed.
type HostKeyMode string

// The modes. HostKeyGiven wants the key of every switch in the files.
const (
	HostKeyPinFirstSeen HostKeyMode = "pin-first-seen"
	HostKeyGiven        HostKeyMode = "given"
)

// Login is how ironrail logs in to switches. With neither password nor key it uses
// the controller's own SSH key, as on nodes.
type Login struct {
	Name     string
	Username string
	Password secret.Ref // "": none
	Key      secret.Ref // an OpenSSH private key; "": none
	Port     uint16     // default 22
	HostKey  HostKeyMode
	Decl     hcl.Range
}

// login decodes a login block.
func (l *loader) login(b *language.Body) *Login {
	g := &Login{
		Name: b.Name, Username: language.Get[string](b, "username"), Password: language.Get[secret.Ref](b, "password"), Key: language.Get[secret.Ref](b, "key"),
		Port: 22, HostKey: HostKeyMode(language.Get[string](b, "host_key")), Decl: b.Decl,
	}
	if b.Given("port") {
		g.Port = uint16(language.Get[int](b, "port"))
	}
	if b.Given("password") && b.Given("key") {
		l.diags.Add("switch.login", b.Range("key"), "Login with two secrets",
			fmt.Sprintf("Login %q has a password and a key. Keep one of them: a key that does not fit would be followed by the password, without a word.", g.Name)).Also("the password", b.Range("password")).In(b.Decl)
	}
	return g
}

// switchLogin gives a switch its login, its own or that of its fabric, and its
// host key.
func (l *loader) switchLogin(s *Switch, b *language.Body) {
	s.Login = readRef(b, "login", l.logins)
	if s.Login == nil && s.Fabric != nil {
		s.Login = s.Fabric.Login
	}
	if text := language.Get[string](b, "host_key"); text != "" {
		if s.HostKey = hostKeyFingerprint(text); s.HostKey == "" {
			l.diags.Add("switch.login", b.Range("host_key"), "Host key that is none",
				fmt.Sprintf("host_key of switch %s is a fingerprint as `ssh-keygen -lf` prints it: SHA256: and 43 characters of base64.", s.Name)).In(b.Decl)
		}
	}
}

// hostKeyFingerprint is a fingerprint of a host key in its one form; "": it is none.
func hostKeyFingerprint(text string) string {
	text = strings.TrimSpace(text)
	digest, is := strings.CutPrefix(text, "SHA256:")
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(digest, "="))
	if !is || err != nil || len(raw) != 32 {
		return ""
	}
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(raw)
}

// sonicOS is the switch system that ironrail can log in to.
const sonicOS = "sonic"

// checkLogins reports switches that cannot be logged in to though they should.
func (l *loader) checkLogins() {
	for _, s := range l.inv.Switches {
		g := s.Login
		if g == nil && s.Fabric != nil && s.Rack == nil {
			g = s.Fabric.Login // computed, so that it has no block of its own
		}
		if g == nil {
			continue
		}
		s.Login = g
		at, summary, text := s.Decl, "", ""
		switch own := l.bodies[s]; {
		case !strings.EqualFold(s.OS, sonicOS):
			if own == nil || !own.Given("login") {
				s.Login = nil // the login of the fabric is for its SONiC switches
				continue
			}
			at, summary, text = own.Range("login"), "Login to a switch of another system", fmt.Sprintf("Switch %s has os %q, and ironrail configures switches with os = \"sonic\" only.", s.Name, s.OS)
		case s.Rack == nil:
			summary, text = "Switch without a place", fmt.Sprintf("Switch %s is computed and stands in no rack, so that it has no address to log in at (login %q). Declare it in a rack, with its address.", s.Name, g.Name)
		case !s.Address.IsValid():
			summary, text = "Switch without an address", fmt.Sprintf("Switch %s is to be logged in to (login %q), and has no address. Give it that of its management port.", s.Name, g.Name)
		case g.HostKey == HostKeyGiven && s.HostKey == "":
			summary, text = "Switch without its host key", fmt.Sprintf("Login %q believes only host keys that are given, and switch %s has no host_key.", g.Name, s.Name)
		default:
			continue
		}
		l.diags.Add("switch.login", at, summary, text).Also("the login", g.Decl)
	}
}
