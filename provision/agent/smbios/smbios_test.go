// SPDX-License-Identifier: Apache-2.0

package smbios

import (
	"slices"
	"testing"

	"github.com/u-root/u-root/pkg/smbios"
)

// device returns a type 17 structure with the given size fields.
func device(size uint16, extended uint32, strings ...string) []byte {
	b := make([]byte, 0x22)
	b[0], b[1], b[2] = byte(smbios.TableTypeMemoryDevice), byte(len(b)), 1
	b[0x0C], b[0x0D] = byte(size), byte(size>>8)
	b[0x10], b[0x17], b[0x18] = 1, 2, 9
	b[0x1C], b[0x1D], b[0x1E], b[0x1F] = byte(extended), byte(extended>>8), byte(extended>>16), byte(extended>>24)
	for _, s := range strings {
		b = append(append(b, s...), 0)
	}
	if len(strings) == 0 {
		b = append(b, 0)
	}
	return append(b, 0)
}

func TestModules(t *testing.T) {
	t.Parallel()
	end := []byte{byte(smbios.TableTypeEndOfTable), 4, 0, 1, 0, 0}
	of := func(slot, maker string, size int64) Module { return Module{Slot: slot, Maker: maker, Size: size} }
	for _, c := range []struct {
		name  string
		table []byte
		want  []Module
	}{
		{"none", end, nil},
		{"no table", nil, nil},
		{"empty slot beside a DIMM", slices.Concat(device(0, 0), device(16384, 0, "DIMM_A1", "Samsung "), end), []Module{of("DIMM_A1", "Samsung", 16<<30)}},
		{"extended size", slices.Concat(device(0x7FFF, 131072, "A", "B"), end), []Module{of("A", "B", 128<<30)}},
		{"KiB granularity, no strings", slices.Concat(device(0x8000|512, 0), end), []Module{of("", "", 512<<10)}},
		{"unknown size", slices.Concat(device(sizeUnknown, 0), end), nil},
		{"after the end marker", slices.Concat(end, device(1024, 0)), nil},
		{"cut off in the strings", device(1024, 0, "DIMM")[:0x25], nil},
		{"too short for a size", []byte{17, 4, 0, 0, 0, 0}, nil},
		{"a length without a header", []byte{17, 0, 0, 0, 0, 0}, nil},
		{"two", slices.Concat(device(1024, 0, "x"), device(2048, 0, "y"), end), []Module{of("x", "", 1<<30), of("y", "", 2<<30)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Modules(c.table); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestSpeeds: the configured speed counts before that of the module, and a speed that a
// word does not hold stands further behind.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	made := func(size int, at map[int][]byte) []byte {
		b := make([]byte, size)
		b[0], b[1], b[0x0D] = byte(smbios.TableTypeMemoryDevice), byte(size), 0x40 // 16 GiB
		for off, v := range at {
			copy(b[off:], v)
		}
		return append(b, 0, 0)
	}
	for _, c := range []struct {
		name  string
		table []byte
		want  int
	}{
		{"configured", made(0x28, map[int][]byte{0x15: {0xE0, 0x15}, 0x20: {0xC0, 0x12}}), 4800},
		{"not configured", made(0x28, map[int][]byte{0x15: {0xE0, 0x15}}), 5600},
		{"SMBIOS 2.3", made(0x1B, map[int][]byte{0x15: {0x80, 0x0C}}), 3200},
		{"extended", made(0x5C, map[int][]byte{0x20: {0xFF, 0xFF}, 0x58: {0x80, 0x38, 1, 0}}), 80000},
		{"extended and cut off", made(0x28, map[int][]byte{0x20: {0xFF, 0xFF}}), 0},
		{"SMBIOS 2.1", made(0x15, nil), 0},
	} {
		got := Slots(c.table)
		if len(got) != 1 || got[0].Speed != c.want || got[0].Size != 16<<30 {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
	if got := Slots(device(0, 0, "DIMM_A1")); len(got) != 1 || got[0] != (Module{Slot: "DIMM_A1"}) {
		t.Errorf("an empty slot: %+v", got)
	}
}

func FuzzAll(f *testing.F) {
	f.Add(device(1, 0, "x", "y"))
	f.Add([]byte{1, 4, 0, 0, 0})
	f.Fuzz(func(t *testing.T, table []byte) {
		total := 0
		for s := range All(table) {
			total += s.Len()
			for i := range 256 {
				Text(s, i)
			}
		}
		if total > len(table) {
			t.Errorf("structures hold %d bytes of %d", total, len(table))
		}
		Modules(table)
	})
}
