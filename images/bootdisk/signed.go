// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/grubimage"
	"github.com/ironrail/ironrail/images/internal/pesign"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/inventory"
)

// signed is a boot program that a package has, and where it goes.
type signed struct {
	pkg   string
	paths []string // in the package: the first that is there
	files []string // below the maker's folder
}

// signedARM64: shim starts the GRUB that lies beside it. Debian 12's GRUB for the network
// has no HTTP client, so that all come from Debian 13, whatever the image is. Without
// shim's fallback (fbaa64.efi) nothing changes the firmware's boot order.
var signedARM64 = []signed{
	{"shim-signed", []string{"usr/lib/shim/shimaa64.efi.signed"}, []string{"EFI/BOOT/BOOTAA64.EFI", images.ShimFile}},
	{"grub-efi-arm64-signed", []string{"usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed"}, []string{"EFI/BOOT/grubaa64.efi"}},
	{"grub-efi-arm64-signed", []string{"usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed"}, []string{images.GRUBFile}},
}

// secureARM64 is the same with Secure Boot: MokManager lies beside shim on the disk.
var secureARM64 = append(slices.Clone(signedARM64), signed{"shim-helpers-arm64-signed", []string{"usr/lib/shim/mmaa64.efi.signed"}, []string{"EFI/BOOT/mmaa64.efi"}})

// signedAMD64 is the same for x86-64 with Secure Boot (fbx64.efi is left out). MokManager lies
// beside shim on the disk as well: without it shim restarts a node forever where a certificate
// waits to be enrolled (mok.c, check_mok_request).
var signedAMD64 = []signed{
	{"shim-signed", []string{"usr/lib/shim/shimx64.efi.signed"}, []string{"EFI/BOOT/BOOTX64.EFI", images.ShimX64File}},
	{"grub-efi-amd64-signed", []string{"usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"}, []string{"EFI/BOOT/grubx64.efi"}},
	{"grub-efi-amd64-signed", []string{"usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"}, []string{images.GRUBX64File}},
	{"shim-helpers-amd64-signed", []string{"usr/lib/shim/mmx64.efi.signed"}, []string{"EFI/BOOT/mmx64.efi", images.MOKX64File}},
}

// signedUbuntu are Canonical's, for x86-64 with Secure Boot, of the image's own archive: they start
// what Canonical signed. shim-signed has its shims under the names of alternatives since 22.04, and
// MokManager (shim-signed 1.58+15.8-0ubuntu1 of noble).
var signedUbuntu = []signed{
	{"shim-signed", []string{"usr/lib/shim/shimx64.efi.signed.latest", "usr/lib/shim/shimx64.efi.signed"}, []string{"EFI/BOOT/BOOTX64.EFI", images.ShimX64File}},
	{"grub-efi-amd64-signed", []string{"usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"}, []string{"EFI/BOOT/grubx64.efi"}},
	{"grub-efi-amd64-signed", []string{"usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"}, []string{images.GRUBX64File}},
	{"shim-signed", []string{"usr/lib/shim/mmx64.efi"}, []string{"EFI/BOOT/mmx64.efi", images.MOKX64File}},
}

// signedOf are those of a family and an architecture, with Secure Boot.
func signedOf(family string, arch inventory.Arch) []signed {
	switch {
	case arch == inventory.ARM64:
		return secureARM64
	case family == distribution.Ubuntu:
		return signedUbuntu
	}
	return signedAMD64
}

// SignedRelease is the release of Debian that Debian's signed loaders are taken from.
const SignedRelease = "trixie"

// signedConfig is what a signed GRUB reads on the EFI system partition, where its prefix is.
// Partition 3 of the disk that GRUB came from is taken before any other with the label, so that an
// older image on a second disk is not.
const signedConfig = `regexp --set=1:ironrail_disk '^.([^,]*),' "$cmdpath"
if [ -f "($ironrail_disk,gpt3)/boot/grub/grub.cfg" ]; then
  set root="$ironrail_disk,gpt3"
else
  search --no-floppy --label --set=root ` + Label + `
fi
set prefix=($root)/boot/grub
configfile /boot/grub/grub.cfg
`

// signedLayoutConfig is the same where layouts of disks are: it hands over to the configuration
// that the agent writes, on the partition that GRUB came from.
const signedLayoutConfig = "configfile " + loadercfg.Folder + "/grub.cfg\n"

// stubOf is signedConfig for GRUB whose menu is in another folder.
func stubOf(l *distribution.Loader) string {
	return strings.ReplaceAll(signedConfig, "/boot/grub", "/"+l.Folder)
}

// loadersDir holds what the packages of signed loaders have, below the maker's folder.
const loadersDir = "loaders"

// TakeSigned fetches signed loaders, puts them into place, and looks whether they start the image.
func (m *Maker) TakeSigned(ctx context.Context) error {
	all := m.platform().signed
	if err := m.fetchSigned(ctx, all); err != nil {
		return err
	}
	if err := m.placeSigned(all); err != nil {
		return err
	}
	return errors.Join(m.placeConfig(), m.checkChain())
}

// taggingIPXE is iPXE as the package of Debian 13 has it, which makes an interface of the VLAN that firmware boots
// on; that of Debian 12 sends untagged frames whatever the firmware does.
var taggingIPXE = []signed{{"ipxe", []string{"usr/lib/ipxe/snponly.efi"}, []string{images.IPXEFile}}}

// TakeIPXE fetches an iPXE that tags and puts it into place.
func (m *Maker) TakeIPXE(ctx context.Context) error {
	if err := m.fetchSigned(ctx, taggingIPXE); err != nil {
		return err
	}
	return m.placeSigned(taggingIPXE)
}

// fetchSigned fetches and unpacks the packages of signed loaders.
func (m *Maker) fetchSigned(ctx context.Context, all []signed) error {
	if len(m.Archives) == 0 {
		return errkind.New(errkind.Internal, "no archive is known for the loaders of %s", m.Arch)
	}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.pkg) {
			names = append(names, s.pkg)
		}
	}
	from := m.Archives[0].URL + ", " + m.Archives[0].Suite
	m.Say("fetching loaders from " + from)
	debs, err := repo.Download(ctx, m.Path("loaders.apt"), string(cmp.Or(m.Arch, inventory.AMD64)), filepath.Join(m.Root, m.Keyring), m.Archives, names...)
	if err != nil {
		return errkind.New(errkind.NotFound, "the loaders (%s): %w", strings.Join(names, ", "), err).
			Do("Name a mirror that has them: " + from + ", for " + string(cmp.Or(m.Arch, inventory.AMD64)) + ".")
	}
	for _, deb := range debs {
		if err := (tool.Runner{}).Run(ctx, nil, "dpkg-deb", "-x", deb, m.Path(loadersDir)); err != nil {
			return err
		}
	}
	return nil
}

// placeSigned puts signed loaders into place.
func (m *Maker) placeSigned(all []signed) error {
	for _, s := range all {
		b, err := m.readSigned(s)
		if err != nil {
			return err
		}
		for _, file := range s.files {
			if err := errors.Join(os.MkdirAll(filepath.Dir(m.Path(file)), 0o755), os.WriteFile(m.Path(file), b, 0o644)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSigned reads a boot program of a package that is unpacked.
func (m *Maker) readSigned(s signed) ([]byte, error) {
	for _, name := range s.paths {
		b, err := os.ReadFile(filepath.Join(m.Path(loadersDir), filepath.FromSlash(name)))
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	return nil, errkind.New(errkind.NotFound, "package %s has no %s", s.pkg, strings.Join(s.paths, " or "))
}

// plainPrefix is a folder of the EFI system partition, below its first.
var plainPrefix = lazyregexp.New(`^(/[A-Za-z0-9_.-]+)+$`)

// signedMenu is the configuration of the signed GRUB of the disk.
func (m *Maker) signedMenu() string {
	switch l := m.Family.Boot.Loader; {
	case l != nil:
		return stubOf(l)
	case len(m.Storage) > 0:
		return signedLayoutConfig
	}
	return signedConfig
}

// placeConfig looks what the signed GRUBs have built in, and writes the configuration to where the one
// of the disk looks for it.
func (m *Maker) placeConfig() error {
	loaders := m.chain()
	disk, err := m.readGRUB(loaders.disk)
	if err != nil {
		return err
	}
	net, err := m.readGRUB(loaders.net)
	if err != nil {
		return err
	}
	if lacks := disk.Lacks(m.diskNeeds()...); len(lacks) > 0 {
		return errkind.New(errkind.Unsupported, "the signed GRUB of the disk has no %s built in, and with Secure Boot on it loads no modules", strings.Join(lacks, ", "))
	}
	if lacks := net.Lacks(netNeeds...); len(lacks) > 0 {
		return errkind.New(errkind.Unsupported, "the signed GRUB of the network has no %s built in: kernel and initrd are fetched by HTTP", strings.Join(lacks, ", ")).
			Do("Name an archive with a later GRUB.")
	}
	return m.placeAt(disk)
}

// placeAt writes the configuration of GRUB of the disk to where it looks for it.
func (m *Maker) placeAt(disk grubimage.Image) error {
	if !plainPrefix.MatchString(disk.Prefix) || strings.Contains(disk.Prefix, "..") {
		return errkind.New(errkind.Unsupported, "the signed GRUB of the disk looks for its configuration in %q, which is no folder of the EFI system partition", disk.Prefix)
	}
	prefix := strings.TrimPrefix(path.Clean(disk.Prefix), "/")
	m.configAt, _, _ = strings.Cut(prefix, "/")
	dir := m.Path(filepath.FromSlash(prefix))
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "grub.cfg"), []byte(m.signedMenu()), 0o644))
}

// What signed GRUBs have to have built in: of the network, of every disk, and where layouts of disks
// need it.
var (
	netNeeds     = []string{"configfile", "http", "linux", "sleep", "tftp"}
	signedNeeds  = []string{"configfile", "ext2", "fat", "linux", "part_gpt", "regexp", "search_label", "test"}
	layoutNeeds  = []string{"search_fs_uuid"}
	storageNeeds = map[string][]string{inventory.StorageRAID: {"mdraid1x"}, inventory.StorageXFS: {"xfs"}, inventory.StorageLVM: {"lvm"}}
)

func (m *Maker) diskNeeds() []string {
	all := slices.Clone(signedNeeds)
	if len(m.Storage) > 0 {
		all = append(all, layoutNeeds...)
	}
	for _, s := range m.Storage {
		all = append(all, storageNeeds[s]...)
	}
	return all
}

func (m *Maker) readGRUB(name string) (grubimage.Image, error) {
	b, err := os.ReadFile(m.Path(name))
	if err != nil {
		return grubimage.Image{}, err
	}
	i, err := grubimage.Read(b)
	if err != nil {
		return i, fmt.Errorf("%s: %w", name, err)
	}
	return i, nil
}

// chain are the files of signed loaders, below the maker's folder.
type chain struct{ shim, disk, net string }

func (m *Maker) chain() chain {
	if m.Arch == inventory.ARM64 {
		return chain{images.ShimFile, "EFI/BOOT/grubaa64.efi", images.GRUBFile}
	}
	return chain{images.ShimX64File, "EFI/BOOT/" + grubEFI, images.GRUBX64File}
}

// BootFiles are the files, by name, that nodes of the architecture need to boot from the
// network and that come with the image; none where the controller has them.
func (m *Maker) BootFiles() map[string]string {
	all := map[string]string{}
	if len(m.platform().signed) > 0 {
		for _, name := range images.SignedLoaders(m.Arch) {
			all[name] = m.Path(name)
		}
	}
	return all
}

// checkChain looks, for nodes with Secure Boot, whether shim will take GRUB and the kernel: neither
// GRUB nor firmware says so before the node is there. What is built into shim decides, so that loaders and kernel
// of two distributions are not put together.
func (m *Maker) checkChain() error {
	if !m.SecureBoot {
		return nil
	}
	loaders := m.chain()
	shim, err := os.ReadFile(m.Path(loaders.shim))
	if err != nil {
		return err
	}
	trusted, err := pesign.Vendors(shim)
	if err != nil {
		return err
	}
	by, err := pesign.Signers(shim)
	if err != nil {
		return fmt.Errorf("shim: %w", err)
	}
	if len(by) == 0 {
		return errkind.New(errkind.Refused, "the shim of this image is signed by nobody, so that the firmware of its nodes would refuse it")
	}
	for _, f := range []struct{ name, what string }{{loaders.disk, "GRUB of the disk"}, {loaders.net, "GRUB of the network"}, {images.KernelFile, "kernel " + m.kernel}} {
		b, err := os.ReadFile(m.Path(f.name))
		if err != nil {
			return err
		}
		if err := signedBy(b, trusted); err != nil {
			return errkind.New(errkind.Refused, "%s: %w, and nodes of this image boot with Secure Boot: shim would refuse it", f.what, err).
				Do("Take the distribution's own kernel package, such as linux-image-amd64 of Debian, from its own archive; or set secure_boot = false in their hardware.")
		}
	}
	return nil
}

// Starts returns why a shim does not start a program by what is built into it; nil: it does. It is for
// programs of another image than the shim's own.
func Starts(shim, program []byte) error {
	trusted, err := pesign.Vendors(shim)
	if err != nil {
		return err
	}
	return signedBy(program, trusted)
}

// signedBy is what is wrong with who signed a program.
func signedBy(program []byte, trusted []*x509.Certificate) error {
	var names, vendors []string
	for _, c := range trusted {
		vendors = append(vendors, c.Subject.CommonName)
	}
	by, err := pesign.Signers(program)
	for _, s := range by {
		if slices.ContainsFunc(trusted, s.Of) {
			return nil
		}
		names = append(names, s.Issuer)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("it is not signed by %s, whom shim trusts (it is signed by: %s)", strings.Join(vendors, ", "), cmp.Or(strings.Join(names, ", "), "nobody"))
}
