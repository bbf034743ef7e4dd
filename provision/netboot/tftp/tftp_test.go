// SPDX-License-Identifier: Apache-2.0

package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// loopback knows 127.0.0.1 as n1, 127.0.0.2 as its BMC, and nobody else.
type loopback struct{}

func (loopback) ByMAC(addr.MAC) (boot.Client, bool) { return boot.Client{}, false }
func (loopback) ByAddress(a netip.Addr) (boot.Client, bool) {
	switch a.String() {
	case "127.0.0.1":
		return boot.Client{Node: "n1", MACs: []addr.MAC{{2}}}, true
	case "127.0.0.4":
		return boot.Client{Node: "n4", MACs: []addr.MAC{{4}}, MOK: true}, true
	case "127.0.0.2":
		return boot.Client{Node: "n1", Kind: boot.BMC}, true
	}
	return boot.Client{}, false
}
func (loopback) Attempt(string) (boot.Attempt, bool) { return boot.Attempt{}, false }

type notes chan boot.Evidence

func (n notes) Record(e boot.Evidence) { n <- e }

func (n notes) await(t *testing.T, what string) boot.Evidence {
	t.Helper()
	limit := time.After(5 * time.Minute) // of a test that hangs
	for {
		select {
		case e := <-n:
			if e.What == what {
				return e
			}
		case <-limit:
			t.Fatalf("no evidence %q", what)
		}
	}
}

func image(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// start serves on loopback and returns the address and what stops it.
func start(t *testing.T) (string, notes, context.CancelFunc) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := make(notes, 1000)
	s := New(Config{Loaders: loader.Set{loader.SNPOnly: image(100_000), loader.Undionly: image(1468 * 3), loader.MOKX64: image(1000)}, Source: loopback{}, Recorder: n})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, conn) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return conn.LocalAddr().String(), n, cancel
}

// client is a small RFC 1350 and 2348 client of our own, so that server and
// client do not share their mistakes. It may lose datagrams both ways.
type client struct {
	conn net.PacketConn
	to   net.Addr
	loss float64
	rnd  *rand.Rand
	hold func(block uint16) // called for each block; may be nil
}

// patience is how long the client waits before it sends again. Where nothing gets
// lost it is long: a request that is sent twice is two transfers.
func (c *client) patience() time.Duration {
	if c.loss > 0 {
		return 300 * time.Millisecond
	}
	return 30 * time.Second
}

func dial(t *testing.T, server, from string, loss float64) *client {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp4", server)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)})
	if err != nil {
		t.Skipf("needs the address %s: %v", from, err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn: conn, to: to, loss: loss, rnd: rand.New(rand.NewPCG(1, 2))}
}

func (c *client) send(b []byte) {
	if c.rnd.Float64() >= c.loss {
		c.conn.WriteTo(b, c.to)
	}
}

func request(op byte, name string, options ...string) []byte {
	return []byte(strings.Join(append([]string{"\x00" + string(op) + name, "octet"}, options...), "\x00") + "\x00")
}

// get reads a file. The request is sent again until the first answer.
func (c *client) get(name string, options ...string) ([]byte, error) {
	last := request(1, name, options...)
	size, want := 512, uint16(1)
	var out []byte
	c.send(last)
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); {
		b := make([]byte, 2048)
		c.conn.SetReadDeadline(time.Now().Add(c.patience()))
		n, from, err := c.conn.ReadFrom(b)
		if err != nil {
			c.send(last)
			continue
		}
		if c.rnd.Float64() < c.loss || n < 4 {
			continue
		}
		c.to = from
		switch op := b[1]; op {
		case 6:
			fmt.Sscanf(string(bytes.ReplaceAll(b[2:n], []byte{0}, []byte{' '})), "blksize %d", &size)
			last = []byte{0, 4, 0, 0}
			c.send(last)
		case 3:
			block := binary.BigEndian.Uint16(b[2:])
			if c.hold != nil {
				c.hold(block)
			}
			if block == want {
				out = append(out, b[4:n]...)
				last = []byte{0, 4, b[2], b[3]}
				want++
			}
			c.send([]byte{0, 4, b[2], b[3]})
			if block == want-1 && n-4 < size {
				return out, nil
			}
		case 5:
			return out, errors.New(string(b[4 : n-1]))
		}
	}
	return out, errors.New("client gave up")
}

func TestGet(t *testing.T) {
	t.Parallel()
	server, n, _ := start(t)
	tests := []struct {
		name, file string
		options    []string
		loss       float64
		want       int
	}{
		{"plain", "snponly.efi", nil, 0, 100_000},
		{"leading slash", "/snponly.efi", nil, 0, 100_000},
		{"as EDK2 asks", "snponly.efi", []string{"blksize", "1468", "windowsize", "4"}, 0, 100_000},
		{"whole blocks end with an empty one", "undionly.kpxe", []string{"blksize", "1468"}, 0, 1468 * 3},
		{"a block too large for the network", "snponly.efi", []string{"blksize", "9000"}, 0, 100_000},
		{"one datagram of ten lost", "snponly.efi", []string{"blksize", "1468"}, 0.1, 100_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dial(t, server, "127.0.0.1", tt.loss).get(tt.file, tt.options...)
			if err != nil || !bytes.Equal(got, image(tt.want)) {
				t.Fatalf("got %d bytes, %v, want %d", len(got), err, tt.want)
			}
			if tt.loss == 0 {
				if e := n.await(t, EventDone); e.Bytes != int64(tt.want) || e.Node != "n1" || e.MAC.IsZero() || e.Refused {
					t.Errorf("evidence %+v", e)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	server, n, _ := start(t)
	tests := []struct{ name, from, file, want string }{
		{"not a loader", "127.0.0.1", "ipxe.iso", "no first-stage loader"},
		{"climbing", "127.0.0.1", "../../etc/shadow", "no first-stage loader"},
		{"absolute", "127.0.0.1", "/etc/shadow", "no first-stage loader"},
		{"a hostile name is quoted and cut", "127.0.0.1", "\x1b[2J" + strings.Repeat("x", 400), `"\x1b[2Jxxx`},
		{"MokManager of others", "127.0.0.1", "/mmx64.efi", "mmx64.efi is not for n1"},
		{"unknown client", "127.0.0.3", "snponly.efi", "no node of the inventory has address 127.0.0.3"},
		{"a BMC", "127.0.0.2", "snponly.efi", "BMC"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dial(t, server, tt.from, 0).get(tt.file)
			if err == nil || len(got) > 0 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %d bytes, %v, want an error with %q", len(got), err, tt.want)
			}
			if e := n.await(t, eventRefused); !e.Refused || !strings.Contains(e.Detail, tt.want) || len(e.Detail) > 400 {
				t.Errorf("evidence %+v", e)
			}
		})
	}
	if got, err := dial(t, server, "127.0.0.4", 0).get("mmx64.efi"); err != nil || len(got) != 1000 {
		t.Errorf("MokManager of its node: %d bytes, %v", len(got), err)
	}
	c := dial(t, server, "127.0.0.1", 0)
	c.send(request(2, "snponly.efi"))
	b := make([]byte, 600)
	c.conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if k, _, err := c.conn.ReadFrom(b); err != nil || b[1] != 5 {
		t.Errorf("a write request got %q, %v, want an error", b[:k], err)
	}
}

// TestSizeQuestion: UEFI asks for the size and breaks off; that is no failure.
func TestSizeQuestion(t *testing.T) {
	t.Parallel()
	server, n, _ := start(t)
	c := dial(t, server, "127.0.0.1", 0)
	c.send(request(1, "snponly.efi", "tsize", "0", "blksize", "1468", "windowsize", "4"))
	b := make([]byte, 600)
	c.conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	k, from, err := c.conn.ReadFrom(b)
	if err != nil || b[1] != 6 || !bytes.Contains(b[:k], []byte("tsize\x00100000\x00")) || bytes.Contains(b[:k], []byte("windowsize")) {
		t.Fatalf("got %q, %v", b[:k], err)
	}
	c.conn.WriteTo([]byte("\x00\x05\x00\x08User aborted the transfer\x00"), from)
	if e := n.await(t, EventDone); e.Bytes != 0 || !strings.Contains(e.Detail, sizeQuestion) {
		t.Errorf("evidence %+v", e)
	}
}

// TestLimits holds transfers open: the fifth of one client is refused, and a
// stop of the server cuts the others off.
func TestLimits(t *testing.T) {
	t.Parallel()
	server, n, stop := start(t)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	errs := make([]error, perClient)
	for i := range perClient {
		c := dial(t, server, "127.0.0.1", 0)
		c.hold = func(block uint16) {
			if block == 2 {
				<-gate
			}
		}
		wg.Go(func() { _, errs[i] = c.get("snponly.efi") })
	}
	for range perClient {
		n.await(t, eventStart)
	}
	if _, err := dial(t, server, "127.0.0.1", 0).get("snponly.efi"); err == nil || !strings.Contains(err.Error(), "too many transfers") {
		t.Errorf("transfer %d: %v", perClient+1, err)
	}
	stop()
	close(gate)
	wg.Wait()
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "stops") {
			t.Errorf("a transfer that was cut off ended with %v", err)
		}
	}
	if e := n.await(t, eventFailed); !strings.Contains(e.Detail, "of 100000 bytes") {
		t.Errorf("evidence %+v", e)
	}
}
