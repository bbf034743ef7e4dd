// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// large is a backend with a large status.
type large struct{ Backend }

func (large) Status(context.Context) (Status, error) {
	return Status{Nodes: []state.Node{{Name: strings.Repeat("n", 4*partSize)}}}, nil
}

func (large) Why(context.Context, string) (Why, error) {
	return Why{}, errkind.New(errkind.Refused, "%s", strings.Repeat("e", 4*partSize))
}

// pipes is a listener without a kernel, whose buffers would take what nobody reads.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

// ask connects and asks for a path.
func (p pipes) ask(t *testing.T, path string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	p <- there
	if _, err := io.WriteString(here, "GET "+path+" HTTP/1.1\r\nHost: ironrail\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return here
}

// TestStoppedReader: clients that do not read their answers hold the slots of the socket for
// lineTime and no longer, and one that reads slowly has all of its answer.
func TestStoppedReader(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/status", "/why/n1"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { stopReading(t, path) })
		})
	}
}

func stopReading(t *testing.T, path string) {
	ctx, cancel := context.WithCancel(t.Context())
	ln, served := make(pipes), make(chan error, 1)
	go func() { served <- Serve(ctx, ln, large{}, "1") }()
	var stopped []net.Conn
	for range maxRequests {
		stopped = append(stopped, ln.ask(t, path))
	}
	synctest.Wait()
	read := func(each time.Duration) (int, error) {
		c := ln.ask(t, path)
		defer c.Close()
		got, part := 0, make([]byte, partSize)
		for {
			n, err := c.Read(part)
			if got += n; err != nil || got > 4*partSize {
				return got, err
			}
			time.Sleep(each / 16) // net/http writes 4 KiB at a time
		}
	}
	if n, err := read(0); err != nil && err != io.EOF || n > partSize {
		t.Errorf("with all slots taken: %d bytes, %v", n, err)
	}
	time.Sleep(lineTime)
	synctest.Wait()
	if n, err := read(lineTime - time.Second); n <= 4*partSize {
		t.Errorf("slots are still taken after %v: %d bytes, %v", lineTime, n, err)
	}
	cancel()
	close(ln)
	if err := <-served; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	for _, c := range stopped {
		_ = c.Close()
	}
}
