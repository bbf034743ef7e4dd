// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// shell runs a command on a file of a size and returns its path; "$D" is the file.
// What is missing on this machine skips.
func shell(t *testing.T, size int64, command string, tools ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if first := strings.Fields(command)[0]; first != "true" {
		tools = append(tools, first)
	}
	peertest.Need(t, append(tools, "bash")...)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", command)
	cmd.Env = append(os.Environ(), "D="+path, "DIR="+t.TempDir(), "MTOOLS_SKIP_CHECK=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return path
}

// probed is Probe of a file.
func probed(t *testing.T, path string) string {
	t.Helper()
	d, err := Open(path, Look)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return Probe(d, d.Size())
}

// judged says what blkid and wipefs see of a file: "" is nothing at all.
func judged(t *testing.T, path string) string {
	t.Helper()
	peertest.Need(t, "blkid", "wipefs")
	seen, _ := exec.CommandContext(t.Context(), "blkid", "-p", "-o", "export", path).CombinedOutput() // exit 2: nothing
	marks, err := exec.CommandContext(t.Context(), "wipefs", "-n", "--noheadings", "-O", "TYPE", path).CombinedOutput()
	if err != nil {
		t.Fatalf("wipefs: %v\n%s", err, marks)
	}
	return strings.Join(strings.Fields(string(seen)+string(marks)), " ")
}

// formats are disks as the real tools make them: what Probe says, and the word by
// which util-linux names the same.
var formats = []struct {
	name, command string
	size          int64
	want, judge   string
}{
	{"ext2", `mke2fs -q -t ext2 -L data "$D"`, 64 * mib, "ext2 label data", "TYPE=ext2"},
	{"ext3", `mke2fs -q -t ext3 "$D"`, 64 * mib, "ext3", "TYPE=ext3"},
	{"ext4", `mke2fs -q -t ext4 -L data "$D"`, 64 * mib, "ext4 label data", "TYPE=ext4"},
	{"ext4 journal", `mke2fs -q -O journal_dev "$D"`, 64 * mib, "ext journal", "TYPE=jbd"},
	{"xfs", `mkfs.xfs -q -L scratch "$D"`, 512 * mib, "xfs label scratch", "TYPE=xfs"},
	{"btrfs", `mkfs.btrfs -q -L pool "$D"`, 256 * mib, "btrfs label pool", "TYPE=btrfs"},
	{"btrfs, mirror alone", `mkfs.btrfs -q -L pool "$D"; dd if=/dev/zero of="$D" bs=1M count=32 conv=notrunc`, 256 * mib, "btrfs label pool", ""},
	{"vfat 32", `mkfs.vfat -F 32 -n ESP "$D"`, 64 * mib, "vfat label ESP", "TYPE=vfat"},
	{"vfat 16", `mkfs.vfat -F 16 -n ESP "$D"`, 64 * mib, "vfat label ESP", "TYPE=vfat"},
	{"vfat 12", `mkfs.vfat -F 12 "$D"`, 4 * mib, "vfat", "TYPE=vfat"},
	{"exfat", `mkfs.exfat "$D"`, 64 * mib, "exfat", "TYPE=exfat"},
	{"ntfs", `mkfs.ntfs -F -Q "$D"`, 64 * mib, "ntfs", "TYPE=ntfs"},
	{"f2fs", `mkfs.f2fs -q -l flash "$D"`, 256 * mib, "f2fs label flash", "TYPE=f2fs"},
	{"swap 4K", `mkswap -L s "$D"`, 64 * mib, "swap label s", "TYPE=swap"},
	{"swap 8K", `mkswap -p 8192 "$D"`, 64 * mib, "swap", "TYPE=swap"},
	{"swap 16K", `mkswap -p 16384 -L sw "$D"`, 64 * mib, "swap label sw", "TYPE=swap"},
	{"swap 32K", `mkswap -p 32768 "$D"`, 64 * mib, "swap", "TYPE=swap"},
	{"swap 64K", `mkswap -p 65536 -L grace "$D"`, 64 * mib, "swap label grace", "TYPE=swap"},
	{"squashfs", `mksquashfs "$DIR" "$D" -noappend -quiet -no-progress; truncate -s 64M "$D"`, 64 * mib, "squashfs", "TYPE=squashfs"},
	{"iso9660", `genisoimage -quiet -V CD -o "$D" "$DIR"; truncate -s 64M "$D"`, 64 * mib, "iso9660 label CD", "TYPE=iso9660"},
	{"udf", `mkudffs "$D"`, 64 * mib, "udf", "TYPE=udf"},
	{"reiserfs", `mkreiserfs -q -ff -l old "$D"`, 128 * mib, "reiserfs label old", "TYPE=reiserfs"},
	{"jfs", `mkfs.jfs -q -L j "$D"`, 64 * mib, "jfs label j", "TYPE=jfs"},
	{"nilfs2", `mkfs.nilfs2 -q -L log "$D"`, 256 * mib, "nilfs2 label log", "TYPE=nilfs2"},
	{"ocfs2", `mkfs.ocfs2 -q -F -x -b 4096 -C 4096 -J size=4M -N 1 -M local -L shared "$D"`, 256 * mib, "ocfs2 label shared", "TYPE=ocfs2"},
	{"gfs2", `mkfs.gfs2 -q -O -p lock_nolock -j 1 -J 8 "$D"`, 256 * mib, "gfs2", "TYPE=gfs2"},
	{"LUKS1", `cryptsetup -q luksFormat --type luks1 --pbkdf-force-iterations 1000 "$D" <<< pass`, 64 * mib, "LUKS", "TYPE=crypto_LUKS"},
	{"LUKS2", `cryptsetup -q luksFormat --type luks2 --label vault --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$D" <<< pass`, 64 * mib, "LUKS2 label vault", "TYPE=crypto_LUKS"},
	{"LUKS2, first header lost", `cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$D" <<< pass; dd if=/dev/zero of="$D" bs=4096 count=1 conv=notrunc`, 64 * mib, "LUKS2", "crypto_LUKS"},
	{"LUKS2, large metadata", `cryptsetup -q luksFormat --type luks2 --luks2-metadata-size 4m --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$D" <<< pass; dd if=/dev/zero of="$D" bs=1M count=1 conv=notrunc`, 64 * mib, "LUKS2", "crypto_LUKS"},
	{"DRBD 8.4", `drbdmeta --force 84 v08 "$D" internal create-md`, 64 * mib, "DRBD", "TYPE=drbd"},
	{"DRBD 9", `drbdmeta --force 90 v09 "$D" internal create-md 1`, 64 * mib, "DRBD", "TYPE=drbd"},
	{"GPT", `sgdisk -n 1:2048:4095 -t 1:ef02 -n 2:0:0 "$D"`, 64 * mib, "GPT; p1 BIOS boot; p2 no known file system", "PTTYPE=gpt"},
	{"MBR", `sfdisk -q "$D" <<< '2048,65536,83'`, 64 * mib, "MBR; p1 type 83", "PTTYPE=dos"},
	{"empty MBR", `sfdisk -q "$D" <<< 'label: dos'`, 64 * mib, "MBR", "PTTYPE=dos"},
	{"Sun label", `sfdisk -q "$D" <<< 'label: sun'`, 64 * mib, "Sun label", "PTTYPE=sun"},
	{"SGI label", `sfdisk -q "$D" <<< 'label: sgi'`, 64 * mib, "SGI label", "PTTYPE=sgi"},
	{"Mac map", `parted -s "$D" mklabel mac`, 64 * mib, "Mac partition map", "PTTYPE=mac"},
	{"BSD label", `parted -s "$D" mklabel bsd`, 64 * mib, "BSD label", ""},
	{"Amiga table", `parted -s "$D" mklabel amiga`, 64 * mib, "Amiga partition table", ""},
	{"ext4 beside an end-of-disk array", `mke2fs -q -t ext4 "$D" 60000k; printf '\xfc\x4e\x2b\xa9' | dd of="$D" bs=1 seek=$((64*1024*1024-8192)) conv=notrunc`, 64 * mib, "ext4; mdraid member", "TYPE=ext4"},
}

func TestPeerFormats(t *testing.T) {
	t.Parallel()
	for _, c := range formats {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := shell(t, c.size, c.command)
			if got := probed(t, path); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if seen := judged(t, path); !strings.Contains(seen, c.judge) {
				t.Errorf("blkid and wipefs see %q, which is not %q: the disk is not what the test means", seen, c.judge)
			}
		})
	}
}

// TestPeerLostTable: the first and the last MiB of a disk are zero, its table is gone,
// and a file system lives where the first partition was.
func TestPeerLostTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tool, command string // the command makes a file system on $P, which is put at a place
		at, size            int64
		want                string
	}{
		{"ext4", "mke2fs", `mke2fs -q -t ext4 -L data "$P"`, mib, 64 * mib, "no partition table; ext4 label data at byte 1048576"},
		{"ext4 at 2 MiB", "mke2fs", `mke2fs -q -t ext4 "$P"`, 2 * mib, 64 * mib, "no partition table; ext4 at byte 2097152"},
		{"ext4 of a second partition", "mke2fs", `mke2fs -q -t ext4 -L two "$P"`, 129 * mib, 64 * mib, "no partition table; ext4 label two at byte 135266304"},
		{"xfs", "mkfs.xfs", `mkfs.xfs -q -L x "$P"`, mib, 512 * mib, "no partition table; xfs label x at byte 1048576"},
		{"btrfs", "mkfs.btrfs", `mkfs.btrfs -q -L b "$P"`, mib, 256 * mib, "no partition table; btrfs label b at byte 1048576"},
		{"LUKS2", "cryptsetup", `cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$P" <<< pass`, mib, 64 * mib, "no partition table; LUKS2 at byte 1048576"},
		{"vfat", "mkfs.vfat", `mkfs.vfat -F 32 -n ESP "$P"`, mib, 64 * mib, "no partition table; vfat label ESP at byte 1048576"},
		{"swap of 64K pages", "mkswap", `mkswap -p 65536 "$P"`, 130 * mib, 64 * mib, "no partition table; swap at byte 136314880"},
		{"ext4 without its first 64 MiB", "mke2fs", `mke2fs -q -t ext4 -b 4096 -L data "$P"; dd if=/dev/zero of="$P" bs=1M count=64 conv=notrunc`, mib, 512 * mib, "no partition table; ext4 backup superblock label data at byte 135266304"},
		{"at sector 63", "mke2fs", `mke2fs -q -t ext4 -L old "$P"; dd if=/dev/zero of="$P" bs=1 count=0 conv=notrunc`, 63 * 512, 64 * mib, "no partition table; ext4 label old at byte 32256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := shell(t, c.at+c.size+8*mib, `true && P="$DIR/part"; truncate -s `+itoa(c.size)+` "$P"; `+c.command+`; dd if="$P" of="$D" bs=512 seek=`+itoa(c.at/512)+` conv=notrunc,sparse`, c.tool)
			if got := probed(t, path); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			// The rule that was: only the ends and the start of the disk.
			if judge := judged(t, path); judge != "" {
				t.Errorf("blkid sees %q at the start of the disk: the test means another disk", judge)
			}
		})
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// TestPeerByLayout: formats by the places and magics of their own headers, where no tool
// makes them here, or a tool makes only some of the places that there are (see
// TestPeerMadeElsewhere); util-linux judges these where it takes a bare magic. No suite
// of Debian from bookworm to sid carries bcachefs-tools.
func TestPeerByLayout(t *testing.T) {
	t.Parallel()
	const size = 64 * mib
	le64 := binary.LittleEndian.AppendUint64(nil, 0xbab10c)
	for _, c := range []struct {
		name  string
		at    int64
		bytes string
		want  string
		judge string
	}{
		{"ZFS label 0", 128*kib + 5*kib, string(le64), "ZFS member", ""},
		{"ZFS label 1", 384*kib + 5*kib, string(le64), "ZFS member", ""},
		{"ZFS label 2", size - 384*kib + 9*kib, string(le64), "ZFS member", ""},
		{"ZFS label 3", size - 128*kib, string(le64), "ZFS member", ""},
		{"ZFS pairs of label 3", size - 240*kib + 20, zfsPairs, "ZFS member", ""},
		{"bcachefs", 4096 + 24, bcachefs, "bcachefs", ""},
		{"DRBD", size - 4096 + 60, "\x83\x74\x02\x6d", "DRBD", ""},
		{"Intel RAID", size - 1024, "Intel Raid ISM Cfg Sig. 1.3.00", "Intel RAID member", "isw_raid_member"},
		{"Intel RAID, 4Kn", size - 8192, "Intel Raid ISM Cfg Sig. 1.3.00", "Intel RAID member", ""},
		{"DDF", size - 512, "\xde\x11\xde\x11", "DDF RAID member", ""},
		{"DDF, 4Kn", size - 4096, "\xde\x11\xde\x11", "DDF RAID member", ""},
		{"LSI", size - 512, "$XIDE$", "LSI RAID member", "lsi_mega_raid_member"},
		{"Promise", size - 63*512, promise, "Promise RAID member", "promise_fasttrack_raid_member"},
		{"HighPoint", 9*512 + 32, "\xf0\x16\x78\x5a", "HighPoint RAID member", "hpt37x_raid_member"},
		{"VMFS", 2 * mib, "\x5e\xf1\xab\x2f", "vmfs", "VMFS"},
		{"VMFS volume", mib, "\x0d\xd0\x01\xc0", "vmfs volume", "VMFS_volume_member"},
		{"BlueStore", 0, "bluestore block device\n", "Ceph BlueStore", "ceph_bluestore"},
		{"VDO", 0, "dmvdo001", "VDO", "vdo"},
		{"Oracle ASM", 32, "ORCLDISK", "Oracle ASM", "oracleasm"},
		{"damaged GPT", 512, "EFI PART", "damaged GPT", ""},
		{"damaged GPT, 4Kn backup", size - 4096, "EFI PART", "damaged GPT", ""},
		{"marker alone", MarkerOffset, markerMagic, "install marker of ironrail", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := shell(t, size, "true")
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte(c.bytes), c.at); err != nil {
				t.Fatal(err)
			}
			if got := probed(t, path); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if seen := judged(t, path); !strings.Contains(seen, c.judge) {
				t.Errorf("blkid and wipefs see %q, want %q", seen, c.judge)
			}
		})
	}
}

// sparse is a disk of any size with a few bytes on it; it counts what is read.
type sparse struct {
	at           int64
	text         string
	reads, bytes int64
}

func (d *sparse) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	d.reads, d.bytes = d.reads+1, d.bytes+int64(len(b))
	if from := d.at - off; from >= 0 && from < int64(len(b)) {
		copy(b[from:], d.text)
	}
	return len(b), nil
}

// TestBounded: the look at a disk costs as much at 30 TB as at 1 TB, and finds what
// stands at the places that file systems keep copies at.
func TestBounded(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1e12, 30e12, 120e12} {
		d := &sparse{}
		if got := Probe(d, size); got != "" {
			t.Errorf("%d bytes of zeroes are %q", size, got)
		}
		t.Logf("%d bytes: %d reads, %d KiB", size, d.reads, d.bytes/kib)
		if d.reads > 2500 || d.bytes > 64*mib {
			t.Errorf("a disk of %d bytes took %d reads of %d bytes together", size, d.reads, d.bytes)
		}
	}
	for _, at := range []int64{mib + 5000, 200*mib + 70, 81 << 27, 256<<30 + mib + 64*kib, 3<<40 + mib, 30e12 - 3*mib} {
		if got := Probe(&sparse{at: at, text: "x"}, 30e12); got != "unknown data at byte "+itoa(at) {
			t.Errorf("a byte at %d: %q", at, got)
		}
	}
}

// TestErased: all ones is how some flash disks return what was never written.
func TestErased(t *testing.T) {
	t.Parallel()
	b := bytes.Repeat([]byte{0xff}, 16*mib)
	if got := Probe(bytes.NewReader(b), int64(len(b))); got != "" {
		t.Errorf("a disk of ones is %q", got)
	}
	clear(b[:8*mib])
	if got := Probe(bytes.NewReader(b), int64(len(b))); got != "" {
		t.Errorf("a disk that was zeroed up to the middle is %q", got)
	}
	b[9*mib] = 0x7f
	if got := Probe(bytes.NewReader(b), int64(len(b))); got != "unknown data at byte 9437184" {
		t.Errorf("one bit: %q", got)
	}
}

// TestPeerUnreadable: a disk that fails a read anywhere a look comes to is not blank,
// and what was found beside it is told too.
func TestPeerUnreadable(t *testing.T) {
	t.Parallel()
	blank := make([]byte, 600*mib/8)
	for _, at := range []int64{0, 512, 5000, 65600, mib, 20 * mib, int64(len(blank)) - 1} {
		want := "unreadable at byte " + itoa(at)
		if got := Probe(torn{bytes.NewReader(blank), at, at + 1}, int64(len(blank))); got != want {
			t.Errorf("byte %d: got %q, want %q", at, got, want)
		}
	}
	path := shell(t, 64*mib, `mke2fs -q -t ext4 -L data "$D"`)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := Probe(torn{bytes.NewReader(b), 256 * kib, 260 * kib}, int64(len(b))); got != "ext4 label data; unreadable at byte 262144" {
		t.Errorf("got %q", got)
	}
}
