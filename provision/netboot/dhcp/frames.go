// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// frames sends replies as frames, many with one system call. It is used by one goroutine at a time.
type frames struct {
	conn    syscall.RawConn // of a packet socket without the Ethernet header
	ifindex int32

	heads [batch]messageHead
	vecs  [batch]unix.Iovec
	to    [batch]unix.RawSockaddrLinklayer
}

// messageHead is struct mmsghdr of sendmmsg(2).
type messageHead struct {
	head unix.Msghdr
	sent uint32
}

// send sends at most batch replies to a port of clients and returns how many it has sent, from the
// first on; an error is that of the one behind them.
func (f *frames) send(replies []*outgoing, src netip.AddrPort, port uint16) (n int, err error) {
	for i, out := range replies {
		b := out.frame(src, port)
		f.vecs[i] = unix.Iovec{Base: &b[0]}
		f.vecs[i].SetLen(len(b))
		f.to[i] = unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Protocol: binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff}), Ifindex: f.ifindex, Halen: uint8(len(out.mac))}
		copy(f.to[i].Addr[:], out.mac[:])
		h := &f.heads[i].head
		*h = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&f.to[i])), Namelen: unix.SizeofSockaddrLinklayer, Iov: &f.vecs[i]}
		h.SetIovlen(1)
	}
	var errno syscall.Errno
	err = f.conn.Write(func(fd uintptr) bool {
		k, _, e := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&f.heads[0])), uintptr(len(replies)), 0, 0, 0)
		n, errno = int(k), e
		return e != unix.EAGAIN && e != unix.EINTR
	})
	runtime.KeepAlive(replies)
	switch {
	case err != nil:
		return 0, fmt.Errorf("send frames: %w", err)
	case errno != 0:
		return 0, fmt.Errorf("send frames: %w", errno)
	}
	return n, nil
}
