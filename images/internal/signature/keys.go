// SPDX-License-Identifier: Apache-2.0

// Package signature verifies what vendors sign with OpenPGP (RFC 9580): lists of
// checksums, and files.
package signature

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// publicBlock begins a public key in ASCII armor.
const publicBlock = "-----BEGIN PGP PUBLIC KEY BLOCK-----"

// CheckKey says what is wrong with public keys in ASCII armor; nil: they can be read.
func CheckKey(armored string) error {
	switch {
	case strings.TrimSpace(armored) == "":
		return errors.New("is empty")
	case strings.Contains(armored, "PRIVATE KEY"):
		return errors.New("is a private key")
	case !strings.Contains(armored, publicBlock):
		return fmt.Errorf("is no OpenPGP public key in ASCII armor: it has no line %q", publicBlock)
	}
	keys, err := ReadKeys([]byte(armored))
	switch {
	case err != nil:
		return fmt.Errorf("is cut off or damaged: %w", err)
	case len(keys) == 0:
		return errors.New("holds no key")
	}
	return nil
}

// ReadKeys reads public keys in ASCII armor, also several blocks one after the other.
func ReadKeys(armored []byte) (all openpgp.EntityList, err error) {
	parts := strings.Split(string(armored), publicBlock)
	for _, part := range parts[1:] {
		keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(publicBlock + part))
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	return all, nil
}

// Fingerprints are those of the primary keys, upper-case hex.
func Fingerprints(keys openpgp.EntityList) (list []string) {
	for _, k := range keys {
		list = append(list, fmt.Sprintf("%X", k.PrimaryKey.Fingerprint))
	}
	return list
}
