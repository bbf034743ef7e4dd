// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
)

// breakLength is how long a break is on the line, in milliseconds (RFC 4335).
const breakLength = 500

// consoleRetryMost is the longest wait between two tries to open a console again.
const consoleRetryMost = 30 * time.Second

// Console copies what an SSH server prints in a terminal session to w until ctx ends, which is no error, and types
// what comes from keys, one text at a time; nil: nothing is ever sent. Such servers are console servers, with a port
// for each line, and BMCs with a port that is the node's console (2200 of OpenBMC). isBreak is what among keys stands
// for a break. up is called each time that it is open. The host key must be pinned: there is no first time. A
// connection that is lost, or that the server ends, is opened again, at most 30 s apart; the first that cannot be
// opened is the error.
func Console(ctx context.Context, cfg Config, isBreak string, w io.Writer, keys <-chan string, up func()) error {
	if cfg.HostKey == nil && cfg.Trust == nil {
		return consoleError(cfg, errkind.New(errkind.Refused, "its host key is not pinned"))
	}
	cfg, err := cfg.check()
	if err != nil {
		return consoleError(cfg, err)
	}
	ever, wait := false, time.Second
	for {
		opened, err := consoleOnce(ctx, cfg, isBreak, w, keys, up)
		ever = ever || opened
		if ctx.Err() != nil {
			return nil
		}
		if k := errkind.Of(err); !ever || k != errkind.Unreachable && k != errkind.Timeout {
			return consoleError(cfg, err)
		}
		if opened {
			wait = time.Second
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, consoleRetryMost)
	}
}

// consoleError puts the console in front of err, with what to do about a server that is no node.
func consoleError(cfg Config, err error) error {
	act := errkind.Action(err)
	switch errkind.Of(err) {
	case errkind.Unreachable, errkind.Timeout:
		act = "Check address and port of the console block, and that the console server is up."
	case errkind.Auth:
		act = "Check the username of the console, and that its server takes the password or the key that the login refers to."
	}
	return errkind.New(errkind.Of(err), "console of %s: ssh %s: %w", cfg.Node, cfg.Addr, err).Do(act)
}

// consoleOnce copies over one connection. It reports whether the console was open.
func consoleOnce(ctx context.Context, cfg Config, isBreak string, w io.Writer, keys <-chan string, up func()) (bool, error) {
	on, err := connectNode(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer on.close()
	defer context.AfterFunc(ctx, on.kill)()
	s, err := on.client.NewSession()
	if err != nil {
		return false, errkind.New(errkind.Refused, "no session: %w", err)
	}
	out, in := &firstError{w: w, end: on.kill}, io.WriteCloser(nil)
	s.Stdout, s.Stderr = out, out
	if in, err = s.StdinPipe(); err == nil {
		if err = s.RequestPty("vt100", 24, 80, ssh.TerminalModes{}); err == nil {
			err = s.Shell()
		}
	}
	if err != nil {
		return false, errkind.New(errkind.Refused, "no terminal: %w", err)
	}
	if up != nil {
		up()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }() // ends with the connection
	for {
		select {
		case <-ended:
			if err := out.get(); err != nil {
				return true, err
			}
			return true, errkind.New(errkind.Unreachable, "the server ended the console")
		case k := <-keys:
			if err := sendKeys(s, in, k, isBreak); err != nil {
				return true, errkind.New(errkind.Unreachable, "%w", err)
			}
		}
	}
}

// sendKeys sends one text, or a break.
func sendKeys(s *ssh.Session, in io.Writer, keys, isBreak string) error {
	if keys != isBreak {
		_, err := io.WriteString(in, keys)
		return err
	}
	_, err := s.SendRequest("break", false, ssh.Marshal(struct{ Milliseconds uint32 }{breakLength}))
	return err
}

// firstError keeps the first error of a writer, which ends the connection.
type firstError struct {
	end func()

	mu  sync.Mutex // guards what follows
	w   io.Writer
	err error
}

func (f *firstError) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.w.Write(b)
	if err != nil && f.err == nil {
		f.err = err
		f.end()
	}
	return n, err
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
