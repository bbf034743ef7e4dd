// SPDX-License-Identifier: Apache-2.0

// Package pesign reads who has signed a program for UEFI: a loader, or a kernel with its EFI
// stub. It verifies nothing, as firmware and shim do.
// Source: Microsoft, PE Format ("The Attribute Certificate Table"), and Windows
// Authenticode Portable Executable Signature Format; RFC 2315 for SignedData.
package pesign

import (
	"bytes"
	"crypto/x509/pkix"
	"debug/pe"
	"encoding/asn1"
	"encoding/binary"
	"math/big"

	"github.com/ironrail/ironrail/internal/errkind"
)

// pkcs7 is WIN_CERT_TYPE_PKCS_SIGNED_DATA.
const pkcs7 = 2

// Issuers returns the common names of the authorities that issued the signers' certificates,
// one for each signature, in the order of the file; none: it is not signed. A file that is
// no such program is an error of kind Invalid.
func Issuers(file []byte) (names []string, err error) {
	table, err := certificates(file)
	if err != nil {
		return nil, err
	}
	for len(table) >= 8 {
		n := int(binary.LittleEndian.Uint32(table))
		if n < 8 || n > len(table) {
			return nil, errkind.New(errkind.Invalid, "a signature of %d bytes does not fit the %d that are left", n, len(table))
		}
		if binary.LittleEndian.Uint16(table[6:]) == pkcs7 {
			of, err := issuersOf(table[8:n])
			if err != nil {
				return nil, err
			}
			names = append(names, of...)
		}
		table = table[min((n+7)&^7, len(table)):] // each begins at a multiple of 8 bytes
	}
	return names, nil
}

// certificates is the table of signatures of a program.
func certificates(file []byte) ([]byte, error) {
	f, err := pe.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "no program for UEFI: %w", err)
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || h.NumberOfRvaAndSizes <= pe.IMAGE_DIRECTORY_ENTRY_SECURITY {
		return nil, nil
	}
	d := h.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY] // its address is a place in the file
	from, to := uint64(d.VirtualAddress), uint64(d.VirtualAddress)+uint64(d.Size)
	if d.Size == 0 {
		return nil, nil
	}
	if to > uint64(len(file)) {
		return nil, errkind.New(errkind.Invalid, "the signatures are said to end at byte %d of %d", to, len(file))
	}
	return file[from:to], nil
}

// signedData is as much of a PKCS #7 SignedData as is read.
type signedData struct {
	Version      int
	Digests      asn1.RawValue
	Content      asn1.RawValue
	Certificates asn1.RawValue `asn1:"optional,tag:0"`
	CRLs         asn1.RawValue `asn1:"optional,tag:1"`
	Signers      []signerInfo  `asn1:"set"`
}

type signerInfo struct {
	Version int
	Of      struct {
		Issuer asn1.RawValue
		Serial *big.Int
	}
	Rest asn1.RawValue `asn1:"optional"` // the digest's algorithm; what follows it is not read
}

// issuersOf reads one signature, which may be padded at its end.
func issuersOf(der []byte) (names []string, err error) {
	var outer struct {
		Type    asn1.ObjectIdentifier
		Content asn1.RawValue // [0], with the SignedData within
	}
	invalid := func(err error) error {
		return errkind.New(errkind.Invalid, "a signature cannot be read: %w", err)
	}
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return nil, invalid(err)
	}
	var data signedData
	if _, err := asn1.Unmarshal(outer.Content.Bytes, &data); err != nil {
		return nil, invalid(err)
	}
	for _, s := range data.Signers {
		var rdn pkix.RDNSequence
		if _, err := asn1.Unmarshal(s.Of.Issuer.FullBytes, &rdn); err != nil {
			return nil, invalid(err)
		}
		var name pkix.Name
		name.FillFromRDNSequence(&rdn)
		names = append(names, name.CommonName)
	}
	return names, nil
}
