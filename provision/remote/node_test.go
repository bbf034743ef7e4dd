// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// node is an SSH server in this process that runs commands with /bin/sh, as
// sshd does with a user's shell.
type node struct {
	t       testing.TB
	host    ssh.Signer
	client  ssh.Signer // the key that it lets in
	addr    netip.AddrPort
	logins  atomic.Int32
	silent  atomic.Bool // keep connections, answer nothing
	running atomic.Int32
	most    atomic.Int32 // most commands at a time

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// newSigner makes a key.
func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	s, _, err := GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// startNode starts a node on a loopback address.
func startNode(t testing.TB) *node {
	t.Helper()
	n := &node{t: t, host: newSigner(t), client: newSigner(t), conns: map[net.Conn]bool{}}
	n.up(loopback() + ":0")
	t.Cleanup(n.down)
	return n
}

// up opens the port.
func (n *node) up(addr string) {
	n.t.Helper()
	// A connection that is being closed may hold the port for a moment.
	l, err := net.Listen("tcp", addr)
	for range 100 {
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.addr = l.Addr().(*net.TCPAddr).AddrPort()
	n.mu.Lock()
	n.l = l
	n.mu.Unlock()
	n.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			n.conns[c] = true
			n.mu.Unlock()
			n.wg.Go(func() { n.serve(&mute{Conn: c, silent: &n.silent}) })
		}
	})
}

// mute is a connection that stops sending when told so.
type mute struct {
	net.Conn
	silent *atomic.Bool
}

func (m *mute) Write(b []byte) (int, error) {
	if m.silent.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// down closes the port and every connection.
func (n *node) down() {
	n.mu.Lock()
	_ = n.l.Close()
	for c := range n.conns {
		_ = c.Close()
	}
	n.conns = map[net.Conn]bool{}
	n.mu.Unlock()
	n.wg.Wait()
}

// reboot breaks every connection and comes back at the same address.
func (n *node) reboot() {
	n.down()
	n.up(n.addr.String())
}

// config leads to the node with good keys.
func (n *node) config() Config {
	return Config{Node: "n1", Addr: n.addr, User: "root", HostKey: n.host.PublicKey(), Signer: n.client, Timeout: 5 * time.Second}
}

func (n *node) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(n.client.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return &ssh.Permissions{}, nil
	}}
	cfg.AddHostKey(n.host)
	conn, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	n.logins.Add(1)
	defer func() { _ = conn.Close() }()
	n.wg.Go(func() { ssh.DiscardRequests(reqs) })
	for nc := range chans {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		n.wg.Go(func() { n.session(ch, reqs) })
	}
}

// session runs one command.
func (n *node) session(ch ssh.Channel, reqs <-chan *ssh.Request) {
	defer func() { _ = ch.Close() }()
	var cmd *exec.Cmd
	done := make(chan struct{})
	for {
		select {
		case <-done:
			return
		case req, ok := <-reqs:
			if !ok {
				if cmd != nil {
					_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
					<-done
				}
				return
			}
			switch req.Type {
			case "exec":
				cmd = n.exec(ch, string(req.Payload[4:]), done)
				_ = req.Reply(cmd != nil, nil)
			case "signal":
				if cmd != nil {
					_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				}
			default:
				_ = req.Reply(false, nil)
			}
		}
	}
}

func (n *node) exec(ch ssh.Channel, line string, done chan<- struct{}) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	now := n.running.Add(1)
	for old := n.most.Load(); now > old && !n.most.CompareAndSwap(old, now); old = n.most.Load() {
	}
	go func() { _, _ = io.Copy(in, ch); _ = in.Close() }()
	n.wg.Go(func() {
		defer close(done)
		_ = cmd.Wait()
		n.running.Add(-1)
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
			_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal string
				Core   bool
				Text   string
				Lang   string
			}{Signal: "KILL"}))
			return
		}
		_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(cmd.ProcessState.ExitCode())))
	})
	return cmd
}
