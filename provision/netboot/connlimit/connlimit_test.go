// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// known: 127.0.1.1 is a node with an open attempt, 127.0.1.2 one without, 127.0.1.3
// the first one's BMC.
type known struct{}

func (known) ByMAC(addr.MAC) (boot.Client, bool) { return boot.Client{}, false }
func (known) ByAddress(a netip.Addr) (boot.Client, bool) {
	c, ok := map[string]boot.Client{
		"127.0.1.1": {Node: "n1", MACs: []addr.MAC{{2, 0, 0, 0, 0, 1}}}, "127.0.1.2": {Node: "n2"}, "127.0.1.3": {Node: "n1", Kind: boot.BMC}}[a.String()]
	return c, ok
}
func (known) Attempt(node string) (boot.Attempt, bool) { return boot.Attempt{}, node == "n1" }

type notes struct {
	mu  sync.Mutex
	all []boot.Evidence
}

func (n *notes) Record(e boot.Evidence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

func (n *notes) of(from string) []boot.Evidence {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.all), func(e boot.Evidence) bool { return e.Address.String() != from })
}

// door is a listener whose accepted connections are held open, and its callers.
type door struct {
	t        *testing.T
	saw      *notes
	ln       *Listener
	accepted chan net.Conn
}

func open(t *testing.T, limits Limits) *door {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, saw: &notes{}, accepted: make(chan net.Conn, 10_000)}
	d.ln = New(ln, limits, known{}, d.saw, boot.HTTP)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := d.ln.Accept()
			if err != nil {
				return
			}
			d.accepted <- c
			c.Write([]byte("+"))
		}
	}()
	return d
}

// call connects and reports whether the connection was admitted.
func (d *door) call(from string) (net.Conn, bool) {
	d.t.Helper()
	dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	c, err := dial.DialContext(ctx, "tcp4", d.ln.Addr().String())
	if err != nil {
		return nil, false // reset at once
	}
	d.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	n, _ := c.Read(make([]byte, 1))
	return c, n == 1
}

// admitted opens up to n connections and returns how many were admitted.
func (d *door) admitted(from string, n int) (sum int) {
	for range n {
		if _, ok := d.call(from); ok {
			sum++
		}
	}
	return sum
}

func TestShares(t *testing.T) {
	t.Parallel()
	limits := Limits{Total: 20, Reserve: 5, Known: 8, Unknown: 2, AllUnknown: 5}
	d := open(t, limits)
	for _, step := range []struct {
		name, from string
		n, want    int
	}{
		{"one unknown", "127.0.9.1", 100, 2},
		{"another", "127.0.9.2", 100, 2},
		{"all unknown clients together", "127.0.9.3", 100, 1},
		{"a node without an attempt", "127.0.1.2", 100, 8},
		{"a BMC, within what is not reserved", "127.0.1.3", 100, 2},
		{"a node that is to boot, from the reserve", "127.0.1.1", 100, 5},
	} {
		if got := d.admitted(step.from, step.n); got != step.want {
			t.Errorf("%s: %d connections of %d, want %d", step.name, got, step.n, step.want)
		}
		told := d.saw.of(step.from)
		if len(told) != step.n-step.want || told[0].What != eventRefused || !told[0].Refused || told[0].Proto != boot.HTTP {
			t.Errorf("%s: %d refusals are told, want %d: %+v", step.name, len(told), step.n-step.want, told[:min(1, len(told))])
		}
	}
}

// TestRelease: what is closed, also twice, may be opened again.
func TestRelease(t *testing.T) {
	t.Parallel()
	d := open(t, Limits{Known: 1, Unknown: -1})
	for range 50 {
		c, ok := d.call("127.0.1.1")
		if !ok {
			t.Fatal("the only connection is refused")
		}
		if _, second := d.call("127.0.1.1"); second {
			t.Fatal("a second connection is admitted")
		}
		held := <-d.accepted
		held.Close()
		held.Close()
		c.Close()
	}
	if n := d.admitted("127.0.9.1", 3); n != 0 {
		t.Errorf("%d connections of an unknown client where none may have one", n)
	}
	d.ln.mu.Lock()
	defer d.ln.mu.Unlock()
	if d.ln.total != 0 || len(d.ln.open) != 0 {
		t.Errorf("%d connections are counted, %v", d.ln.total, d.ln.open)
	}
}

// TestSlowReader: a client that asks and does not take what is sent is cut off, for
// files and for what programs write; one that takes it gets it all.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const size = 64 << 20 // more than the buffers of both sockets
	path := filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(net.Conn) (int64, error){
		"file": func(c net.Conn) (int64, error) {
			f, err := os.Open(path)
			if err != nil {
				return 0, err
			}
			defer f.Close()
			return c.(io.ReaderFrom).ReadFrom(&io.LimitedReader{R: f, N: size})
		},
		"stream": func(c net.Conn) (int64, error) {
			return c.(io.ReaderFrom).ReadFrom(bytes.NewReader(make([]byte, size)))
		},
		"write": func(c net.Conn) (int64, error) {
			n, err := c.Write(make([]byte, size))
			return int64(n), err
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, Limits{Rate: 1 << 30, Grace: 50 * time.Millisecond})
			if _, ok := d.call("127.0.1.1"); !ok {
				t.Fatal("refused")
			}
			n, err := send(<-d.accepted)
			if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() || n >= size {
				t.Errorf("%d bytes to one that does not read: %v, want a timeout", n, err)
			}
			if told := d.saw.of("127.0.1.1"); len(told) != 1 || told[0].What != eventSlow || told[0].Node != "n1" || !strings.Contains(told[0].Detail, "127.0.1.1") {
				t.Errorf("told: %+v", told)
			}
		})
		t.Run(name+" that is taken", func(t *testing.T) {
			t.Parallel()
			d := open(t, Limits{Rate: 1 << 10, Grace: 20 * time.Second})
			c, ok := d.call("127.0.1.1")
			if !ok {
				t.Fatal("refused")
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = c.SetDeadline(time.Time{})
				if n, err := io.CopyN(io.Discard, c, size); err != nil {
					t.Errorf("read %d: %v", n, err)
				}
			})
			if n, err := send(<-d.accepted); n != size || err != nil {
				t.Errorf("sent %d, %v", n, err)
			}
			wg.Wait()
		})
	}
}

// TestServersDeadlineHolds: the deadline of the server is kept where it is earlier
// than that of the rate, and is not pushed out by writing.
func TestServersDeadlineHolds(t *testing.T) {
	t.Parallel()
	d := open(t, Limits{Rate: 1, Grace: time.Hour})
	if _, ok := d.call("127.0.1.1"); !ok {
		t.Fatal("refused")
	}
	c := <-d.accepted
	if err := c.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if told := d.saw.of("127.0.1.1"); len(told) != 0 {
		t.Errorf("told: %+v", told)
	}
}
