// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
)

// biosDisk is a disk whose boot record prints a line to the first serial port.
func biosDisk(t *testing.T) string {
	t.Helper()
	const text = "\r\nTHE DISK BOOTS\r\n\x00"
	code := []byte{
		0x31, 0xc0, 0x8e, 0xd8, // xor ax,ax; mov ds,ax
		0xbe, 0x1c, 0x7c, // mov si,0x7c1c: the text behind the code
		0xac, 0x84, 0xc0, 0x74, 0x0d, // next: lodsb; test al,al; jz stop
		0x50, 0xba, 0xf8, 0x03, 0x58, 0xee, // push ax; mov dx,0x3f8; pop ax; out dx,al
		0xb9, 0xff, 0xff, 0xe2, 0xfe, // mov cx,-1; loop $: the port is slower than we
		0xeb, 0xee, // jmp next
		0xf4, 0xeb, 0xfd, // stop: hlt; jmp stop
	}
	mbr := make([]byte, 1<<20)
	copy(mbr[copy(mbr, code):], text)
	mbr[510], mbr[511] = 0x55, 0xaa
	return writeDisk(t, mbr)
}

func writeDisk(t *testing.T, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// uefiDisk is a FAT disk whose EFI/BOOT/BOOTX64.EFI is a GRUB that prints a line.
func uefiDisk(t *testing.T) string {
	t.Helper()
	peertest.Need(t, "grub-mkimage", "mformat", "mcopy", "mmd")
	dir := t.TempDir()
	conf, efi, img := filepath.Join(dir, "grub.cfg"), filepath.Join(dir, "grub.efi"), filepath.Join(dir, "esp.img")
	if err := os.WriteFile(conf, []byte("echo THE DISK BOOTS\nsleep 600\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, "grub-mkimage -O x86_64-efi -p /EFI -c "+conf+" -o "+efi+" echo sleep normal")
	sh(t, "truncate -s 16M "+img)
	sh(t, "mformat -i "+img+" ::")
	sh(t, "mmd -i "+img+" ::/EFI ::/EFI/BOOT")
	sh(t, "mcopy -i "+img+" "+efi+" ::/EFI/BOOT/BOOTX64.EFI")
	return img
}

func disk(image string) []string {
	return []string{"-drive", "if=none,id=d0,format=raw,cache=unsafe,file=" + image, "-device", "virtio-blk-pci,drive=d0,bootindex=1"}
}

// TestPeerDiskBIOS and TestPeerDiskUEFI: a node that netboots without an open attempt,
// for it is installed already, is told so and ends on its disk.
func TestPeerDiskBIOS(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "qemu-system-x86_64") {
		return
	}
	bridge(t)
	src, d := newOne(t), newDiary()
	serve(t, config(), src, d)
	serial := machine(t, append(biosArgs(), disk(biosDisk(t))...)...)
	until(t, 240*time.Second, serial, "has no open boot attempt")
	until(t, 120*time.Second, serial, "THE DISK BOOTS")
	t.Logf("\n%s\n%s", d, serial())
}

func TestPeerDiskUEFI(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "qemu-system-x86_64") {
		return
	}
	bridge(t)
	src, d := newOne(t), newDiary()
	serve(t, config(), src, d)
	// Without its IPv6 half, which waits 30 s for a server before the disk's turn.
	args := append(uefiArgs(t), "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n")
	serial := machine(t, append(args, disk(uefiDisk(t))...)...)
	until(t, 240*time.Second, serial, "has no open boot attempt")
	until(t, 240*time.Second, serial, "THE DISK BOOTS")
	t.Logf("\n%s\n%s", d, serial())
}
