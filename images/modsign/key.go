// SPDX-License-Identifier: Apache-2.0

// Package modsign signs kernel modules with a key of the site: the certificate that nodes'
// firmware has to trust, and the signature that the kernel looks for at the end of a module.
// Sources: Documentation/admin-guide/module-signing.rst, scripts/sign-file.c and
// include/linux/module_signature.h of the kernel; RFC 5652 (CMS).
package modsign

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // of a subject key identifier (RFC 5280, 4.2.1.2), which is no security
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// bits of the RSA key: the size that Microsoft's own authorities in db have.
const bits = 2048

// years that a certificate is valid. Neither shim nor the kernel looks at it, since a clock
// may be wrong at boot; setups of firmware may.
const years = 30

// onlyModules is the extended key usage by which shim and MokManager know a certificate that
// signs kernel modules and nothing that boots: shim starts no loader that is signed with it.
var onlyModules = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 2312, 16, 1, 2}

// maxName is the longest common name of X.509 (RFC 5280, appendix A.1), in bytes.
const maxName = 64

// Types of the blocks in a key file.
const (
	privateBlock     = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// Certificate is whom the firmware of nodes has to trust.
type Certificate struct{ x *x509.Certificate }

// Key signs modules. It is safe for concurrent use.
type Key struct {
	Certificate
	private *rsa.PrivateKey
}

// Create makes a key with a certificate for a site and writes both to a new file, of mode
// 0600.
func Create(path, site string, now time.Time) error {
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return fmt.Errorf("key for modules: %w", err)
	}
	serial := make([]byte, 16)
	rand.Read(serial) // never fails
	serial[0] = serial[0]&0x7f | 0x40
	id := sha1.Sum(x509.MarshalPKCS1PublicKey(&private.PublicKey))
	name := "ironrail modules of " + site
	t := &x509.Certificate{SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: name[:min(len(name), maxName)]},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(years, 0, 0), SubjectKeyId: id[:], AuthorityKeyId: id[:],
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, UnknownExtKeyUsage: []asn1.ObjectIdentifier{onlyModules},
		BasicConstraintsValid: true, SignatureAlgorithm: x509.SHA256WithRSA}
	der, err := x509.CreateCertificate(rand.Reader, t, t, private.Public(), private)
	if err != nil {
		return fmt.Errorf("key for modules: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("key for modules: %w", err)
	}
	b := append(pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: secret}), pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	return durable.Create(path, b, 0o600)
}

// Load reads the key in a file that Create made. Its error is of kind NotFound where there is
// none.
func Load(path string) (*Key, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errkind.New(errkind.NotFound, "there is no key for modules: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("key for modules: %w", err)
	}
	k, err := parse(b)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "key file %s is damaged: %w", path, err).Do("Restore it from a backup: modules that are signed with a new one are refused by all nodes.")
	}
	return k, nil
}

func parse(b []byte) (*Key, error) {
	k := &Key{}
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case privateBlock:
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("its private key cannot be read") // the library's words might have parts of it
			}
			k.private, _ = key.(*rsa.PrivateKey)
		case certificateBlock:
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("its certificate: %w", err)
			}
			k.x = c
		}
	}
	if k.private == nil || k.x == nil {
		return nil, errors.New("it has no RSA key with a certificate")
	}
	if public, ok := k.x.PublicKey.(*rsa.PublicKey); !ok || !public.Equal(&k.private.PublicKey) {
		return nil, errors.New("its certificate is that of another key")
	}
	return k, nil
}

// Name is the common name in the certificate, as lists of firmware and the kernel show it.
func (c Certificate) Name() string { return c.x.Subject.CommonName }

// DER returns the certificate as mokutil and setups of firmware take it.
func (c Certificate) DER() []byte { return bytes.Clone(c.x.Raw) }

// PEM returns the certificate as Redfish takes it.
func (c Certificate) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.x.Raw})
}

// Fingerprint is the SHA-256 of the certificate, in small hexadecimal letters.
func (c Certificate) Fingerprint() string {
	sum := sha256.Sum256(c.x.Raw)
	return hex.EncodeToString(sum[:])
}

// Serial is the serial number of the certificate as modinfo(8) shows the sig_key of a module.
func (c Certificate) Serial() string {
	var parts []string
	for _, b := range c.x.SerialNumber.Bytes() {
		parts = append(parts, fmt.Sprintf("%02X", b))
	}
	return strings.Join(parts, ":")
}
