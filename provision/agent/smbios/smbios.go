// SPDX-License-Identifier: Apache-2.0

// Package smbios reads the memory modules out of the structure table of DMTF DSP0134
// (System Management BIOS Reference Specification), as the kernel gives it in
// /sys/firmware/dmi/tables/DMI. u-root's package cuts the table; this one corrects
// what it says of things that the firmware does not. The bytes come from firmware
// and are not trusted: a table that ends early yields what stood before the end.
package smbios

import (
	"iter"
	"slices"
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

// Module is one memory device. Texts are as the firmware has them.
type Module struct {
	Slot                string // device locator: DIMM_A1
	Size                int64  // bytes; 0: the slot is empty
	Speed               int    // MT/s, as the firmware has set it; 0: unknown
	Maker, Serial, Part string
}

// Modules lists the populated memory devices (type 17), in the order of the table.
func Modules(table []byte) []Module {
	return slices.DeleteFunc(Slots(table), func(m Module) bool { return m.Size == 0 })
}

// Slots lists the memory devices (type 17) in the order of the table, those of empty slots
// too. One whose size the firmware does not know is left out.
func Slots(table []byte) (all []Module) {
	for s := range All(table) {
		if s.Type != smbios.TableTypeMemoryDevice {
			continue
		}
		switch n, known := sizeOf(s); {
		case known && n == 0:
			all = append(all, Module{Slot: Text(s, 0x10)})
		case known:
			all = append(all, Module{Slot: Text(s, 0x10), Size: n, Speed: speedOf(s), Maker: Text(s, 0x17), Serial: Text(s, 0x18), Part: Text(s, 0x1A)})
		}
	}
	return all
}

// sizeUnknown is what firmware writes for a size that it does not know; the library
// takes it for 32 MiB.
const sizeUnknown = 0xFFFF

// sizeOf returns the bytes of a memory device, 0 for an empty slot; known is false for one
// whose size the firmware does not know (DSP0134, section 7.18). It reads no more than it
// needs: the library's own reading of a device fails for one that ends inside any field.
func sizeOf(s *smbios.Table) (size int64, known bool) {
	word, err := s.GetWordAt(0x0C)
	if err != nil || word == sizeUnknown {
		return 0, false
	}
	extended, _ := s.GetDWordAt(0x1C)
	d := smbios.MemoryDevice{Size: word, ExtendedSize: extended}
	return int64(d.GetSizeBytes()), true
}

// Speeds are in MT/s. From 65,535 on, which the word stands for, an extended field has them.
const speedExtended = 0xFFFF

// speedOf returns the configured speed of a memory device (SMBIOS 2.7), or the highest that
// it is made for (2.3) in firmware that has no other; 0 where neither is stated.
func speedOf(s *smbios.Table) int {
	for _, at := range []struct{ word, extended int }{{0x20, 0x58}, {0x15, 0x54}} {
		word, err := s.GetWordAt(at.word)
		if err != nil || word == 0 {
			continue
		}
		if word != speedExtended {
			return int(word)
		}
		if v, err := s.GetDWordAt(at.extended); err == nil && v != 0 && v < 1<<31 {
			return int(v)
		}
	}
	return 0
}
