// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// Ramdisk is the install ramdisk of each image, from the store, with this program's
// agent. It implements install.Ramdisk.
type Ramdisk struct {
	of     Artifacts
	agents map[inventory.Arch][]byte // the agent's segment
}

// Ramdisk packs the agent for each architecture that the site has nodes of; the rest is
// in the store. agent is the path of the program; beside it, with the architecture behind
// its name, may lie one for another: ironrail-agent-arm64.
func (a Artifacts) Ramdisk(agent string) (Ramdisk, error) {
	b := Ramdisk{a, map[inventory.Arch][]byte{}}
	for _, n := range a.inv.Nodes {
		arch := install.ArchOf(n)
		if b.agents[arch] != nil {
			continue
		}
		segment, err := packAgent(agent, arch)
		if err != nil {
			return b, err
		}
		b.agents[arch] = segment
	}
	return b, nil
}

// packAgent packs the agent for an architecture.
func packAgent(agent string, arch inventory.Arch) ([]byte, error) {
	program, err := ReadAgent(agent, arch)
	if err != nil {
		return nil, errkind.New(errkind.Of(err), "the agent for the install ramdisk: %w", err).Do(errkind.Action(err))
	}
	return ramdisk.Agent(program, arch)
}

// ReadAgent reads the agent for an architecture: the program with its name, else the one
// without.
func ReadAgent(agent string, arch inventory.Arch) ([]byte, error) {
	program, err := os.ReadFile(agent + "-" + string(arch))
	if errors.Is(err, fs.ErrNotExist) {
		program, err = os.ReadFile(agent)
	}
	const action = "Put the static ironrail-agent of the same build beside ironrail, for %s: `make build`."
	if err != nil {
		return nil, errkind.New(errkind.NotFound, "the agent of %s: %w", arch, err).Do(fmt.Sprintf(action, arch))
	}
	if is := ramdisk.ArchOf(program); is != arch {
		return nil, errkind.New(errkind.NotFound, "%s: the agent is no ELF program for %s: it is %s", agent, arch, cmp.Or(string(is), "for nothing that is known")).Do(fmt.Sprintf(action, arch))
	}
	return program, nil
}

// Loaders are the first-stage loaders that the images of the site bring, for nodes that
// the controller has none for. Images that are not built bring none. Images of one distribution
// have one place for theirs, and the last one's are served: where its shim does not start the
// kernel of another, as that of Rocky does not start Alma's, it is an error of kind Conflict.
func (a Artifacts) Loaders() (loader.Set, error) {
	set, of := loader.Set{}, map[string][]*inventory.Image{} // by the name of a shim: who brings one, for Secure Boot
	for _, i := range a.inv.Images {
		digest, err := a.Digest(i)
		if a.Images == nil || err != nil || digest == "" || !a.Images.Has(digest) {
			continue
		}
		if err := a.addIPXE(set, i, digest); err != nil {
			return nil, err
		}
		if i.Arch != inventory.ARM64 && !i.SecureBoot {
			continue
		}
		for _, file := range images.SignedLoaders(i.Arch) { // served under the same names, in a folder of the distribution
			b, err := a.readFile(digest, file, maxLoader)
			if errors.Is(err, fs.ErrNotExist) {
				continue // of a kind that brings none
			}
			if err != nil {
				return nil, fmt.Errorf("image %s: loader %s: %w", i.Name, file, err)
			}
			name := loader.In(install.SignerOf(i), file)
			set[name] = b
			if i.SecureBoot && loader.Behind(name) != "" {
				of[name] = append(of[name], i)
			}
		}
	}
	return set, a.checkAllShared(of)
}

// addIPXE adds the iPXE that an image brings for nodes that boot on a VLAN. It is served to all: a later one
// drives what an earlier one did.
func (a Artifacts) addIPXE(set loader.Set, i *inventory.Image, digest string) error {
	if !i.Tagged {
		return nil
	}
	b, err := a.readFile(digest, images.IPXEFile, maxLoader)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // built before, or of a kind that brings none
	}
	if err != nil {
		return fmt.Errorf("image %s: loader %s: %w", i.Name, images.IPXEFile, err)
	}
	set[loader.SNPOnly] = b
	return nil
}

// readFile reads a file of an image, most bytes of it at most.
func (a Artifacts) readFile(digest, name string, most int64) ([]byte, error) {
	f, err := a.Images.Open(digest, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// maxLoader bounds a loader; the largest is 3 MiB. maxKernel bounds a kernel, of 20 MiB.
const (
	maxLoader = 16 << 20
	maxKernel = 256 << 20
)

// Open implements install.Ramdisk.
func (b Ramdisk) Open(node string) (kernel install.Segment, initrd []install.Segment, done func(), err error) {
	n, ok := b.of.inv.Node(node)
	if !ok {
		return nil, nil, nil, errkind.New(errkind.NotFound, "%s is not in the inventory", node)
	}
	digest, err := b.of.ramdiskOf(n)
	if err != nil {
		return nil, nil, nil, err
	}
	k, err := b.of.Images.Open(digest, images.KernelFile)
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := b.of.Images.Open(digest, images.InitrdFile)
	if err != nil {
		k.Close()
		return nil, nil, nil, err
	}
	done = func() { k.Close(); m.Close() }
	ks, err1 := section(k)
	ms, err2 := section(m)
	if err1 != nil || err2 != nil {
		done()
		return nil, nil, nil, fmt.Errorf("install ramdisk of image %s cannot be read", digest)
	}
	return ks, []install.Segment{ms, bytes.NewReader(b.agents[install.ArchOf(n)])}, done, nil
}

// ramdiskOf is the digest of the image whose ramdisk a node boots: its own, or, for
// one that is being decommissioned and gets none, any that is there.
func (a Artifacts) ramdiskOf(n *inventory.Node) (string, error) {
	if n.Image != nil {
		return a.Digest(n.Image)
	}
	if n.Retired && a.Images != nil {
		for _, i := range install.RamdiskImages(a.inv, n) {
			if digest, err := a.Digest(i); err == nil && digest != "" && a.Images.Has(digest) {
				return digest, nil
			}
		}
		if n.Hardware != nil && n.Hardware.SecureBoot {
			return "", errkind.New(errkind.NotFound, "no image of %s with signed loaders is in the store, and %s boots with Secure Boot", install.ArchOf(n), n.Name).
				Do(fmt.Sprintf("Put the block of %s back, build its image with `ironrail image build`, and take the block out again; or forget the node without wiping it: `ironrail decommission %s --forget-only`.", n.Name, n.Name))
		}
		return "", errkind.New(errkind.NotFound, "no image of %s is built whose ramdisk %s could be wiped from", install.ArchOf(n), n.Name).Do("`ironrail image build` builds one.")
	}
	return "", errkind.New(errkind.NotFound, "%s has no image", n.Name)
}

// Own implements install.Ramdisk.
func (b Ramdisk) Own(w wire.Boot) ([]byte, error) { return ramdisk.NodeSegment(w) }

func section(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, info.Size()), nil
}
