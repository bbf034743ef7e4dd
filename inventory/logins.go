// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/base64"
	"fmt"
	"net/netip"
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

// Login is how ironrail logs in to switches and to consoles. With neither password nor key it uses
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
		var err error
		if s.HostKey, err = parseHostKey(text); err != nil {
			l.diags.Add("switch.login", b.Range("host_key"), "Host key that is none",
				fmt.Sprintf("host_key of switch %s is a fingerprint as `ssh-keygen -lf` prints it: SHA256: and 43 characters of base64.", s.Name)).In(b.Decl)
		}
	}
}

// parseHostKey is a fingerprint of a host key in its one form; "" with an error.
func parseHostKey(text string) (string, error) {
	digest, is := strings.CutPrefix(strings.TrimSpace(text), "SHA256:")
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(digest, "="))
	if !is || err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%q is no fingerprint as `ssh-keygen -lf` prints it: SHA256: and 43 characters of base64", text)
	}
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(raw), nil
}

// SSHConsole is the serial console of a node as an SSH server gives it: a console server, or a BMC by a port of its
// own. The host key must be given, since what is typed there may be a password.
type SSHConsole struct {
	Address  netip.Addr
	Port     uint16 // default that of the login
	Login    *Login
	Username string // default that of the login; console servers may choose the line by it
	HostKey  string // fingerprint, "SHA256:..."
	Decl     hcl.Range
}

// console decodes the console block of a node; that of its override stands for all of it.
func (l *loader) console(n *Node, node, over *language.Body) {
	b := over.Block("console")
	if b == nil {
		b = node.Block("console")
	}
	if b == nil {
		return
	}
	c := &SSHConsole{Address: language.Get[netip.Addr](b, "address"), Login: readRef(b, "login", l.logins), Username: language.Get[string](b, "username"),
		HostKey: language.Get[string](b, "host_key"), Decl: b.Decl}
	if c.Login == nil || !c.Address.IsValid() || c.HostKey == "" {
		return // reported
	}
	if c.Port = c.Login.Port; b.Given("port") {
		c.Port = uint16(language.Get[int](b, "port"))
	}
	if c.Username == "" {
		c.Username = c.Login.Username
	}
	n.Console = c
}

// checkConsoles reports a console that two nodes have: what is typed at one would reach the other.
func (l *loader) checkConsoles() {
	type line struct {
		at       netip.AddrPort
		username string
	}
	first := map[line]*Node{}
	for _, n := range l.inv.Nodes {
		if n.Console == nil {
			continue
		}
		at := line{netip.AddrPortFrom(n.Console.Address, n.Console.Port), n.Console.Username}
		if was := first[at]; was != nil {
			l.diags.Add("address.duplicate", n.Console.Decl, "Console used twice",
				fmt.Sprintf("The console at %s with the username %s is that of %s and of %s. Give one of them another port or username.", at.at, at.username, was.Name, n.Name)).Also("used first here", was.Console.Decl).In(n.Decl).Of(n.Name)
			continue
		}
		first[at] = n
	}
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
