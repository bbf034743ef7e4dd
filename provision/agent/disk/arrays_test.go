// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"encoding/binary"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// superblock1 is a superblock of an md array of version 1 at a byte of a disk, as
// struct mdp_superblock_1 of linux/raid/md_p.h lays it out: mdadm itself makes one
// only with a kernel that has md. mdadm --examine and blkid judge it.
func superblock1(at, size int64) []byte {
	b := make([]byte, 4096)
	le := binary.LittleEndian
	le.PutUint32(b, 0xa92b4efc)
	le.PutUint32(b[4:], 1)
	copy(b[16:], "0123456789abcdef") // set_uuid
	copy(b[32:], "lab:os")           // set_name
	le.PutUint32(b[72:], 1)          // level
	le.PutUint64(b[80:], uint64(size/512)-4096)
	le.PutUint32(b[92:], 2)     // raid_disks
	le.PutUint64(b[128:], 2048) // data_offset
	le.PutUint64(b[136:], uint64(size/512)-4096)
	le.PutUint64(b[144:], uint64(at/512)) // super_offset
	copy(b[168:], "fedcba9876543210")     // device_uuid
	le.PutUint32(b[220:], 2)              // max_dev
	le.PutUint16(b[258:], 1)
	var sum uint64
	for i := 0; i < 256+4; i += 4 {
		sum += uint64(le.Uint32(b[i:]))
	}
	le.PutUint32(b[216:], uint32(sum)+uint32(sum>>32))
	return b
}

// superblock0 is one of version 0.90 (mdp_super_t).
func superblock0(size int64) []byte {
	b := make([]byte, 4096)
	le := binary.LittleEndian
	for word, v := range map[int]uint32{0: 0xa92b4efc, 2: 90, 5: 0x1234, 7: 1, 8: uint32(size/(64*kib)*64) - 64, 9: 2, 10: 2, 13: 0x5678, 14: 0x9abc, 15: 0xdef0, 34: 2, 35: 2} {
		le.PutUint32(b[4*word:], v)
	}
	var sum uint64
	for i := 0; i < 4096; i += 4 {
		sum += uint64(le.Uint32(b[i:]))
	}
	le.PutUint32(b[4*38:], uint32(sum)+uint32(sum>>32))
	return b
}

// TestPeerArrayMembers: the superblock of every version of md, also on a disk whose size
// is no multiple of 64 KiB, where those at the end stand elsewhere.
func TestPeerArrayMembers(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "mdadm")
	for _, size := range []int64{64 * mib, 64*mib + 20*kib} {
		for _, c := range []struct {
			version string
			at      int64
			want    string
		}{
			{"1.2", 4096, "mdraid member label lab:os"},
			{"1.1", 0, "mdraid member label lab:os"},
			{"1.0", (size - 8*kib) / 4096 * 4096, "mdraid member label lab:os"},
			{"0.90", size/(64*kib)*(64*kib) - 64*kib, "mdraid member"},
		} {
			t.Run(c.version+" of "+itoa(size), func(t *testing.T) {
				t.Parallel()
				path := shell(t, size, "true")
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				b := superblock1(c.at, size)
				if c.version == "0.90" {
					b = superblock0(size)
				}
				if _, err := f.WriteAt(b, c.at); err != nil {
					t.Fatal(err)
				}
				if got := probed(t, path); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				out, _ := exec.CommandContext(t.Context(), "mdadm", "--examine", path).CombinedOutput()
				if !strings.Contains(string(out), "Version : "+c.version) {
					t.Errorf("mdadm does not know it:\n%s", out)
				}
				if seen := judged(t, path); !strings.Contains(seen, "linux_raid_member") {
					t.Errorf("blkid and wipefs see %q", seen)
				}
			})
		}
	}
}

// TestPeerLoopMembers: what only a block device becomes.
func TestPeerLoopMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, command, want, judge string }{
		{"pvcreate", `pvcreate -qq -ff -y "$L" 2>&1`, "LVM physical volume", "LVM2_member"},
		{"make-bcache", `make-bcache -B "$L"`, "bcache", "bcache"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			if err := exec.CommandContext(t.Context(), "losetup", "-f").Run(); err != nil {
				t.Skip("there are no loop devices here: ", err)
			}
			path := shell(t, 64*mib, `true && L=$(losetup -f --show "$D") && trap 'losetup -d "$L"' EXIT && `+c.command, c.tool, "losetup")
			if got := probed(t, path); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if seen := judged(t, path); !strings.Contains(seen, c.judge) {
				t.Errorf("blkid and wipefs see %q", seen)
			}
		})
	}
}
