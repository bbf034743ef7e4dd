// SPDX-License-Identifier: Apache-2.0

// Package systemd talks to the manager of services that started this process, by the
// protocol of sd_notify(3). Without such a manager it does nothing.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Manager is the manager of this process.
type Manager struct {
	socket   string        // NOTIFY_SOCKET; empty: there is none
	watchdog time.Duration // 0: it wants no sign of life
	files    int           // that it has handed over; see Inherited
}

// Find reads from the environment which manager there is. pid is that of this process.
func Find(environ func(string) (string, bool), pid int) Manager {
	var m Manager
	m.socket, _ = environ("NOTIFY_SOCKET")
	usec, _ := environ("WATCHDOG_USEC")
	of, given := environ("WATCHDOG_PID")
	if n, err := strconv.ParseInt(usec, 10, 64); err == nil && n > 0 && (!given || of == strconv.Itoa(pid)) {
		m.watchdog = time.Duration(n) * time.Microsecond
	}
	count, _ := environ("LISTEN_FDS")
	to, _ := environ("LISTEN_PID")
	if n, err := strconv.Atoi(count); err == nil && n > 0 && n <= mostFiles && to == strconv.Itoa(pid) {
		m.files = n
	}
	return m
}

// What is handed over begins with this file descriptor (sd_listen_fds(3)), and is no more than that.
const (
	firstFile = 3
	mostFiles = 256
)

// Inherited returns the files that the manager has handed over: those of socket units, and those that
// were stored. It is called once. Programs that this one starts do not get them.
func (m Manager) Inherited() (files []*os.File) {
	for fd := firstFile; fd < firstFile+m.files; fd++ {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	return files
}

// Store has the manager keep a file for the next start of this service, under a name
// (FDSTORE of sd_notify(3)). It needs FileDescriptorStoreMax in the unit.
func (m Manager) Store(name string, f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		// A socket with an error is kept: it is one packet's (FDPOLL).
		sent = m.send(context.Background(), unix.UnixRights(int(fd)), "FDSTORE=1", "FDNAME="+name, "FDPOLL=0")
	})
	return errors.Join(err, sent)
}

// Remove has the manager forget the files of a name.
func (m Manager) Remove(name string) error {
	return m.send(context.Background(), nil, "FDSTOREREMOVE=1", "FDNAME="+name)
}

// SignEvery is how often the manager wants a sign of life, with time to spare: half of its limit.
// 0: it wants none.
func (m Manager) SignEvery() time.Duration {
	if m.socket == "" {
		return 0
	}
	return m.watchdog / 2
}

// States that are notified.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Notify sends states to the manager, one a line, such as Ready with "STATUS=text".
func (m Manager) Notify(ctx context.Context, states ...string) error {
	return m.send(ctx, nil, states...)
}

// send is Notify with rights to files, as a control message has them.
func (m Manager) send(ctx context.Context, rights []byte, states ...string) error {
	if m.socket == "" {
		return nil
	}
	name := m.socket
	if name[0] == '@' { // an abstract name (unix(7))
		name = "\x00" + name[1:]
	}
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "unixgram", name)
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	text := ""
	for _, s := range states {
		text += s + "\n"
	}
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), []byte(text), rights, nil, 0)
		return sent != unix.EAGAIN
	})
	if err = errors.Join(err, sent); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}
