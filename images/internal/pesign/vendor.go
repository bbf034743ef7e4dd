// SPDX-License-Identifier: Apache-2.0

package pesign

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"debug/pe"
	"encoding/binary"

	"github.com/ironrail/ironrail/internal/efisig"
	"github.com/ironrail/ironrail/internal/errkind"
)

// vendorSection is where shim keeps whom its maker trusts: a header of four 32-bit numbers (sizes of
// the certificates and of what is revoked, and where both begin, counted from the header), then
// one certificate, or an EFI signature list of several (shim: cert.S, mok.c).
const (
	vendorSection = ".vendor_cert"
	vendorShort   = ".vendor_" // where the table of long names was stripped
	vendorHeader  = 16
)

// Vendors returns the certificates that are built into a shim: besides what firmware and MOK list
// trust, it starts what they, or who has a certificate of theirs, have signed. A file that is no shim is an
// error of kind Invalid.
func Vendors(shim []byte) (list []*x509.Certificate, err error) {
	f, err := pe.NewFile(bytes.NewReader(shim))
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "no program for UEFI: %w", err)
	}
	section := cmp.Or(f.Section(vendorSection), f.Section(vendorShort))
	if section == nil {
		return nil, errkind.New(errkind.Invalid, "no shim: it has no section %s", vendorSection)
	}
	b, err := section.Data()
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "section %s of shim: %w", vendorSection, err)
	}
	if len(b) < vendorHeader {
		return nil, errkind.New(errkind.Invalid, "section %s of shim has %d bytes; its header alone has %d", vendorSection, len(b), vendorHeader)
	}
	size, at := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[8:]))
	if size == 0 || at+size > uint64(len(b)) {
		return nil, errkind.New(errkind.Invalid, "section %s of shim has no certificate", vendorSection)
	}
	b = b[at : at+size]
	ders := [][]byte{b}
	if bytes.HasPrefix(b, []byte(efisig.X509)) {
		ders, _ = efisig.Certificates(b) // what is cut off, or of another kind, is left out
	}
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "a certificate in shim: %w", err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errkind.New(errkind.Invalid, "section %s of shim has no certificate", vendorSection)
	}
	return list, nil
}
