// SPDX-License-Identifier: Apache-2.0

package sockets_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/internal/systemd"
)

// server is the environment by which this test program is a service on an address.
const server = "IRONRAIL_TEST_SERVE"

func TestMain(m *testing.M) {
	if at := os.Getenv(server); at != "" {
		if err := serve(netip.MustParseAddrPort(at)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve answers one datagram and one connection with how many sockets it was handed, and then waits to be killed.
func serve(at netip.AddrPort) error {
	m := systemd.Find(os.LookupEnv, os.Getpid())
	inherited := m.Inherited()
	k := sockets.Keep(m, inherited, func(err error) { fmt.Println(err) })
	u, err := k.PacketConn(sockets.Where{Network: "udp", Address: at}, func() (net.PacketConn, error) { return net.ListenPacket("udp4", at.String()) })
	if err != nil {
		return err
	}
	ln, err := k.Listener(sockets.Where{Network: "tcp", Address: at}, func() (net.Listener, error) { return net.Listen("tcp4", at.String()) })
	if err != nil {
		return err
	}
	if err := m.Notify(context.Background(), systemd.Ready); err != nil {
		return err
	}
	fmt.Println("ready")
	go func() {
		b := make([]byte, 100)
		if _, from, err := u.ReadFrom(b); err == nil {
			_, _ = u.WriteTo(fmt.Appendf(nil, "%d", len(inherited)), from)
		}
	}()
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c, "%d\n", len(inherited))
	_ = c.Close()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// freeAddress is an address of loopback that nobody listens on.
func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

// manager does systemd's part: it keeps what is stored and hands it over at the next start.
type manager struct {
	t    *testing.T
	at   netip.AddrPort
	conn *net.UnixConn
	path string

	stored []*os.File
	names  []string
}

// receive reads notices until the service is ready.
func (m *manager) receive() {
	m.t.Helper()
	b, oob := make([]byte, 1000), make([]byte, 1000)
	_ = m.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		n, rights, _, _, err := m.conn.ReadMsgUnix(b, oob)
		if err != nil {
			m.t.Fatal(err)
		}
		text := string(b[:n])
		if text == "READY=1\n" {
			return
		}
		if !strings.HasPrefix(text, "FDSTORE=1\nFDNAME=") || !strings.HasSuffix(text, "\nFDPOLL=0\n") {
			m.t.Errorf("notified %q", text)
			continue
		}
		m.names = append(m.names, strings.TrimPrefix(strings.Split(text, "\n")[1], "FDNAME="))
		all, err := unix.ParseSocketControlMessage(oob[:rights])
		if err != nil || len(all) != 1 {
			m.t.Fatalf("%d control messages, %v", len(all), err)
		}
		fds, err := unix.ParseUnixRights(&all[0])
		if err != nil || len(fds) != 1 {
			m.t.Fatalf("%v, %v", fds, err)
		}
		m.stored = append(m.stored, os.NewFile(uintptr(fds[0]), text))
	}
}

// start starts the service with what is stored.
func (m *manager) start() (stop func()) {
	m.t.Helper()
	c := exec.CommandContext(m.t.Context(), "sh", "-c", `LISTEN_PID=$$ exec "$0"`, os.Args[0])
	c.Env = append(os.Environ(), server+"="+m.at.String(), "NOTIFY_SOCKET="+m.path, fmt.Sprintf("LISTEN_FDS=%d", len(m.stored)))
	c.ExtraFiles = m.stored
	in, err := c.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	c.Stdout = os.Stderr
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.receive()
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = in.Close()
	}
}

// TestRestart: a service is killed and started again; the datagram and the connection that came
// meanwhile are answered by the new process, which stores nothing twice.
func TestRestart(t *testing.T) {
	t.Parallel()
	m := &manager{t: t, at: freeAddress(t), path: filepath.Join(t.TempDir(), "notify")}
	var err error
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	defer m.conn.Close()
	m.start()()
	if want := fmt.Sprintf("udp-127.0.0.1-%d tcp-127.0.0.1-%[1]d", m.at.Port()); strings.Join(m.names, " ") != want {
		t.Fatalf("stored %q, want %q", m.names, want)
	}
	u, uerr := net.Dial("udp4", m.at.String())
	c, cerr := net.Dial("tcp4", m.at.String()) // while nobody serves
	if err := errors.Join(uerr, cerr); err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	defer c.Close()
	if _, err := u.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	defer m.start()()
	for _, x := range []net.Conn{u, c} {
		_ = x.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 10)
		if n, err := x.Read(b); err != nil || strings.TrimSpace(string(b[:n])) != "2" {
			t.Errorf("%s: answered %q, %v", x.LocalAddr().Network(), b[:n], err)
		}
	}
	if len(m.stored) != 2 {
		t.Errorf("stored %q", m.names)
	}
	for _, f := range m.stored {
		_ = f.Close()
	}
}

// TestPeerSocketActivate: systemd's own program hands over a listener.
func TestPeerSocketActivate(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "systemd-socket-activate")
	at := freeAddress(t)
	c := exec.CommandContext(t.Context(), "systemd-socket-activate", "-l", at.String(), "-E", server+"="+at.String(), os.Args[0])
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = c.Process.Kill(); _ = c.Wait() }()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	var conn net.Conn
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if conn, err = net.Dial("tcp4", at.String()); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "1\n" {
		t.Errorf("answered %q, %v", line, err)
	}
}

// notes is a manager that notes what it is asked for.
type notes []string

func (n *notes) Store(name string, _ *os.File) error { *n = append(*n, "+"+name); return nil }
func (n *notes) Remove(name string) error            { *n = append(*n, "-"+name); return nil }

// TestKept: a socket stays open behind the service that closes it, until it is dropped or another
// address is wanted; without a Kept it is closed.
func TestKept(t *testing.T) {
	t.Parallel()
	var n notes
	k := sockets.Keep(&n, nil, func(err error) { t.Error(err) })
	at := freeAddress(t)
	open := func(k *sockets.Kept, at netip.AddrPort) {
		t.Helper()
		ln, err := k.Listener(sockets.Where{Network: "tcp", Address: at}, func() (net.Listener, error) { return net.Listen("tcp4", at.String()) })
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
	}
	listens := func(at netip.AddrPort) bool {
		c, err := net.Dial("tcp4", at.String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	open(nil, at)
	if listens(at) {
		t.Error("a socket that nobody keeps stays open")
	}
	open(k, at)
	open(k, at)
	if !listens(at) {
		t.Error("it was closed with its service")
	}
	other := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port())
	open(k, other)
	if listens(at) || !listens(other) {
		t.Error("the site has another address, and the old one is served")
	}
	k.Drop()
	if listens(other) {
		t.Error("it was dropped and is open")
	}
	name := fmt.Sprintf("tcp-127.0.0.1-%d", at.Port())
	if got, want := strings.Join(n, " "), fmt.Sprintf("+%s -%[1]s +%s -%[2]s", name, strings.Replace(name, "0.1-", "0.2-", 1)); got != want {
		t.Errorf("the manager was asked for %q, want %q", got, want)
	}
	k.NoteQuiet("eno1", time.Now())
	if !k.IsQuiet("eno1") || k.IsQuiet("eno2") || (*sockets.Kept)(nil).IsQuiet("eno1") {
		t.Error("what is remembered of searches")
	}
}
