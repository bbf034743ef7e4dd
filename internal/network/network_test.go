// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"io"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/network/networktest"
)

var nodeAddr = netip.MustParseAddr("10.77.1.11")

func TestOS(t *testing.T) {
	t.Parallel()
	networktest.Run(t, "127.0.0.1", func() network.Network { return network.OS{} })
}

func TestMemory(t *testing.T) {
	t.Parallel()
	networktest.RunBoard(t, func() network.Board { return network.NewMemory() })
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	networktest.RunBoard(t, func() network.Board { return network.NewLoopback() })
}

// TestMemoryKeepsVirtualTime: time jumps over a wait, and never while bytes are
// under way.
func TestMemoryKeepsVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		l, err := m.At(nodeAddr).Listen(t.Context(), "tcp", "0.0.0.0:623")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			time.Sleep(time.Hour) // POST
			_, _ = c.Write(make([]byte, 1<<20))
		}()
		began := time.Now()
		c, err := m.At(netip.MustParseAddr("10.77.0.2")).Dial(t.Context(), "tcp", nodeAddr.String()+":623")
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(began.Add(time.Hour + time.Nanosecond))
		n, err := io.Copy(io.Discard, c)
		if n != 1<<20 || err != nil || time.Since(began) != time.Hour {
			t.Errorf("%d bytes after %v: %v", n, time.Since(began), err)
		}
		if got := c.LocalAddr().String(); got[:9] != "10.77.0.2" {
			t.Errorf("dialled from %s", got)
		}
		_, _ = c.Close(), l.Close()
	})
}
