// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// GenerateClientKey makes a new ed25519 key. keyFile is the private key in
// OpenSSH's PEM form, without a passphrase.
func GenerateClientKey() (signer ssh.Signer, keyFile []byte, err error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "ironrail")
	if err != nil {
		return nil, nil, err
	}
	signer, err = ssh.NewSignerFromKey(private)
	return signer, pem.EncodeToMemory(block), err
}

// AuthorizedKey returns the line for authorized_keys, with a line feed.
func AuthorizedKey(s ssh.Signer, comment string) string {
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(s.PublicKey())), "\n")
	return line + " " + strings.Join(strings.Fields(comment), " ") + "\n"
}

// LoadOrCreateKey returns the key in the file path, made now when there is none.
// The file has mode 0600; one that others may read is refused. Two processes
// that create it at the same time get the same key.
func LoadOrCreateKey(path string) (ssh.Signer, error) {
	signer, err := loadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return signer, err
	}
	if err := createKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create ssh key %s: %w", path, err)
	}
	return loadKey(path)
}

func loadKey(path string) (ssh.Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, errkind.New(errkind.Refused, "ssh key %s has mode %04o: others can read it", path, info.Mode().Perm()).
			Do("Run: chmod 600 " + path + ". If others had access, remove the key and install the nodes again.")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "ssh key %s cannot be read: %w", path, err)
	}
	return signer, nil
}

// createKey writes a new key under a temporary name and links it to path, which
// fails when path exists.
func createKey(path string) error {
	_, content, err := GenerateClientKey()
	if err != nil {
		return err
	}
	return durable.Create(path, content, 0o600)
}
