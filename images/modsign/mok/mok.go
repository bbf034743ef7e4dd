// SPDX-License-Identifier: Apache-2.0

// Package mok enrols a certificate in the list of the machine owner's keys (MOK) that shim
// keeps: the request that shim finds in variables of the firmware, and the conversation with
// MokManager, which shim starts for it, over a serial console.
// Source: shim 16.1, mok.c (check_mok_request), MokManager.c and lib/console.c.
package mok

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf16"

	"github.com/ironrail/ironrail/internal/efisig"
)

// Loader is the name of MokManager, as it is built into shim: shim looks for it where it came
// from itself (MOK_MANAGER).
const Loader = "mmx64.efi"

// Countdown is for how many seconds MokManager waits for a key; past it the node boots on, and
// the request is gone. A negative number would have it wait forever (draw_countdown).
const Countdown = 60

// Request is what a node is to write into variables of shim (SHIM_LOCK_GUID), and what MokManager
// then asks for.
type Request struct {
	New  []byte // MokNew: the certificate, in an EFI_SIGNATURE_LIST
	Auth []byte // MokAuth: SHA-256 of MokNew and the password
	// Password is typed at MokManager, once. It is written nowhere.
	Password string
}

// passwordLength is well below the 256 characters that MokManager takes, and has 92 bits.
const passwordLength = 16

// letters are those of a password: keys that every keyboard layout and terminal has, without
// those that are mistaken for each other.
const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// NewRequest asks for a certificate in DER, with a password that is drawn for it.
func NewRequest(der []byte) Request {
	password := make([]byte, 0, passwordLength)
	for len(password) < passwordLength {
		var b [1]byte
		rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
		if n := int(b[0] & 63); n < len(letters) {
			password = append(password, letters[n])
		}
	}
	r := Request{New: signatureList(der), Password: string(password)}
	r.Auth = authenticate(r.New, r.Password)
	return r
}

// authenticate is MokAuth in its old form, which is that of mokutil --simple-hash (MokManager.c,
// compute_pw_hash): no other program has to know a format of crypt(3).
func authenticate(list []byte, password string) []byte {
	h := sha256.New()
	h.Write(list)
	for _, u := range utf16.Encode([]rune(password)) {
		h.Write(binary.LittleEndian.AppendUint16(nil, u))
	}
	return h.Sum(nil)
}

// shimLock is shim's GUID as it is stored (shim: lib/guid.c).
var shimLock = []byte{0x50, 0xab, 0x5d, 0x60, 0x46, 0xe0, 0x00, 0x43, 0xab, 0xb6, 0x3d, 0xd8, 0x10, 0xdd, 0x8b, 0x23}

// signatureList is an EFI_SIGNATURE_LIST of one certificate, whose owner is shim, as mokutil
// makes it.
func signatureList(der []byte) []byte {
	b := []byte(efisig.X509)
	b = binary.LittleEndian.AppendUint32(b, uint32(efisig.ListSize+efisig.OwnerSize+len(der)))
	b = binary.LittleEndian.AppendUint32(b, 0) // no header
	b = binary.LittleEndian.AppendUint32(b, uint32(efisig.OwnerSize+len(der)))
	return append(append(b, shimLock...), der...)
}
