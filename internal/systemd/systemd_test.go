// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/systemd"
)

// TestNotify: what is notified arrives as one datagram, and without a manager nothing is done.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	env := map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}
	environ := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	m := systemd.Find(environ, 7)
	if got := m.SignEvery(); got != 15*time.Second {
		t.Errorf("a sign each %v", got)
	}
	if got := systemd.Find(environ, 8).SignEvery(); got != 0 {
		t.Errorf("another process's watchdog is pinged each %v", got)
	}
	if err := m.Notify(t.Context(), systemd.Ready, "STATUS=up"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := c.Read(b)
	if err != nil || string(b[:n]) != "READY=1\nSTATUS=up\n" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if err := systemd.Find(func(string) (string, bool) { return "", false }, 7).Notify(t.Context(), systemd.Ready); err != nil {
		t.Error(err)
	}
}
