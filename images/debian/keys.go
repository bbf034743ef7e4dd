// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/images/internal/signature"
)

// sourcesList is where mmdebstrap and apt keep the archives, below the root.
const sourcesList = "etc/apt/sources.list"

// siteKeyring is where apt on the node finds the keys that the site gives, below the root:
// /etc/apt/keyrings is for those of no package (sources.list(5), Signed-By).
const siteKeyring = "etc/apt/keyrings/ironrail-archive.gpg"

// keyringFile is the file with the keys of the image's archives, below the root.
func (r Recipe) keyringFile() string {
	if r.Key != "" {
		return siteKeyring
	}
	return r.family().Keyring
}

// writeKeys writes the keys that the site gives as a keyring: apt before 2.4 takes no
// armored one by --keyring, and package repositories of the image take it as it is. gpgv
// reads it as apt's own user.
func (b *builder) writeKeys(context.Context) error {
	if b.recipe.Key == "" {
		return nil
	}
	keys, err := signature.ReadKeys([]byte(b.recipe.Key))
	if err != nil {
		return err
	}
	var ring bytes.Buffer
	for _, k := range keys {
		if err := k.Serialize(&ring); err != nil {
			return err
		}
	}
	// The folder of the build is the controller's alone, and apt verifies as a user of its own.
	dir, err := os.MkdirTemp("", "ironrail-keys-")
	if err != nil {
		return err
	}
	b.keyring = filepath.Join(dir, "archive-keys.gpg")
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.keyring, ring.Bytes(), 0o644)
}

// settleArchive lets apt on the node trust the keys that the site gives for its archives,
// and for nothing else; without any, the image has what mmdebstrap wrote.
func (b *builder) settleArchive(root *os.Root) error {
	if b.recipe.Key == "" {
		return nil
	}
	ring, err := os.ReadFile(b.keyring)
	if err != nil {
		return err
	}
	text := "# Written by ironrail: the archives that this image was made from.\n"
	for _, m := range b.recipe.Mirrors {
		text += strings.Replace(m, "deb ", "deb [signed-by=/"+siteKeyring+"] ", 1) + "\n"
	}
	return errors.Join(root.MkdirAll(filepath.Dir(siteKeyring), 0o755), root.WriteFile(siteKeyring, ring, 0o644), root.WriteFile(sourcesList, []byte(text), 0o644))
}

// dropKeys removes what writeKeys has written.
func (b *builder) dropKeys() {
	if b.keyring != "" {
		_ = os.RemoveAll(filepath.Dir(b.keyring)) // public keys, below the folder of temporary files
	}
}
