// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adminCommand is struct nvme_admin_cmd of linux/nvme_ioctl.h.
type adminCommand struct {
	opcode, flags                          uint8
	_                                      uint16
	namespace                              uint32
	_, _                                   uint32
	metadata, address                      uint64
	metadataLength, length                 uint32
	word10, word11, word12, word13, w14, _ uint32
	timeout                                uint32 // ms
	result                                 uint32
}

// The kernel knows the command by its size.
var _ [72]byte = [unsafe.Sizeof(adminCommand{})]byte{}

const (
	adminIoctl    = 0xc0484e41 // _IOWR('N', 0x41, struct nvme_admin_cmd), of 72 bytes
	getLogPage    = 0x02
	smartPage     = 0x02
	allNamespaces = 0xffffffff
	smartTimeout  = 5000 // ms; a disk that is well answers within one
)

// ReadSMART asks an NVMe disk, such as /dev/nvme0, for its SMART log page. The kernel
// gives up after five seconds. It changes nothing: get log page with the retain
// bit leaves a pending event as it is.
func ReadSMART(path string) ([]byte, error) {
	if !device(path) {
		return nil, fmt.Errorf("%s is no NVMe controller", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page := make([]byte, smartBytes)
	const retain = 1 << 15
	c := &adminCommand{opcode: getLogPage, namespace: allNamespaces, length: smartBytes, timeout: smartTimeout,
		address: uint64(uintptr(unsafe.Pointer(&page[0]))), word10: smartPage | retain | (smartBytes/4-1)<<16}
	var pin runtime.Pinner
	pin.Pin(&page[0])
	defer pin.Unpin()
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), adminIoctl, uintptr(unsafe.Pointer(c)))
	switch {
	case errno != 0:
		return nil, fmt.Errorf("%s: SMART log: %w", path, errno)
	case status != 0:
		return nil, fmt.Errorf("%s: SMART log: the disk refused it with status %#x", path, status)
	}
	return page, nil
}
