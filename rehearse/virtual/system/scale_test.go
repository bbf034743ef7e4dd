// SPDX-License-Identifier: Apache-2.0

package system_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// mostIdle is what an installed node may cost while nothing happens on it, bytes.
const mostIdle = 100 << 10

// What many nodes cost: memory while they idle without and with a connection, and
// the processor for a connection and for a command. The figures are logged.
func TestLongManyNodes(t *testing.T) {
	nodes := 200
	if testing.Short() {
		nodes = 50
	}
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(nodes, 8, 400e9)
		r := systemtest.New(t, inv)
		defer r.Stop()
		before := heap()
		r.Wait()
		time.Sleep(time.Minute)
		idle := (heap() - before) / int64(nodes)
		all := func() time.Duration {
			began := cputime.Used()
			var wg sync.WaitGroup
			for _, n := range inv.Nodes {
				wg.Go(func() {
					var got wire.NodeCheck
					if err := onnode.Agent(t.Context(), r, n.Name, struct{}{}, &got, "check"); err != nil || got.System != "running" {
						t.Errorf("%+v, %v", got, err)
					}
				})
			}
			wg.Wait()
			return (cputime.Used() - began) / time.Duration(nodes)
		}
		first, next := all(), all()
		connected := (heap() - before) / int64(nodes)
		t.Logf("a node: %d KiB idle, %d KiB with a connection (both ends); %v for connection and check, %v for a check", idle>>10, connected>>10, first, next)
		if idle > mostIdle {
			t.Errorf("an idle node costs %d bytes", idle)
		}
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
