// SPDX-License-Identifier: Apache-2.0

package ipmi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
)

// hangs is when a peer that makes no progress counts as hung: it judges nothing.
const hangs = 5 * time.Minute

// heard is what a console was sent. It is safe for concurrent use.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// reader reads the console of a BMC until end is called.
func reader(ctx context.Context, at netip.AddrPort, o bmc.Options) (out *heard, up chan struct{}, end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	out, up = &heard{}, make(chan struct{}, 4)
	done := make(chan error, 1)
	go func() { done <- bmc.Terminal(ctx, consoleOf(at), o, out, nil, func() { up <- struct{}{} }) }()
	return out, up, func() error { cancel(); return <-done }
}

func consoleOf(at netip.AddrPort) bmc.Target {
	return bmc.Target{Node: "n1", Addr: at, Username: user, Password: secret.NewValue(password)}
}

// TestSerial: our reader, which is held to a real ipmi_sim by tests of its own,
// gets all that a node prints, once and in order, over many packets; a second one
// is refused.
func TestSerial(t *testing.T) {
	t.Parallel()
	line := ipmi.NewLine()
	at := serve(t, hardware(nil), ipmi.Options{Serial: line})
	_, _ = io.WriteString(line, "nobody reads this\r\n")
	out, up, end := reader(t.Context(), at, bmc.Options{})
	<-up
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "[%5d] systemd[1]: Started\r\n", i)
	}
	_, _ = io.WriteString(line, want.String())
	for by := time.Now().Add(hangs); len(out.String()) < want.Len() && time.Now().Before(by); {
		time.Sleep(5 * time.Millisecond)
	}
	if got := out.String(); got != want.String() {
		t.Errorf("%d characters, want %d; they begin with %.60q", len(got), want.Len(), got)
	}
	if err := bmc.Terminal(t.Context(), consoleOf(at), bmc.Options{}, io.Discard, nil, nil); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "somebody else has the console open") {
		t.Errorf("a second reader: %v, want refused, since somebody else has it", err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	_, up, end = reader(t.Context(), at, bmc.Options{}) // at once: it was given back
	select {
	case <-up:
	case <-time.After(hangs):
		t.Fatalf("the console was not given back: %v", end())
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestSerialTyped: what our terminal types, which is held to a real ipmi_sim by a test of its own,
// comes to the node once and in order.
func TestSerialTyped(t *testing.T) {
	t.Parallel()
	line := ipmi.NewLine()
	at := serve(t, hardware(nil), ipmi.Options{Serial: line})
	ctx, cancel := context.WithCancel(t.Context())
	up, keys, done := make(chan struct{}, 4), make(chan string), make(chan error, 1)
	go func() {
		done <- bmc.Terminal(ctx, consoleOf(at), bmc.Options{}, io.Discard, keys, func() { up <- struct{}{} })
	}()
	<-up
	var want, got string
	for i := range 20 { // numbers of packets go round
		text := fmt.Sprintf("%d\x1b[B", i)
		want += text
		keys <- text
		for range len(text) {
			select {
			case c := <-line.Typed():
				got += string(rune(c))
			case <-time.After(hangs):
				t.Fatalf("%q came, of %q", got, want)
			}
		}
	}
	cancel()
	if err := <-done; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestSerialOff: a BMC without serial over LAN says so.
func TestSerialOff(t *testing.T) {
	t.Parallel()
	at := serve(t, hardware(nil), ipmi.Options{})
	if err := bmc.Terminal(t.Context(), consoleOf(at), bmc.Options{}, io.Discard, nil, nil); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("%v, want unsupported", err)
	}
}

// TestSerialInBubble reads for an hour of virtual time, through a silence that only
// keep-alives bridge, and a BMC that starts again.
func TestSerialInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net, line, c := network.NewMemory(), ipmi.NewLine(), hardware(nil)
		at := netip.MustParseAddrPort("10.0.0.1:623")
		pc, err := net.At(at.Addr()).ListenPacket(t.Context(), "udp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = ipmi.Serve(ctx, pc, c, ipmi.Options{Serial: line}) })
		wg.Go(func() { _ = c.Run(ctx) })
		synctest.Wait()
		out, up, end := reader(ctx, at, bmc.Options{Network: net.At(netip.MustParseAddr("10.0.0.9"))})
		<-up
		time.Sleep(30 * time.Minute)
		_, _ = io.WriteString(line, "first\r\n")
		time.Sleep(time.Minute)
		c.ResetBMC()
		<-up
		_, _ = io.WriteString(line, "second\r\n")
		time.Sleep(time.Minute)
		if got := out.String(); got != "first\r\nsecond\r\n" {
			t.Errorf("%q", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		cancel()
		wg.Wait()
	})
}

// hasty is a clock whose waits are short.
type hasty struct{ clock.Wall }

func (hasty) Sleep(ctx context.Context, _ time.Duration) error {
	return clock.Wall{}.Sleep(ctx, 50*time.Millisecond)
}

// TestPeerSerial: ipmitool sees whether somebody reads, and may end it.
func TestPeerSerial(t *testing.T) {
	t.Parallel()
	at := serve(t, hardware(nil), ipmi.Options{Serial: ipmi.NewLine()})
	_, up, end := reader(t.Context(), at, bmc.Options{Clock: hasty{}}) // it waits for who ended it
	<-up
	contains(t, tool(t, at, "17", true, "sol", "info"), "Enabled                         : true", "115.2", "623")
	contains(t, tool(t, at, "17", true, "raw", "0x06", "0x4a", "1"), "01 01 00") // one may, one does
	tool(t, at, "17", true, "sol", "deactivate")
	<-up // it was told, and called again
	if err := end(); err != nil {
		t.Error(err)
	}
}
