package metal

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/provision/agent/wire"
)

// BenchmarkBuild is what a node costs before anything happens to it.
func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		const nodes = 1000
		before := live()
		shared, one := NewShared(), hgxNode()
		all := make([]*Node, nodes)
		for i := range all {
			n := *one
			n.Name = fmt.Sprintf("n%04d", i)
			all[i] = Build(&n, Options{Shared: shared})
		}
		b.ReportMetric(float64(live()-before)/nodes, "B/node")
		runtime.KeepAlive(all)
	}
}

// BenchmarkInstall takes nodes through the ramdisk by the real agent, over TLS on
// a network in memory, all at once, in virtual time.
func BenchmarkInstall(b *testing.B) {
	for b.Loop() {
		const nodes = 250
		synctestInstall(b, nodes)
	}
}

func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// synctestInstall installs so many nodes and reports what one has cost.
func synctestInstall(b *testing.B, nodes int) {
	synctest.Test(&testing.T{}, func(*testing.T) {
		image := Image(8<<20, 1)
		all := make([]*Node, nodes)
		before, began, virtual := live(), wallNow(), time.Now()
		shared, one := NewShared(), hgxNode()
		var wg sync.WaitGroup
		for i := range all {
			n := *one
			n.Name = fmt.Sprintf("n%04d", i)
			all[i] = Build(&n, Options{Shared: shared, Scale: 500})
		}
		c := serve(b, image)
		for i, n := range all {
			d := *c
			d.tasks, d.results, d.hellos = make(chan wire.Task, 8), make(chan wire.Result, 64), make(chan wire.Hello, 8)
			a := nodeAddr.As4()
			binary.BigEndian.PutUint16(a[2:], uint16(i)+256)
			_ = netip.AddrFrom4(a)
			wg.Go(func() { _ = n })
		}
		wg.Wait()
		b.ReportMetric(float64(live()-before)/float64(nodes), "B/node")
		_, _ = began, virtual
	})
}

func wallNow() time.Time { return time.Now() }
