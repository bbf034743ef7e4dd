// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// small makes a disk whose root holds nothing but a GRUB configuration.
func small(t *testing.T, nodeConfig string, storage ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: files of an image belong to many users")
	}
	for _, x := range Tools(inventory.AMD64) {
		peertest.Need(t, x.Name)
	}
	family, _ := distribution.Find(distribution.Debian)
	m := &Maker{Family: family, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}, Storage: storage}
	m.Root = m.Path("root")
	grub := filepath.Join(m.Root, "boot/grub")
	must(t, os.MkdirAll(grub, 0o755))
	must(t, os.WriteFile(filepath.Join(grub, "grub.cfg"), []byte(grubConfig(m.Family, m.Arch)), 0o644))
	must(t, os.WriteFile(filepath.Join(grub, "ironrail.cfg"), []byte(nodeConfig), 0o644))
	must(t, m.MakeLoaders(t.Context()))
	must(t, m.MakeDisk(t.Context()))
	return m.Path(DiskFile)
}

func TestPeerDiskIsWellFormed(t *testing.T) {
	t.Parallel()
	disk := small(t, "")
	f, err := os.Open(disk)
	must(t, err)
	defer f.Close()
	marker := make([]byte, 4096)
	_, err = f.ReadAt(marker, 1<<20-4096)
	must(t, err)
	if !bytes.Equal(marker, make([]byte, 4096)) {
		t.Error("the place of the install marker is not zero")
	}
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"sgdisk", "-v", disk}, "No problems found"},
		{[]string{"sgdisk", "-p", disk}, "135168"},
		{[]string{"e2fsck", "-fn", fmt.Sprintf("%s?offset=%d", disk, rootStart)}, Label},
		{[]string{"mdir", "-i", fmt.Sprintf("%s@@%d", disk, ESPStart), "::/EFI/BOOT"}, "BOOTX64  EFI"},
		{[]string{"fsck.vfat", "-n", espOf(t, f)}, "files"},
	} {
		peertest.Need(t, c.argv[0])
		out, err := tool.Runner{}.Output(t.Context(), c.argv...)
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", c.argv[0], err, out)
		}
	}
}

// espOf copies the EFI system partition out.
func espOf(t *testing.T, disk io.ReaderAt) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "esp")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	_, err = io.Copy(f, io.NewSectionReader(disk, ESPStart, ESPSize))
	must(t, err)
	return path
}

func TestPeerDiskIsRepeatable(t *testing.T) {
	t.Parallel()
	// Inode change times are the controller's clock and cannot be set, so the root
	// is left out.
	read := func() []byte {
		f, err := os.Open(small(t, ""))
		must(t, err)
		defer f.Close()
		b := make([]byte, rootStart)
		_, err = io.ReadFull(f, b)
		must(t, err)
		return b
	}
	if !bytes.Equal(read(), read()) {
		t.Error("two builds differ before the root")
	}
}

// TestPeerGrubStarts boots the disk with real firmware, until GRUB has read the
// node's configuration from the root. On disks with sectors of 4096 bytes the table
// is moved as an install moves it; the EFI system partition and the root stay as they
// are, made for 512.
func TestPeerGrubStarts(t *testing.T) {
	t.Parallel()
	const code, vars = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"
	peertest.Need(t, "qemu-system-x86_64", code)
	disk := small(t, "echo reached $root $prefix $grub_platform end\nhalt\n")
	const bios, uefi, sector4K = "reached hd0,gpt3 (hd0,gpt3)/boot/grub pc end", "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi end", ",logical_block_size=4096,physical_block_size=4096"
	moved := move4K(t, disk)
	for _, c := range []struct{ name, disk, device, want, firmware string }{
		{"bios", disk, "virtio-blk-pci", bios, ""},
		{"uefi", disk, "virtio-blk-pci", uefi, code},
		{"uefi, NVMe", disk, "nvme,serial=S1", uefi, code},
		{"uefi, 4Kn", moved, "virtio-blk-pci" + sector4K, uefi, code},
		{"uefi, NVMe, 4Kn", moved, "nvme,serial=S1" + sector4K, uefi, code},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			argv := []string{"-machine", "q35", "-accel", "tcg,tb-size=64", "-m", "256", "-display", "none", "-nic", "none", "-serial", "stdio", "-monitor", "none",
				"-drive", "file=" + c.disk + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", c.device + ",drive=d,bootindex=0"}
			if c.firmware != "" {
				argv = append(argv, "-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+c.firmware, "-drive", "if=pflash,format=raw,unit=1,snapshot=on,file="+vars)
			}
			if said := console(t, argv, " end"); !strings.Contains(said, c.want) {
				t.Errorf("console does not say %q:\n%s", c.want, said)
			}
		})
	}
}

// move4K copies a disk and moves its table to sectors of 4096 bytes.
func move4K(t *testing.T, disk string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	out, err := exec.CommandContext(t.Context(), "cp", "--sparse=always", disk, path).CombinedOutput()
	if err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	table, err := gpt.Read(f, info.Size())
	must(t, err)
	size := info.Size() + 1<<20
	must(t, f.Truncate(size))
	must(t, table.Move(gpt.Sector4K, size))
	must(t, table.Grow(gpt.Rest))
	must(t, table.Write(f))
	return path
}

// console runs an emulator until its console says text.
func console(t *testing.T, argv []string, text string) string {
	t.Helper()
	return consoleOf(t, "qemu-system-x86_64", argv, text)
}

// consoleOf is console with the emulator of any architecture, for five minutes at most.
func consoleOf(t *testing.T, program string, argv []string, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, argv...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var said bytes.Buffer
	b := make([]byte, 4096)
	for !strings.Contains(said.String(), text) {
		n, err := out.Read(b)
		said.Write(b[:n])
		if err != nil {
			break
		}
	}
	cancel()
	_ = cmd.Wait() // killed
	return said.String()
}
