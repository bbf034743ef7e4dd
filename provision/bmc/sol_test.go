// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// line is the serial line of a simulated node: ipmi_sim dials it.
type line struct {
	net.Conn
	t    *testing.T
	seen atomicBuffer // what came from the BMC's side
}

// atomicBuffer is a buffer that several goroutines may use.
type atomicBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (a *atomicBuffer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.Write(p)
}

func (a *atomicBuffer) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.String()
}

// startSerial starts a simulator whose node has a serial line.
func startSerial(t *testing.T) (*sim, *line) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := startSim(t)
	s.Kill()
	s.Put("lan.conf", s.Get("lan.conf")+fmt.Sprintf("\n  sol \"tcp:127.0.0.1:%d\" 115200\n", l.Addr().(*net.TCPAddr).Port))
	s.Run()
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(hangs))
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("ipmi_sim does not take the serial line: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	serial := &line{Conn: conn, t: t}
	go func() { _, _ = io.Copy(&serial.seen, conn) }()
	return s, serial
}

// say prints on the node's serial line.
func (l *line) say(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.Conn, text); err != nil {
		l.t.Fatal(err)
	}
}

// watch reads a console until the returned function is called.
func watch(t *testing.T, target Target) (out *atomicBuffer, up chan struct{}, end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	out, up = &atomicBuffer{}, make(chan struct{}, 10)
	done := make(chan error, 1)
	go func() { done <- Terminal(ctx, target, Options{}, out, nil, func() { up <- struct{}{} }) }()
	return out, up, func() error { cancel(); return <-done }
}

// await waits until a condition holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(hangs); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestPeerConsole reads the serial line of a real ipmi_sim: all that was printed, once
// and in order, and nothing is typed. What others may do with it holds as well.
func TestPeerConsole(t *testing.T) {
	t.Parallel()
	s, serial := startSerial(t)
	out, up, end := watch(t, s.target())
	<-up
	var want strings.Builder
	for i := range 400 { // many packets: their numbers go round several times
		fmt.Fprintf(&want, "[%5d] Kernel panic - not syncing: VFS\r\n", i)
	}
	serial.say(want.String())
	await(t, "the end of the text", func() bool { return len(out.String()) >= want.Len() })
	if got := out.String(); got != want.String() {
		t.Errorf("%d characters differ from the %d that were printed", len(got), want.Len())
	}
	if err := Terminal(t.Context(), s.target(), Options{}, io.Discard, nil, nil); errkind.Of(err) != errkind.Refused {
		t.Errorf("a second reader: %v (%v), want refused", err, errkind.Of(err))
	}
	if err := end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	again, up, end := watch(t, s.target()) // at once: the payload was given back
	select {
	case <-up:
	case <-time.After(hangs):
		t.Fatalf("the console was not given back: %v", end())
	}
	serial.say("once more")
	await(t, "the second reader's text", func() bool { return again.String() == "once more" })
	if err := end(); err != nil {
		t.Error(err)
	}
	if typed := serial.seen.String(); typed != "" {
		t.Errorf("%q was typed at the node's console", typed)
	}
}

// TestPeerConsoleBesidesARun: while a console is read, the session of a run asks and
// switches the same BMC, and neither notices the other.
func TestPeerConsoleBesidesARun(t *testing.T) {
	t.Parallel()
	s, serial := startSerial(t)
	h := pool(t, Options{}).Handle(s.target())
	if _, err := h.PowerState(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, up, end := watch(t, s.target())
	<-up
	serial.say("before\r\n")
	if got, err := h.SetPower(t.Context(), On); err != nil || got.Verdict != Verified {
		t.Errorf("on: %+v, %v", got, err)
	}
	serial.say("after\r\n")
	await(t, "both lines", func() bool { return out.String() == "before\r\nafter\r\n" })
	if state, err := h.PowerState(t.Context()); err != nil || state != PowerOn {
		t.Errorf("%s, %v", state, err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestPeerConsoleWithout: what has no console says so.
func TestPeerConsoleWithout(t *testing.T) {
	t.Parallel()
	s := startSim(t) // has no serial line
	err := Terminal(t.Context(), s.target(), Options{}, io.Discard, nil, nil)
	if k := errkind.Of(err); k != errkind.Refused && k != errkind.Unsupported {
		t.Errorf("a BMC without serial over LAN: %v (%v)", err, k)
	}
	bad := s.target()
	bad.Protocol = Redfish
	if err := Terminal(t.Context(), bad, Options{}, io.Discard, nil, nil); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("Redfish: %v", err)
	}
}

// TestPeerTerminal types at the serial line of a real ipmi_sim: each text once and in order, while
// the node prints. Nothing is typed behind the end.
func TestPeerTerminal(t *testing.T) {
	t.Parallel()
	s, serial := startSerial(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, up, keys, done := &atomicBuffer{}, make(chan struct{}, 10), make(chan string), make(chan error, 1)
	go func() { done <- Terminal(ctx, s.target(), Options{}, out, keys, func() { up <- struct{}{} }) }()
	<-up
	var want, printed string
	for i := range 40 { // numbers of packets go round several times
		text := fmt.Sprintf("%d\x1b[B\r", i)
		want += text
		select {
		case keys <- text:
		case <-time.After(hangs):
			t.Fatal("nothing is typed any more")
		}
		printed += "line\r\n"
		serial.say("line\r\n")
	}
	await(t, "all keys", func() bool { return len(serial.seen.String()) >= len(want) })
	await(t, "all lines", func() bool { return out.String() == printed })
	cancel()
	if err := <-done; err != nil || serial.seen.String() != want {
		t.Errorf("%v; %q was typed, want %q", err, serial.seen.String(), want)
	}
}

// TestAcknowledge: of a packet that was taken in part the rest is sent, under another number; one
// that was refused stays, one of which nothing was taken is not sent without end, and what is said of
// another packet says nothing.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	k := typed{text: []byte("abcdef"), number: 14, tries: 2}
	for _, c := range []struct {
		name   string
		packet []byte
		want   string
		number byte
		fresh  bool // it is sent at once
		tries  int
	}{
		{"of another", []byte{0, 3, 6, 0}, "abcdef", 14, false, 2},
		{"refused", []byte{0, 14, 0, serialNack}, "abcdef", 14, false, 2},
		{"nothing", []byte{0, 14, 0, 0}, "abcdef", 15, false, 2},
		{"in part", []byte{0, 15, 2, 0}, "cdef", 1, true, 0},
		{"more than there is", []byte{0, 1, 200, 0}, "", 2, true, 0},
	} {
		k.fresh = false
		if k.acknowledge(c.packet); string(k.text) != c.want || k.number != c.number || k.fresh != c.fresh || k.tries != c.tries {
			t.Errorf("%s: %q under %d, at once %t, after %d", c.name, k.text, k.number, k.fresh, k.tries)
		}
	}
}

// TestFresh: characters of a packet that comes twice are taken once.
func TestFresh(t *testing.T) {
	t.Parallel()
	var s serial
	var got string
	for _, p := range []struct {
		number byte
		text   string
	}{{1, "ab"}, {1, "ab"}, {1, "abc"}, {2, "abc"}, {15, "x"}, {1, "ab"}} {
		got += string(s.fresh(p.number, []byte(p.text)))
	}
	if got != "abcabcxab" {
		t.Errorf("got %q", got)
	}
}
