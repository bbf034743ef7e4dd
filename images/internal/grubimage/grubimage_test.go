// SPDX-License-Identifier: Apache-2.0

package grubimage

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerRead reads an image that grub-mkimage makes.
func TestPeerRead(t *testing.T) {
	t.Parallel()
	const dir = "/usr/lib/grub/x86_64-efi"
	peertest.Need(t, "grub-mkimage", dir+"/kernel.img")
	for _, prefix := range []string{"/EFI/debian", "(,gpt2)/EFI/debian"} {
		file := filepath.Join(t.TempDir(), "grub.efi")
		if out, err := exec.CommandContext(t.Context(), "grub-mkimage", "-O", "x86_64-efi", "-d", dir, "-p", prefix, "-o", file, "part_gpt", "xfs", "http").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		i, err := Read(b)
		if err != nil || i.Prefix != "/EFI/debian" {
			t.Errorf("%+v, %v", i, err)
		}
		if lacks := i.Lacks("part_gpt", "lvm", "xfs", "http", "net", "mdraid1x"); !slices.Equal(lacks, []string{"lvm", "mdraid1x"}) {
			t.Errorf("of %q lacks %q", i.Modules, lacks)
		}
	}
}

// program is the smallest that has one section.
func program(name string, data []byte) []byte {
	const at = 0x200
	b := make([]byte, at)
	copy(b, "MZ")
	binary.LittleEndian.PutUint32(b[0x3c:], 0x40)
	copy(b[0x40:], "PE\x00\x00")
	binary.LittleEndian.PutUint16(b[0x44:], 0x8664)   // Machine
	binary.LittleEndian.PutUint16(b[0x46:], 1)        // NumberOfSections
	binary.LittleEndian.PutUint16(b[0x54:], 112+16*8) // SizeOfOptionalHeader
	binary.LittleEndian.PutUint16(b[0x58:], 0x20b)    // PE32+
	binary.LittleEndian.PutUint32(b[0x58+108:], 16)   // NumberOfRvaAndSizes
	section := b[0x58+112+16*8:]
	copy(section, name)
	binary.LittleEndian.PutUint32(section[8:], uint32(len(data)))
	binary.LittleEndian.PutUint32(section[16:], uint32(len(data)))
	binary.LittleEndian.PutUint32(section[20:], at)
	return append(b, data...)
}

// objects is a section of modules.
func objects(from, to uint64, rest ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, from)
	return append(binary.LittleEndian.AppendUint64(b, to), rest...)
}

func TestReadOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file    []byte
		invalid bool
	}{
		"no program":       {[]byte("#!/bin/sh"), true},
		"another section":  {program(".text", objects(24, 24)), true},
		"no header":        {program(section, make([]byte, 24)), true},
		"behind the end":   {program(section, objects(24, 99)), true},
		"backwards":        {program(section, objects(32, 24, make([]byte, 8)...)), true},
		"object too long":  {program(section, objects(24, 32, 3, 0, 0, 0, 99, 0, 0, 0)), true},
		"object too short": {program(section, objects(24, 32, 3, 0, 0, 0, 7, 0, 0, 0)), true},
		"no module":        {program(section, objects(24, 33, 0, 0, 0, 0, 9, 0, 0, 0, 1)), true},
		"nothing":          {program(section, objects(24, 24)), false},
		"a prefix":         {program(section, objects(24, 35, 3, 0, 0, 0, 11, 0, 0, 0, '/', 'a', 0)), false},
	} {
		i, err := Read(c.file)
		if (errkind.Of(err) == errkind.Invalid) != c.invalid || len(i.Modules) > 0 || (i.Prefix == "/a") != (name == "a prefix") {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
		if err != nil && strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead: no file ends the controller.
func FuzzRead(f *testing.F) {
	f.Add(program(section, objects(24, 24)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := Read(b); err != nil && len(i.Modules) > 0 {
			t.Error(i, err)
		}
	})
}
