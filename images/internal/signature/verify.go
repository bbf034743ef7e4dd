// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/ironrail/ironrail/internal/errkind"
)

// MaxSize bounds a list of checksums, and a signature, in bytes.
const MaxSize = 4 << 20

// ErrExpired is a good signature whose key or own time is over.
var ErrExpired = errors.New("has expired")

// strong are the functions that the hash of a signature may be of.
var strong = []crypto.Hash{crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}

// minRSA is how many bits an RSA key has at the least.
const minRSA = 2048

// clearHead begins a text with its signature in one file (RFC 9580, section 7).
const clearHead = "-----BEGIN PGP SIGNED MESSAGE-----"

// IsClear reports whether a text has its signature in itself.
func IsClear(text []byte) bool {
	return bytes.HasPrefix(text, []byte(clearHead)) || bytes.Contains(text, []byte("\n"+clearHead))
}

// DecodeText finds a text with its signature in itself; nil: there is none, or it is cut
// off. Nothing is verified.
func DecodeText(signed []byte) (block *clearsign.Block) {
	defer func() {
		if recover() != nil { // clearsign of go-crypto 1.3.0 fails so on a text without a line
			block = nil
		}
	}()
	block, _ = clearsign.Decode(signed)
	return block
}

// OpenText returns what a text with its signature in itself says, and the fingerprint of
// the primary key that signed it. Nothing outside of the signature is returned.
func OpenText(keys openpgp.EntityList, signed []byte, now time.Time) (text []byte, signer string, err error) {
	block := DecodeText(signed)
	if block == nil {
		return nil, "", errkind.New(errkind.Invalid, "its signed text is cut off or damaged").Do("Fetch it again.")
	}
	body, err := io.ReadAll(block.ArmoredSignature.Body)
	if err != nil {
		return nil, "", errkind.New(errkind.Invalid, "its signature is cut off or damaged: %w", err).Do("Fetch it again.")
	}
	signer, err = verify(keys, bytes.NewReader(block.Bytes), body, now)
	return block.Plaintext, signer, err
}

// Verify compares a signature, binary or in ASCII armor, with what it is of, and returns
// the fingerprint of the primary key that made it.
func Verify(keys openpgp.EntityList, signed io.Reader, detached []byte, now time.Time) (signer string, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(detached), []byte("-----BEGIN")) {
		block, err := armor.Decode(bytes.NewReader(detached))
		if err == nil && block.Type != openpgp.SignatureType {
			return "", errkind.New(errkind.Invalid, "it is a %q, and no detached signature", block.Type)
		}
		if err == nil {
			detached, err = io.ReadAll(block.Body)
		}
		if err != nil {
			return "", errkind.New(errkind.Invalid, "it is cut off or damaged: %w", err).Do("Fetch it again.")
		}
	}
	return verify(keys, signed, detached, now)
}

// verify compares the packets of a signature with what they are of.
func verify(keys openpgp.EntityList, signed io.Reader, packets []byte, now time.Time) (signer string, err error) {
	issuers, err := readIssuers(packets)
	if err != nil {
		return "", err
	}
	sig, entity, err := openpgp.VerifyDetachedSignature(keys, signed, bytes.NewReader(packets), &packet.Config{Time: func() time.Time { return now }})
	if sig == nil || entity == nil {
		return "", explain(keys, issuers, err)
	}
	signer = fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint)
	if !slices.Contains(strong, sig.Hash) {
		return "", errkind.New(errkind.Refused, "the signature of key %s is over a hash of %s, which two files may share", signer, sig.Hash).
			Do("Ask the vendor for a signature with SHA-256 or better.")
	}
	if why := weakness(entity, *sig.IssuerKeyId); why != "" {
		return "", errkind.New(errkind.Refused, "key %s %s", signer, why).Do("Ask the vendor for a signature of a stronger key.")
	}
	switch {
	case err == nil:
		return signer, nil
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return "", errkind.New(errkind.Refused, "key %s is revoked", signer).Do("Take what the vendor signs with its present key, and that key.")
	case sig.CreationTime.After(now):
		return "", errkind.New(errkind.Refused, "the signature is of %s, and the clock of this controller says %s", day(sig.CreationTime), day(now)).Do("Set the clock.")
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return signer, errkind.New(errkind.Refused, "key %s %w", signer, ErrExpired).Do("Take the key as the vendor publishes it now, whose time may be longer.")
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return signer, errkind.New(errkind.Refused, "the signature of key %s %w", signer, ErrExpired).Do("Take the newer one of the vendor.")
	}
	return "", errkind.New(errkind.Refused, "key %s: %w", signer, err)
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// readIssuers are the fingerprints of the keys, or else their IDs, that signatures say to
// be of.
func readIssuers(packets []byte) (list []string, err error) {
	r := packet.NewReader(bytes.NewReader(packets))
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		sig, ok := p.(*packet.Signature)
		switch {
		case err != nil:
			return nil, errkind.New(errkind.Invalid, "it is no OpenPGP signature, or a damaged one: %w", err)
		case !ok:
			return nil, errkind.New(errkind.Invalid, "it is an OpenPGP message, and no detached signature")
		case len(sig.IssuerFingerprint) > 0:
			list = append(list, fmt.Sprintf("%X", sig.IssuerFingerprint))
		case sig.IssuerKeyId != nil:
			list = append(list, fmt.Sprintf("%016X", *sig.IssuerKeyId))
		}
	}
	if len(list) == 0 {
		return nil, errkind.New(errkind.Invalid, "there is no OpenPGP signature in it")
	}
	return list, nil
}

// explain says why a signature is not of these keys.
func explain(keys openpgp.EntityList, issuers []string, err error) error {
	if !errors.Is(err, pgperrors.ErrUnknownIssuer) {
		return errkind.New(errkind.Corrupt, "the signature by key %s is not of what is here: %w", strings.Join(issuers, ", "), err).
			Do("One of the two was changed, or they are of different days: fetch both again, and trust neither until they agree.")
	}
	return errkind.New(errkind.Mismatch, "it is signed by key %s, and signing_key has %s, or a key that may not sign", strings.Join(issuers, ", "), strings.Join(Fingerprints(keys), ", ")).
		Do("Find out from the vendor which key is the right one, over another way than this file.")
}

// weakness says why the key of an ID is too weak to be believed; "" when it is not.
func weakness(e *openpgp.Entity, id uint64) string {
	for _, k := range (openpgp.EntityList{e}).KeysById(id) {
		switch k.PublicKey.PubKeyAlgo {
		case packet.PubKeyAlgoDSA:
			return "is of DSA, which is not trusted any more"
		case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly:
			if bits, err := k.PublicKey.BitLength(); err != nil || bits < minRSA-1 {
				return fmt.Sprintf("is of RSA with %d bits, fewer than %d", bits, minRSA)
			}
		}
	}
	return ""
}
