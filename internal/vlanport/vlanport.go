// SPDX-License-Identifier: Apache-2.0

// Package vlanport is a port of a switch in user space: an emulated machine is at it, and on its
// other side is an interface of the kernel whose frames are those of one VLAN. The lab and tests
// use it where the kernel has neither VLAN interfaces nor bridges that know VLANs.
package vlanport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Port is how a port belongs to its VLAN (IEEE 802.1Q, 6.9 and 8.8). The zero Port is an untagged
// member.
type Port struct {
	Tagged int // ID of the VLAN that it is a tagged member of, and of no other; 0: untagged
}

// Sizes of a frame: two addresses, a tag, and the most that is passed on, bytes.
const (
	addresses = 12
	tagSize   = 4
	ethType   = 0x8100
	largest   = 64 << 10
)

// in is what of a machine's frame reaches the VLAN; nil: it is dropped, as frames are that have no
// tag or another VLAN's.
func (p Port) in(frame []byte) []byte {
	tagged := len(frame) >= addresses+tagSize && binary.BigEndian.Uint16(frame[addresses:]) == ethType
	switch {
	case p.Tagged == 0 && !tagged && len(frame) > addresses:
		return frame
	case p.Tagged == 0 || !tagged || int(binary.BigEndian.Uint16(frame[addresses+2:])&0xfff) != p.Tagged:
		return nil
	}
	return append(append(make([]byte, 0, len(frame)), frame[:addresses]...), frame[addresses+tagSize:]...)
}

// out is how a frame of the VLAN leaves to the machine.
func (p Port) out(frame []byte) []byte {
	if p.Tagged == 0 || len(frame) < addresses {
		return frame
	}
	b := append(make([]byte, 0, len(frame)+tagSize), frame[:addresses]...)
	b = binary.BigEndian.AppendUint16(b, ethType)
	b = binary.BigEndian.AppendUint16(b, uint16(p.Tagged))
	return append(b, frame[addresses:]...)
}

// OpenTap opens a tap interface of the kernel, which is made if it is not there; each read and
// each write is one frame. The caller closes it.
func OpenTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("tap %s: /dev/net/tun: %w", name, err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tap %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "tap "+name), nil
}

// Args are QEMU's arguments of the backend of a machine's NIC at the port: datagrams between two
// sockets of which at is the port's, and at with ".nic" the machine's.
func Args(id, at string) []string {
	return []string{"-netdev", "dgram,id=" + id + ",local.type=unix,local.path=" + at + ".nic,remote.type=unix,remote.path=" + at}
}

// Serve passes frames on between the machine whose NIC is Args of at and the kernel's interface tap, until
// ctx ends; it closes tap. What cannot be delivered is dropped, as on a wire: the machine may be off.
func (p Port) Serve(ctx context.Context, at string, tap io.ReadWriteCloser) error {
	os.Remove(at) // of a run that was killed
	local := &net.UnixAddr{Name: at, Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", local)
	if err != nil {
		return errors.Join(fmt.Errorf("port %s: %w", at, err), tap.Close())
	}
	machine := &net.UnixAddr{Name: at + ".nic", Net: "unixgram"}
	stop := context.AfterFunc(ctx, func() { conn.Close(); tap.Close() })
	var both sync.WaitGroup
	both.Go(func() {
		copyFrames(conn, p.in, func(b []byte) { tap.Write(b) })
		conn.Close()
		tap.Close()
	})
	both.Go(func() {
		copyFrames(tap, p.out, func(b []byte) { conn.WriteTo(b, machine) })
		conn.Close()
		tap.Close()
	})
	both.Wait()
	if stop() {
		return fmt.Errorf("port %s: a side was closed", at)
	}
	return nil
}

// copyFrames reads frames until from is closed.
func copyFrames(from io.Reader, change func([]byte) []byte, to func([]byte)) {
	b := make([]byte, largest)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if f := change(b[:n]); f != nil {
			to(f)
		}
	}
}
