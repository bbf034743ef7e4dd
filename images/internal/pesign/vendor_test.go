// SPDX-License-Identifier: Apache-2.0

package pesign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/efisig"
	"github.com/ironrail/ironrail/internal/errkind"
)

// withSection is the smallest program that has one section.
func withSection(name string, data []byte) []byte {
	b := program(nil)
	at := uint32(len(b))
	binary.LittleEndian.PutUint16(b[0x46:], 1) // NumberOfSections
	section := b[0x58+112+16*8:]
	copy(section, name)
	binary.LittleEndian.PutUint32(section[8:], uint32(len(data)))
	binary.LittleEndian.PutUint32(section[16:], uint32(len(data)))
	binary.LittleEndian.PutUint32(section[20:], at)
	return append(b, data...)
}

// vendor is the section of shim, with size bytes of what its maker trusts.
func vendor(size uint32, content ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, size)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, vendorHeader)
	return append(binary.LittleEndian.AppendUint32(b, 0), content...)
}

func certificate(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// signatureList is an EFI signature list of one certificate.
func signatureList(kind, der []byte) []byte {
	b := slices.Clone(kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(efisig.ListSize+efisig.OwnerSize+len(der)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(efisig.OwnerSize+len(der)))
	return append(append(b, make([]byte, efisig.OwnerSize)...), der...)
}

func TestVendors(t *testing.T) {
	t.Parallel()
	one, two := certificate(t, "one"), certificate(t, "two")
	lists := slices.Concat(signatureList([]byte(efisig.X509), one), signatureList(make([]byte, 16), []byte("a digest")), signatureList([]byte(efisig.X509), two))
	digests := slices.Concat(signatureList([]byte(efisig.X509), nil), signatureList(make([]byte, 16), []byte("a digest")))
	for name, c := range map[string]struct {
		shim []byte
		want []string // nil: it is invalid
	}{
		"one certificate":  {withSection(vendorShort, vendor(uint32(len(one)), one...)), []string{"one"}},
		"a list":           {withSection(vendorShort, vendor(uint32(len(lists)), lists...)), []string{"one", "two"}},
		"no program":       {[]byte("#!/bin/sh"), nil},
		"no shim":          {withSection(".text", vendor(uint32(len(one)), one...)), nil},
		"too short":        {withSection(vendorShort, make([]byte, 8)), nil},
		"nothing":          {withSection(vendorShort, vendor(0)), nil},
		"a list of none":   {withSection(vendorShort, vendor(uint32(len(digests)), digests...)), nil},
		"behind the end":   {withSection(vendorShort, vendor(99, one[:20]...)), nil},
		"no certificate":   {withSection(vendorShort, vendor(4, 1, 2, 3, 4)), nil},
		"a list cut short": {withSection(vendorShort, vendor(uint32(len(lists)-1), lists[:len(lists)-1]...)), []string{"one"}},
	} {
		list, err := Vendors(c.shim)
		var got []string
		for _, v := range list {
			got = append(got, v.Subject.CommonName)
		}
		if !slices.Equal(got, c.want) || (errkind.Of(err) == errkind.Invalid) != (c.want == nil) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzVendors: no file ends the controller.
func FuzzVendors(f *testing.F) {
	f.Add(withSection(vendorShort, vendor(4, 1, 2, 3, 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := Vendors(b); err != nil && len(list) > 0 {
			t.Error(list, err)
		}
	})
}
