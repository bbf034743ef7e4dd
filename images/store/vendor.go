// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/internal/manifest"
)

// verifyVendor verifies once more what the vendor of an image signed, from the files that
// are kept with it: a list of checksums. A signature of the vendor's file itself was
// verified when the image was built; that file is not kept. That a key expires later
// changes nothing of an image that is built.
func (s *Store) verifyVendor(ctx context.Context, digest string, v *manifest.Vendor) error {
	if v == nil || v.List == "" {
		return nil
	}
	armored, err := s.ReadFile(ctx, digest, manifest.VendorKey)
	if err != nil {
		return err
	}
	list, err := s.ReadFile(ctx, digest, manifest.VendorList)
	if err != nil {
		return err
	}
	detached, err := s.ReadFile(ctx, digest, manifest.VendorSignature)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	keys, err := signature.ReadKeys(armored)
	if err != nil {
		return fmt.Errorf("%s: %w", manifest.VendorKey, err)
	}
	text, signer, err := signature.OpenList(keys, list, detached, time.Now())
	if err != nil && !errors.Is(err, signature.ErrExpired) {
		return fmt.Errorf("%s: %w", manifest.VendorList, err)
	}
	sum := sha256.Sum256(list)
	if signer != v.Key || hex.EncodeToString(sum[:]) != v.List {
		return fmt.Errorf("%s: %w", manifest.VendorList, errDiffers)
	}
	_, err = signature.CompareListed(text, v.File, signature.Sums{SHA256: v.SHA256, SHA512: v.SHA512})
	if err != nil {
		return fmt.Errorf("%s: %w", manifest.VendorList, err)
	}
	return nil
}
