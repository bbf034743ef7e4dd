// SPDX-License-Identifier: Apache-2.0

// Package secureboot reads what a node's firmware and kernel show of Secure Boot: whether it
// is on, whose signatures the firmware takes, and whether the kernel is locked down. It
// changes nothing.
// Source: UEFI 2.10, 3.3 (SecureBoot, SetupMode) and 32.4.1 (EFI_SIGNATURE_LIST);
// Documentation/filesystems/efivarfs.rst; kernel_lockdown(7).
package secureboot

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const (
	variables = "sys/firmware/efi/efivars"
	global    = "-8be4df61-93ca-11d2-aa0d-00e098032b8c" // EFI_GLOBAL_VARIABLE
	database  = "-d719b2cb-3d3a-4596-a3bc-dad00e67656f" // EFI_IMAGE_SECURITY_DATABASE_GUID
	shim      = "-605dab50-e046-4300-abb6-3dd810dd8b23" // SHIM_LOCK_GUID
	mokTable  = "sys/firmware/efi/mok-variables"
	lockdown  = "sys/kernel/security/lockdown"
)

// Read looks. It is nil on a node that UEFI did not start, and on one that shows nothing.
func Read(fs sysfs.FS) *wire.SecureBoot {
	if !fs.Exists("sys/firmware/efi") {
		return nil
	}
	r := &wire.SecureBoot{State: stateOf(fs), Lockdown: lockdownOf(fs.Text(lockdown))}
	if b := value(fs, "db"+database); b != nil {
		var certs []*x509.Certificate
		certs, r.Damaged = certificates(b)
		for _, c := range certs {
			r.Authorities = append(r.Authorities, c.Subject.CommonName)
		}
		for _, k := range trusted(append(certs, ownerKeys(fs)...)) {
			r.Keys = append(r.Keys, k.Fingerprint)
		}
	}
	if r.State == "" && r.Lockdown == "" {
		return nil
	}
	return r
}

// stateOf is a state of wire.SecureBoot.
func stateOf(fs sysfs.FS) string {
	if len(fs.Names(variables)) == 0 {
		return "" // efivarfs is not mounted
	}
	on, setup := value(fs, "SecureBoot"+global), value(fs, "SetupMode"+global)
	switch {
	case len(on) != 1:
		return wire.SecureBootAbsent
	case on[0] == 1:
		return wire.SecureBootOn
	case len(setup) == 1 && setup[0] == 1:
		return wire.SecureBootSetup
	}
	return wire.SecureBootOff
}

// value is a variable without the four bytes of attributes that efivarfs puts before it; nil:
// there is none.
func value(fs sysfs.FS, name string) []byte {
	b := fs.Bytes(variables, name)
	if len(b) < 4 {
		return nil
	}
	return b[4:]
}

// lockdownOf is the level that stands in brackets: "none [integrity] confidentiality".
func lockdownOf(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	level, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return level
}

// certX509 is EFI_CERT_X509_GUID as it is stored.
var certX509 = []byte{0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72}

// Sizes of EFI_SIGNATURE_LIST before its header, and of the owner before each signature.
const (
	listSize  = 28
	ownerSize = 16
)

// ownerKeys are the certificates in shim's copy of its list (MokListRT, with MokListRT1 and so
// on where one variable is too small): in variables, and since shim 15.3 in a table that the
// kernel shows (drivers/firmware/efi/mokvar-table.c).
func ownerKeys(fs sysfs.FS) (list []*x509.Certificate) {
	const mok = "MokListRT"
	for _, name := range fs.Names(variables) {
		if strings.HasPrefix(name, mok) && strings.HasSuffix(name, shim) {
			certs, _ := certificates(value(fs, name))
			list = append(list, certs...)
		}
	}
	for _, name := range fs.Names(mokTable) {
		if strings.HasPrefix(name, mok) {
			certs, _ := certificates(fs.Bytes(mokTable, name))
			list = append(list, certs...)
		}
	}
	return list
}

// Trusted is a certificate whose signatures the kernel takes.
type Trusted struct {
	Name        string // common name
	Fingerprint string // SHA-256, in small hexadecimal letters
}

// Keys are the certificates in db and in shim's list, each once; none where db is not shown whole.
func Keys(fs sysfs.FS) []Trusted {
	certs, damaged := certificates(value(fs, "db"+database))
	if damaged || len(certs) == 0 {
		return nil
	}
	return trusted(append(certs, ownerKeys(fs)...))
}

// trusted names certificates, each once.
func trusted(certs []*x509.Certificate) (list []Trusted) {
	for _, c := range certs {
		sum := sha256.Sum256(c.Raw)
		if k := (Trusted{c.Subject.CommonName, hex.EncodeToString(sum[:])}); !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// certificates are those in signature lists, in their order. Damaged: the lists do not end
// where they say, or hold a certificate that cannot be read; what could be read is returned.
func certificates(lists []byte) (certs []*x509.Certificate, damaged bool) {
	for len(lists) > 0 {
		if len(lists) < listSize {
			return certs, true
		}
		whole, header, each := binary.LittleEndian.Uint32(lists[16:]), binary.LittleEndian.Uint32(lists[20:]), binary.LittleEndian.Uint32(lists[24:])
		from := uint64(listSize) + uint64(header)
		if uint64(whole) > uint64(len(lists)) || uint64(whole) < from {
			return certs, true
		}
		list := lists[from:whole]
		if bytes.Equal(lists[:16], certX509) {
			if each <= ownerSize {
				return certs, true
			}
			for ; len(list) >= int(each); list = list[each:] {
				c, err := x509.ParseCertificate(list[ownerSize:each])
				if err != nil {
					damaged = true
					continue
				}
				certs = append(certs, c)
			}
			damaged = damaged || len(list) > 0
		}
		lists = lists[whole:]
	}
	return certs, damaged
}
