// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What the test's boot programs print to the serial port.
const (
	netMark  = "LAB-NETBOOT"
	diskMark = "LAB-DISKBOOT"
)

// realMode assembles a 16-bit program that prints text to COM1, then resets the
// machine or halts. It serves as a boot sector and as a PXE boot program: both
// are loaded at 0000:7C00 (PXE 2.1 section 4.4.5).
func realMode(text string, reset bool) []byte {
	code := []byte{
		0xfa,       // cli
		0x31, 0xc0, // xor ax, ax
		0x8e, 0xd8, // mov ds, ax
		0x8e, 0xd0, // mov ss, ax
		0xbc, 0x00, 0x7c, // mov sp, 0x7c00
		0xfc,             // cld
		0xbe, 0x00, 0x00, // mov si, text (set below)
		0xac,       // next: lodsb
		0x84, 0xc0, // test al, al
		0x74, 0x10, // jz done
		0x88, 0xc4, // mov ah, al
		0xba, 0xfd, 0x03, // mov dx, 0x3fd (line status)
		0xec,       // wait: in al, dx
		0xa8, 0x20, // test al, 0x20 (transmitter empty)
		0x74, 0xfb, // jz wait
		0x88, 0xe0, // mov al, ah
		0xba, 0xf8, 0x03, // mov dx, 0x3f8
		0xee,       // out dx, al
		0xeb, 0xe9, // jmp next
		// done:
	}
	code[18] = byte(len(code) - 19)             // jz done, from behind it
	code[len(code)-1] = byte(-(len(code) - 14)) // jmp next
	if reset {
		code = append(code, 0xba, 0xf9, 0x0c, 0xb0, 0x06, 0xee) // out 0xcf9, 6: full reset
	}
	code = append(code, 0xf4, 0xeb, 0xfd) // hlt; jmp hlt
	at := 0x7c00 + len(code)
	code[12], code[13] = byte(at), byte(at>>8)
	return append(append(code, "\r\n"+text+"\r\n"...), 0)
}

// bootSector is realMode as the first sector of a disk.
func bootSector(text string) []byte {
	b := make([]byte, 512)
	copy(b, realMode(text, false))
	b[510], b[511] = 0x55, 0xaa
	return b
}

// efiProgram builds a GRUB that runs these commands.
func efiProgram(t *testing.T, name, commands string) {
	t.Helper()
	cfg := filepath.Join(t.TempDir(), "early.cfg")
	if err := os.WriteFile(cfg, []byte(commands), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "grub-mkimage", "-O", "x86_64-efi", "-c", cfg, "-p", "/lab", "-o", name, "echo", "reboot")
}

// efiDisk makes the disk of a UEFI machine: a FAT file system with the boot
// program at the path for removable media (UEFI 2.10 section 3.5.1.1).
func efiDisk(t *testing.T, disk, program string) {
	t.Helper()
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	tool(t, "mkfs.vfat", disk)
	tool(t, "mmd", "-i", disk, "::EFI", "::EFI/BOOT")
	tool(t, "mcopy", "-i", disk, program, "::EFI/BOOT/BOOTX64.EFI")
}

func tool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}
