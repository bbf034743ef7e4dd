// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/ironrail/ironrail/images/internal/download"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/inventory"
)

// The attributes of a vendor's signature.
const (
	attrList      = "checksum_list"
	attrSignature = "signature"
	attrKey       = "signing_key"
)

// Vendor says who signed the source, and where that is read. The zero value asks for no
// signature.
type Vendor struct {
	inventory.VendorSignature
	Places map[string]string // of the attributes, FILE:LINE:COLUMN; for messages
}

// vendorOf is that of a block.
func vendorOf(i *inventory.Image) Vendor {
	v := Vendor{i.Vendor, map[string]string{}}
	for _, name := range []string{attrList, attrSignature, attrKey} {
		if at := i.Place(name); at.Filename != "" {
			v.Places[name] = fmt.Sprintf("%s:%d:%d: ", at.Filename, at.Start.Line, at.Start.Column)
		}
	}
	return v
}

// problem is what is wrong with an attribute.
type problem struct {
	attribute, detail string
}

// problems are what can be seen without reading a file.
func (v Vendor) problems() (list []problem) {
	add := func(attribute, format string, args ...any) {
		list = append(list, problem{attribute, fmt.Sprintf(format, args...)})
	}
	given := v.List != "" || v.Signature != ""
	switch {
	case v.Key == "" && given:
		add(map[bool]string{true: attrList, false: attrSignature}[v.List != ""], "a signature says nothing without signing_key, the public key that has to have made it. Write signing_key = file(\"vendor.asc\")")
	case v.Key != "" && !given:
		add(attrKey, "signing_key is for nothing: neither checksum_list nor signature is given. Name the vendor's signed list of checksums, or the signature of the image")
	}
	for _, f := range []struct{ attribute, at string }{{attrList, v.List}, {attrSignature, v.Signature}} {
		if !isURL(f.at) {
			continue
		}
		if err := checkURL(f.at); err != nil {
			add(f.attribute, "%s %v", f.attribute, err)
		}
	}
	if v.Key != "" {
		if err := signature.CheckKey(v.Key); err != nil {
			add(attrKey, "signing_key %v. Write signing_key = file(\"vendor.asc\") with the key that the vendor publishes, in ASCII armor", err)
		}
	}
	return list
}

// keys are the fingerprints of the keys, for digests; nil: no signature is asked for. A
// key that is published anew, such as with a longer time, is the same.
func (v Vendor) keys() []string {
	if v.Key == "" {
		return nil
	}
	keys, err := signature.ReadKeys([]byte(v.Key))
	if err != nil || len(keys) == 0 {
		return []string{v.Key} // never built
	}
	return signature.Fingerprints(keys)
}

// signed is what was verified of a source.
type signed struct {
	by    *manifest.Vendor // nil: nothing is asked for
	keys  openpgp.EntityList
	sums  signature.Sums    // that the list has
	files map[string]string // kept with the image: name -> path
}

// readSigned fetches the list of checksums and the signature, and verifies the list: that
// the key signed it, and that it has the checksum of the block for the source.
func (b *builder) readSigned(ctx context.Context) error {
	v := b.recipe.Vendor
	if v.Key == "" {
		return nil
	}
	keys, err := signature.ReadKeys([]byte(v.Key))
	if err != nil {
		return b.unsigned(attrKey, err)
	}
	digits := strings.TrimPrefix(b.recipe.Checksum, "sha256:")
	b.signed = signed{by: &manifest.Vendor{File: fileName(b.recipe.Source), SHA256: digits}, keys: keys, files: map[string]string{}}
	if err := b.keepSigned(manifest.VendorKey, []byte(v.Key)); err != nil {
		return err
	}
	content := map[string][]byte{}
	for _, f := range []struct{ attribute, at, name string }{{attrList, v.List, manifest.VendorList}, {attrSignature, v.Signature, manifest.VendorSignature}} {
		if f.at == "" {
			continue
		}
		if content[f.name], err = b.readSmall(ctx, f.at, f.name); err != nil {
			return b.unsigned(f.attribute, err)
		}
		if err := b.keepSigned(f.name, content[f.name]); err != nil {
			return err
		}
	}
	if v.List == "" {
		return nil // the signature is compared when the source is there
	}
	b.signed.by.Key, b.signed.sums, err = verifyList(v, keys, b.signed.by.File, digits, content[manifest.VendorList], content[manifest.VendorSignature], time.Now())
	if err != nil {
		return b.distrust(attrList, err)
	}
	sum := sha256.Sum256(content[manifest.VendorList])
	b.signed.by.List = hex.EncodeToString(sum[:])
	b.say("the list of checksums is signed by " + b.signed.by.Key)
	return nil
}

// verifyList returns who signed a list of checksums, and what it has for a file with a
// SHA-256. detached is nil where the block names no signature.
func verifyList(v Vendor, keys openpgp.EntityList, file, sha256 string, list, detached []byte, now time.Time) (signer string, sums signature.Sums, err error) {
	clear := signature.IsClear(list)
	switch {
	case clear && v.Signature != "":
		return "", sums, errkind.New(errkind.Refused, "%s has its signature in itself, and the block names another", v.List).Do("Take signature out of the block.")
	case !clear && v.Signature == "":
		return "", sums, errkind.New(errkind.Refused, "%s is not signed", v.List).Do("Name the signature that the vendor publishes beside it (signature = ...), such as SHA256SUMS.gpg or CHECKSUM.asc.")
	case signature.IsClear(detached):
		return "", sums, errkind.New(errkind.Refused, "%s is a signed text of its own", v.Signature).Do("Name it as checksum_list, and take signature out of the block.")
	}
	text, signer, err := signature.OpenList(keys, list, detached, now)
	if err != nil && !errors.Is(err, signature.ErrExpired) {
		return "", sums, fmt.Errorf("%s: %w", v.List, err)
	}
	sums, listed := signature.CompareListed(text, file, signature.Sums{SHA256: sha256})
	if listed != nil {
		return "", sums, fmt.Errorf("%s: %w", v.List, listed)
	}
	if err != nil {
		return signer, sums, fmt.Errorf("%s: %w", v.List, err)
	}
	return signer, sums, nil
}

// compareSigned compares a source, which has the checksum of the block, with what its
// vendor signed.
func (b *builder) compareSigned(ctx context.Context, have signature.Sums) error {
	s, v := &b.signed, b.recipe.Vendor
	if s.by == nil {
		return nil
	}
	if v.List != "" {
		s.by.SHA512 = have.SHA512
		if err := s.sums.Compare(s.by.File, have); err != nil {
			return b.distrust(attrList, fmt.Errorf("%s: %w", v.List, err))
		}
		return nil
	}
	f, err := os.Open(b.source)
	if err != nil {
		return err
	}
	defer f.Close()
	detached, err := os.ReadFile(s.files[manifest.VendorSignature])
	if err != nil {
		return err
	}
	if signature.IsClear(detached) {
		return b.distrust(attrSignature, errkind.New(errkind.Refused, "%s is a signed text, and no signature of the image", v.Signature).Do("Name it as checksum_list."))
	}
	s.by.Key, err = signature.Verify(s.keys, meter.WithContext(ctx, f), detached, time.Now())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return b.distrust(attrSignature, fmt.Errorf("%s: %w", v.Signature, err))
	}
	b.say("the image is signed by " + s.by.Key)
	return nil
}

// keepSigned writes a file that goes into the store with the image.
func (b *builder) keepSigned(name string, content []byte) error {
	to := filepath.Join(b.downloads(), name)
	b.signed.files[name] = to
	return os.WriteFile(to, content, 0o600)
}

// readSmall reads a list or a signature: of an earlier fetch, from where it lies, or of
// this controller.
func (b *builder) readSmall(ctx context.Context, at, name string) ([]byte, error) {
	if !isURL(at) {
		return readFile(os.Open, folder.Path(b.recipe.Site, at))
	}
	if content, err := os.ReadFile(filepath.Join(b.downloads(), name)); err == nil {
		return content, nil
	}
	return download.Small(ctx, at, signature.MaxSize)
}

// readFile reads a list or a signature of this controller.
func readFile(open func(string) (*os.File, error), at string) ([]byte, error) {
	f, err := open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errkind.New(errkind.NotFound, "%w", err).Do("Paths are relative to the folder of the site.")
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, signature.MaxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > signature.MaxSize:
		return nil, errkind.New(errkind.Refused, "%s is larger than %d MiB", at, signature.MaxSize>>20)
	}
	return content, nil
}

// distrust drops what was fetched of a signature that is not believed, so that the next
// build fetches it again.
func (b *builder) distrust(attribute string, err error) error {
	for _, path := range b.signed.files {
		os.Remove(path)
	}
	return b.unsigned(attribute, err)
}

// unsigned is an error about an attribute of the block.
func (b *builder) unsigned(attribute string, err error) error {
	do := errkind.Action(err)
	return errkind.New(errkind.Of(err), "%s%s: %w", b.recipe.Vendor.Places[attribute], attribute, err).Do(strings.TrimSpace(do + " Nothing was taken over."))
}

// fileName is the name of a source, as lists of checksums have it.
func fileName(source string) string {
	if u, err := url.Parse(source); err == nil && isURL(source) {
		return path.Base(u.Path)
	}
	return filepath.Base(source)
}
