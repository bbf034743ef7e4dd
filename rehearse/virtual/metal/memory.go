// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// memoryKind is the kind of a slot that is no disk's: memory, which rates has.
const memoryKind = "memory"

// held is what the install ramdisk of a boot keeps in memory: a memory.Node. It is gone with the
// kernel, unless the system takes over.
type held struct {
	kernel *Kernel
	ctx    context.Context

	mu    sync.Mutex
	image *Disk // guarded by mu, like root; nil: none was brought
	root  *Root
}

var _ memory.Node = (*held)(nil)

// Image implements memory.Node.
func (m *held) Image(size int64) (disk.Device, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.kernel.node
	if need, have := size*n.options.Scale+memory.Reserve, int64(n.shape.hardware.Memory.Size); have > 0 && have < need {
		return nil, errkind.New(errkind.Mismatch, "the node has %d MiB of memory, the image needs %d MiB with its system", have>>20, need>>20)
	}
	if m.image == nil {
		m.image = newDisk(n, slot{name: "root.squashfs", kind: memoryKind, size: size})
	}
	return m.image.open(m.ctx, m.image.slot.name, disk.Shared), nil
}

// Mount implements memory.Node: the bytes of the image say whether it is one.
func (m *held) Mount(_ context.Context, do func(rootfs.Root) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.root == nil {
		if m.image == nil {
			return errkind.New(errkind.NotFound, "no image is in memory")
		}
		about := make([]byte, twin.Size)
		if _, err := m.image.ReadAt(about, twin.Place); err != nil {
			return err
		}
		magic := make([]byte, len(twin.SquashfsMagic))
		if _, err := m.image.ReadAt(magic, 0); err != nil || string(magic) != twin.SquashfsMagic {
			return errkind.New(errkind.Corrupt, "mount root.squashfs: wrong fs type, bad superblock").Do("Build the image again: `ironrail image build`.")
		}
		root, err := newSystem(m.kernel.node.options.Shared.image, twin.Decode(about))
		if err != nil {
			return err
		}
		m.root = root
	}
	return do(m.root)
}

// FromMemory returns, once, the system in memory that the ramdisk has left the node to, under the
// kernel that runs; false: there is none.
func (n *Node) FromMemory() (System, bool) {
	root := n.inMemory.Swap(nil)
	if root == nil {
		return System{}, false
	}
	return System{Root: root, Twin: root.twin}, true
}
