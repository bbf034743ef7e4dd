// SPDX-License-Identifier: Apache-2.0

// Package secureboot reads what a node's firmware and kernel show of Secure Boot: whether it
// is on, whose signatures the firmware takes, and whether the kernel is locked down. It
// changes nothing.
// Source: UEFI 2.10, 3.3 (SecureBoot, SetupMode) and 32.4.1 (EFI_SIGNATURE_LIST);
// Documentation/filesystems/efivarfs.rst; kernel_lockdown(7).
package secureboot

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/efisig"
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
	ders, damaged := efisig.Certificates(lists)
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			damaged = true
			continue
		}
		certs = append(certs, c)
	}
	return certs, damaged
}
