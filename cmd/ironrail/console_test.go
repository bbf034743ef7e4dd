// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/provision"
)

// hangs is when a peer that makes no progress counts as hung.
const hangs = 20 * time.Second

// serialLine is the serial line of a node behind ipmi_sim.
type serialLine struct {
	net.Conn
	mu    sync.Mutex
	typed bytes.Buffer
}

// simulatedLine is the site of simulated, whose n1 has a serial line.
func simulatedLine(t *testing.T) (dir string, line *serialLine) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a socket of loopback
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	dir, _, _ = simulated(t, "SYS-2", fmt.Sprintf("  sol \"tcp:127.0.0.1:%d\" 115200\n", l.Addr().(*net.TCPAddr).Port))
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(hangs))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	line = &serialLine{Conn: conn}
	go func() {
		b := make([]byte, 100)
		for {
			n, err := conn.Read(b)
			line.mu.Lock()
			line.typed.Write(b[:n])
			line.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return dir, line
}

// seen is what was typed at the line.
func (l *serialLine) seen() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.typed.String()
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

// pseudoTerminal opens a terminal and the end of who sits before it.
func pseudoTerminal(t *testing.T) (terminal, user *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal, user
}

// TestPeerConsoleTyping types at the console of an independent implementation of IPMI, from a terminal:
// keys reach the node, Ctrl-C as well, what the node prints comes back as it is, nobody is kept from the
// state meanwhile, and the terminal is as before at the end.
func TestPeerConsoleTyping(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, line := simulatedLine(t)
	ironrail(t, dir, 0, "hold", "n1", "--reason", "so that there is a state")
	terminal, user := pseudoTerminal(t)
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	out, talk := newHeard("login: "), newHeard("console of n1 is open")
	a := newApp(out, talk)
	a.in = terminal
	a.environ = func(name string) (string, bool) { return ipmisim.Password, name == "PW" }
	code := make(chan int, 1)
	go func() { code <- a.run(t.Context(), []string{"-C", dir, "console", "-i", "n1"}) }()
	select {
	case <-talk.written:
	case c := <-code:
		t.Fatalf("exit code %d: %s", c, talk)
	}
	if _, err := io.WriteString(line, "\x1b[1mlogin: "); err != nil {
		t.Fatal(err)
	}
	<-out.written
	if _, err := io.WriteString(user, "root ~.\r~~x\x03\r~B~?"); err != nil {
		t.Fatal(err)
	}
	await(t, "the keys", func() bool { return len(line.seen()) >= len("root ~.\r~x\x03\r") })
	await(t, "the help", func() bool {
		return strings.Contains(talk.String(), "~. ends; ~B sends a break; ~~ sends ~; ~? is this")
	})
	begins, err := state.Open(provision.StatePath(dir)) // as apply does
	if err != nil {
		t.Fatalf("apply does not begin while a console is open: %v", err)
	}
	_ = begins.Close()
	if _, err := io.WriteString(user, "~."); err != nil {
		t.Fatal(err)
	}
	if c := <-code; c != 0 || line.seen() != "root ~.\r~x\x03\r" || out.String() != "\x1b[1mlogin: " {
		t.Errorf("exit code %d; typed %q; printed %q; %s", c, line.seen(), out, talk)
	}
	after, err := term.GetState(int(terminal.Fd()))
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as before: %+v, %+v, %v", before, after, err)
	}
}

// TestPeerConsoleFromPipe: keys come from a pipe as well, whose end ends it, and who
// holds a node may type at it.
func TestPeerConsoleFromPipe(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, line := simulatedLine(t)
	run := func(in io.Reader, args ...string) (int, string) {
		var talk bytes.Buffer
		a := newApp(io.Discard, &talk)
		a.in = in
		a.environ = func(name string) (string, bool) { return ipmisim.Password, name == "PW" }
		ctx, cancel := context.WithTimeout(t.Context(), hangs)
		defer cancel()
		return a.run(ctx, append([]string{"-C", dir, "console", "-i"}, args...)), talk.String()
	}
	ironrail(t, dir, 0, "hold", "n1", "--reason", "mine")
	if code, talk := run(strings.NewReader("~.reboot\r"), "n1", "--escape", "^]"); code != 0 {
		t.Errorf("who holds it: %d: %s", code, talk)
	}
	await(t, "the keys", func() bool { return line.seen() == "~.reboot\r" })
	if code, talk := run(strings.NewReader(""), "n1", "--escape", "ab"); code != exitUsage {
		t.Errorf("%d: %s", code, talk)
	}
}
