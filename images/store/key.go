// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Key reads the ed25519 key that signs manifests from a PEM file (PKCS #8), and
// makes the file, mode 0600, when it is absent.
func Key(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("image signing key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, errkind.New(errkind.Invalid, "image signing key: %s is no PEM file", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "image signing key: %s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errkind.New(errkind.Invalid, "image signing key: %s holds a %T, not an ed25519 key", path, parsed)
	}
	return key, nil
}

func newKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("image signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("image signing key: %w", err)
	}
	if err := durable.Create(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return nil, fmt.Errorf("image signing key: %w", err)
	}
	return key, nil
}
