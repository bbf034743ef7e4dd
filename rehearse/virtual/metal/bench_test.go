// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

// fleet makes nodes of one block.
func fleet(nodes int, o Options) []*Node {
	h := hgx()
	all := make([]*Node, nodes)
	for i := range all {
		n := hgxNode()
		n.Hardware, n.Name, n.Serial, n.UUID, n.BootMAC = h, fmt.Sprintf("n%04d", i), "", "", addr.MAC{}
		all[i] = BuildNode(n, o)
	}
	return all
}

// live is the heap that is in use, bytes.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkBuild is what a node costs before anything happens to it.
func BenchmarkBuild(b *testing.B) {
	const nodes = 1000
	for b.Loop() {
		before := live()
		all := fleet(nodes, Options{Shared: NewShared()})
		b.ReportMetric(float64(live()-before)/nodes, "B/node")
		runtime.KeepAlive(all)
	}
}

// BenchmarkInstall takes nodes through the ramdisk by the real agent, all at once,
// over TLS on a network in memory and in virtual time.
func BenchmarkInstall(b *testing.B) {
	const nodes = 200
	image := metaltest.MakeImage(8<<20, 1)
	var t testing.T // synctest's, which says nothing
	for b.Loop() {
		began, failed := time.Now(), ""
		var bytes int64
		synctest.Test(&t, func(*testing.T) { bytes, failed = installAll(b, nodes, image) })
		if failed != "" {
			b.Fatal(failed)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/nodes, "us/node")
		b.ReportMetric(float64(bytes)/nodes, "B/node")
	}
}

// inBubble is a benchmark as code in a bubble may use it: nothing of it is called
// back from outside.
type inBubble struct{ *testing.B }

func (inBubble) Cleanup(func()) {}

func (inBubble) Context() context.Context { return context.Background() }

// installAll returns the heap that the nodes hold at the end.
func installAll(b *testing.B, nodes int, image []byte) (bytes int64, failed string) {
	first := serve(inBubble{b}, image)
	before := live()
	all := fleet(nodes, Options{Shared: NewShared(), Scale: 500})
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, n := range all {
		c := first.peer(n.Name())
		a := nodeAddr.As4()
		binary.BigEndian.PutUint16(a[2:], uint16(i)+256)
		r := c.ramdisk(n, netip.AddrFrom4(a))
		wg.Go(func() {
			if exit := r.Boot(context.Background(), n); exit != chassis.Reset || !n.Installed() {
				mu.Lock()
				defer mu.Unlock()
				failed = fmt.Sprintf("%s left by %v", n.Name(), exit)
			}
		})
		wg.Go(func() {
			<-c.hellos
			d := c.inspect()
			if _, failed := c.write(d, "w1"); failed == nil {
				c.configure(d, n)
			}
			c.do(wire.Reboot, wire.RebootParams{})
		})
	}
	wg.Wait()
	for _, s := range first.servers {
		s.Close() // in the bubble: its goroutines must end
	}
	bytes = live() - before
	runtime.KeepAlive(all)
	return bytes, failed
}
