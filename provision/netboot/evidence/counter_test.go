// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// passed counts what a limiter passes on.
type passed struct{ atomic.Int64 }

func (p *passed) Record(boot.Evidence) { p.Add(1) }

// TestCounter: what a limiter omits is counted, each of it once, from many goroutines.
func TestCounter(t *testing.T) {
	var n passed
	l := NewLimiter(&n)
	c := NewCounter(l)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 500 {
				c.Record(boot.Evidence{Time: time.Unix(1, 0), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), Proto: boot.TFTP, What: "no file", Refused: true})
				c.Record(boot.Evidence{Time: time.Unix(1, 0), Node: "n1", Proto: boot.TFTP, What: "sent", Bytes: 100})
			}
		})
	}
	wg.Wait()
	l.Close()
	want := []Count{{Proto: boot.TFTP, What: "no file", Refused: true, Events: 2000}, {Proto: boot.TFTP, What: "sent", Events: 2000, Bytes: 200_000}}
	if got := c.Counts(); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	if n.Load() >= 200 {
		t.Errorf("%d of 4000 were recorded: too few were omitted", n.Load())
	}
	other := []Count{{Proto: boot.DHCP, What: "offer", Events: 1}, {Proto: boot.TFTP, What: "no file", Events: 1}, {Proto: boot.TFTP, What: "sent", Events: 1, Bytes: 5}}
	sum := []Count{other[0], other[1], want[0], {Proto: boot.TFTP, What: "sent", Events: 2001, Bytes: 200_005}}
	if got := Sum(want, other); !slices.Equal(got, sum) {
		t.Errorf("sum %+v", got)
	}
	if got := Sum(other, want); !slices.Equal(got, sum) {
		t.Errorf("sum, the other way, %+v", got)
	}
}
