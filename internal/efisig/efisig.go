// SPDX-License-Identifier: Apache-2.0

// Package efisig reads signature lists of UEFI (EFI_SIGNATURE_LIST; UEFI 2.10, section 32.4.1), in which
// firmware and shim keep the certificates that they trust.
package efisig

import "encoding/binary"

// X509 is EFI_CERT_X509_GUID as it stands in a list.
const X509 = "\xa1\x59\xc0\xa5\xe4\x94\xa7\x4a\x87\xb5\xab\x15\x5c\x2b\xf0\x72"

// Sizes in bytes of a list before its own header, and of the owner before each signature.
const (
	ListSize  = 28
	OwnerSize = 16
)

// Certificates are those in lists, in DER and in their order; they share memory with lists. Damaged: the
// lists do not end where they say, or one has entries of no possible size; what could be read is returned.
func Certificates(lists []byte) (ders [][]byte, damaged bool) {
	for len(lists) > 0 {
		if len(lists) < ListSize {
			return ders, true
		}
		size, header, entry := uint64(binary.LittleEndian.Uint32(lists[16:])), uint64(binary.LittleEndian.Uint32(lists[20:])), uint64(binary.LittleEndian.Uint32(lists[24:]))
		if size < ListSize || size > uint64(len(lists)) {
			return ders, true
		}
		from := ListSize + header
		switch {
		case from > size:
			damaged = true
		case string(lists[:16]) != X509:
		case entry <= OwnerSize:
			damaged = true
		default:
			for ; from+entry <= size; from += entry {
				ders = append(ders, lists[from+OwnerSize:from+entry])
			}
			damaged = damaged || from < size
		}
		lists = lists[size:]
	}
	return ders, damaged
}
