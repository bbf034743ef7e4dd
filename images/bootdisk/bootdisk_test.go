// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/errkind"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNewestKernel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kernels []string
		want    string
	}{
		{[]string{"6.1.0-9-amd64", "6.1.0-10-amd64"}, "6.1.0-10-amd64"},
		{[]string{"6.12.3-amd64", "6.1.99-amd64"}, "6.12.3-amd64"},
		{[]string{"6.1.0-9-amd64", "6.1.0-9-amd64-extra"}, "6.1.0-9-amd64-extra"},
		{[]string{"6.1.0-1-cloud-amd64"}, "6.1.0-1-cloud-amd64"},
	} {
		root := fstest.MapFS{"boot/config-7.0": {}}
		for _, k := range c.kernels {
			root["boot/vmlinuz-"+k] = &fstest.MapFile{}
		}
		if got, err := NewestKernel(root); got != c.want || err != nil {
			t.Errorf("%v: %q, %v, want %q", c.kernels, got, err, c.want)
		}
	}
	if _, err := NewestKernel(fstest.MapFS{}); errkind.Of(err) != errkind.NotFound {
		t.Errorf("no kernel: %v", err)
	}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	boot := make([]byte, 512)
	copy(boot, "\xeb\x63")
	boot[driveCheck], boot[driveCheck+1], boot[445] = 0xeb, 5, 9
	core := make([]byte, 3*512+7)
	binary.LittleEndian.PutUint16(core[blockListTarget:], coreTarget)
	mbr, rest, err := embedCore(boot, core, 2048, 1<<20)
	must(t, err)
	if len(mbr) != 440 || binary.LittleEndian.Uint64(mbr[0x5c:]) != 2048 || mbr[0x66] != 0x90 || mbr[0x67] != 0x90 {
		t.Errorf("boot sector % x", mbr[0x58:0x68])
	}
	if binary.LittleEndian.Uint64(rest[500:]) != 2049 || binary.LittleEndian.Uint16(rest[508:]) != 3 {
		t.Errorf("block list % x", rest[500:512])
	}
	if boot[driveCheck] != 0xeb || core[500] != 0 {
		t.Error("the arguments were changed")
	}
	for name, c := range map[string]struct {
		boot, core []byte
		room       int
	}{
		"short boot.img":  {boot[:511], core, 1 << 20},
		"other boot.img":  {make([]byte, 512), core, 1 << 20},
		"no block list":   {boot, make([]byte, 2048), 1 << 20},
		"core too large":  {boot, core, 1024},
		"core too little": {boot, core[:512], 1 << 20},
	} {
		if _, _, err := embedCore(c.boot, c.core, 2048, c.room); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
}

func TestTreeSizeCountsLinksOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a"), make([]byte, 5000), 0o644))
	one, err := treeSize(dir)
	must(t, err)
	must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	two, err := treeSize(dir)
	must(t, err)
	if one != two || one < 8192 {
		t.Errorf("%d bytes with one name, %d with two", one, two)
	}
}
