// SPDX-License-Identifier: Apache-2.0

// Package manifest describes a disk image as a list of chunks that can be
// fetched, checked and written one by one. The manifest is signed; its digest
// is the image's identity in plans and in the state. It is a leaf: the builder,
// the controller and the agent share it.
package manifest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/zeebo/blake3"
)

// Format is the version of the manifest format that is written. Format 1 is read as
// well: its chunks have SHA-256 in place of BLAKE3.
const (
	Format       = 2
	formatSHA256 = 1
)

// ChunkSize is the plain size of every chunk but the last, in bytes.
const ChunkSize = 4 << 20

// Chunk is one piece of the image. Chunks are stored one after another in the
// blob, each an independent zstd frame; a zero chunk has no bytes in the blob.
type Chunk struct {
	Offset int64  `json:"offset"`           // in the blob
	Length int64  `json:"length"`           // compressed bytes in the blob; 0 for a chunk of zeroes
	Plain  int64  `json:"plain"`            // bytes on the disk
	BLAKE3 string `json:"blake3,omitempty"` // hex, 256 bits, of the plain bytes; empty for a chunk of zeroes
	SHA256 string `json:"sha256,omitempty"` // in its place, of format 1
}

// Zero reports whether the chunk is nothing but zeroes.
func (c Chunk) Zero() bool { return c.Length == 0 }

// Sum returns the digest of a chunk's plain bytes, hex, as BLAKE3 of Chunk has it.
func Sum(plain []byte) string { return Chunk{}.SumOf(plain) }

// Hash returns what the plain bytes of a chunk are hashed by.
func (c Chunk) Hash() hash.Hash {
	if c.SHA256 != "" {
		return sha256.New()
	}
	return blake3.New()
}

// Digest returns the hex digest that Hash must come to, with the name of its function
// for people; empty for a chunk of zeroes.
func (c Chunk) Digest() (digest, function string) {
	if c.SHA256 != "" {
		return c.SHA256, "SHA-256"
	}
	return c.BLAKE3, "BLAKE3"
}

// Is reports whether plain bytes are those of a chunk that is not all zeroes.
func (c Chunk) Is(plain []byte) bool {
	if int64(len(plain)) != c.Plain {
		return false
	}
	want, _ := c.Digest()
	return want != "" && c.SumOf(plain) == want
}

// SumOf returns the hex digest of bytes by the function of the chunk.
func (c Chunk) SumOf(plain []byte) string {
	h := c.Hash()
	h.Write(plain)
	return hex.EncodeToString(h.Sum(nil))
}

// File is a further file that belongs to the image, such as the kernel of its
// install ramdisk. The image's digest and signature cover it.
type File struct {
	Name   string `json:"name"` // a plain file name
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Manifest is the whole image.
type Manifest struct {
	Format    int     `json:"format"`
	Name      string  `json:"name"`   // kind.name of the HCL image block
	Recipe    string  `json:"recipe"` // sha256:... of what it was built from
	Size      int64   `json:"size"`   // plain bytes
	SHA256    string  `json:"sha256"` // hex, of the plain image
	Blob      int64   `json:"blob"`   // bytes of the blob
	Chunks    []Chunk `json:"chunks"`
	Files     []File  `json:"files,omitempty"`     // sorted by name
	System    *System `json:"system,omitempty"`    // nil: built by a version that did not say it
	Vendor    *Vendor `json:"vendor,omitempty"`    // nil: no signature of a vendor was asked for
	Initrd    string  `json:"initrd,omitempty"`    // who makes the initrd of the system: InitrdOnNode; "": it is on the disk
	Form      string  `json:"form,omitempty"`      // of the plain image: Squashfs; "": a disk
	Signature string  `json:"signature,omitempty"` // base64 ed25519 over the JSON with an empty signature
}

// InitrdOnNode says that the disk has a kernel without an initrd: the node makes it by its
// own processors, before it starts from the disk.
const InitrdOnNode = "node"

// Squashfs says that the image is a root file system that nodes keep in memory, and no disk.
const Squashfs = "squashfs"

// System is the operating system on the disk, for people: nothing on a node is decided
// by it.
type System struct {
	Distribution string `json:"distribution,omitempty"` // ID of os-release(5), such as debian
	Release      string `json:"release,omitempty"`      // such as 12
	Arch         string `json:"arch,omitempty"`         // amd64 or arm64
	Kernel       string `json:"kernel,omitempty"`       // release of the newest, as uname -r
	Packages     int    `json:"packages,omitempty"`     // how many are installed; 0: not known
	// PackagesUnread is why they are not known; "": they are, or nobody looked.
	PackagesUnread string `json:"packages_unread,omitempty"`
}

// Vendor is what a vendor signed of the file that an image was made of, as it was verified
// when the image was built.
type Vendor struct {
	Key    string `json:"key"`              // fingerprint of the primary key, upper-case hex
	File   string `json:"file"`             // name of the file
	SHA256 string `json:"sha256"`           // hex, of the file
	SHA512 string `json:"sha512,omitempty"` // the same; empty: the list does not have it
	List   string `json:"list,omitempty"`   // SHA-256 of the signed list of checksums, hex; empty: the file itself is signed
}

// The further files of an image with a Vendor, as they came.
const (
	VendorKey       = "vendor-key.asc"
	VendorSignature = "vendor-signature" // detached; absent where the list has it in itself
	VendorList      = "vendor-checksums" // absent where the file itself is signed
)

// The further files of an image whose root file system also comes as files, for disk
// layouts that are made on the node: a list of chunks without a signature, which has the
// digest that the image's manifest says, and their blob, an archive of package roottree.
const (
	TreeFile = "tree.json"
	TreeBlob = "tree"
)

// The further files of an image whose own disk has loaders of its vendor's: a disk with
// the loaders of layouts alone, as a list of chunks and their blob, like the tree.
const (
	LoadersFile = "loaders.json"
	LoadersBlob = "loaders"
)

// signed returns the bytes that the signature covers.
func (m Manifest) signed() ([]byte, error) {
	m.Signature = ""
	return json.Marshal(m)
}

// Sign sets the signature.
func (m *Manifest) Sign(key ed25519.PrivateKey) error {
	b, err := m.signed()
	if err != nil {
		return err
	}
	m.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, b))
	return nil
}

// Verify checks the signature and that the chunks add up to the image.
func (m Manifest) Verify(key ed25519.PublicKey) error {
	if m.Format != Format && m.Format != formatSHA256 {
		return fmt.Errorf("image manifest has format %d; this version of ironrail supports formats %d and %d", m.Format, formatSHA256, Format)
	}
	sig, err := base64.StdEncoding.DecodeString(m.Signature)
	if err != nil {
		return fmt.Errorf("image manifest signature: %w", err)
	}
	b, err := m.signed()
	if err != nil {
		return err
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, b, sig) {
		return fmt.Errorf("image manifest of %s is not signed by this controller's key", m.Name)
	}
	return m.Check()
}

// Check verifies the arithmetic of the chunk list, and no signature.
func (m Manifest) Check() error {
	var plain, blob int64
	for i, c := range m.Chunks {
		if c.Length < 0 || c.Plain <= 0 || c.Plain > ChunkSize || (c.Plain != ChunkSize && i != len(m.Chunks)-1) {
			return fmt.Errorf("image manifest of %s: chunk %d has an impossible size", m.Name, i)
		}
		if !c.Zero() && (m.Format == formatSHA256) != (c.SHA256 != "") || c.SHA256 != "" && c.BLAKE3 != "" {
			return fmt.Errorf("image manifest of %s: the digest of chunk %d is not of format %d", m.Name, i, m.Format)
		}
		if c.Length > 0 && c.Offset != blob {
			return fmt.Errorf("image manifest of %s: chunk %d does not follow chunk %d", m.Name, i, i-1)
		}
		plain, blob = plain+c.Plain, blob+c.Length
	}
	if plain != m.Size || blob != m.Blob {
		return fmt.Errorf("image manifest of %s: chunks hold %d of %d bytes, blob %d of %d", m.Name, plain, m.Size, blob, m.Blob)
	}
	return nil
}

// Marshal returns the manifest file and its digest, sha256:HEX over these bytes.
func (m Manifest) Marshal() (file []byte, digest string, err error) {
	if file, err = json.Marshal(m); err != nil {
		return nil, "", err
	}
	return file, Digest(file), nil
}

// Digest returns sha256:HEX of a manifest file.
func Digest(file []byte) string {
	sum := sha256.Sum256(file)
	return "sha256:" + hex.EncodeToString(sum[:])
}
