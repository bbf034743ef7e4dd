// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"context"
	"crypto/subtle"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// mostUnknown is how many connections may wait at once to be let in.
const mostUnknown = 2 * mostStreams

// server is the end that listens.
type server struct {
	s       Session
	came    chan struct{} // closed once the other end is there
	left    chan struct{} // closed once it is gone again
	once    sync.Once     // there is one control connection
	waiting chan struct{} // has room for unknown clients

	mu  sync.Mutex // guards what follows
	in  *meter     // made by the first connection of its direction
	out *sender
}

// Serve implements Machine.
func (Host) Serve(ctx context.Context, s Session, ready func(tcp, udp uint16) error) (seen Seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Wait+s.limit())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(s.Local, 0).String())
	if err != nil {
		return seen, errkind.New(errkind.Internal, "%w", err)
	}
	defer ln.Close()
	echo, port, err := s.listenEcho(ctx)
	if err != nil {
		return seen, errkind.New(errkind.Internal, "%w", err)
	}
	defer echo.Close()
	v := &server{s: s, came: make(chan struct{}), left: make(chan struct{}), waiting: make(chan struct{}, mostUnknown)}
	all.Go(func() { v.accept(ctx, ln, &all) })
	all.Go(func() { s.answerProbes(echo) })
	if err := ready(ln.Addr().(*net.TCPAddr).AddrPort().Port(), port); err != nil {
		return seen, errkind.New(errkind.Interrupted, "nobody reads where this end listens: %w", err)
	}
	if err := v.wait(ctx); err != nil {
		return seen, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.in != nil {
		seen.Received = v.in.total()
	}
	if v.out != nil {
		seen.Sent = v.out.total()
	}
	return seen, nil
}

// wait waits for the other end to come, and to be done.
func (v *server) wait(ctx context.Context) error {
	late, stop := context.WithTimeout(ctx, v.s.Wait)
	defer stop()
	select {
	case <-v.came:
	case <-late.Done():
		return errkind.New(errkind.Unreachable, "%w: none came in %s", errNoPeer, v.s.Wait)
	}
	select {
	case <-v.left:
		return nil
	case <-ctx.Done():
		return errkind.New(errkind.Timeout, "the measurement did not end in %s: %w", v.s.limit(), ctx.Err())
	}
}

// accept takes connections until the listener is closed. Those that are too many to be let in at
// once are closed.
func (v *server) accept(ctx context.Context, ln net.Listener, all *sync.WaitGroup) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		select {
		case v.waiting <- struct{}{}:
			all.Go(func() { v.serve(ctx, conn.(*net.TCPConn)) })
		default:
			_ = conn.Close()
		}
	}
}

// serve lets in whoever knows the token.
func (v *server) serve(ctx context.Context, c *net.TCPConn) {
	defer c.Close()
	what, ok := v.admit(ctx, c)
	<-v.waiting
	if !ok {
		return
	}
	switch what {
	case control:
		v.once.Do(func() {
			defer close(v.left)
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			close(v.came)
			_, _ = io.Copy(io.Discard, c) // until the other end closes it
		})
	case toPeer:
		v.mu.Lock()
		if v.in == nil {
			v.in = newMeter(v.s.Long)
		}
		in := v.in
		v.mu.Unlock()
		in.receive(ctx, c)
	case toSelf:
		v.mu.Lock()
		if v.out == nil {
			v.out = newSender(v.s.Long)
		}
		out := v.out
		v.mu.Unlock()
		out.send(ctx, c)
	}
}

// admit reads the first message of a connection.
func (v *server) admit(ctx context.Context, c *net.TCPConn) (what byte, ok bool) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetDeadline(wall.Now().Add(dialTime))
	hello := make([]byte, tokenBytes+1)
	if _, err := io.ReadFull(c, hello); err != nil || subtle.ConstantTimeCompare(hello[:tokenBytes], v.s.Token[:]) != 1 {
		return 0, false
	}
	if _, err := c.Write([]byte{letIn}); err != nil {
		return 0, false
	}
	_ = c.SetDeadline(time.Time{})
	return hello[tokenBytes], true
}
