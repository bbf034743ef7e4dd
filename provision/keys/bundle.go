// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"filippo.io/age"

	"github.com/ironrail/ironrail/internal/errkind"
)

// bundleMost is how many bytes of decrypted keys are read: a recovery key takes some 400.
const bundleMost = 64 << 20

// bundleFormat is the format of bundles.
const bundleFormat = 1

// Bundle is the content of the key files of a site, as it is encrypted: in a backup, and for
// another controller.
type Bundle struct {
	Format int               `json:"format"`
	Keys   map[string][]byte `json:"keys"` // content of the key files, by their names
}

// Collect reads the key files in dir. Only that of modules may be missing.
func Collect(dir string) (Bundle, error) {
	b := Bundle{Format: bundleFormat, Keys: map[string][]byte{}}
	if err := CheckModes(dir); err != nil {
		return b, err
	}
	recovery, err := ListRecoveryFiles(dir)
	if err != nil {
		return b, err
	}
	for _, name := range append(ListAllFiles(), recovery...) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if name == ModulesFile && errors.Is(err, fs.ErrNotExist) {
			continue // the site has none
		}
		if err != nil {
			return b, fmt.Errorf("keys: %w", err)
		}
		b.Keys[name] = content
	}
	return b, nil
}

// Names are the names of the key files of the bundle, sorted by what they are. Other names in
// it are ignored: they are not those of keys.
func (b Bundle) Names() (names []string) {
	for _, name := range ListAllFiles() {
		if len(b.Keys[name]) > 0 {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Keys)) {
		if IsRecoveryFile(name) && len(b.Keys[name]) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Encrypt writes the bundle for those who can decrypt it.
func (b Bundle) Encrypt(w io.Writer, to ...age.Recipient) error {
	enc, err := age.Encrypt(w, to...)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(enc).Encode(b), enc.Close())
}

// Decrypt reads a bundle; name is that of its file, for messages. The error is of kind refused
// where none of the identities is meant, and not found where a key is missing.
func Decrypt(r io.Reader, name string, by ...age.Identity) (b Bundle, err error) {
	dec, err := age.Decrypt(r, by...)
	if err != nil {
		return b, errkind.New(errkind.Refused, "%s cannot be decrypted: %w", name, err).Do("Give the passphrase, or the identity of the recipient, with which it was made.")
	}
	text, err := io.ReadAll(io.LimitReader(dec, bundleMost))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	for _, file := range ListFiles() {
		if err == nil && (b.Format != bundleFormat || len(b.Keys[file]) == 0) {
			err = errkind.New(errkind.NotFound, "%s does not hold %s", name, file)
		}
	}
	return b, err
}
