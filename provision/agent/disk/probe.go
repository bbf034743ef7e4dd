package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/ironrail/ironrail/provision/agent/gpt"
)

// edge is how much of either end of a disk must be zero for the disk to be blank.
const edge = 1 << 20

// Probe says what stands on a disk: "" when it is blank, else such as
// "GPT; p1 BIOS boot; p3 ext4 label ironrail-root". Labels are text from outside.
// It reads little; anything it does not know is called unknown data, never blank.
func Probe(r io.ReaderAt, size int64) string {
	if table, err := gpt.Read(r, size); err == nil {
		return probeGPT(r, table)
	}
	if what := filesystem(r, 0, size); what != "" {
		return what
	}
	if what := probeMBR(r); what != "" {
		return what
	}
	for _, off := range []int64{0, max(0, size-edge)} {
		if !zero(r, off, min(edge, size)) {
			return "unknown data"
		}
	}
	return ""
}

// Types of partition that have a name of their own.
const (
	typeBIOSBoot = "21686148-6449-6e6f-744e-656564454649"
	typeESP      = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
)

func probeGPT(r io.ReaderAt, table *gpt.Table) string {
	parts := []string{"GPT"}
	if table.Backup {
		parts[0] = "GPT, backup only"
	}
	for _, p := range table.Partitions() {
		what := filesystem(r, p.Offset(), p.Size())
		switch {
		case p.Type == typeBIOSBoot:
			what = "BIOS boot"
		case p.Type == typeESP && what != "":
			what = "ESP " + what
		case what == "":
			what = "no known file system"
		}
		parts = append(parts, fmt.Sprintf("p%d %s", p.Number, what))
	}
	return strings.Join(parts, "; ")
}

// probeMBR knows a PC partition table by its mark and at least one partition.
func probeMBR(r io.ReaderAt) string {
	b := make([]byte, 512)
	if _, err := r.ReadAt(b, 0); err != nil || b[510] != 0x55 || b[511] != 0xAA {
		return ""
	}
	parts := []string{"MBR"}
	for i := range 4 {
		e := b[446+16*i:]
		start, length := int64(binary.LittleEndian.Uint32(e[8:]))*512, int64(binary.LittleEndian.Uint32(e[12:]))*512
		if e[4] == 0 || length == 0 {
			continue
		}
		what := filesystem(r, start, length)
		if what == "" {
			what = fmt.Sprintf("type %02x", e[4])
		}
		parts = append(parts, fmt.Sprintf("p%d %s", i+1, what))
	}
	return strings.Join(parts, "; ")
}

// signature is a magic number at a place in a file system, array or volume.
type signature struct {
	name  string
	off   int64 // negative: from the end
	magic string
	label int64 // where the label is; 0 for none
	chars int   // bytes of the label
}

// The offsets are from the formats' own documents, as libblkid uses them. The
// ext family is told apart in extName.
var signatures = []signature{
	{"ext", 1024 + 56, "\x53\xef", 1024 + 120, 16},
	{"xfs", 0, "XFSB", 108, 12},
	{"btrfs", 65536 + 64, "_BHRfS_M", 65536 + 299, 64},
	{"LUKS", 0, "LUKS\xba\xbe", 0, 0},
	{"LVM physical volume", 512, "LABELONE", 0, 0},
	{"LVM physical volume", 0, "LABELONE", 0, 0},
	{"mdraid member", 4096, "\xfc\x4e\x2b\xa9", 4096 + 32, 32}, // version 1.2
	{"mdraid member", 0, "\xfc\x4e\x2b\xa9", 32, 32},           // version 1.1
	{"mdraid member", -8192, "\xfc\x4e\x2b\xa9", 0, 0},         // version 1.0
	{"mdraid member", -65536, "\xfc\x4e\x2b\xa9", 0, 0},        // version 0.90
	{"swap", 4096 - 10, "SWAPSPACE2", 1024 + 28, 16},
	{"vfat", 82, "FAT32   ", 71, 11},
	{"vfat", 54, "FAT16   ", 43, 11},
	{"vfat", 54, "FAT12   ", 43, 11},
	{"ntfs", 3, "NTFS    ", 0, 0},
	{"iso9660", 32769, "CD001", 32768 + 40, 32},
	{"squashfs", 0, "hsqs", 0, 0},
	{"ZFS member", 131072, "\x0c\xb1\xba\x00\x00\x00\x00\x00", 0, 0},
	{"bcache", 4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", 0, 0},
}

// filesystem names what a range of the disk holds, or "".
func filesystem(r io.ReaderAt, start, size int64) string {
	for _, s := range signatures {
		off := s.off
		if off < 0 {
			off += size &^ 0xffff // the old mdraid formats count from an aligned end
		}
		magic := make([]byte, len(s.magic))
		if off < 0 || off+int64(len(magic)) > size {
			continue
		}
		if _, err := r.ReadAt(magic, start+off); err != nil || string(magic) != s.magic {
			continue
		}
		name := s.name
		if name == "ext" {
			name = extName(r, start)
		}
		if text := label(r, start+s.label, s.chars); text != "" {
			name += " label " + text
		}
		return name
	}
	return ""
}

// extName tells ext2, ext3 and ext4 apart by their feature flags: a journal
// (compatible 0x4) and extents (incompatible 0x40).
func extName(r io.ReaderAt, start int64) string {
	b := make([]byte, 8)
	if _, err := r.ReadAt(b, start+1024+92); err != nil {
		return "ext2"
	}
	switch {
	case binary.LittleEndian.Uint32(b[4:])&0x40 != 0:
		return "ext4"
	case binary.LittleEndian.Uint32(b)&0x4 != 0:
		return "ext3"
	}
	return "ext2"
}

// label reads a label padded with NULs or spaces.
func label(r io.ReaderAt, off int64, chars int) string {
	b := make([]byte, chars)
	if _, err := r.ReadAt(b, off); err != nil {
		return ""
	}
	b, _, _ = bytes.Cut(b, []byte{0})
	text := strings.ToValidUTF8(strings.TrimSpace(string(b)), "?")
	if text == "NO NAME" {
		return ""
	}
	return text
}

// zero reports whether a range holds nothing but zeroes; one that cannot be read does not.
func zero(r io.ReaderAt, off, length int64) bool {
	b := make([]byte, min(length, 64<<10))
	for length > 0 {
		n := min(length, int64(len(b)))
		if _, err := r.ReadAt(b[:n], off); err != nil || !AllZero(b[:n]) {
			return false
		}
		off, length = off+n, length-n
	}
	return true
}

// AllZero reports whether b holds nothing but zeroes.
func AllZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
