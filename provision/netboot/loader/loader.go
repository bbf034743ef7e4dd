// SPDX-License-Identifier: Apache-2.0

// Package loader holds the first-stage boot programs: which there are, for
// which client architecture, and their bytes, read once at the start so that a
// transfer never waits for a disk. It is a leaf of provision/netboot.
package loader

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Dir is where the Debian package ipxe keeps its loaders.
const Dir = "/usr/lib/ipxe"

// The names under which loaders are served; nothing else is ever served as one.
const (
	Undionly = "undionly.kpxe"     // BIOS, through the network card's own PXE stack
	SNPOnly  = "snponly.efi"       // UEFI x64, through the firmware's own driver
	IPXE     = "ipxe.efi"          // UEFI x64 with iPXE's drivers, for firmware whose own is broken
	SNPARM64 = "snponly-arm64.efi" // UEFI arm64, where the controller has it and no image brings the two below

	// UEFI arm64: Debian's signed shim, and the signed GRUB that it fetches by this name
	// beside itself. iPXE's drivers for arm64 break on several NICs.
	ShimARM64 = "shimaa64.efi"
	GRUBARM64 = "grubaa64.efi"
	// The same for UEFI x64 with Secure Boot, whose firmware refuses iPXE.
	ShimX64 = "shimx64.efi"
	GRUBX64 = "grubx64.efi"
	// MokManager, which shim fetches where a certificate is to be enrolled in its list.
	MOKX64 = "mmx64.efi"
)

// files lists where each loader may lie below the folder; the first that is
// there is taken.
var files = []struct {
	name  string
	paths []string
}{
	{Undionly, []string{"undionly.kpxe"}},
	{SNPOnly, []string{"snponly.efi"}},
	{IPXE, []string{"ipxe.efi"}},
	{SNPARM64, []string{"snponly-arm64.efi", "arm64-efi/snponly.efi"}},
	{ShimARM64, []string{ShimARM64}},
	{GRUBARM64, []string{GRUBARM64}},
	{ShimX64, []string{ShimX64}},
	{GRUBX64, []string{GRUBX64}},
	{MOKX64, []string{MOKX64}},
}

// Behind is the loader that shim loads in turn from beside itself, by a name that is built into it; ""
// for what is no shim.
func Behind(name string) string {
	behind := map[string]string{ShimARM64: GRUBARM64, ShimX64: GRUBX64}[path.Base(name)]
	if behind == "" {
		return ""
	}
	return path.Join(path.Dir(name), behind)
}

// In is the name of a signed loader of a distribution: each has a shim and a GRUB of its own, which
// start what it signed. Those of "debian", and of "", are in no folder.
func In(distribution, name string) string {
	if distribution == Debian {
		distribution = ""
	}
	return path.Join(distribution, name)
}

// Debian is the distribution whose loaders are in no folder.
const Debian = "debian"

// maxSize bounds one loader; the largest of iPXE is about 1 MiB.
const maxSize = 8 << 20

// Set is the loaders that are there, by name. It is not changed after Read and
// may be shared by goroutines.
type Set map[string][]byte

// Read reads all loaders below dir. Missing ones are left out, but a folder
// without any is an error: nothing could boot.
func Read(dir string) (Set, error) {
	set := Set{}
	for _, f := range files {
		for _, p := range f.paths {
			b, err := readFile(filepath.Join(dir, p))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("loader %s: %w", f.name, err)
			}
			set[f.name] = b
			break
		}
	}
	if len(set) == 0 {
		return nil, errkind.New(errkind.Unsupported, "no first-stage loader in %s: looked for %s", dir, knownLoaders()).
			Do("Install the package ipxe, or name the folder that has its loaders.")
	}
	return set, nil
}

// Names returns the names of the loaders in the set, sorted.
func (s Set) Names() []string {
	var out []string
	for n := range s {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// With returns the set and more of the loaders' names; one that both have is the other's.
func (s Set) With(more Set) Set {
	all := maps.Clone(s)
	maps.Copy(all, more)
	return all
}

// firstTagging is the day since which iPXE makes a VLAN interface by the device path that UEFI
// started it with ("[vlan] Support automatic VLAN device creation"); before, it sends untagged frames whatever the
// firmware does.
const firstTagging = "20230201"

// Untagged returns the version of an iPXE that is known to send untagged frames where the
// firmware tags them; "" where it tags, or where nobody can tell: only distributions write the
// day into the version, as in 1.0.0+git-20190125.
func (s Set) Untagged(name string) string {
	found := dayOfVersion.FindSubmatch(s[name])
	if found == nil || string(found[2]) >= firstTagging {
		return ""
	}
	return string(found[1])
}

var dayOfVersion = lazyregexp.New(`([0-9]+\.[0-9]+\.[0-9]+\+git-?(20[0-9]{6})[0-9A-Za-z.+-]*)`)

// Has reports whether the loader is there.
func (s Set) Has(name string) bool { _, ok := s[name]; return ok }

func knownLoaders() string {
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func readFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() == 0 || st.Size() > maxSize {
		return nil, errkind.New(errkind.Unsupported, "%s: size %d is not that of a loader (1 byte to 8 MiB)", path, st.Size())
	}
	return os.ReadFile(path)
}
