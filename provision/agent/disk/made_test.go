// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/peertest"
)

// madeElsewhere are disks of tools that do not run everywhere, packed by zstd -19.
//
// zfs-*: by ztest 2.1.11 of Debian's package zfs-test (contrib; it depends on
// zfs-dkms, so that it was unpacked by dpkg-deb -x and not installed):
//
//	ztest -f /tmp/ztest -m 1 -r 0 -R 1 -s SIZE -a ASHIFT -T 4 -P 3 -k 0 -t 2 -d 1
//
// with 64m and 9, 128m and 12. What lies between the first 512 KiB and the last, the
// pool's data, was zeroed, so that the labels alone are seen; `zdb -l` finds all four.
//
// ddf, imsm: by mdadm 4.2 and the md of Linux 6.1.0-56, half of a mirror in a
// container of two virtio disks of 64 MiB, with IMSM_NO_PLATFORM=1 and
// IMSM_DEVNAME_AS_SERIAL=1 as mdadm's own tests have them; imsm-4kn on disks with
// logical_block_size=4096. mdadm does not find its own DDF again on such disks: that
// place, the last sector, is in TestPeerByLayout.
//
//	mdadm --create /dev/md/c --run -e ddf|imsm -n 2 /dev/vda /dev/vdb
//	mdadm --create /dev/md/v --run -l 1 -n 2 --assume-clean --name=data /dev/md/c
var madeElsewhere = []struct{ file, sector, want, blkid, mdadm string }{
	{"zfs-ashift9", "512", "ZFS member", "TYPE=zfs_member", ""},
	{"zfs-ashift12", "4096", "ZFS member", "TYPE=zfs_member", ""},
	{"ddf", "512", "DDF RAID member", "TYPE=ddf_raid_member", "Magic : de11de11"},
	{"imsm", "512", "Intel RAID member", "TYPE=isw_raid_member", "Magic : Intel Raid ISM Cfg Sig."},
	{"imsm-4kn", "4096", "Intel RAID member", "TYPE=isw_raid_member", "Magic : Intel Raid ISM Cfg Sig."},
}

// unpacked writes one of them to a sparse file, after change.
func unpacked(t *testing.T, file string, change func([]byte)) string {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", file+".zst"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	change(b)
	path := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(len(b))); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(b); at += 64 * kib {
		part := b[at:min(at+64*kib, len(b))]
		if AllZero(part) {
			continue
		}
		if _, err := f.WriteAt(part, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// loopOf makes a read-only loop device with such sectors over a file: some judges look
// where a disk with these has its marks.
func loopOf(t *testing.T, path, sector string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "-f", "--show", "-r", "-b", sector, path).CombinedOutput()
	if err != nil {
		t.Skipf("nobody judges: no loop device with sectors of %s bytes: %v: %s", sector, err, out)
	}
	loop := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", loop).CombinedOutput(); err != nil {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
	return loop
}

// TestPeerMadeElsewhere: what real makers wrote is known, and the judges know it too.
func TestPeerMadeElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range madeElsewhere {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			path := unpacked(t, c.file, func([]byte) {})
			if got := probed(t, path); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			loop := loopOf(t, path, c.sector)
			if seen := judged(t, loop); !strings.Contains(seen, c.blkid) {
				t.Errorf("blkid and wipefs see %q, want %q", seen, c.blkid)
			}
			if c.mdadm == "" {
				return
			}
			peertest.Need(t, "mdadm")
			cmd := exec.CommandContext(t.Context(), "mdadm", "--examine", loop)
			cmd.Env = append(os.Environ(), "IMSM_NO_PLATFORM=1", "IMSM_DEVNAME_AS_SERIAL=1")
			if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), c.mdadm) {
				t.Errorf("mdadm --examine says:\n%s", out)
			}
		})
	}
}

// TestZFSLabels: ztest's labels are found at either end alone, and by their pairs
// where no uberblock is left.
func TestZFSLabels(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"zfs-ashift9", "zfs-ashift12"} {
		for name, spoil := range map[string]func([]byte){
			"first two":   func(b []byte) { clear(b[len(b)-512*kib:]) },
			"last two":    func(b []byte) { clear(b[:512*kib]) },
			"first alone": func(b []byte) { clear(b[256*kib:]) },
			"last alone":  func(b []byte) { clear(b[:len(b)-256*kib]) },
			"no uberblocks": func(b []byte) {
				for _, at := range []int{0, 256 * kib, len(b) - 512*kib, len(b) - 256*kib} {
					clear(b[at+128*kib : at+256*kib])
				}
			},
		} {
			t.Run(file+", "+name, func(t *testing.T) {
				t.Parallel()
				if got := probed(t, unpacked(t, file, spoil)); got != "ZFS member" {
					t.Errorf("got %q", got)
				}
			})
		}
		if zeroed := unpacked(t, file, func(b []byte) { clear(b[:512*kib]); clear(b[len(b)-512*kib:]) }); probed(t, zeroed) != "" {
			t.Errorf("%s has more than labels", file)
		}
	}
}
