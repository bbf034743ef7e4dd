// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
)

// Kind is a kind of image blocks that this version builds and installs. A new one is a
// package with such a type, a line in images/kinds and a case of imagestest.
type Kind interface {
	// Name is the label of its blocks, such as debian.
	Name() string
	// Supports reports why no image can be made of a block, as Unsupported; nil: one
	// can. It looks at what kind of thing is asked for, and does no I/O.
	Supports(*inventory.Image) error
	// Recipe is what a block that is supported is built from. site is the folder that
	// paths of the block are relative to; it changes no digest.
	Recipe(i *inventory.Image, site string) Recipe
}

// Recipe is what an image is made of. Its methods other than Build do no I/O.
type Recipe interface {
	// Name returns image.NAME, as the block is referred to.
	Name() string
	// Check reports what can never be built.
	Check() error
	// Digest returns sha256:HEX over everything that determines the image, but what
	// archives offer on the day of the build.
	Digest() string
	// Inputs returns sha256:HEX over what the site declares, and over nothing that the
	// builder adds: a newer ironrail gives the same, so that an image that was locked
	// stays the right one.
	Inputs() string
	// Archives are the package archives that a build reads, to be asked beforehand.
	Archives() []Archive
	// Build makes the image in dir, which is empty. It says in short lines how far it
	// is, and leaves nothing mounted below dir.
	Build(ctx context.Context, dir string, say func(string)) (store.Source, error)
}

// InitrdLeaver is a kind with images that leave it to the node to make its initrd, by the
// node's own processors: manifest.InitrdOnNode.
type InitrdLeaver interface {
	LeavesInitrd(*inventory.Image) bool
}

// SecretReader is a recipe whose build may read secrets of the site.
type SecretReader interface {
	// WithSecrets returns the recipe with what reads them.
	WithSecrets(resolve func(secret.Ref) (secret.Value, error)) Recipe
}

// Downloader is a recipe whose source may lie elsewhere.
type Downloader interface {
	// Fetch brings the source into dir, verified by its digest, and continues what an
	// earlier call left there. A source of this controller stays where it is.
	Fetch(ctx context.Context, dir string, say func(string)) error
	// WithDownloads returns the recipe whose Build takes the source from dir, and fetches
	// there what is missing.
	WithDownloads(dir string) Recipe
}

// DigestOf returns sha256:HEX over a value that JSON can hold, as digests and inputs of
// recipes are made.
func DigestOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Archive is a package archive that an image is built from.
type Archive struct{ URL, Suite string }

// Names of the files that travel with an image, besides its disk. Each image has those
// of the install ramdisk and its drivers, but those that older versions built; one whose packages
// are served has the others.
const (
	KernelFile  = "kernel"              // of the install ramdisk
	InitrdFile  = "initrd"              // its modules segment
	DriversFile = "drivers"             // what its kernel has drivers for: package modalias
	SBOMFile    = "sbom.spdx.json"      // the packages that are installed: package sbom
	StatusFile  = "status"              // dpkg's list of what is installed
	SourcesFile = "sources.list"        // where it came from, one-line format
	KeyringFile = "archive-keyring.gpg" // who signs there
	// Of images of RPM packages, in the place of the three above.
	DatabaseFile     = "rpmdb.sqlite"      // rpm's database
	RepositoriesFile = "repositories.json" // where its packages came from: repo.DnfSources

	ShimFile    = "shimaa64.efi" // of arm64: shim, for the network
	GRUBFile    = "grubaa64.efi" // of arm64: GRUB with an HTTP client, which shim loads
	ShimX64File = "shimx64.efi"  // the same two of x86-64, of images for Secure Boot
	GRUBX64File = "grubx64.efi"
	MOKX64File  = "mmx64.efi" // MokManager, which shim loads where a certificate is to be enrolled

	IPXEFile = "snponly.efi" // of x86-64: an iPXE that tags, of images whose nodes boot on a VLAN
)

// SignedLoaders are the names of shim, and of what it loads, for the network.
func SignedLoaders(arch inventory.Arch) []string {
	if arch == inventory.ARM64 {
		return []string{ShimFile, GRUBFile}
	}
	return []string{ShimX64File, GRUBX64File, MOKX64File}
}
