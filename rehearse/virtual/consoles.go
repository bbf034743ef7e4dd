// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
	"github.com/ironrail/ironrail/rehearse/virtual/sshd"
)

// consoleServer is an SSH server that gives serial consoles: which, the username says.
type consoleServer struct {
	world *World
	nodes map[string]*Node // by username
}

// consoleKey is the host key of the console server at an address. Nobody has the key of the site's.
func consoleKey(at netip.AddrPort, seed uint64) (ssh.Signer, error) {
	return sshd.HostKey(fmt.Sprintf("console server %s", at), seed)
}

// PinConsoles gives the consoles of an inventory the host keys that the console servers of a rack of this seed have, in
// place of the site's: who works on the rack compares them as it does those of hardware.
func PinConsoles(inv *inventory.Inventory, seed uint64) error {
	for _, n := range inv.Nodes {
		if n.Console == nil {
			continue
		}
		key, err := consoleKey(netip.AddrPortFrom(n.Console.Address, n.Console.Port), seed)
		if err != nil {
			return err
		}
		c := *n.Console
		c.HostKey = ssh.FingerprintSHA256(key.PublicKey())
		n.Console = &c
	}
	return nil
}

// openConsoles opens the sockets of console servers.
func (w *World) openConsoles(ctx context.Context) error {
	servers := map[netip.AddrPort]*consoleServer{}
	for _, n := range w.inv.Nodes {
		node := w.nodes[n.Name]
		if node == nil || n.Console == nil {
			continue
		}
		at := netip.AddrPortFrom(n.Console.Address, n.Console.Port)
		if s := servers[at]; s != nil {
			s.nodes[n.Console.Username] = node
			continue
		}
		s := &consoleServer{w, map[string]*Node{n.Console.Username: node}}
		servers[at] = s
		key, err := consoleKey(at, w.opt.Seed)
		if err != nil {
			return err
		}
		ln, err := w.opt.Board.At(at.Addr()).Listen(ctx, "tcp", at.String())
		if err != nil {
			return fmt.Errorf("console server %s: %w", at, err)
		}
		w.parts = append(w.parts, func(ctx context.Context) error { return s.serve(ctx, ln, key) })
	}
	return nil
}

// serve accepts connections until ctx ends, and returns when the last is closed. Any key lets a user in whose login has
// no password: whose keys are on a console server is no part of the site.
func (s *consoleServer) serve(ctx context.Context, ln net.Listener, key ssh.Signer) error {
	no := errors.New("permission denied")
	cfg := &ssh.ServerConfig{
		PasswordCallback: func(meta ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) {
			if n := s.nodes[meta.User()]; n != nil {
				want := n.inv.Console.Login.Password
				if want != "" && subtle.ConstantTimeCompare(given, []byte(s.world.password(want))) == 1 {
					return nil, nil
				}
			}
			return nil, no
		},
		PublicKeyCallback: func(meta ssh.ConnMetadata, _ ssh.PublicKey) (*ssh.Permissions, error) {
			if n := s.nodes[meta.User()]; n != nil && n.inv.Console.Login.Password == "" {
				return nil, nil
			}
			return nil, no
		},
	}
	cfg.AddHostKey(key)
	return sshd.Server{Config: cfg, Session: func(ctx context.Context, user string, ch ssh.Channel, requests <-chan *ssh.Request) {
		attach(ctx, s.nodes[user].serial, ch, requests)
	}}.Serve(ctx, ln)
}

// attach joins a session with a line, once it has asked for a shell in a terminal, until it ends. A line that somebody
// reads is refused, and one without a port at the node says nothing.
func attach(ctx context.Context, line *ipmi.Line, ch ssh.Channel, requests <-chan *ssh.Request) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ch.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if line == nil {
		line = ipmi.NewLine()
	}
	terminal, open := false, false
	for r := range requests {
		ok := r.Type == "pty-req" || r.Type == "break" && open
		terminal = terminal || r.Type == "pty-req"
		if r.Type == "shell" && terminal && !open {
			open = line.Attach(ctx, ch, wg.Go)
			ok = open
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}
