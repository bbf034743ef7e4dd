// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// refPrefix begins a reference to evidence: sha256:HEX/NAME.
const refPrefix = "sha256:"

// IsRef reports whether a sentence of evidence is such a reference.
func IsRef(text string) bool { return strings.HasPrefix(text, refPrefix) }

// refOf is the reference to what has a digest and a name.
func refOf(digest, name string) string {
	return refPrefix + digest + "/" + strings.Map(sanitiseRune, name)
}

// sanitiseRune keeps a name printable and in one piece.
func sanitiseRune(r rune) rune {
	if r < '!' || r > '~' || strings.ContainsRune(`/\:"'`, r) {
		return '_'
	}
	return r
}

// Path returns the file behind a reference that Add returned; false for any other text,
// such as a sentence of a finding.
func Path(dir, ref string) (string, bool) {
	digest, _, _ := strings.Cut(strings.TrimPrefix(ref, refPrefix), "/")
	if b, err := hex.DecodeString(digest); !strings.HasPrefix(ref, refPrefix) || err != nil || len(b) != sha256.Size {
		return "", false
	}
	return filepath.Join(dir, digest[:2], digest), true
}

// verifyContent reads what a reference names, and compares its digest.
func verifyContent(dir, ref string) error {
	path, ok := Path(dir, ref)
	if !ok {
		return errkind.New(errkind.Invalid, "%q is no reference to evidence", ref)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("evidence %s: %w", ref, err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("evidence %s: %w", ref, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.HasPrefix(ref, refPrefix+got) {
		return errkind.New(errkind.Corrupt, "evidence %s was changed: %s has the SHA-256 %s", ref, path, got)
	}
	return nil
}

// storeContent writes the file whole or not at all: a temporary file, synced, renamed,
// and the folder synced. Only its owner may read it (CreateTemp makes it 0600).
func storeContent(dir, digest string, content []byte) error {
	folder := filepath.Join(dir, digest[:2])
	path := filepath.Join(folder, digest)
	if st, err := os.Stat(path); err == nil && st.Size() == int64(len(content)) {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return durable.Write(path, content, 0o600)
}
