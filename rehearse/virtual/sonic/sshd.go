// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/rehearse/virtual/sshd"
	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

const serverString = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3"

// Serve accepts connections until ctx ends, and returns when the last is closed.
// Any key lets the user in: whose keys are on a switch is no part of the site.
func (s *Switch) Serve(ctx context.Context, ln net.Listener) error {
	host, err := sshd.HostKey(s.cfg.Name, s.cfg.Seed)
	if err != nil {
		return err
	}
	cfg := sshd.OpenSSH(serverString)
	cfg.PasswordCallback = func(meta ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) {
		if s.cfg.Password != "" && meta.User() == s.cfg.User && subtle.ConstantTimeCompare(given, []byte(s.cfg.Password)) == 1 {
			return nil, nil
		}
		return nil, errors.New("permission denied")
	}
	cfg.PublicKeyCallback = func(meta ssh.ConnMetadata, _ ssh.PublicKey) (*ssh.Permissions, error) {
		if meta.User() == s.cfg.User {
			return nil, nil
		}
		return nil, errors.New("permission denied")
	}
	cfg.AddHostKey(host)
	return sshd.Server{Config: cfg, Cut: s.isCut, Session: s.session}.Serve(ctx, ln)
}

// session runs the one command of a session.
func (s *Switch) session(ctx context.Context, _ string, ch ssh.Channel, requests <-chan *ssh.Request) {
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
