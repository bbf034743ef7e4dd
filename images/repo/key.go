// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Key signs repositories. It is safe for concurrent use.
type Key struct {
	entity *openpgp.Entity
	public []byte // armored
}

// signingConfig returns how keys and signatures are made: version 4 with the EdDSA of RFC
// 9580 section 9.1 "legacy" and SHA-512, which is what gpgv 2.2 of Debian 12
// knows, and without the random notation of go-crypto, so that signing is
// repeatable.
func signingConfig() *packet.Config {
	plain := false
	return &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, DefaultHash: crypto.SHA512, NonDeterministicSignaturesViaNotation: &plain}
}

// LoadKey reads the armored private key in a file, and makes it, mode 0600, when
// the file is absent.
func LoadKey(path string) (*Key, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("repository key: %w", err)
	}
	list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(b))
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "repository key: %s: %w", path, err)
	}
	if len(list) != 1 || list[0].PrivateKey == nil || list[0].PrivateKey.Encrypted {
		return nil, errkind.New(errkind.Invalid, "repository key: %s does not hold one private key without a passphrase", path)
	}
	return withPublic(list[0])
}

func newKey(path string) (*Key, error) {
	e, err := openpgp.NewEntity("ironrail repository", "", "", signingConfig())
	if err != nil {
		return nil, fmt.Errorf("repository key: %w", err)
	}
	b, err := armorText(openpgp.PrivateKeyType, func(w io.Writer) error { return e.SerializePrivate(w, signingConfig()) })
	if err != nil {
		return nil, fmt.Errorf("repository key: %w", err)
	}
	if err := durable.Create(path, b, 0o600); err != nil {
		return nil, fmt.Errorf("repository key: %w", err)
	}
	return withPublic(e)
}

func withPublic(e *openpgp.Entity) (*Key, error) {
	b, err := armorText(openpgp.PublicKeyType, e.Serialize)
	if err != nil {
		return nil, fmt.Errorf("repository key: %w", err)
	}
	return &Key{entity: e, public: b}, nil
}

func armorText(kind string, write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, kind, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(w), w.Close()); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// Public returns the armored public key, as apt's signed-by takes it in a file
// that ends in .asc.
func (k *Key) Public() []byte { return bytes.Clone(k.public) }

// fingerprint names the key in the inputs of a repository.
func (k *Key) fingerprint() string { return fmt.Sprintf("%X", k.entity.PrimaryKey.Fingerprint) }

// sign returns text, clear-signed.
func (k *Key) sign(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := clearsign.Encode(&b, k.entity.PrivateKey, signingConfig())
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// signDetached returns a signature of a text, in ASCII armor.
func (k *Key) signDetached(text []byte) ([]byte, error) {
	var b bytes.Buffer
	err := openpgp.ArmoredDetachSign(&b, k.entity, bytes.NewReader(text), signingConfig())
	b.WriteByte('\n')
	return b.Bytes(), err
}

// checkDetached checks that this key signed a text.
func (k *Key) checkDetached(text, signed []byte) error {
	if _, err := openpgp.CheckArmoredDetachedSignature(openpgp.EntityList{k.entity}, bytes.NewReader(text), bytes.NewReader(signed), signingConfig()); err != nil {
		return errkind.New(errkind.Corrupt, "signature: %w", err)
	}
	return nil
}

// open returns what a clear-signed text says, after checking that this key
// signed it.
func (k *Key) open(signed []byte) ([]byte, error) {
	block, rest := clearsign.Decode(signed)
	if block == nil {
		return nil, errkind.New(errkind.Invalid, "not clear-signed")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errkind.New(errkind.Invalid, "text outside the signature")
	}
	if _, err := block.VerifySignature(openpgp.EntityList{k.entity}, signingConfig()); err != nil {
		return nil, errkind.New(errkind.Corrupt, "signature: %w", err)
	}
	return block.Plaintext, nil
}
