// SPDX-License-Identifier: Apache-2.0

// Package smbios reads the memory modules out of the structure table of DMTF DSP0134
// (System Management BIOS Reference Specification), as the kernel gives it in
// /sys/firmware/dmi/tables/DMI. u-root's package cuts the table; this one corrects
// what it says of things that the firmware does not. The bytes come from firmware
// and are not trusted: a table that ends early yields what stood before the end.
package smbios

import (
	"iter"
	"strings"

	"github.com/u-root/u-root/pkg/smbios"
)

// All walks the structures of a table up to the end marker or the first
// structure that does not fit.
func All(table []byte) iter.Seq[*smbios.Table] {
	return func(yield func(*smbios.Table) bool) {
		for {
			s, rest, _ := smbios.ParseTable(table) // the end marker is an error too, beside its structure
			if s == nil || s.Type == smbios.TableTypeEndOfTable || !yield(s) {
				return
			}
			table = rest
		}
	}
}

// Text returns the string whose number stands at an offset, trimmed; "" where there
// is none. The library has words of its own for that, which would pass for a maker.
func Text(s *smbios.Table, offset int) string {
	if n, err := s.GetByteAt(offset); err != nil || n == 0 {
		return ""
	}
	text, err := s.GetStringAt(offset)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
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
		if s.Type != smbios.TableTypeMemoryDevice {
			continue
		}
		if n := sizeOf(s); n > 0 {
			all = append(all, Module{Slot: Text(s, 0x10), Size: n, Maker: Text(s, 0x17), Serial: Text(s, 0x18), Part: Text(s, 0x1A)})
		}
	}
	return all
}

// sizeUnknown is what firmware writes for a size that it does not know; the library
// takes it for 32 MiB.
const sizeUnknown = 0xFFFF

// sizeOf returns the bytes of a memory device, 0 for an empty slot and for one whose
// size is not known (DSP0134, section 7.18). It reads no more than it needs: the
// library's own reading of a device fails for one that ends inside any field.
func sizeOf(s *smbios.Table) int64 {
	size, err := s.GetWordAt(0x0C)
	if err != nil || size == sizeUnknown {
		return 0
	}
	extended, _ := s.GetDWordAt(0x1C)
	d := smbios.MemoryDevice{Size: size, ExtendedSize: extended}
	return int64(d.GetSizeBytes())
}
