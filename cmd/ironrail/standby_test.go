// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/sockets"
)

// TestStandbySockets: a standby that does not own the site within a while has nobody wait at a socket that it
// got from the process before, and one that does keeps it.
func TestStandbySockets(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"takes over": false, "waits on": true} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		kept := sockets.Keep(nil, []*os.File{f}, nil)
		at := ln.Addr().String()
		_ = ln.Close() // what was handed over stays
		isOpen := func() bool {
			c, err := net.Dial("tcp", at)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		}
		const in = 20 * time.Millisecond
		stop := dropLate(kept, in)
		if !waits {
			stop()
		}
		for by := time.Now().Add(5 * time.Second); waits && isOpen() && time.Now().Before(by); {
			time.Sleep(in)
		}
		if time.Sleep(2 * in); isOpen() == waits {
			t.Errorf("%s: the socket is open: %v", name, !waits)
		}
		kept.Drop()
	}
}
