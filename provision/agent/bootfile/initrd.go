// SPDX-License-Identifier: Apache-2.0

package bootfile

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// The newc form of cpio (initramfs buffer format of the Linux kernel): a magic
// number, 13 fields of eight hex digits, the name with a NUL, the content; name
// and content end at multiples of four bytes.
const (
	newcMagic  = "070701"
	newcHeader = len(newcMagic) + 13*8
	fieldSize  = 6  // of the content
	fieldName  = 11 // size of the name, with its NUL
)

// maxSize bounds the boot file, bytes.
const maxSize = 64 << 10

// Find returns the boot file of an initrd, which is one or more segments: the one
// that the kernel would have unpacked, the last. It looks at archives that are not
// compressed only, as the per-node segment is; the bytes are not trusted.
func Find(segments ...[]byte) ([]byte, error) {
	name := strings.TrimPrefix(wire.BootFile, "/") + "\x00"
	for i := len(segments) - 1; i >= 0; i-- {
		s := segments[i]
		for end := len(s); ; {
			at := bytes.LastIndex(s[:end], []byte(name))
			if at < 0 {
				break
			}
			if content, ok := content(s, at, len(name)); ok {
				return content, nil
			}
			end = at + len(name) - 1
		}
	}
	return nil, errkind.New(errkind.NotFound, "the initrd has no boot file").
		Do("Netboot the node through ironrail; its boot script adds the per-node part of the ramdisk.")
}

// content returns the content of the record whose name stands at a place.
func content(s []byte, at, nameSize int) ([]byte, bool) {
	head := at - newcHeader
	if head < 0 || string(s[head:head+len(newcMagic)]) != newcMagic {
		return nil, false
	}
	field := func(i int) int {
		from := head + len(newcMagic) + 8*i
		n, err := strconv.ParseUint(string(s[from:from+8]), 16, 32)
		if err != nil {
			return -1
		}
		return int(n)
	}
	size := field(fieldSize)
	from := head + (newcHeader+nameSize+3)/4*4
	if field(fieldName) != nameSize || size < 0 || size > maxSize || from+size > len(s) {
		return nil, false
	}
	return s[from : from+size], true
}
