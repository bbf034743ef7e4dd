// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/ironrail/ironrail/internal/errkind"
)

// maxSocketPath is what sockaddr_un holds, with its closing zero (unix(7)).
const maxSocketPath = 107

// shortSocketPath returns a path to the socket in dir that fits into an address: for a
// long one it goes through an open folder in /proc, which done closes.
func shortSocketPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, socketFile)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) + "/" + socketFile, func() { _ = f.Close() }, nil
}

// Listen opens the control socket in the owner's folder. Closing it removes it.
func (o *Owner) Listen() (net.Listener, error) {
	path, done, err := shortSocketPath(o.dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer done()
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	real := filepath.Join(o.dir, socketFile)
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // by the long path instead
	if err := os.Chmod(real, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), ln.Close(), os.Remove(real))
	}
	return &listener{Listener: ln, path: real}, nil
}

// listener removes its socket when it is closed.
type listener struct {
	net.Listener
	path string
}

// Close closes and removes the socket.
func (l *listener) Close() error {
	_ = os.Remove(l.path)
	return l.Listener.Close()
}

// DialSocket connects to the owner of a folder. The error is of kind unreachable when
// there is none.
func DialSocket(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := shortSocketPath(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer done()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, errkind.New(errkind.Unreachable, "nobody owns the state folder %s: %w", dir, err)
	}
	return c, err
}
