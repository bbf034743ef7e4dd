// SPDX-License-Identifier: Apache-2.0

// Package sockets keeps sockets of the operating system open while the services that read them are
// closed and opened anew, and, with a manager of services that stores them, while the program is
// started anew. What arrives meanwhile waits in the kernel.
package sockets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Where is what a socket listens on.
type Where struct {
	Network   string // tcp or udp
	Address   netip.AddrPort
	Interface string // that it is bound to; empty: none
}

// Name is the socket's name at a manager of services: of letters, digits, dots and hyphens.
func (w Where) Name() string {
	name := fmt.Sprintf("%s-%s-%d", w.Network, strings.ReplaceAll(w.Address.Addr().String(), ":", "."), w.Address.Port())
	if w.Interface != "" {
		name += "-" + w.Interface
	}
	return name
}

// Manager stores sockets beyond the life of this process.
type Manager interface {
	Store(name string, f *os.File) error
	Remove(name string) error
}

// quietFor is how long it is remembered that a search found no other server.
const quietFor = time.Minute

// Kept are the sockets that are kept. It is safe for concurrent use. A nil one keeps none.
type Kept struct {
	manager Manager // nil: there is none
	say     func(error)

	mu    sync.Mutex // guards what follows
	files map[Where]*os.File
	quiet map[string]time.Time // when a search last ended with no other server there, by interface
}

// Keep returns what keeps sockets, with those that a manager of services has handed over, which it
// owns from now on. m may be nil. say is given what m does not do; services work without it.
func Keep(m Manager, inherited []*os.File, say func(error)) *Kept {
	k := &Kept{manager: m, say: say, files: map[Where]*os.File{}, quiet: map[string]time.Time{}}
	for _, f := range inherited {
		if w, err := whereOf(f); err != nil || k.files[w] != nil {
			_ = f.Close()
		} else {
			k.files[w] = f
		}
	}
	return k
}

// Listener returns the listener that is kept for w, else the one that open opens, which is kept.
func (k *Kept) Listener(w Where, open func() (net.Listener, error)) (net.Listener, error) {
	return take(k, w, net.FileListener, open)
}

// PacketConn is Listener for datagrams.
func (k *Kept) PacketConn(w Where, open func() (net.PacketConn, error)) (net.PacketConn, error) {
	return take(k, w, net.FilePacketConn, open)
}

// take returns a socket of its own for w; the one that is kept stays open behind it.
func take[T any](k *Kept, w Where, of func(*os.File) (T, error), open func() (T, error)) (T, error) {
	if k == nil || w.Address.Port() == 0 {
		return open()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.files[w]; f != nil {
		if now, err := whereOf(f); err == nil && now == w { // its interface is still there
			if s, err := of(f); err == nil {
				return s, nil
			}
		}
		k.drop(w)
	}
	for old := range k.files { // of a site whose addresses were others
		if old.Network == w.Network && old.Address.Port() == w.Address.Port() {
			k.drop(old)
		}
	}
	s, err := open()
	if err != nil {
		return s, err
	}
	f, err := any(s).(interface{ File() (*os.File, error) }).File()
	if err != nil {
		k.say(fmt.Errorf("%s is closed between services: %w", w.Name(), err))
		return s, nil
	}
	k.files[w] = f
	if k.manager != nil {
		if err := k.manager.Store(w.Name(), f); err != nil {
			k.say(err)
		}
	}
	return s, nil
}

// drop closes one; k.mu is held.
func (k *Kept) drop(w Where) {
	_ = k.files[w].Close()
	delete(k.files, w)
	if k.manager != nil {
		if err := k.manager.Remove(w.Name()); err != nil {
			k.say(err)
		}
	}
}

// Drop closes all sockets, for nobody serves them any more, or they are broken.
func (k *Kept) Drop() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for w := range k.files {
		k.drop(w)
	}
}

// NoteQuiet remembers that a search for other servers on an interface has found none at a time.
func (k *Kept) NoteQuiet(ifname string, at time.Time) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.quiet[ifname] = at
}

// IsQuiet reports whether a search has found no other server a moment ago.
func (k *Kept) IsQuiet(ifname string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.quiet[ifname]) < quietFor
}

// whereOf asks the kernel what a socket listens on.
func whereOf(f *os.File) (w Where, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return w, err
	}
	cerr := raw.Control(func(fd uintptr) { w, err = whereOfSocket(int(fd)) })
	return w, errors.Join(cerr, err)
}

func whereOfSocket(fd int) (w Where, err error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return w, err
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return w, err
	}
	switch {
	case kind == unix.SOCK_DGRAM:
		w.Network = "udp"
	case kind == unix.SOCK_STREAM && listens == 1:
		w.Network = "tcp"
	default:
		return w, syscall.ENOTSUP
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return w, err
	}
	in4, ok := at.(*unix.SockaddrInet4)
	if !ok {
		return w, syscall.EAFNOSUPPORT
	}
	w.Address = netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), uint16(in4.Port))
	w.Interface, err = unix.GetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
	return w, err
}
