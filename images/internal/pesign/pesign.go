// SPDX-License-Identifier: Apache-2.0

// Package pesign reads who has signed a program for UEFI: a loader, or a kernel with its EFI
// stub. It verifies nothing, as firmware and shim do.
// Source: Microsoft, PE Format ("The Attribute Certificate Table"), and Windows
// Authenticode Portable Executable Signature Format; RFC 2315 for SignedData.
package pesign

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"debug/pe"
	"encoding/asn1"
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
)

// pkcs7 is WIN_CERT_TYPE_PKCS_SIGNED_DATA.
const pkcs7 = 2

// Signer is who made a signature: its certificate is named by who issued it, and its number.
type Signer struct {
	Issuer  string   // common name
	issuers [][]byte // distinguished names, DER: of who issued it, and of who issued that one, as far as the signature has them
	serial  *big.Int
}

// Of reports whether the certificate of a signer is that of an authority, or one that it issued, also
// by others in between.
func (s Signer) Of(ca *x509.Certificate) bool {
	return slices.ContainsFunc(s.issuers, func(name []byte) bool { return bytes.Equal(name, ca.RawSubject) }) ||
		bytes.Equal(s.issuers[0], ca.RawIssuer) && s.serial != nil && s.serial.Cmp(ca.SerialNumber) == 0
}

// issuersOf follows a name up by the certificates that a signature has.
func issuersOf(name []byte, certificates []*x509.Certificate) (names [][]byte) {
	for len(names) <= len(certificates) {
		names = append(names, name)
		i := slices.IndexFunc(certificates, func(c *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, name) && !bytes.Equal(c.RawIssuer, name)
		})
		if i < 0 {
			break
		}
		name = certificates[i].RawIssuer
	}
	return names
}

// Signers returns the signers of a program, one for each signature, in the order of the file; none:
// it is not signed. A file that is no such program is an error of kind Invalid.
func Signers(file []byte) (signers []Signer, err error) {
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
			of, err := signersOf(table[8:n])
			if err != nil {
				return nil, err
			}
			signers = append(signers, of...)
		}
		table = table[min((n+7)&^7, len(table)):] // each begins at a multiple of 8 bytes
	}
	return signers, nil
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

// signersOf reads one signature, which may be padded at its end.
func signersOf(der []byte) (signers []Signer, err error) {
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
	certificates, _ := x509.ParseCertificates(data.Certificates.Bytes) // those of the signers alone suffice
	for _, s := range data.Signers {
		var rdn pkix.RDNSequence
		if _, err := asn1.Unmarshal(s.Of.Issuer.FullBytes, &rdn); err != nil {
			return nil, invalid(err)
		}
		var name pkix.Name
		name.FillFromRDNSequence(&rdn)
		signers = append(signers, Signer{name.CommonName, issuersOf(s.Of.Issuer.FullBytes, certificates), s.Of.Serial})
	}
	return signers, nil
}
