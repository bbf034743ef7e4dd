// Package smbios reads the structure table of DMTF DSP0134 (System Management
// BIOS Reference Specification), as the kernel gives it in
// /sys/firmware/dmi/tables/DMI. The bytes come from firmware and are not trusted:
// a table that ends early yields what stood before the end.
package smbios

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// Types of structure that ironrail reads (DSP0134, section 7).
const (
	typeMemoryDevice = 17
	typeEnd          = 127
)

// Structure is one entry of the table.
type Structure struct {
	Type      byte
	Handle    uint16
	Formatted []byte   // with the four header bytes, so that offsets are those of the specification
	Strings   []string // string 1 is Strings[0]
}

// Byte returns the byte at an offset; ok is false where an older version of the
// structure ends before it.
func (s Structure) Byte(offset int) (v byte, ok bool) {
	if offset < 0 || offset >= len(s.Formatted) {
		return 0, false
	}
	return s.Formatted[offset], true
}

// Word returns the little-endian 16-bit value at an offset.
func (s Structure) Word(offset int) (v uint16, ok bool) {
	if offset < 0 || offset+2 > len(s.Formatted) {
		return 0, false
	}
	return binary.LittleEndian.Uint16(s.Formatted[offset:]), true
}

// Dword returns the little-endian 32-bit value at an offset.
func (s Structure) Dword(offset int) (v uint32, ok bool) {
	if offset < 0 || offset+4 > len(s.Formatted) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(s.Formatted[offset:]), true
}

// String returns the string whose number stands at an offset, or "".
func (s Structure) String(offset int) string {
	n, ok := s.Byte(offset)
	if !ok || n == 0 || int(n) > len(s.Strings) {
		return ""
	}
	return s.Strings[n-1]
}

// All walks the structures of a table up to the end marker or the first
// structure that does not fit.
func All(table []byte) iter.Seq[Structure] {
	return func(yield func(Structure) bool) {
		for len(table) >= 4 {
			s, rest, ok := next(table)
			if !ok || s.Type == typeEnd || !yield(s) {
				return
			}
			table = rest
		}
	}
}

// next cuts one structure off the table: the formatted part whose length stands
// in its second byte, then strings that end in NUL, then one more NUL; a
// structure without strings has two NULs (DSP0134, section 6.1.3).
func next(table []byte) (s Structure, rest []byte, ok bool) {
	length := int(table[1])
	if length < 4 || length > len(table) {
		return s, nil, false
	}
	s = Structure{Type: table[0], Handle: binary.LittleEndian.Uint16(table[2:]), Formatted: table[:length]}
	rest = table[length:]
	if bytes.HasPrefix(rest, []byte{0, 0}) {
		return s, rest[2:], true
	}
	for {
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return s, nil, false
		}
		if end == 0 {
			return s, rest[1:], true
		}
		s.Strings = append(s.Strings, string(bytes.TrimSpace(rest[:end])))
		rest = rest[end+1:]
	}
}

// Module is one populated memory device. Texts are as the firmware has them.
type Module struct {
	Slot                string // device locator: DIMM_A1
	Size                int64  // bytes
	Maker, Serial, Part string
}

// Modules lists the populated memory devices (type 17), in the order of the table.
func Modules(table []byte) (all []Module) {
	for s := range All(table) {
		if s.Type != typeMemoryDevice {
			continue
		}
		if n := sizeOf(s); n > 0 {
			all = append(all, Module{Slot: s.String(0x10), Size: n, Maker: s.String(0x17), Serial: s.String(0x18), Part: s.String(0x1A)})
		}
	}
	return all
}

// Memory adds up the populated memory devices (type 17): their bytes and their
// count.
func Memory(table []byte) (installed int64, dimms int) {
	for _, m := range Modules(table) {
		installed, dimms = installed+m.Size, dimms+1
	}
	return installed, dimms
}

// sizeOf returns the bytes of a memory device, 0 for an empty slot. Size is in
// MiB, or in KiB when bit 15 is set; 0x7FFF sends to the extended size at 1Ch,
// 0xFFFF means unknown (DSP0134, section 7.18).
func sizeOf(s Structure) int64 {
	size, ok := s.Word(0x0C)
	switch {
	case !ok || size == 0 || size == 0xFFFF:
		return 0
	case size == 0x7FFF:
		extended, _ := s.Dword(0x1C)
		return int64(extended&0x7FFFFFFF) << 20
	case size&0x8000 != 0:
		return int64(size&0x7FFF) << 10
	}
	return int64(size) << 20
}
