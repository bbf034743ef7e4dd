// SPDX-License-Identifier: Apache-2.0

package pesign

import (
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
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

func TestSignersOfOthers(t *testing.T) {
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
		names, err := Signers(c.file)
		if len(names) > 0 || (errkind.Of(err) == errkind.Invalid) != c.invalid {
			t.Errorf("%s: %+v, %v", name, names, err)
		}
	}
}

// TestPeerSigners signs a program twice, by sbsigntool: by an authority itself, and by who has a
// certificate of another one.
func TestPeerSigners(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "sbsign", "openssl", "/usr/lib/ipxe")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(argv ...string) {
		t.Helper()
		if text, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, text)
		}
	}
	certificate := func(name string) *x509.Certificate {
		t.Helper()
		b, err := os.ReadFile(at(name + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(b)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, name := range []string{"first", "second", "third"} {
		run("openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN="+name, "-keyout", at(name+".key"), "-out", at(name+".crt"))
	}
	run("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=signer", "-keyout", at("signer.key"), "-out", at("signer.csr"))
	run("openssl", "x509", "-req", "-in", at("signer.csr"), "-CA", at("second.crt"), "-CAkey", at("second.key"), "-CAcreateserial", "-days", "2", "-out", at("signer.crt"))
	run("sbsign", "--key", at("first.key"), "--cert", at("first.crt"), "--output", at("one.efi"), "/usr/lib/ipxe/snponly.efi")
	run("sbsign", "--key", at("signer.key"), "--cert", at("signer.crt"), "--output", at("two.efi"), at("one.efi"))
	run("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=between", "-keyout", at("between.key"), "-out", at("between.csr"))
	run("openssl", "x509", "-req", "-in", at("between.csr"), "-CA", at("third.crt"), "-CAkey", at("third.key"), "-CAcreateserial", "-days", "2", "-out", at("between.crt"))
	run("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=last", "-keyout", at("last.key"), "-out", at("last.csr"))
	run("openssl", "x509", "-req", "-in", at("last.csr"), "-CA", at("between.crt"), "-CAkey", at("between.key"), "-CAcreateserial", "-days", "2", "-out", at("last.crt"))
	run("sbsign", "--key", at("last.key"), "--cert", at("last.crt"), "--addcert", at("between.crt"), "--output", at("three.efi"), at("two.efi"))
	b, err := os.ReadFile(at("three.efi"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Signers(b)
	if err != nil || len(got) != 3 || got[0].Issuer != "first" || got[1].Issuer != "second" || got[2].Issuer != "between" {
		t.Fatalf("%+v, %v", got, err)
	}
	for ca, want := range map[string][3]bool{"first": {true}, "second": {false, true}, "signer": {false, true}, "third": {false, false, true}, "between": {false, false, true}, "last": {false, false, true}} {
		if is := [3]bool{got[0].Of(certificate(ca)), got[1].Of(certificate(ca)), got[2].Of(certificate(ca))}; is != want {
			t.Errorf("signed by %s: %v, want %v", ca, is, want)
		}
	}
}

// FuzzSigners: no file ends the controller.
func FuzzSigners(f *testing.F) {
	f.Add(program([]byte{8, 0, 0, 0, 0, 2, 2, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if names, err := Signers(b); err != nil && len(names) > 0 {
			t.Error(names, err)
		}
	})
}
