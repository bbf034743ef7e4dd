// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// link forwards connections to a member, until it is cut.
type link struct {
	at string // host and port
	to netip.AddrPort

	mu      sync.Mutex // guards what follows
	isCut   bool
	isMute  bool                        // what the member answers is lost
	refused map[int]bool                // processes whose connections are not forwarded
	open    map[net.Conn]netip.AddrPort // both ends of what is forwarded, with the address that connected
}

// serve forwards until l is closed, and returns once all connections have ended.
func (k *link) serve(l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { k.forward(conn) })
	}
}

func (k *link) forward(conn net.Conn) {
	defer conn.Close()
	from := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	up, err := net.Dial("tcp", k.to.String()) //nolint:noctx // on loopback: it answers at once
	if err != nil {
		return
	}
	defer up.Close()
	if !k.admit(from, conn, up) {
		return
	}
	defer k.forget(conn, up)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(up, conn)
		_, _ = up.Close(), conn.Close()
	})
	wg.Go(func() {
		k.answer(conn, up)
		_, _ = up.Close(), conn.Close()
	})
	wg.Wait()
}

// answer forwards what a member answers. Once something was lost, it forwards no more.
func (k *link) answer(to io.Writer, from io.Reader) {
	buffer, lost := make([]byte, 32<<10), false
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		k.mu.Lock()
		lost = lost || k.isMute
		over := lost && !k.isMute
		k.mu.Unlock()
		switch {
		case over:
			return
		case lost:
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// mute loses what the member answers from now on, and still forwards what it is asked; or
// ends all connections, so that new ones are answered.
func (k *link) mute(is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isMute = is
	if !is {
		for c := range k.open {
			_ = c.Close()
		}
	}
}

// admit notes a connection from an address, unless the link is cut for it.
func (k *link) admit(from netip.AddrPort, conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isRefused(from) {
		return false
	}
	for _, c := range conns {
		k.open[c] = from
	}
	return true
}

func (k *link) forget(conns ...net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		delete(k.open, c)
	}
}

// cut ends every connection and takes no more, or takes them again.
func (k *link) cut(is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut = is
	k.closeRefused()
}

// refuse is cut for the connections of one process.
func (k *link) refuse(pid int, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.refused, pid)
	if is {
		k.refused[pid] = true
	}
	k.closeRefused()
}

// isRefused reports whether connections from an address are not forwarded: a look at all
// processes while one of them is refused, and at none else. It is called with mu held.
func (k *link) isRefused(from netip.AddrPort) bool {
	return k.isCut || len(k.refused) > 0 && k.refused[processOf(from)]
}

// closeRefused is called with mu held.
func (k *link) closeRefused() {
	for c, from := range k.open {
		if k.isRefused(from) {
			_ = c.Close()
		}
	}
}

// processOf returns the id of the process on this machine that has a TCP socket with
// that local address; 0 where none is found.
func processOf(local netip.AddrPort) int {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0
	}
	v4 := local.Addr().Unmap().As4()
	want := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(v4[:]), local.Port())
	socket := ""
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == want {
			socket = "socket:[" + f[9] + "]"
		}
	}
	if socket == "" {
		return 0
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == socket {
			pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
			return pid
		}
	}
	return 0
}
