// SPDX-License-Identifier: Apache-2.0

package modsign

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// newKey is a key in a file.
func newKey(t *testing.T, site string) (*Key, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "modules.pem")
	if err := Create(path, site, time.Now()); err != nil {
		t.Fatal(err)
	}
	k, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return k, path
}

// elf is as much of a module as signing looks at.
func elf() []byte { return append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 500)...) }

func TestKey(t *testing.T) {
	t.Parallel()
	k, path := newKey(t, strings.Repeat("long-", 20))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	c, err := x509.ParseCertificate(k.DER())
	if err != nil {
		t.Fatal(err)
	}
	if len(k.Name()) != maxName || c.IsCA || !slices.ContainsFunc(c.UnknownExtKeyUsage, onlyModules.Equal) || !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}) || c.KeyUsage != x509.KeyUsageDigitalSignature || len(c.SubjectKeyId) != 20 || !c.NotBefore.Before(time.Now()) {
		t.Errorf("certificate %q CA %v usages %v %v %v", k.Name(), c.IsCA, c.KeyUsage, c.ExtKeyUsage, c.UnknownExtKeyUsage)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); errkind.Of(err) != errkind.NotFound {
		t.Errorf("no file: %v", err)
	}
	other, otherPath := newKey(t, "other")
	if other.Fingerprint() == k.Fingerprint() || other.Serial() == k.Serial() {
		t.Error("two keys have the same names")
	}
	mine, theirs := read(t, path), read(t, otherPath)
	at := bytes.Index(theirs, []byte("-----BEGIN CERTIFICATE"))
	for name, b := range map[string][]byte{"cut": mine[:400], "no certificate": mine[:bytes.Index(mine, []byte("-----BEGIN CERTIFICATE"))], "certificate of another": append(bytes.Clone(mine[:bytes.Index(mine, []byte("-----BEGIN CERTIFICATE"))]), theirs[at:]...), "empty": nil} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); errkind.Of(err) != errkind.Invalid || errkind.Action(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSign: the same module gives the same bytes, and a signature that was there is replaced.
func TestSign(t *testing.T) {
	t.Parallel()
	k, _ := newKey(t, "s")
	other, _ := newKey(t, "s")
	first, err := k.Sign(elf())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := other.Sign(elf())
	if err != nil {
		t.Fatal(err)
	}
	again, err := k.Sign(theirs)
	if err != nil || !bytes.Equal(first, again) || bytes.Equal(first, theirs) {
		t.Errorf("signed again: %v, the same %v", err, bytes.Equal(first, again))
	}
	if bare, err := Strip(append(bytes.Clone(theirs), first[len(elf()):]...)); err != nil || !bytes.Equal(bare, elf()) {
		t.Errorf("two signatures: %d bytes of %d are left: %v", len(bare), len(elf()), err)
	}
	size := binary.BigEndian.Uint32(first[len(first)-len(magic)-4:])
	if rest, err := asn1.Unmarshal(first[len(elf()):len(elf())+int(size)], new(contentInfo)); err != nil || len(rest) > 0 {
		t.Errorf("signature: %d bytes too many, %v", len(rest), err)
	}
	for name, b := range map[string][]byte{"text": []byte("#!/bin/sh\n"), "cut": []byte("\x7fELF" + magic), "too long": append(slices.Concat([]byte("\x7fELF"), []byte{0, 0, 2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}), magic...)} {
		if _, err := k.Sign(b); err == nil {
			t.Errorf("%s is signed", name)
		}
	}
}

func FuzzStrip(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	f.Add([]byte(strings.Repeat("\x00", 30) + magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := Strip(b); err == nil && len(out) > len(b) {
			t.Error("it grows")
		}
	})
}

// TestPeerSignature: OpenSSL verifies the signature, and kmod shows whose it is.
func TestPeerSignature(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "openssl")
	k, _ := newKey(t, "peer")
	dir := t.TempDir()
	signed, err := k.Sign(elf())
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.BigEndian.Uint32(signed[len(signed)-len(magic)-4:]))
	put := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	verify := func(content []byte) (string, error) {
		out, err := exec.CommandContext(t.Context(), "openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", put("sig", signed[len(elf()):len(elf())+size]),
			"-content", put("content", content), "-certfile", put("cert.pem", k.PEM()), "-noverify", "-out", "/dev/null").CombinedOutput()
		return string(out), err
	}
	if out, err := verify(elf()); err != nil {
		t.Errorf("openssl: %v: %s", err, out)
	}
	if out, err := verify(append(elf(), 0)); err == nil {
		t.Errorf("another module is verified: %s", out)
	}
	out, err := exec.CommandContext(t.Context(), "openssl", "x509", "-in", put("cert.pem", k.PEM()), "-noout", "-text").CombinedOutput()
	if t.Logf("%s", out); err != nil || !strings.Contains(string(out), "Code Signing, 1.3.6.1.4.1.2312.16.1.2") || !strings.Contains(string(out), "CA:FALSE") {
		t.Errorf("openssl: %v", err)
	}
}
