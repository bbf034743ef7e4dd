// SPDX-License-Identifier: Apache-2.0

package modsign

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"math/big"

	"github.com/ironrail/ironrail/internal/errkind"
)

// magic ends a module that is signed (MODULE_SIG_STRING).
const magic = "~Module signature appended~\n"

// trailerSize is that of struct module_signature, which stands before the magic: algorithm,
// hash, kind of the identifier, length of the signer and of the key's identifier (bytes),
// three bytes of nothing, length of the signature (32 bits, big endian).
const trailerSize = 12

// kindPKCS7 says that the signature is one of PKCS #7, which has all else in it.
const kindPKCS7 = 2

// Object identifiers (RFC 5652, RFC 8017, RFC 5754).
var (
	oidSignedData = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidData       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidRSA        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	oidSHA256     = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
)

// contentInfo is what a signature is in (RFC 5652, 3).
type contentInfo struct {
	Type    asn1.ObjectIdentifier
	Content signedData `asn1:"explicit,tag:0"`
}

// signedData is RFC 5652, 5.1, without certificates: the kernel has them.
type signedData struct {
	Version int
	Digests []pkix.AlgorithmIdentifier `asn1:"set"`
	Content struct{ Type asn1.ObjectIdentifier }
	Signers []signerInfo `asn1:"set"`
}

// signerInfo is RFC 5652, 5.3, without signed attributes: the kernel refuses a module with
// such (crypto/asymmetric_keys/pkcs7_verify.c, VERIFYING_MODULE_SIGNATURE).
type signerInfo struct {
	Version int
	Signer  struct {
		Issuer asn1.RawValue
		Serial *big.Int
	}
	Digest    pkix.AlgorithmIdentifier
	Algorithm pkix.AlgorithmIdentifier
	Signature []byte
}

// Sign returns a kernel module with this key's signature at its end, in the place of any
// that it has. The same module gives the same bytes.
func (k *Key) Sign(module []byte) ([]byte, error) {
	bare, err := Strip(module)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(bare, []byte("\x7fELF")) {
		return nil, errkind.New(errkind.Invalid, "this is no kernel module: it is no ELF file")
	}
	sum := sha256.Sum256(bare)
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.private, crypto.SHA256, sum[:])
	if err != nil {
		return nil, err
	}
	digest := pkix.AlgorithmIdentifier{Algorithm: oidSHA256}
	s := signerInfo{Version: 1, Digest: digest, Algorithm: pkix.AlgorithmIdentifier{Algorithm: oidRSA, Parameters: asn1.NullRawValue}, Signature: signature}
	s.Signer.Issuer, s.Signer.Serial = asn1.RawValue{FullBytes: k.x.RawIssuer}, k.x.SerialNumber
	info := contentInfo{Type: oidSignedData, Content: signedData{Version: 1, Digests: []pkix.AlgorithmIdentifier{digest}, Signers: []signerInfo{s}}}
	info.Content.Content.Type = oidData
	der, err := asn1.Marshal(info)
	if err != nil {
		return nil, err
	}
	out := append(bytes.Clone(bare), der...)
	out = append(out, 0, 0, kindPKCS7, 0, 0, 0, 0, 0)
	return append(binary.BigEndian.AppendUint32(out, uint32(len(der))), magic...), nil
}

// Strip returns a module without the signatures at its end, such as one that dkms(8) made
// with a key of its own.
func Strip(module []byte) ([]byte, error) {
	for {
		rest, signed := bytes.CutSuffix(module, []byte(magic))
		if !signed {
			return module, nil
		}
		if len(rest) < trailerSize {
			return nil, errkind.New(errkind.Corrupt, "the module ends in the middle of a signature")
		}
		trailer := rest[len(rest)-trailerSize:]
		size := uint64(trailer[3]) + uint64(trailer[4]) + uint64(binary.BigEndian.Uint32(trailer[8:]))
		rest = rest[:len(rest)-trailerSize]
		if size > uint64(len(rest)) {
			return nil, errkind.New(errkind.Corrupt, "the module's signature is longer than the module")
		}
		module = rest[:len(rest)-int(size)]
	}
}
