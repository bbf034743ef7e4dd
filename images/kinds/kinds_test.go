// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/diskless"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/imagestest"
	"github.com/ironrail/ironrail/images/oci"
	"github.com/ironrail/ironrail/images/raw"
	"github.com/ironrail/ironrail/images/rhel"
	"github.com/ironrail/ironrail/images/ubuntu"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
)

// image is an image block of a name and a release.
func image(name, release string, change ...func(*inventory.Image)) inventory.Image {
	i := inventory.Image{Block: inventory.Block{Name: name}, Release: release, Arch: inventory.AMD64}
	for _, f := range change {
		f(&i)
	}
	return i
}

func packages(names ...string) func(*inventory.Image) {
	return func(i *inventory.Image) { i.Packages = names }
}

func kernel(name string) func(*inventory.Image) {
	return func(i *inventory.Image) { i.Kernel = name }
}

func memory(os string) func(*inventory.Image) {
	return func(i *inventory.Image) { i.OS = os }
}

func arm64(i *inventory.Image) { i.Arch = inventory.ARM64 }

func secure(i *inventory.Image) { i.SecureBoot = true }

// cases are the kinds with what they are tried on: one of each.
var cases = []imagestest.Case{
	{
		Kind: debian.Kind{},
		Built: []inventory.Image{
			image("twelve", "bookworm"), image("thirteen", "trixie"), image("chrony", "trixie", packages("chrony", "g++", "libstdc++6")),
			image("cloud", "bookworm", kernel("linux-image-cloud-amd64")), image("grace", "trixie", arm64), image("pages", "trixie", arm64, kernel("linux-image-arm64-16k")),
			image("secure", "bookworm", secure), image("arm", "trixie", arm64, secure),
		},
		Whole: []string{"grace", "pages", "arm"},
		Unsupported: map[string]inventory.Image{
			`has release "sid"`: image("os", "sid"), `has release "bullseye"`: image("os", "bullseye"), `has release "--help"`: image("os", "--help"),
			`has release ""`: image("os", ""), "are made of images of amd64": image("os", "trixie", arm64, func(i *inventory.Image) { i.Storage = []string{inventory.StorageTree} }),
		},
		Wrong: map[string]inventory.Image{
			`"-x"`: image("os", "trixie", packages("-x")), `"a,b"`: image("os", "trixie", packages("a,b")), `"x"`: image("os", "trixie", packages("x")),
			`"--x"`: image("os", "trixie", kernel("--x")),
		},
		Same: [][2]inventory.Image{
			{image("os", "12"), image("os", "bookworm")}, {image("os", "13.2"), image("os", "Trixie")},
			{image("os", "trixie", packages("b1", "a1")), image("os", "trixie", packages("a1", "b1", "a1"))},
			{image("os", "trixie"), image("os", "trixie", kernel("linux-image-amd64"))},
			{image("os", "trixie", arm64), image("os", "trixie", arm64, kernel("linux-image-arm64"))},
		},
	},
	{
		Kind: oci.Kind{},
		Built: []inventory.Image{
			container("registry", "docker://registry.example/os/hpc:1"+one, login("reader", "env:X")), container("layout", "oci-layout:hpc:v1"+two),
		},
		Unsupported: map[string]inventory.Image{
			"is of arm64": container("os", "oci-layout:hpc"+one, arm64), "names packages": container("os", "oci-layout:hpc"+one, packages("chrony")),
		},
		Wrong: map[string]inventory.Image{
			"no digest": container("os", "docker://registry.example/os/hpc:1"), "no transport": container("os", "registry.example/os/hpc:1"+one),
			"no repository": container("os", "docker://--x"+one), "needs a password": container("os", "docker://r.example/os"+one, login("reader", "")),
			"are for a registry": container("os", "oci-layout:hpc"+one, plainHTTP), "in clear": container("os", "docker://r.example/os"+one, plainHTTP, login("a", "env:X")),
		},
		Same: [][2]inventory.Image{
			{container("os", "docker://registry.example/os/hpc:1"+one), container("os", "oci-archive:/srv/hpc.tar"+one)},
			{container("os", "docker://registry.example/hpc"+one), container("os", "docker://registry.example/hpc"+one, login("reader", "env:X"))},
		},
	},
	{
		Kind: ubuntu.Kind{},
		Built: []inventory.Image{
			image("jammy", "jammy", archive), image("noble", "24.04", archive), image("resolute", "resolute", archive), image("hwe", "noble", archive, kernel("linux-image-generic-hwe-24.04")),
			image("nvidia", "noble", archive, kernel("linux-image-nvidia")), image("snap", "noble", archive, packages("snapd")), image("all", "noble", archive, func(i *inventory.Image) { i.Archive.Components = []string{"main", "multiverse"} }),
			image("other", "noble", archive, func(i *inventory.Image) { i.Archive.URL = "https://mirror.example/ubuntu" }), image("secure", "noble", archive, secure),
		},
		Unsupported: map[string]inventory.Image{
			`has release "focal"`: image("os", "focal", archive), `has release "25.10"`: image("os", "25.10", archive), `has release "--help"`: image("os", "--help", archive),
			"is of arm64": image("os", "noble", archive, arm64),
		},
		Wrong: map[string]inventory.Image{
			"nothing says where": image("os", "noble"), `"-x"`: image("os", "noble", archive, packages("-x")), `"--x"`: image("os", "noble", archive, kernel("--x")),
			"is no OpenPGP public key": image("os", "noble", archive, func(i *inventory.Image) { i.Archive.Key = "vendor.asc" }),
		},
		Same: [][2]inventory.Image{
			{image("os", "24.04.3", archive), image("os", "noble", archive)}, {image("os", "noble", archive), image("os", "noble", archive, kernel("linux-image-generic"))},
			{image("os", "noble", archive), image("os", "noble", archive, func(i *inventory.Image) { i.Archive.Components = []string{"main", "restricted", "universe"} })},
		},
	},
	{
		Kind: raw.Kind{},
		Built: []inventory.Image{
			disk("url", "https://mirror.example/os.qcow2", one[1:]), disk("path", "images/os.img.xz", two[1:]),
			disk("known", "os.img", "sha256:3"+one[len("@sha256:1"):], system("ubuntu", "noble")),
			disk("entries", "os.img", "sha256:4"+one[len("@sha256:1"):], system("rhel", "9")),
			disk("signed", "https://mirror.example/os.qcow2", one[1:], signed("https://mirror.example/SHA256SUMS", "https://mirror.example/SHA256SUMS.gpg", vendorKey)),
		},
		Whole: []string{"entries"},
		Unsupported: map[string]inventory.Image{
			"is of arm64": disk("os", "os.img", one[1:], arm64), "names others": disk("os", "os.img", one[1:], packages("chrony")), "is of arch": disk("os", "os.img", one[1:], system("arch", "9")),
			"written as they are": disk("os", "os.img", one[1:], system("rhel", "9"), func(i *inventory.Image) { i.Storage = []string{inventory.StorageTree} }),
		},
		Wrong: map[string]inventory.Image{
			"is no URL": disk("os", "ftp://mirror.example/os.img", one[1:]), "has a password": disk("os", "https://a:b@mirror.example/os.img", one[1:]),
			"is not sha256": disk("os", "os.img", "sha256:11"), "without os": disk("os", "os.img", one[1:], system("", "12")), "is no release of": disk("os", "os.img", one[1:], system("debian", "stable")),
			"without signing_key": disk("os", "os.img", one[1:], signed("SHA256SUMS", "", "")), "is for nothing": disk("os", "os.img", one[1:], signed("", "", vendorKey)),
			`checksum_list "file:`: disk("os", "os.img", one[1:], signed("file:///SHA256SUMS", "", vendorKey)), "signature has a password": disk("os", "os.img", one[1:], signed("", "https://a:b@m.example/os.sig", vendorKey)),
			"is no OpenPGP public key": disk("os", "os.img", one[1:], signed("SHA256SUMS", "", "vendor.asc")),
		},
		Same: [][2]inventory.Image{
			{disk("os", "os.img", one[1:]), disk("os", "https://mirror.example/os.img", one[1:])},
			{disk("os", "os.img", one[1:], signed("SHA256SUMS", "SHA256SUMS.gpg", vendorKey)), disk("os", "os.img", one[1:], signed("", "os.img.sig", "Published anew.\n"+vendorKey))},
		},
	},
	{
		Kind: diskless.Kind{},
		Built: []inventory.Image{
			image("debian", "trixie", memory("debian")), image("ubuntu", "noble", memory("ubuntu"), archive), image("more", "12", memory("debian"), packages("nfs-common")), image("cloud", "bookworm", memory("debian"), kernel("linux-image-cloud-amd64")),
			image("secure", "trixie", memory("debian"), secure), image("canonical", "noble", memory("ubuntu"), archive, secure),
		},
		Whole: []string{"debian", "ubuntu", "more", "cloud", "secure", "canonical"},
		Unsupported: map[string]inventory.Image{
			`has release "sid"`: image("os", "sid", memory("debian")), `has release "25.10"`: image("os", "25.10", memory("ubuntu"), archive), "are made for amd64": image("os", "trixie", memory("debian"), arm64),
		},
		Wrong: map[string]inventory.Image{"nothing says where": image("os", "noble", memory("ubuntu")), `"--x"`: image("os", "trixie", memory("debian"), kernel("--x"))},
		Same:  [][2]inventory.Image{{image("os", "12", memory("debian")), image("os", "bookworm", memory("debian"))}},
	},
	{
		Kind: rhel.Kind{},
		Built: []inventory.Image{
			image("nine", "9", repositories), image("minor", "9.4", repositories), image("ten", "10", repositories), image("pinned", "9", repositories, kernel("kernel-5.14.0-570.12.1.el9_6.x86_64")),
			image("more", "9", repositories, packages("nvme-cli", "glibc-langpack-de")), image("policy", "9", repositories, policy("DEFAULT:NO-SHA1")),
			image("other", "9", repositories, func(i *inventory.Image) { i.Repositories[0].URL += "/os" }), image("secure", "9", repositories, secure),
		},
		Whole: []string{"nine", "minor", "ten", "pinned", "more", "policy", "other", "secure"},
		Unsupported: map[string]inventory.Image{
			`has release "8"`: image("os", "8", repositories), `has release "9-stream"`: image("os", "9-stream", repositories), `has release "9.4.1"`: image("os", "9.4.1", repositories),
			`has release "--help"`: image("os", "--help", repositories), "is of arm64": image("os", "9", repositories, arm64),
		},
		Wrong: map[string]inventory.Image{
			"nothing says where": image("os", "9"), `"-x"`: image("os", "9", repositories, packages("-x")), `"--x"`: image("os", "9", repositories, kernel("--x")), `"a b"`: image("os", "9", repositories, packages("a b")),
			"is no crypto policy": image("os", "9", repositories, policy("--set")), "FIPS mode": image("os", "9", repositories, policy("FIPS")),
			"is no OpenPGP public key": image("os", "9", repositories, func(i *inventory.Image) { i.Repositories[1].Key = "vendor.asc" }),
		},
		Same: [][2]inventory.Image{
			{image("os", "9", repositories), image("os", "9", repositories, kernel("kernel"))},
			{image("os", "9", repositories, packages("b1", "a1")), image("os", "9", repositories, packages("a1", "b1", "a1"))},
		},
	},
}

// repositories are where packages of RHEL come from.
func repositories(i *inventory.Image) {
	i.Repositories = []inventory.PackageRepository{{Name: "appstream", URL: "http://mirror.example/AppStream", Key: vendorKey}, {Name: "baseos", URL: "http://mirror.example/BaseOS", Key: vendorKey}}
}

// policy is the crypto policy of an image of RHEL.
func policy(name string) func(*inventory.Image) {
	return func(i *inventory.Image) { i.CryptoPolicy = name }
}

// archive is where packages of Ubuntu come from.
func archive(i *inventory.Image) {
	i.Archive = inventory.PackageArchive{URL: "http://mirror.example/ubuntu", Key: vendorKey}
}

// disk is a block of kind raw.
func disk(name, source, checksum string, change ...func(*inventory.Image)) inventory.Image {
	return image(name, "", append([]func(*inventory.Image){func(i *inventory.Image) { i.Source, i.Checksum = source, checksum }}, change...)...)
}

// system is what an image says to be.
func system(os, release string) func(*inventory.Image) {
	return func(i *inventory.Image) { i.OS, i.Release = os, release }
}

// signed is who signed a disk image.
func signed(list, signature, key string) func(*inventory.Image) {
	return func(i *inventory.Image) {
		i.Vendor = inventory.VendorSignature{List: list, Signature: signature, Key: key}
	}
}

// vendorKey is a key that GnuPG made.
const vendorKey = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaVW5ABYJKwYBBAHaRw8BAQdADxLfMw5BfRKf6kYfEj2gF8yY9uhkzF1zGvqB
Im7CN5i0A29uZYiQBBMWCAA4FiEEcmTemooFhwr/uDePvQ39RmHZqx4FAmlVuQAC
GwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQvQ39RmHZqx5qLQEAghJAS2j0
YfNaYv4M0E5+kKglKUB7XcZKN2tRrD1wJikA/ibGVdiNHFQLyX+9JgCZ0kiLJ+h9
UazwUyNFpgTMDicM
=/pFm
-----END PGP PUBLIC KEY BLOCK-----
`

// container is a block of kind oci.
func container(name, source string, change ...func(*inventory.Image)) inventory.Image {
	return image(name, "", append(change, func(i *inventory.Image) { i.Source = source })...)
}

// login is how a registry is logged in to.
func login(username string, password secret.Ref) func(*inventory.Image) {
	return func(i *inventory.Image) { i.Registry.Username, i.Registry.Password = username, password }
}

func plainHTTP(i *inventory.Image) { i.Registry.PlainHTTP = true }

// one and two are digests in sources.
const (
	one = "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	two = "@sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	var tried []string
	for _, c := range cases {
		tried = append(tried, c.Kind.Name())
		t.Run(c.Kind.Name(), func(t *testing.T) {
			t.Parallel()
			imagestest.Run(t, c)
		})
	}
	if !slices.Equal(tried, Names()) {
		t.Errorf("tried are %v of %v", tried, Names())
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	i := inventory.Image{Block: inventory.Block{Name: "hpc", Kind: "installer"}}
	if _, err := Of(&i); errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), `"hpc" is of kind "installer"; this version builds images of kind debian`) {
		t.Errorf("got %v", err)
	}
	i.Kind, i.Release = debian.Kind{}.Name(), "bookworm"
	if k, err := Of(&i); err != nil || k.Name() != "debian" || !Supported(&i) {
		t.Errorf("got %v, %v", k, err)
	}
}

// TestEncryption: images whose nodes have encrypted data are those that get the programs for it.
func TestEncryption(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, release string
		packages      string // of the image, among others; "": it is refused
	}{
		{"debian", "bookworm", "libtss2-esys-3.0.2-0"}, {"debian", "13", "systemd-cryptsetup"}, {"ubuntu", "24.04", "libtss2-mu-4.0.1-0t64"},
		{"ubuntu", "22.04", ""}, {"ubuntu", "26.04", ""}, {"rhel", "9.4", ""}, {"oci", "", ""}, {"raw", "12", ""},
	} {
		i := inventory.Image{Block: inventory.Block{Name: "hpc", Kind: c.kind}, Release: c.release, Storage: []string{inventory.StorageTPM2, inventory.StorageTree}}
		if _, err := Of(&i); (err == nil) != (c.packages != "") || err != nil && (errkind.Of(err) != errkind.Unsupported || !strings.HasPrefix(err.Error(), "encrypted file systems are made with images of kind debian")) {
			t.Errorf("%s %s: %v", c.kind, c.release, err)
		}
		f, _ := distribution.FamilyOf(&i)
		release, _ := distribution.OfImage(&i)
		if got, ok := f.StoragePackages(release, inventory.StorageTPM2); ok != (c.packages != "") || ok && (!slices.Contains(got, c.packages) || !slices.Contains(got, "cryptsetup-bin") || c.release != "13" && slices.Contains(got, "systemd-cryptsetup")) {
			t.Errorf("%s %s: packages %v, %v", c.kind, c.release, got, ok)
		}
	}
	other, tpm := image("os", "bookworm"), image("os", "bookworm")
	other.Storage, tpm.Storage = []string{inventory.StorageTree}, []string{inventory.StorageTPM2, inventory.StorageTree}
	if (debian.Kind{}).Recipe(&other, "").Digest() == (debian.Kind{}).Recipe(&tpm, "").Digest() {
		t.Error("an image with the programs is the same as one without")
	}
}
