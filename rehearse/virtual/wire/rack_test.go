// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/rehearse/virtual/wire"
)

// BenchmarkRack is the image download of a whole site: 5 GiB a node, of which 256
// KiB are real, through one uplink of 25 Gbit/s.
func BenchmarkRack(b *testing.B) {
	const real, declared = 256 << 10, 5 << 30
	for _, nodes := range []int{128, 1024, 4096} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			for b.Loop() {
				synctest.Test(&testing.T{}, func(*testing.T) {
					b.ReportMetric(rack(b, nodes, real, declared).Seconds(), "virtual-s")
				})
			}
		})
	}
}

// rack returns how long all downloads take.
func rack(b *testing.B, nodes, real, declared int) time.Duration {
	m, up := network.NewMemory(), wire.NewUplink(25e9)
	l, err := m.At(ctlAt).Listen(context.Background(), "tcp", ":80")
	if err != nil {
		b.Fatal(err)
	}
	image := make([]byte, real)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range nodes {
			c, err := l.Accept()
			if err != nil {
				b.Error(err)
				return
			}
			wg.Go(func() {
				_, _ = c.Write(image)
				_ = c.Close()
			})
		}
	})
	began := time.Now()
	for i := range nodes {
		wg.Go(func() {
			w := wire.New(m.At(netip.AddrFrom4([4]byte{10, 80, byte(i >> 8), byte(i)})), clock.Wall{})
			w.Rate(25e9, up)
			c, err := w.Scaled(float64(declared/real)).Dial(context.Background(), "tcp", l.Addr().String())
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			if n, err := io.Copy(io.Discard, c); n != int64(real) || err != nil {
				b.Errorf("%d bytes: %v", n, err)
			}
		})
	}
	wg.Wait()
	_ = l.Close()
	return time.Since(began)
}
