// SPDX-License-Identifier: Apache-2.0

// Package keys holds the controller's own keys, and whose a state is by them.
package keys

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/remote"
)

// Keys are the controller's own keys: files of mode 0600 in .ironrail/keys, made
// when they are first needed and never written anywhere else.
type Keys struct {
	Boot     []byte             // derives the tokens of boot attempts
	Manifest ed25519.PrivateKey // signs image manifests
	SSH      ssh.Signer         // logs in to installed nodes
	TLS      tls.Certificate    // of the agent API
	Pin      string             // base64 SHA-256 of the TLS key's SubjectPublicKeyInfo (RFC 7469)
	Plan     plan.Key           // seals saved plans; made of Boot
	Modules  *modsign.Key       // signs kernel modules of nodes with Secure Boot; nil: no such site yet
	Virtual  bool               // the nodes are those of a virtual rack: a state of real ones is refused

	dir  string // where they lie
	gone error  // why they are not there, beside a state that knows nodes
}

// Folder is where the keys lie in a state folder.
const Folder = "keys"

// keySize is the size in bytes of keys that are plain random.
const keySize = 32

// Load reads the keys in dir, and makes those that are missing. It refuses keys
// that others than their owner can read or replace.
func Load(dir string) (k Keys, err error) {
	k.dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return k, fmt.Errorf("keys: %w", err)
	}
	if err := CheckModes(dir); err != nil {
		return k, err
	}
	if k.Boot, err = loadRandomKey(filepath.Join(dir, BootFile)); err != nil {
		return k, err
	}
	if k.Manifest, err = store.Key(filepath.Join(dir, ManifestFile)); err != nil {
		return k, fmt.Errorf("keys: %w", err)
	}
	if k.SSH, err = remote.LoadOrCreateKey(filepath.Join(dir, SSHFile)); err != nil {
		return k, fmt.Errorf("keys: %w", err)
	}
	seed, err := loadRandomKey(filepath.Join(dir, TLSFile))
	if err != nil {
		return k, err
	}
	if k.TLS, k.Pin, err = makeCertificate(ed25519.NewKeyFromSeed(seed)); err != nil {
		return k, err
	}
	if k.Plan, err = hkdf.Key(sha256.New, k.Boot, nil, "ironrail saved plan", keySize); err != nil {
		return k, err
	}
	k.Modules, err = modsign.Load(filepath.Join(dir, ModulesFile))
	if errkind.Of(err) == errkind.NotFound {
		err = nil
	}
	return k, err
}

// loadRandomKey reads a key file, or makes it: base64 in PEM, so that nobody takes it
// for something else.
func loadRandomKey(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		block, _ := pem.Decode(b)
		if block == nil || len(block.Bytes) != keySize {
			return nil, fmt.Errorf("key file %s is damaged: restore it from a backup; a new key would shut out what trusts the old one", path)
		}
		return block.Bytes, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keys: %w", err)
	}
	key := make([]byte, keySize)
	rand.Read(key) // never fails: crypto/rand aborts the program instead
	return key, writeNew(path, pem.EncodeToMemory(&pem.Block{Type: "IRONRAIL KEY", Bytes: key}))
}

// writeNew makes a file durably: a key that is used and then lost in a power cut
// would be worse than none.
func writeNew(path string, content []byte) error {
	if err := durable.Create(path, content, 0o600); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

// makeCertificate makes a self-signed certificate for a key. Agents trust the key by
// its pin; name and validity mean nothing to them.
func makeCertificate(key ed25519.PrivateKey) (tls.Certificate, string, error) {
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ironrail controller"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("keys: certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("keys: certificate: %w", err)
	}
	pin := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, base64.StdEncoding.EncodeToString(pin[:]), nil
}
