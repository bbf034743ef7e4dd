// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/pesign"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/loadercfg"
)

// signed is a boot program that a package has, and where it goes.
type signed struct {
	pkg, path string
	files     []string // below the maker's folder
}

// signedARM64: shim starts the GRUB that lies beside it. Debian 12's GRUB for the network
// has no HTTP client, so that all come from Debian 13, whatever the image is. Without
// shim's fallback (fbaa64.efi) nothing changes the firmware's boot order.
var signedARM64 = []signed{
	{"shim-signed", "usr/lib/shim/shimaa64.efi.signed", []string{"EFI/BOOT/BOOTAA64.EFI", images.ShimFile}},
	{"grub-efi-arm64-signed", "usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed", []string{"EFI/BOOT/grubaa64.efi"}},
	{"grub-efi-arm64-signed", "usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed", []string{images.GRUBFile}},
}

// signedAMD64 is the same for x86-64 with Secure Boot (fbx64.efi is left out). MokManager lies
// beside shim on the disk as well: without it shim restarts a node forever where a certificate
// waits to be enrolled (mok.c, check_mok_request).
var signedAMD64 = []signed{
	{"shim-signed", "usr/lib/shim/shimx64.efi.signed", []string{"EFI/BOOT/BOOTX64.EFI", images.ShimX64File}},
	{"grub-efi-amd64-signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed", []string{"EFI/BOOT/grubx64.efi"}},
	{"grub-efi-amd64-signed", "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", []string{images.GRUBX64File}},
	{"shim-helpers-amd64-signed", "usr/lib/shim/mmx64.efi.signed", []string{"EFI/BOOT/mmx64.efi", images.MOKX64File}},
}

// SignedRelease is the release of Debian that signed loaders are taken from.
const SignedRelease = "trixie"

// signedConfig is what Debian's signed GRUB reads on the EFI system partition: its prefix
// is /EFI/debian. Partition 3 of the disk that GRUB came from is taken before any other
// with the label, so that an older image on a second disk is not.
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
// that the agent writes, on the partition that GRUB came from. What the root may be on (arrays,
// volume groups, XFS) is built into Debian's signed GRUB, as a list of its modules shows.
const signedLayoutConfig = "configfile " + loadercfg.Folder + "/grub.cfg\n"

// stubOf is signedConfig for GRUB whose menu is in another folder.
func stubOf(l *distribution.Loader) string {
	return strings.ReplaceAll(signedConfig, "/boot/grub", "/"+l.Folder)
}

// loadersDir holds what the packages of signed loaders have, below the maker's folder.
const loadersDir = "loaders"

// fetchSigned fetches and unpacks the packages of signed loaders.
func (m *Maker) fetchSigned(ctx context.Context, all []signed) error {
	if m.Archive.URL == "" {
		return errkind.New(errkind.Internal, "no archive is known for the loaders of %s", m.Arch)
	}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.pkg) {
			names = append(names, s.pkg)
		}
	}
	m.Say("fetching the loaders of " + string(m.Arch) + " from " + m.Archive.URL + ", " + m.Archive.Suite)
	debs, err := repo.Download(ctx, m.Path("loaders.apt"), string(m.Arch), filepath.Join(m.Root, m.Family.Keyring), m.Archive, names...)
	if err != nil {
		return errkind.New(errkind.NotFound, "the signed loaders of %s: %w", m.Arch, err).
			Do("Name a mirror that has Debian's " + m.Archive.Suite + " for " + string(m.Arch) + ".")
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
		b, err := os.ReadFile(filepath.Join(m.Path(loadersDir), filepath.FromSlash(s.path)))
		if err != nil {
			return errkind.New(errkind.NotFound, "package %s: %w", s.pkg, err)
		}
		for _, file := range s.files {
			if err := errors.Join(os.MkdirAll(filepath.Dir(m.Path(file)), 0o755), os.WriteFile(m.Path(file), b, 0o644)); err != nil {
				return err
			}
		}
	}
	config := signedConfig
	if len(m.Storage) > 0 {
		config = signedLayoutConfig
	}
	return errors.Join(os.MkdirAll(m.Path("EFI/debian"), 0o755), os.WriteFile(m.Path("EFI/debian/grub.cfg"), []byte(config), 0o644))
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

// debianCA is who signs GRUB and kernels of Debian; its certificate is built into Debian's
// shim.
const debianCA = "Debian Secure Boot CA"

// checkKernelSigned looks, for nodes with Secure Boot, whether Debian's shim will take the
// kernel: neither GRUB nor firmware says so before the node is there.
func (m *Maker) checkKernelSigned() error {
	if !m.SecureBoot {
		return nil
	}
	b, err := os.ReadFile(m.Path(images.KernelFile))
	if err != nil {
		return err
	}
	by, err := pesign.Issuers(b)
	if err != nil || !slices.Contains(by, debianCA) {
		return errkind.New(errkind.Refused, "kernel %s is not signed by %s (it is signed by: %s), and nodes of this image boot with Secure Boot: GRUB would refuse it", m.kernel, debianCA, cmp.Or(strings.Join(by, ", "), "nobody")).
			Do("Take one of Debian's own kernel packages, such as linux-image-amd64, from Debian's archive; or set secure_boot = false in their hardware.")
	}
	return nil
}
