// SPDX-License-Identifier: Apache-2.0

// Package systemd talks to the manager of services that started this process, by the
// protocol of sd_notify(3). Without such a manager it does nothing.
package systemd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Manager is the manager of this process.
type Manager struct {
	socket   string        // NOTIFY_SOCKET; empty: there is none
	watchdog time.Duration // 0: it wants no sign of life
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
	return m
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
	if _, err := c.Write([]byte(text)); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}
