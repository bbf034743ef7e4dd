package smbios

import (
	"slices"
	"testing"
)

// device returns a type 17 structure with the given size fields.
func device(size uint16, extended uint32, strings ...string) []byte {
	b := make([]byte, 0x22)
	b[0], b[1], b[2] = typeMemoryDevice, byte(len(b)), 1
	b[0x0C], b[0x0D] = byte(size), byte(size>>8)
	b[0x1C], b[0x1D], b[0x1E], b[0x1F] = byte(extended), byte(extended>>8), byte(extended>>16), byte(extended>>24)
	for _, s := range strings {
		b = append(append(b, s...), 0)
	}
	if len(strings) == 0 {
		b = append(b, 0)
	}
	return append(b, 0)
}

func TestMemory(t *testing.T) {
	t.Parallel()
	end := []byte{typeEnd, 4, 0, 1, 0, 0}
	for _, c := range []struct {
		name      string
		table     []byte
		installed int64
		dimms     int
	}{
		{"none", end, 0, 0},
		{"empty slot beside a DIMM", slices.Concat(device(0, 0), device(16384, 0, "DIMM_A1"), end), 16 << 30, 1},
		{"extended size", slices.Concat(device(0x7FFF, 131072, "A", "B"), end), 128 << 30, 1},
		{"KiB granularity", slices.Concat(device(0x8000|512, 0), end), 512 << 10, 1},
		{"unknown size", slices.Concat(device(0xFFFF, 0), end), 0, 0},
		{"after the end marker", slices.Concat(end, device(1024, 0)), 0, 0},
		{"cut off in the strings", device(1024, 0, "DIMM")[:0x25], 0, 0},
		{"two", slices.Concat(device(1024, 0, "x"), device(2048, 0), end), 3 << 30, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			installed, dimms := Memory(c.table)
			if installed != c.installed || dimms != c.dimms {
				t.Errorf("got %d bytes in %d DIMMs, want %d in %d", installed, dimms, c.installed, c.dimms)
			}
		})
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for s := range All(device(1, 0, "DIMM_A1", "BANK 0 ")) {
		if !slices.Equal(s.Strings, []string{"DIMM_A1", "BANK 0"}) {
			t.Errorf("got strings %q", s.Strings)
		}
		if got := s.String(0x0C); got != "DIMM_A1" { // the size field holds 1, read as a string number
			t.Errorf("got string %q", got)
		}
		if got := s.String(0x60); got != "" {
			t.Errorf("string past the end: %q", got)
		}
	}
}

func FuzzAll(f *testing.F) {
	f.Add(device(1, 0, "x", "y"))
	f.Add([]byte{1, 4, 0, 0, 0})
	f.Fuzz(func(t *testing.T, table []byte) {
		total := 0
		for s := range All(table) {
			total += len(s.Formatted)
			for i := range 256 {
				s.String(i)
				s.Word(i)
				s.Dword(i)
			}
		}
		if total > len(table) {
			t.Errorf("structures hold %d bytes of %d", total, len(table))
		}
		Memory(table)
	})
}
