// SPDX-License-Identifier: Apache-2.0

package pesign

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// program is the smallest that has an optional header and signatures behind it.
func program(table []byte) []byte {
	b := make([]byte, 0x200)
	copy(b, "MZ")
	binary.LittleEndian.PutUint32(b[0x3c:], 0x40)
	copy(b[0x40:], "PE\x00\x00")
	binary.LittleEndian.PutUint16(b[0x44:], 0x8664)   // Machine
	binary.LittleEndian.PutUint16(b[0x54:], 112+16*8) // SizeOfOptionalHeader
	binary.LittleEndian.PutUint16(b[0x58:], 0x20b)    // PE32+
	binary.LittleEndian.PutUint32(b[0x58+108:], 16)   // NumberOfRvaAndSizes
	binary.LittleEndian.PutUint32(b[0x58+112+4*8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[0x58+112+4*8+4:], uint32(len(table)))
	return append(b, table...)
}

func TestIssuersOfOthers(t *testing.T) {
	t.Parallel()
	wrong := binary.LittleEndian.AppendUint32(nil, 99)
	for name, c := range map[string]struct {
		file    []byte
		invalid bool
	}{
		"no program":      {[]byte("#!/bin/sh"), true},
		"not signed":      {program(nil), false},
		"another kind":    {program([]byte{8, 0, 0, 0, 0, 2, 1, 0}), false},
		"too long":        {program(append(wrong, 0, 2, 2, 0)), true},
		"no signed data":  {program([]byte{16, 0, 0, 0, 0, 2, 2, 0, 0x30, 0, 0, 0, 0, 0, 0, 0}), true},
		"behind the file": {program(make([]byte, 64))[:0x210], true},
	} {
		names, err := Issuers(c.file)
		if len(names) > 0 || (errkind.Of(err) == errkind.Invalid) != c.invalid {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}

// TestPeerIssuers signs a program with a key of its own, twice, by sbsigntool.
func TestPeerIssuers(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "sbsign", "openssl", "/usr/lib/ipxe")
	dir := t.TempDir()
	file := "/usr/lib/ipxe/snponly.efi"
	var want []string
	for _, name := range []string{"First CA", "Second CA"} {
		key, crt, out := filepath.Join(dir, name+".key"), filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".efi")
		for _, argv := range [][]string{
			{"openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name, "-keyout", key, "-out", crt},
			{"sbsign", "--key", key, "--cert", crt, "--output", out, file},
		} {
			if text, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", argv, err, text)
			}
		}
		file, want = out, append(want, name)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Issuers(b); err != nil || !slices.Equal(got, want) {
			t.Errorf("signed by %q: %q, %v", want, got, err)
		}
	}
}

// FuzzIssuers: no file ends the controller.
func FuzzIssuers(f *testing.F) {
	f.Add(program([]byte{8, 0, 0, 0, 0, 2, 2, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if names, err := Issuers(b); err != nil && len(names) > 0 {
			t.Error(names, err)
		}
	})
}
