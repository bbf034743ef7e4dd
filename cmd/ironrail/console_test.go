// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
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

// typist is a person at the console of n1, by a pipe.
type typist struct {
	*io.PipeWriter
	out, talk *heard
	code      chan int
}

// typistOf opens the console of n1 to type at, and waits until it is open.
func typistOf(t *testing.T, dir string) *typist {
	t.Helper()
	in, w := io.Pipe()
	x := &typist{w, newHeard("\x00"), newHeard("console of n1 is open"), make(chan int, 1)}
	a := newApp(x.out, x.talk)
	a.in = in
	a.environ = func(name string) (string, bool) { return ipmisim.Password, name == "PW" }
	go func() { x.code <- a.run(t.Context(), []string{"-C", dir, "console", "-i", "n1"}) }()
	select {
	case <-x.talk.written:
	case c := <-x.code:
		t.Fatalf("exit code %d: %s", c, x.talk)
	}
	return x
}

// typedBy is who typed last at the console of n1, by the state.
func typedBy(t *testing.T, dir string) state.Direct {
	t.Helper()
	s, err := state.OpenReadOnly(provision.StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, ok, err := state.ReadDirect(t.Context(), s, "n1", "console")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return x
}

// TestPeerConsoleHold: without an owner of the state, who typed is in the journal, and somebody else's hold
// ends typing while reading goes on.
func TestPeerConsoleHold(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, line := simulatedLine(t)
	x := typistOf(t, dir)
	if d := typedBy(t, dir); d.By != operatorName() || d.State != state.EffectIntended {
		t.Errorf("while it is open: %+v", d)
	}
	_, _ = io.WriteString(x, "a")
	await(t, "the key", func() bool { return line.seen() == "a" })
	m := onrecord.Marker{Place: onrecord.Place{Folder: filepath.Join(dir, provision.StateFolder)}, Command: "hold", Now: time.Now}
	if err := m.Hold(t.Context(), "n1", "bob", "riser"); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of typing", func() bool {
		return strings.Contains(x.talk.String(), "[n1: nothing is typed any more: it is on hold since") && strings.Contains(x.talk.String(), "(bob: riser); reading goes on]")
	})
	_, _ = io.WriteString(x, "b")
	_, _ = io.WriteString(line, "it booted")
	await(t, "what is printed", func() bool { return x.out.String() == "it booted" })
	_ = x.Close()
	if c := <-x.code; c != 0 || line.seen() != "a" {
		t.Errorf("exit code %d, typed %q: %s", c, line.seen(), x.talk)
	}
	if d := typedBy(t, dir); d.State != state.EffectIsDone || !strings.Contains(d.Detail, ": it is on hold since") {
		t.Errorf("%+v", d)
	}
}

// sharing is a run that shares one console, which prints what is typed.
type sharing struct {
	control.Backend
	asked chan control.ConsoleRequest
}

func (sharing) Why(context.Context, string) (control.Why, error) { return control.Why{}, nil }

func (s sharing) Console(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	s.asked <- q
	w.Up()
	for {
		select {
		case k := <-w.Keys:
			_, _ = io.WriteString(w.To, "<"+k+">")
		case <-ctx.Done():
			return nil
		}
	}
}

// TestPeerConsoleMoves: a run that begins gets the console, with who types at it, and when it has ended the
// console is opened without it; a command that owns the state for a moment leaves it where it is.
func TestPeerConsoleMoves(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, line := simulatedLine(t)
	x := typistOf(t, dir)
	began := typedBy(t, dir)
	ironrail(t, dir, 0, "power", "on", "n1", "--auto-approve")
	run, err := control.AcquireFolder(filepath.Join(dir, provision.StateFolder), "apply", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := run.Listen()
	if err != nil {
		t.Fatal(err)
	}
	owner, asked := make(chan error, 1), make(chan control.ConsoleRequest, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { owner <- control.Serve(ctx, socket, sharing{asked: asked}, "1") }()
	if q := <-asked; !q.Since.Equal(began.At) || q.By != operatorName() || !q.Type {
		t.Errorf("%+v, began %v", q, began.At)
	}
	_, _ = io.WriteString(x, "a")
	await(t, "the run's console", func() bool { return x.out.String() == "<a>" })
	end()
	if err := errors.Join(<-owner, run.Release()); err != nil {
		t.Fatal(err)
	}
	await(t, "the console without the run", func() bool { return strings.Count(x.talk.String(), "console of n1 is open again") == 2 })
	_, _ = io.WriteString(x, "b")
	await(t, "the key", func() bool { return line.seen() == "b" })
	_ = x.Close()
	if c := <-x.code; c != 0 {
		t.Errorf("exit code %d: %s", c, x.talk)
	}
	if d := typedBy(t, dir); d.State != state.EffectIsDone || !d.At.After(began.At) {
		t.Errorf("%+v", d)
	}
}

// TestLongRackConsoleLog: apply on a virtual rack keeps what its nodes print from the first power action until they
// are accepted, and shares the console with who watches meanwhile: over their BMCs, and over an SSH server whose
// host key in the files is that of no virtual rack.
func TestLongRackConsoleLog(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	t.Parallel()
	const mac, pin = "    bmc_mac  = each.value.bmc_mac\n", "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for name, changes := range map[string][]string{
		"ipmi": {`protocol = "redfish"`, `protocol = "ipmi"`, "  tls      = \"pin-first-seen\"\n", ""},
		"ssh": {mac, mac + "    console {\n      address = \"10.10.15.9\"\n      port = 7022\n      login = login.ports\n" +
			"      username = \"port:${rack.name}-${each.key}\"\n      host_key = \"" + pin + "\"\n    }\n",
			"state \"file\" {}", "login \"ports\" {\n  username = \"port\"\n  password = var.bmc_password\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rackConsoleLog(t, changes)
		})
	}
}

func rackConsoleLog(t *testing.T, changes []string) {
	dir, _ := livingAt(t, 120, changes...)
	run := func(args ...string) (int, string) {
		var out, talk bytes.Buffer
		code := newApp(&out, &talk).run(t.Context(), append([]string{"-C", dir, "--rack"}, args...))
		return code, talk.String() + out.String()
	}
	if code, out := run("console", "--log", "r01-u01"); code != 1 || !strings.Contains(out, "nothing is kept of the console of r01-u01") {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := run("console", "--log", "r01-u01", "-i"); code != exitUsage {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := run("apply", "--auto-approve", "--erase", "8"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	code, out := run("console", "--log", "r01-u01", "--json")
	if code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	_, out, _ = strings.Cut(out, "nothing else is reached.\n")
	var all []spoken
	for line := range strings.Lines(out) {
		var x spoken
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, x)
	}
	says := func(text string) int {
		return slices.IndexFunc(all, func(x spoken) bool { return strings.Contains(x.Text, text) })
	}
	if up, loader, kernel := says("the console is open"), says("iPXE"), says("Linux version"); up != 0 || !all[0].Note || loader < 1 || kernel < loader || all[kernel].Node != "r01-u01" {
		t.Errorf("open at %d, loader at %d, kernel at %d:\n%s", up, loader, kernel, out)
	}
	if code, out := run("console", "--log", "r01-u01"); code != 0 || !strings.Contains(out, "  [the console is open]\n") {
		t.Errorf("%d: %s", code, out)
	}
}
