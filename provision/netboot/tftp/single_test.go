// SPDX-License-Identifier: Apache-2.0

package tftp

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// rack knows the nodes of 10.80.0.0/16.
type rack struct{ loopback }

func (rack) ByAddress(a netip.Addr) (boot.Client, bool) {
	return boot.Client{Node: a.String(), MACs: []addr.MAC{{2}}}, netip.MustParsePrefix("10.80.0.0/16").Contains(a)
}

// quiet forgets evidence but for counts of its words.
type quiet struct {
	mu    sync.Mutex
	words map[string]int
}

func (q *quiet) Record(e boot.Evidence) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.words[e.What]++
}

// single serves in a bubble on a network in memory.
func single(t *testing.T, test func(t *testing.T, at func(i int, loss float64) *client, w *quiet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, w := network.NewMemory(), &quiet{words: map[string]int{}}
		conn, err := m.At(netip.MustParseAddr("10.0.0.2")).ListenPacket(t.Context(), "udp", ":69")
		if err != nil {
			t.Fatal(err)
		}
		to := conn.LocalAddr()
		s := New(Config{Loaders: loader.Set{loader.SNPOnly: image(100_000), loader.Undionly: image(1468 * 3)}, Source: rack{}, Recorder: w})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, conn) }()
		test(t, func(i int, loss float64) *client {
			p, err := m.At(netip.AddrFrom4([4]byte{10, 80 + byte(i>>16), byte(i >> 8), byte(i)})).ListenPacket(t.Context(), "udp", ":0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			return &client{conn: p, to: to, loss: loss, rnd: rand.New(rand.NewPCG(uint64(i), 2))}
		}, w)
		cancel()
		began := time.Now()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if d := time.Since(began); d > retries*timeout+5*time.Second {
			t.Errorf("stopping took %v", d)
		}
	})
}

func TestSinglePort(t *testing.T) {
	single(t, func(t *testing.T, at func(int, float64) *client, w *quiet) {
		for i, tt := range []struct {
			name, file string
			loss       float64
			options    []string
		}{
			{"plain", loader.SNPOnly, 0, nil},
			{"large blocks", loader.SNPOnly, 0, []string{"blksize", "1468", "tsize", "0"}},
			{"larger than allowed", loader.SNPOnly, 0, []string{"blksize", "8192"}},
			{"a whole number of blocks", loader.Undionly, 0, []string{"blksize", "1468"}},
			{"three of ten lost", loader.SNPOnly, 0.3, []string{"blksize", "1468"}},
		} {
			began := time.Now()
			got, err := at(i, tt.loss).get(tt.file, tt.options...)
			want := image(100_000)
			if tt.file == loader.Undionly {
				want = image(1468 * 3)
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, equal %v: %v", tt.name, len(got), bytes.Equal(got, want), err)
			}
			if d := time.Since(began); tt.loss == 0 && d != 0 {
				t.Errorf("%s took %v of virtual time", tt.name, d)
			}
		}
		if _, err := at(1, 0).get("secret"); err == nil || !strings.Contains(err.Error(), "no first-stage loader") {
			t.Errorf("another file: %v", err)
		}
		if _, err := at(1<<16, 0).get(loader.SNPOnly); err == nil || !strings.Contains(err.Error(), "no node of the inventory") {
			t.Errorf("somebody else: %v", err)
		}
		synctest.Wait()
		if w.words[eventRefused] != 2 || w.words[eventStart] != 5 {
			t.Errorf("evidence %v", w.words)
		}
	})
}

// TestSinglePortRack: as many as may load at once do, in no time.
func TestSinglePortRack(t *testing.T) {
	single(t, func(t *testing.T, at func(int, float64) *client, w *quiet) {
		var wg sync.WaitGroup
		began := time.Now()
		for i := range transfers {
			c := at(i, 0)
			wg.Go(func() {
				if got, err := c.get(loader.SNPOnly, "blksize", "1468"); len(got) != 100_000 || err != nil {
					t.Errorf("%d bytes: %v", len(got), err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("took %v of virtual time", d)
		}
		synctest.Wait() // for the last word of the server
		if w.words[EventDone] != transfers {
			t.Errorf("evidence %v", w.words)
		}
	})
}

// TestSinglePortStops while a client is in the middle and has gone away.
func TestSinglePortStops(t *testing.T) {
	single(t, func(t *testing.T, at func(int, float64) *client, _ *quiet) {
		c := at(1, 0)
		c.send(request(1, loader.SNPOnly))
		if _, _, err := c.conn.ReadFrom(make([]byte, 2048)); err != nil {
			t.Fatal(err)
		}
	})
}
