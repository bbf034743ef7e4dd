// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"crypto/ed25519"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// TestSSHKeepsVirtualTime: the SSH library writes with a lock held. An upload to
// a node behind a slow cable, with probes beside it, must not stop virtual time,
// which it would if a write waited for the cable.
func TestSSHKeepsVirtualTime(t *testing.T) {
	const size, rate = 12 << 20, 8 << 20 // 12 s
	inBubble(t, func(t *testing.T, r *rig) {
		w := r.wire(11)
		w.Rate(rate, nil)
		l, err := w.Listen(t.Context(), "tcp", ":22")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan int64, 1)
		go serveSSH(t, l, got)
		c, err := r.net.At(ctlAt).Dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, chans, reqs, err := ssh.NewClientConn(c, "node", &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(conn, chans, reqs)
		s, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		in, _ := s.StdinPipe()
		if err := s.Start("cat"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 5 { // probes, which wait for the lock of the writer
				time.Sleep(time.Second)
				_, _, _ = client.SendRequest("keepalive@openssh.com", true, nil)
			}
		}()
		_, _ = io.CopyN(in, zeros{}, size)
		_ = in.Close()
		if n, d := <-got, time.Since(began); n != size || d < 11*time.Second || d > 14*time.Second {
			t.Errorf("%d bytes after %v", n, d)
		}
		<-done
		_, _ = client.Close(), l.Close()
	})
}

// serveSSH lets one client in and counts what it sends to a command.
func serveSSH(t *testing.T, l net.Listener, got chan<- int64) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Error(err)
		return
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Error(err)
		return
	}
	cfg := &ssh.ServerConfig{NoClientAuth: true}
	cfg.AddHostKey(signer)
	_, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		t.Error(err)
		return
	}
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range reqs {
				_ = r.Reply(true, nil)
			}
		}()
		go func() {
			n, _ := io.Copy(io.Discard, ch)
			got <- n
		}()
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
