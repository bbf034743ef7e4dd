// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
)

// screen is what a console has shown.
type screen struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.b.Write(b)
}

// until waits until a text was shown.
func (s *screen) until(t *testing.T, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		got := s.b.String()
		s.mu.Unlock()
		if got == text {
			return
		}
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("%q, want %q", got, text)
		}
	}
}

// TestConsoleServer reads and types at the line of the node that the username chooses, by ironrail's client. The rack's
// key is pinned: that of the files is another; and a line has one reader.
func TestConsoleServer(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a socket of loopback
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().(*net.TCPAddr).AddrPort()
	login := &inventory.Login{Name: "ports", Password: "env:P"}
	site := &inventory.SSHConsole{Address: at.Addr(), Port: at.Port(), Login: login, Username: "port:1", HostKey: "SHA256:of-the-site"}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Console: site}, {Name: "n2"}}}
	if err := PinConsoles(inv, 7); err != nil {
		t.Fatal(err)
	}
	if site.HostKey != "SHA256:of-the-site" || inv.Nodes[1].Console != nil {
		t.Error("the site itself was changed")
	}
	w := &World{inv: inv, opt: Options{Seed: 7}}
	node := &Node{world: w, inv: inv.Nodes[0], serial: ipmi.NewLine()}
	key, err := consoleKey(netip.AddrPortFrom(at.Addr(), at.Port()), 7)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- (&consoleServer{w, map[string]*Node{"port:1": node}}).serve(ctx, ln, key)
	}()
	pinned := errkind.New(errkind.Mismatch, "another key")
	cfg := remote.Config{Node: "n1", Addr: at, User: "port:1", Password: secret.NewValue(w.password("env:P")), Trust: func(k ssh.PublicKey) error {
		if ssh.FingerprintSHA256(k) != inv.Nodes[0].Console.HostKey {
			return pinned
		}
		return nil
	}}
	out, keys, up, done := &screen{more: make(chan struct{}, 1)}, make(chan string), make(chan struct{}, 1), make(chan error, 1)
	reading, stop := context.WithCancel(ctx)
	go func() { done <- remote.Console(reading, cfg, "break", out, keys, func() { up <- struct{}{} }) }()
	<-up
	_, _ = node.serial.Write([]byte("login: "))
	out.until(t, "login: ")
	keys <- "ro"
	keys <- "break"
	keys <- "ot"
	for _, want := range []byte("root") {
		if got := <-node.serial.Typed(); got != want {
			t.Errorf("typed %q, want %q", got, want)
		}
	}
	for name, c := range map[string]struct {
		change func(*remote.Config)
		want   errkind.Kind
	}{
		"second reader":    {func(*remote.Config) {}, errkind.Refused},
		"another password": {func(c *remote.Config) { c.Password = secret.NewValue("other") }, errkind.Auth},
		"another line":     {func(c *remote.Config) { c.User = "port:2" }, errkind.Auth},
		"another key":      {func(c *remote.Config) { c.Trust = func(ssh.PublicKey) error { return pinned } }, errkind.Mismatch},
	} {
		other := cfg
		c.change(&other)
		if err := remote.Console(ctx, other, "break", out, nil, nil); errkind.Of(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	stop()
	end()
	if err := errors.Join(<-done, <-served); err != nil {
		t.Error(err)
	}
}
