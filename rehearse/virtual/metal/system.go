// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the zones of an image, wherever the rehearsal runs

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/provision/agent/configure"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// installedImage is what the root file system of every image holds, as far as the
// agent looks at it.
func installedImage() *tree {
	t := newTree()
	b := branch{tree: t}
	for _, dir := range []string{"etc/chrony", "etc/ssh/sshd_config.d", "etc/systemd/network", "etc/apt/apt.conf.d", "etc/sysctl.d", "root", "tmp", "usr/bin", "usr/local/sbin", "usr/sbin", "var/lib/dbus", "boot/grub"} {
		t.put(dir, folderIf(nil))
	}
	b.text("etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf")
	b.text("etc/ssh/ssh_host_ed25519_key", "the same in every copy of the image")
	b.text("etc/machine-id", "00000000000000000000000000000000")
	b.text("boot/grub/grub.cfg", "linux /vmlinuz root=LABEL=ironrail-root ro $ironrail_args\nsource /boot/grub/ironrail.cfg")
	b.text(imageInitrd, "of a rehearsal")
	for _, unit := range []string{"systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service", "ssh.service", "chrony.service"} {
		b.text("usr/lib/systemd/system/"+unit, "[Unit]")
	}
	for _, name := range []string{"bin", "lib", "sbin"} {
		b.link(name, "usr/"+name)
	}
	t.put(strings.TrimSuffix(zoneDir, "/"), folderIf(nil))
	t.unlisted = timeZone
	return t.sort()
}

// imageInitrd is the initrd that an image brings; madeInitrd begins the name of one that
// the node makes, and kernelFile that of its kernel.
const (
	imageInitrd = "boot/initrd.img-of-image"
	madeInitrd  = "boot/initrd.img-"
	kernelFile  = "boot/vmlinuz-"
)

// initrdTime is how long a node's processors take to make an initrd.
const initrdTime = 20 * time.Second

// makeInitrd is the configure.MakeInitrd of the virtual ramdisk.
func (n *Node) makeInitrd(ctx context.Context, root rootfs.Root, release string, line func(string)) error {
	line("update-initramfs: Generating /" + madeInitrd + release)
	if err := n.options.Clock.Sleep(ctx, initrdTime); err != nil {
		return err
	}
	return rootfs.WriteText(root, madeInitrd+release, "070701 of a rehearsal", 0o644)
}

// withoutInitrd makes the files of an image that leaves its initrd to the node.
func withoutInitrd(root *Root) error {
	return errors.Join(root.Remove(imageInitrd), root.Put(kernelFile+root.twin.Kernel, strings.NewReader("kernel of a rehearsal"), 0o644))
}

// starts reports whether a kernel of a root finds the initrd that the loader gives it.
func (r *Root) starts() bool {
	return !r.twin.NoInitrd || r.lookup(madeInitrd+r.twin.Kernel) != nil
}

// zoneDir is where an image has its time zones.
const zoneDir = "usr/share/zoneinfo/"

// timeZone is the file of any time zone that there is: there are hundreds.
func timeZone(name string) *file {
	zone, ok := strings.CutPrefix(name, zoneDir)
	if !ok || zone == "" || zone == "Local" {
		return nil
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return nil
	}
	return &file{mode: 0o644, data: "TZif2\n"}
}

// ext4 is what a root file system begins with: its magic number, and where.
const (
	ext4Offset = 1024 + 56
	ext4Magic  = "\x53\xef"
)

// rootPart is the partition of a root file system, and where that begins.
type rootPart struct {
	gpt.Partition
	array      string // that it is a member of; "": of none
	logical    string // device mapper's name of the logical volume that it is; "": it is none
	at         int64  // where the file system begins
	filesystem string
}

// rootPartition finds the root file system of a disk: in the partition that a layout
// gives that name, else in the last one.
func (d *Disk) rootPartition() (p rootPart, err error) {
	table, err := gpt.Read(d, d.slot.size)
	if err != nil {
		return p, err
	}
	last, ok := table.Last()
	if !ok {
		return p, errkind.New(errkind.NotFound, "no partition on the disk")
	}
	all := table.Partitions()
	if i := slices.IndexFunc(all, func(p gpt.Partition) bool { return p.Name == "root" }); i >= 0 {
		last = all[i]
	}
	p = d.partContent(last)
	for _, other := range all {
		if in := d.partContent(other); in.logical != "" {
			p = in
		}
	}
	b := make([]byte, ext4Offset+len(ext4Magic))
	_, err = d.ReadAt(b, p.at)
	switch {
	case err == nil && string(b[ext4Offset:]) == ext4Magic:
		p.filesystem = "ext4"
	case err == nil && string(b[:4]) == "XFSB":
		p.filesystem = "xfs"
	default:
		return p, errkind.New(errkind.Corrupt, "mount /dev/%s partition %d: wrong fs type, bad superblock", d.slot.name, last.Number).
			Do("Write the image again; its root file system is damaged.")
	}
	return p, nil
}

// partContent is a partition as one that the root file system is on: also behind the
// superblock of md, and in a volume group.
func (d *Disk) partContent(part gpt.Partition) rootPart {
	p := rootPart{Partition: part, at: part.Offset()}
	if part.Type == gpt.LinuxRAID {
		array, data := d.member(p.at)
		p.array, p.at = array, p.at+data
	}
	if name, at, ok := d.logicalRoot(p.at); ok {
		p.logical, p.at = name, at
	}
	return p
}

// mount is the configure.Mount of the virtual ramdisk: the bytes of the disk
// decide whether there is a root file system; its files are in memory.
func (n *Node) mount(_ context.Context, dev disk.Device, _ gpt.Partition, do func(rootfs.Root) error) error {
	h, ok := dev.(*handle)
	if !ok {
		return errkind.New(errkind.Internal, "disk %s is not one of this node", dev.Name())
	}
	root, err := h.mounted()
	if err != nil {
		return err
	}
	return do(root)
}

// mounted returns the files of the root file system.
func (d *Disk) mounted() (*Root, error) {
	part, err := d.rootPartition()
	if err != nil {
		return nil, err
	}
	about := make([]byte, twin.Size)
	if _, err := d.ReadAt(about, part.at+twin.Place); err != nil {
		return nil, err
	}
	mirrored := d.mirrored(part.array)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root == nil && mirrored != nil {
		d.root = mirrored
	}
	if d.root == nil {
		if d.root, err = newSystem(d.node.options.Shared.image, twin.Decode(about)); err != nil {
			return nil, err
		}
		d.root.array, d.root.logical, d.root.filesystem = part.array, part.logical, part.filesystem
	}
	return d.root, nil
}

// newSystem makes the files of a system as its image has them.
func newSystem(image *tree, is twin.Twin) (*Root, error) {
	root := newRoot(image)
	root.twin = is
	for name, text := range is.Files() {
		if err := errors.Join(root.MkdirAll(path.Dir(name), 0o755), root.Put(name, strings.NewReader(text), 0o644)); err != nil {
			return nil, err
		}
	}
	if is.NoInitrd {
		return root, withoutInitrd(root)
	}
	return root, nil
}

// mirrored returns the files of an array, where another of its disks has them; nil: none.
func (d *Disk) mirrored(array string) *Root {
	if array == "" {
		return nil
	}
	for _, other := range d.node.disks {
		if other == d {
			continue
		}
		other.mu.Lock()
		root := other.root
		other.mu.Unlock()
		if root != nil && root.array == array {
			return root
		}
	}
	return nil
}

var (
	_ configure.Mount      = (*Node)(nil).mount
	_ configure.MakeInitrd = (*Node)(nil).makeInitrd
)

// System is what a node can boot from its disks.
type System struct {
	Disk   *Disk
	Root   *Root
	Twin   twin.Twin   // what the image says to be
	Marker disk.Marker // zero when the disk has none
}

// System returns what the node boots when it boots from disk: the first disk, in the
// order of its firmware, that is there and holds a root file system. Its install may be half done; the marker
// tells. false: no disk has anything to boot.
func (n *Node) System() (System, bool) {
	for _, d := range n.bootDisks() {
		if n.missing(d.slot.function) {
			continue
		}
		marker, _ := disk.ReadMarker(d)
		if marker.State == disk.Writing {
			continue // the boot loader is not whole
		}
		if !d.bootable() {
			continue
		}
		if root, err := d.mounted(); err == nil && root.starts() {
			return System{d, root, root.twin, marker}, true
		}
	}
	return System{}, false
}

// The types of partitions that firmware finds a boot loader in.
var bootTypes = []string{
	"21686148-6449-6e6f-744e-656564454649", // BIOS boot
	"c12a7328-f81f-11d2-ba4b-00a0c93ec93b", // EFI system
}

// bootable reports whether a disk has a partition with a boot loader.
func (d *Disk) bootable() bool {
	table, err := gpt.Read(d, d.slot.size)
	return err == nil && slices.ContainsFunc(table.Partitions(), func(p gpt.Partition) bool { return slices.Contains(bootTypes, p.Type) })
}

// Root is the root file system that the node boots from disk, or nil.
func (n *Node) Root() *Root {
	s, _ := n.System()
	return s.Root
}

// Installed reports whether a disk carries a whole install that was configured.
func (n *Node) Installed() bool {
	s, ok := n.System()
	return ok && s.Marker.State == disk.Configured
}

// Wipe makes a disk blank, as a disk that was replaced by a new one is.
func (d *Disk) Wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root = nil
	clear(d.content.segments)
}

// Fill puts bytes on a disk as somebody else has left them.
func (d *Disk) Fill(off int64, content []byte) error {
	_, err := d.writeAt(content, off)
	return err
}

// agentFile is what stands on a virtual node where a real one has the agent's
// program.
const agentFile = "#!ironrail-agent of a virtual node\n"

var _ fs.FS = view{}
