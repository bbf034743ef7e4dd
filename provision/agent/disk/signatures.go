// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// signature is a magic number at its place in a file system, an array member, a
// volume or a partition table. The places are from the formats' own documents and
// headers, as libblkid and mdadm use them.
type signature struct {
	name  string
	off   int64  // bytes from the start of the range; negative: from its end
	align int64  // an offset from the end counts from the size rounded down to this; 0: not rounded
	magic string // bytes
	step  int64  // with count: the magic may stand at off, off+step, ...
	count int64
	label place                 // of the label, counted from the magic; none where chars is 0
	plain func(b []byte) string // judges the 512 bytes from the magic on: the name, "" for none; nil: the magic suffices
}

// place is where a label stands.
type place struct {
	off   int64
	chars int  // bytes
	wide  bool // UTF-16LE
}

const kib, mib = 1 << 10, 1 << 20

// The magics that several rows share.
const (
	md       = "\xfc\x4e\x2b\xa9" // 0xa92b4efc, little-endian
	mdBig    = "\xa9\x2b\x4e\xfc"
	luks2    = "SKUL\xba\xbe" // of LUKS2's second header
	uber     = "\x0c\xb1\xba\x00\x00\x00\x00\x00"
	uberBig  = "\x00\x00\x00\x00\x00\xba\xb1\x0c"
	promise  = "Promise Technology, Inc."
	btrfs    = "_BHRfS_M"
	bcachefs = "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"
	zfsPairs = "\x00\x00\x00\x07version" // the first pair of a vdev label
)

// starts are the signatures that a range is known by from its start.
var starts = []signature{
	{name: "ext", off: 1024 + 56, magic: "\x53\xef", label: place{64, 16, false}, plain: extName},
	{name: "xfs", magic: "XFSB", label: place{108, 12, false}},
	{name: "btrfs", off: 64*kib + 64, magic: btrfs, label: place{235, 64, false}},
	{name: "btrfs", off: 64*mib + 64, magic: btrfs, label: place{235, 64, false}},
	{name: "btrfs", off: 256<<30 + 64, magic: btrfs, label: place{235, 64, false}},
	{name: "LUKS", magic: "LUKS\xba\xbe", label: place{24, 48, false}, plain: luksName}, // LUKS1 has zeroes there
	{name: "LUKS2", off: 0x4000, magic: luks2},
	{name: "LUKS2", off: 0x8000, magic: luks2},
	{name: "LUKS2", off: 0x10000, magic: luks2},
	{name: "LUKS2", off: 0x20000, magic: luks2},
	{name: "LUKS2", off: 0x40000, magic: luks2},
	{name: "LUKS2", off: 0x80000, magic: luks2},
	{name: "LUKS2", off: 0x100000, magic: luks2},
	{name: "LUKS2", off: 0x200000, magic: luks2},
	{name: "LUKS2", off: 0x400000, magic: luks2},
	{name: "LVM physical volume", magic: "LABELONE", step: 512, count: 4},
	{name: "mdraid member", off: 4096, magic: md, label: place{32, 32, false}}, // version 1.2
	{name: "mdraid member", magic: md, label: place{32, 32, false}},            // version 1.1
	{name: "swap", off: 4*kib - 10, magic: "SWAPSPACE2", label: place{1052 - 4*kib + 10, 16, false}},
	{name: "swap", off: 8*kib - 10, magic: "SWAPSPACE2", label: place{1052 - 8*kib + 10, 16, false}},
	{name: "swap", off: 16*kib - 10, magic: "SWAPSPACE2", label: place{1052 - 16*kib + 10, 16, false}},
	{name: "swap", off: 32*kib - 10, magic: "SWAPSPACE2", label: place{1052 - 32*kib + 10, 16, false}},
	{name: "swap", off: 64*kib - 10, magic: "SWAPSPACE2", label: place{1052 - 64*kib + 10, 16, false}},
	{name: "hibernated swap", off: 4*kib - 8, magic: "SUSPEND"}, // S1, S2 and UL before it
	{name: "hibernated swap", off: 16*kib - 8, magic: "SUSPEND"},
	{name: "hibernated swap", off: 64*kib - 8, magic: "SUSPEND"},
	{name: "vfat", off: 82, magic: "FAT32   ", label: place{-11, 11, false}},
	{name: "vfat", off: 54, magic: "FAT16   ", label: place{-11, 11, false}},
	{name: "vfat", off: 54, magic: "FAT12   ", label: place{-11, 11, false}},
	{name: "exfat", off: 3, magic: "EXFAT   "},
	{name: "ntfs", off: 3, magic: "NTFS    "},
	{name: "ReFS", off: 3, magic: "ReFS\x00\x00\x00\x00"},
	{name: "BitLocker", off: 3, magic: "-FVE-FS-"},
	{name: "f2fs", off: 1024, magic: "\x10\x20\xf5\xf2", label: place{0x7c, 128, true}},
	{name: "f2fs", off: 4096 + 1024, magic: "\x10\x20\xf5\xf2", label: place{0x7c, 128, true}},
	{name: "iso9660", off: 32*kib + 1, magic: "CD001", label: place{39, 32, false}},
	{name: "udf", off: 32*kib + 1, magic: "BEA01"},
	{name: "udf", off: 32*kib + 2049, magic: "NSR0", step: 2048, count: 16},
	{name: "squashfs", magic: "hsqs"},
	{name: "squashfs", magic: "sqsh"},
	{name: "erofs", off: 1024, magic: "\xe2\xe1\xf5\xe0", label: place{64, 16, false}},
	{name: "cramfs", magic: "\x45\x3d\xcd\x28"},
	{name: "ZFS member", off: 128 * kib, magic: uber, step: kib, count: 128},
	{name: "ZFS member", off: 128 * kib, magic: uberBig, step: kib, count: 128},
	{name: "ZFS member", off: 16*kib + 20, magic: zfsPairs},
	{name: "ZFS member", off: 384 * kib, magic: uber, step: kib, count: 128},
	{name: "ZFS member", off: 384 * kib, magic: uberBig, step: kib, count: 128},
	{name: "ZFS member", off: 272*kib + 20, magic: zfsPairs},
	{name: "bcache", off: 4096 + 24, magic: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{name: "bcachefs", off: 4096 + 24, magic: bcachefs, label: place{48, 32, false}},
	{name: "bcachefs", off: 2*mib + 24, magic: bcachefs, label: place{48, 32, false}},
	{name: "reiserfs", off: 64*kib + 52, magic: "ReIsEr", label: place{48, 16, false}},
	{name: "reiserfs", off: 8*kib + 52, magic: "ReIsErFs"},
	{name: "reiser4", off: 64 * kib, magic: "ReIsEr4"},
	{name: "jfs", off: 32 * kib, magic: "JFS1", label: place{152, 16, false}},
	{name: "nilfs2", off: 1024, magic: "\x02\x00\x00\x00\x00\x00\x34\x34", label: place{168, 80, false}},
	{name: "ocfs2", off: 1024, magic: "OCFSV2", label: place{272, 64, false}},
	{name: "ocfs2", off: 2048, magic: "OCFSV2", label: place{272, 64, false}},
	{name: "ocfs2", off: 4096, magic: "OCFSV2", label: place{272, 64, false}},
	{name: "ocfs2", off: 8192, magic: "OCFSV2", label: place{272, 64, false}},
	{name: "gfs2", off: 64 * kib, magic: "\x01\x16\x19\x70", label: place{160, 64, false}},
	{name: "vmfs volume", off: mib, magic: "\x0d\xd0\x01\xc0"},
	{name: "vmfs", off: 2 * mib, magic: "\x5e\xf1\xab\x2f"},
	{name: "hfsplus", off: 1024, magic: "H+\x00\x04"},
	{name: "hfsplus", off: 1024, magic: "HX\x00\x05"},
	{name: "apfs", off: 32, magic: "NXSB"},
	{name: "ufs", off: 8*kib + 1372, magic: "\x54\x19\x01\x00"},
	{name: "ufs", off: 64*kib + 1372, magic: "\x19\x01\x54\x19"},
	{name: "vxfs", off: 1024, magic: "\xf5\xfc\x01\xa5"},
	{name: "vxfs", off: 8 * kib, magic: "\xa5\x01\xfc\xf5"},
	{name: "Ceph BlueStore", magic: "bluestore block device"},
	{name: "Oracle ASM", off: 32, magic: "ORCLDISK"},
	{name: "stratis", off: 512 + 4, magic: "!Stra0tis\x86\xff\x02^\x41rh"},
	{name: "stratis", off: 4608 + 4, magic: "!Stra0tis\x86\xff\x02^\x41rh"},
	{name: "VDO", magic: "dmvdo001"},
	{name: "dm-integrity", magic: "integrt\x00"},
	{name: "dm-verity", magic: "verity\x00\x00"},
	{name: "dm snapshot", magic: "SnAp"},
	{name: "HighPoint RAID member", off: 9*512 + 32, magic: "\xf0\x16\x78\x5a"},
	{name: "HighPoint RAID member", off: 9*512 + 32, magic: "\xfd\x16\x78\x5a"},
	{name: "install marker of ironrail", off: MarkerOffset, magic: markerMagic},
}

// ends are the signatures that a range is known by from its end: they may stand
// beside a partition table.
var ends = []signature{
	{name: "mdraid member", off: -8 * kib, align: 4 * kib, magic: md, label: place{32, 32, false}}, // version 1.0
	{name: "mdraid member", off: -64 * kib, align: 64 * kib, magic: md},                            // version 0.90
	{name: "mdraid member", off: -64 * kib, align: 64 * kib, magic: mdBig},
	{name: "ZFS member", off: -384 * kib, align: 256 * kib, magic: uber, step: kib, count: 128},
	{name: "ZFS member", off: -384 * kib, align: 256 * kib, magic: uberBig, step: kib, count: 128},
	{name: "ZFS member", off: -128 * kib, align: 256 * kib, magic: uber, step: kib, count: 128},
	{name: "ZFS member", off: -128 * kib, align: 256 * kib, magic: uberBig, step: kib, count: 128},
	{name: "ZFS member", off: -496*kib + 20, align: 256 * kib, magic: zfsPairs},
	{name: "ZFS member", off: -240*kib + 20, align: 256 * kib, magic: zfsPairs},
	{name: "nilfs2", off: -4096, align: 4096, magic: "\x02\x00\x00\x00\x00\x00\x34\x34", label: place{168, 80, false}},
	{name: "DRBD", off: -4096 + 60, align: 4096, magic: "\x83\x74\x02\x6b"},
	{name: "DRBD", off: -4096 + 60, align: 4096, magic: "\x83\x74\x02\x6c"},
	{name: "DRBD", off: -4096 + 60, align: 4096, magic: "\x83\x74\x02\x6d"},
	{name: "Intel RAID member", off: -1024, align: 512, magic: "Intel Raid ISM Cfg Sig. "},
	{name: "Intel RAID member", off: -8192, align: 4096, magic: "Intel Raid ISM Cfg Sig. "},
	{name: "DDF RAID member", off: -512, align: 512, magic: "\xde\x11\xde\x11"},
	{name: "DDF RAID member", off: -4096, align: 4096, magic: "\xde\x11\xde\x11"},
	{name: "DDF RAID member", off: -257 * 512, align: 512, magic: "\xde\x11\xde\x11"},
	{name: "LSI RAID member", off: -512, align: 512, magic: "$XIDE$"},
	{name: "NVIDIA RAID member", off: -1024, align: 512, magic: "NVIDIA  "},
	{name: "Adaptec RAID member", off: -512, align: 512, magic: "\x37\xfc\x4d\x1e"},
	{name: "bcachefs", off: -mib + 24, align: 512, magic: bcachefs, label: place{48, 32, false}},
	{name: "Promise RAID member", off: -63 * 512, align: 512, magic: promise},
	{name: "Promise RAID member", off: -255 * 512, align: 512, magic: promise},
	{name: "Promise RAID member", off: -256 * 512, align: 512, magic: promise},
	{name: "Promise RAID member", off: -16 * 512, align: 512, magic: promise},
	{name: "Promise RAID member", off: -399 * 512, align: 512, magic: promise},
	{name: "HighPoint RAID member", off: -11 * 512, align: 512, magic: "\xf3\x16\x78\x5a"},
	{name: "HighPoint RAID member", off: -11 * 512, align: 512, magic: "\xfd\x16\x78\x5a"},
}

// tables are partition tables other than a whole GPT and an MBR, on a whole disk.
var tables = []signature{
	{name: "damaged GPT", off: 512, magic: "EFI PART"},
	{name: "damaged GPT", off: 4096, magic: "EFI PART"},
	{name: "damaged GPT", off: -512, align: 512, magic: "EFI PART"},
	{name: "damaged GPT", off: -4096, align: 512, magic: "EFI PART"},
	{name: "Sun label", off: 508, magic: "\xda\xbe"},
	{name: "SGI label", magic: "\x0b\xe5\xa9\x41"},
	{name: "BSD label", magic: "\x57\x45\x56\x82"},
	{name: "BSD label", off: 64, magic: "\x57\x45\x56\x82"},
	{name: "BSD label", off: 512, magic: "\x57\x45\x56\x82"},
	{name: "Mac partition map", off: 512, magic: "PM\x00\x00"},
	{name: "Amiga partition table", magic: "RDSK", step: 512, count: 16},
}

// copies are what of a file system stands away from its start, where a place of the
// scan may meet it.
var copies = []signature{
	{name: "ext backup superblock", off: 56, magic: "\x53\xef", label: place{64, 16, false}, plain: extCopy},
	{name: "xfs", off: 512, magic: "XAGF\x00\x00\x00\x01"},
}

// extName tells ext2, ext3 and ext4 apart by their feature flags: a journal
// (compatible 0x4), extents (incompatible 0x40), a journal device (0x8). Two bytes
// are little of a magic: the fields after it must have values that exist.
func extName(b []byte) string {
	compatible, incompatible := binary.LittleEndian.Uint32(b[36:]), binary.LittleEndian.Uint32(b[40:])
	state, onError := binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint16(b[4:])
	creator, revision := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
	switch {
	case state > 63 || onError > 3 || creator > 4 || revision > 1:
		return ""
	case incompatible&0x8 != 0:
		return "ext journal"
	case incompatible&0x40 != 0:
		return "ext4"
	case compatible&0x4 != 0:
		return "ext3"
	}
	return "ext2"
}

// extCopy knows a backup superblock: its own block group is not the first.
func extCopy(b []byte) string {
	name := extName(b)
	if name == "" || binary.LittleEndian.Uint16(b[34:]) == 0 {
		return ""
	}
	return name + " backup superblock"
}

// luksName tells the versions apart.
func luksName(b []byte) string {
	if binary.BigEndian.Uint16(b[6:]) == 2 {
		return "LUKS2"
	}
	return "LUKS"
}

// find returns where the magic stands in a range and the name of what it is of, ""
// when it is not there.
func (s signature) find(p *prober, start, size int64) (int64, string) {
	off := s.off
	if off < 0 {
		end := size
		if s.align > 0 {
			end -= end % s.align
		}
		off += end
	}
	for i := range max(s.count, 1) {
		at := off + i*s.step
		if at < 0 || at+int64(len(s.magic)) > size || !bytes.Equal(p.read(start+at, len(s.magic)), []byte(s.magic)) {
			continue
		}
		name := s.name
		if s.plain != nil {
			b := make([]byte, 512) // what a short disk lacks is zero
			copy(b, p.read(start+at, int(min(512, size-at))))
			name = s.plain(b)
		}
		if name != "" {
			return start + at, name
		}
	}
	return 0, ""
}

// named lists what a range holds by one of the tables above, each name once.
func (p *prober) named(from []signature, start, size int64) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range from {
		at, name := s.find(p, start, size)
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		if text := s.label.text(p.read(at+s.label.off, s.label.chars)); text != "" {
			name += " label " + text
		}
		out = append(out, name)
	}
	return out
}

// text decodes a label that is padded with NULs or spaces.
func (l place) text(b []byte) string {
	if l.wide {
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		b = []byte(string(utf16.Decode(units)))
	}
	b, _, _ = bytes.Cut(b, []byte{0})
	text := strings.ToValidUTF8(strings.TrimSpace(string(b)), "?")
	if text == "NO NAME" {
		return ""
	}
	return text
}
