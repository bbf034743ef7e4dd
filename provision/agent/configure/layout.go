// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/sysdisk"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/volumes"
)

// target is what is configured: one disk as an image has it, the disks of a layout, or the
// memory.
type target struct {
	devs    []disk.Device
	markers []disk.Marker
	layout  *wire.Layout
	memory  *wire.InMemory // there are no disks
}

// place is what it is called in errors.
func (t target) place() string {
	if t.memory != nil {
		return "system in memory"
	}
	return "disk " + t.devs[0].Name()
}

// open finds the disks, and their markers as a whole install has them.
func (c *Configurator) open(p wire.ConfigureParams) (t target, err error) {
	open := c.Open
	if open == nil {
		open = disk.Open
	}
	if t.memory = p.Memory; t.memory != nil {
		if c.Memory == nil {
			return t, errkind.New(errkind.Unsupported, "this agent keeps no system in memory")
		}
		return t, nil
	}
	all := []wire.Disk{p.Disk}
	if t.layout = p.Layout; p.Layout != nil {
		if c.Node == nil {
			return t, errkind.New(errkind.Unsupported, "this agent makes no disk layouts")
		}
		all = nil
		for _, d := range p.Layout.Disks {
			all = append(all, d.Disk)
		}
	}
	for _, d := range all {
		if _, err := c.Find(d); err != nil {
			return t, err
		}
		dev, err := open(d.Path, disk.Shared)
		if err != nil {
			return t, err
		}
		t.devs = append(t.devs, dev)
		marker, ok := disk.ReadMarker(dev)
		if !ok || marker.State == disk.Writing || marker.Text != cmpFirst(t.markers, marker).Text {
			return t, errkind.New(errkind.Refused, "disk %s does not carry a whole install of ironrail", d.Path).
				Do("Run the write of this node first.")
		}
		t.markers = append(t.markers, marker)
	}
	return t, nil
}

// cmpFirst is the first of several markers, or the only one.
func cmpFirst(all []disk.Marker, other disk.Marker) disk.Marker {
	if len(all) == 0 {
		return other
	}
	return all[0]
}

func (t target) close() {
	for _, d := range t.devs {
		d.Close()
	}
}

// fresh reports whether the install was never configured.
func (t target) fresh() bool {
	return !slices.ContainsFunc(t.markers, func(m disk.Marker) bool { return m.State != disk.Complete })
}

// setState moves the install markers on.
func (t target) setState(state disk.State) error {
	for i, dev := range t.devs {
		m := t.markers[i]
		m.State = state
		if err := disk.PutMarker(dev, m); err != nil {
			return err
		}
	}
	return nil
}

// mounted mounts the root file system and calls do.
func (c *Configurator) mounted(ctx context.Context, t target, do func(rootfs.Root) error) error {
	if t.memory != nil {
		return c.Memory.Mount(ctx, func(root rootfs.Root) error {
			if err := memory.Prepare(root, *t.memory); err != nil {
				return err
			}
			return do(root)
		})
	}
	if t.layout == nil {
		return c.mountedLast(ctx, t.devs[0], do)
	}
	return volumes.Root(ctx, c.Node, *t.layout, func(root rootfs.Root) error {
		if err := writeLayout(root, *t.layout); err != nil {
			return fmt.Errorf("disk layout: %w", err)
		}
		return do(root)
	})
}

// bootOrders puts the firmware's boot order right for every disk that it may start. The
// last that is written stands first: so the first disk comes last.
func (c *Configurator) bootOrders(t target, p wire.ConfigureParams) (order wire.BootOrder) {
	for i := len(t.devs) - 1; i >= 0; i-- {
		if t.layout == nil || t.layout.Disks[i].System {
			order = bootOrder(c.EFI, t.devs[i], p)
		}
	}
	return order
}

// Files of an installed system that a layout needs.
const (
	fstabFile  = "etc/fstab"
	mdadmFile  = "etc/mdadm/mdadm.conf"
	grubFile   = "boot/grub/grub.cfg"
	syncFile   = "usr/local/sbin/ironrail-esp"
	kernelHook = "etc/kernel/postinst.d/zz-ironrail-esp"
	aptHook    = "etc/apt/apt.conf.d/90ironrail-esp"
	initrdHook = "etc/initramfs/post-update.d/zz-ironrail-esp"
	rpmHook    = "etc/kernel/install.d/99-ironrail-esp.install"
	syncUnit   = "etc/systemd/system/ironrail-esp.service"
	syncWanted = "etc/systemd/system/multi-user.target.wants/ironrail-esp.service"
)

// writeLayout makes a root file system that of its layout: what is mounted, which arrays
// there are, which root the loader hands to the kernel, and a program that keeps the EFI
// system partitions equal.
func writeLayout(root rootfs.Root, l wire.Layout) error {
	was, err := fs.ReadFile(root.FS(), fstabFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := rootfs.WriteText(root, fstabFile, fstab(l)+withoutDisks(string(was)), 0o644); err != nil {
		return err
	}
	if text := mdadmConf(l); text != "" {
		if err := rootfs.WriteText(root, mdadmFile, text, 0o644); err != nil {
			return err
		}
		if err := addToInitrds(root, mdadmFile, text); err != nil {
			return err
		}
	}
	for _, v := range l.Volumes {
		if v.Use == wire.VolumeData && v.Encryption == "" {
			if err := root.MkdirAll(strings.TrimPrefix(v.Mount, "/"), 0o755); err != nil {
				return err
			}
		}
	}
	return errors.Join(setRoot(root, l), writeSync(root, l))
}

// fstab is fstab(5). A data disk or a loader's partition that is missing does not stop
// the boot.
func fstab(l wire.Layout) string {
	var b strings.Builder
	b.WriteString("# Written by ironrail for the disk layout of this node.\n")
	const optional = ",nofail,x-systemd.device-timeout=5min"
	for _, v := range l.Volumes {
		check := map[string]int{"xfs": 0}
		pass, known := check[v.Filesystem]
		if !known {
			pass = 2
		}
		switch v.Use {
		case wire.VolumeSwap:
			fmt.Fprintf(&b, "UUID=%s none swap sw,nofail 0 0\n", v.UUID)
		case wire.VolumeRoot:
			fmt.Fprintf(&b, "UUID=%s / %s defaults 0 %d\n", v.UUID, v.Filesystem, min(pass, 1))
		case wire.VolumeData:
			if v.Encryption != "" {
				continue // entered by who encrypts it
			}
			fmt.Fprintf(&b, "UUID=%s %s %s defaults%s 0 %d\n", v.UUID, v.Mount, v.Filesystem, optional, pass)
		}
	}
	for i, guid := range espGUIDs(l) {
		fmt.Fprintf(&b, "PARTUUID=%s %s vfat umask=0077,shortname=winnt,nofail,x-systemd.device-timeout=3min 0 0\n", guid, espMount(i))
	}
	return b.String()
}

// withoutDisks is what an fstab mounts that lies on no disk of its own: memory, other
// machines, files.
func withoutDisks(fstab string) (kept string) {
	lines := strings.Split(fstab, "\n")
	for _, m := range sysdisk.ReadFstab(fstab) {
		if !sysdisk.IsDevice(m.Device) && m.Dir != "/" {
			kept += lines[m.Line-1] + "\n"
		}
	}
	return kept
}

// espGUIDs are the EFI system partitions of a layout.
func espGUIDs(l wire.Layout) (guids []string) {
	for _, d := range l.Disks {
		for _, p := range d.Partitions {
			if p.Type == gpt.EFISystem {
				guids = append(guids, p.GUID)
			}
		}
	}
	return guids
}

// espMount is where they are mounted: the first where distributions have it.
func espMount(i int) string {
	if i == 0 {
		return "/boot/efi"
	}
	return fmt.Sprintf("/boot/efi%d", i+1)
}

// mdadmConf is mdadm.conf(5); "" for a layout without arrays.
func mdadmConf(l wire.Layout) string {
	arrays := ""
	for _, v := range l.Volumes {
		if v.RAID >= 0 {
			h := strings.ReplaceAll(v.Array, "-", "")
			arrays += fmt.Sprintf("ARRAY /dev/md/%s metadata=1.2 UUID=%s:%s:%s:%s\n", v.Name, h[:8], h[8:16], h[16:24], h[24:])
		}
	}
	if arrays == "" {
		return ""
	}
	return "# Written by ironrail for the disk layout of this node.\nHOMEHOST <ignore>\nMAILADDR root\n" + arrays
}

// rootArgument is the root for the kernel: the UUID of its file system, or its logical
// volume, which initramfs-tools of Ubuntu 22.04 activates by that name alone, as
// grub-mkconfig writes it.
func rootArgument(v wire.Volume) string {
	if v.Group != "" {
		return "root=" + v.MapperDevice()
	}
	return "root=UUID=" + v.UUID
}

// setRoot has the loader name the root.
func setRoot(root rootfs.Root, l wire.Layout) error {
	b, err := fs.ReadFile(root.FS(), grubFile)
	if err != nil {
		return err
	}
	for _, v := range l.Volumes {
		if v.Use != wire.VolumeRoot {
			continue
		}
		text := ""
		for line := range strings.Lines(string(b)) {
			words := strings.Split(line, " ")
			for i, w := range words {
				if strings.HasPrefix(w, "root=") {
					words[i] = rootArgument(v)
				}
			}
			text += strings.Join(words, " ")
		}
		if !strings.Contains(text, rootArgument(v)) {
			return errkind.New(errkind.Invalid, "/%s names no root", grubFile).Do("Build the image again with this version.")
		}
		return rootfs.WriteText(root, grubFile, text, 0o644)
	}
	return nil
}

// syncProgram copies the EFI system partition that is there first onto the others. A copy
// is complete under another name before it takes the place of the old one. Then it has
// the agent write out the root, for GRUB, which replays no log (rootfs.Flush).
const syncProgram = `#!/bin/sh
# Written by ironrail: keeps the EFI system partitions of this node equal, and writes the
# root file system out, so that GRUB finds a new kernel on it if power is lost now.
set -u
exec 9>/run/ironrail-esp.lock
flock 9 2>/dev/null || true
from=
status=0
for to in %s; do
	mountpoint -q "$to" || continue
	if [ -z "$from" ]; then from=$to; continue; fi
	(cd "$from" && find . -type d) | while read -r d; do mkdir -p "$to/$d"; done
	(cd "$from" && find . -type f ! -name '*.ironrail-new') | while read -r f; do
		cmp -s "$from/$f" "$to/$f" && continue
		cp "$from/$f" "$to/$f.ironrail-new" && sync -f "$to/$f.ironrail-new" && mv -f "$to/$f.ironrail-new" "$to/$f" || exit 1
	done || status=1
	(cd "$to" && find . -type f) | while read -r f; do [ -e "$from/$f" ] || rm -f "$to/$f"; done
	sync -f "$to"
done
[ ! -x /` + agentPath + ` ] || /` + agentPath + ` flush || true
exit $status
`

const syncUnitText = `[Unit]
Description=Keep the EFI system partitions equal
RequiresMountsFor=/boot/efi
ConditionPathIsMountPoint=/boot/efi

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/ironrail-esp
`

// writeSync installs what keeps several EFI system partitions equal, and a root of XFS
// readable for GRUB: after packages were changed, after a kernel or an initrd was
// installed, and at each boot, which is when a disk is back.
func writeSync(root rootfs.Root, l wire.Layout) error {
	guids := espGUIDs(l)
	log := slices.ContainsFunc(l.Volumes, func(v wire.Volume) bool { return v.Use == wire.VolumeRoot && v.Filesystem == "xfs" })
	if len(guids) < 2 && !log {
		return nil
	}
	var mounts []string
	for i := range guids {
		mounts = append(mounts, espMount(i))
	}
	for _, f := range []struct {
		name, text string
		mode       fs.FileMode
		only       string // folder that the system has, if it is of the kind
	}{
		{syncFile, fmt.Sprintf(syncProgram, strings.Join(mounts, " ")), 0o755, ""},
		{syncUnit, syncUnitText, 0o644, ""},
		{kernelHook, "#!/bin/sh\n[ ! -x /usr/local/sbin/ironrail-esp ] || /usr/local/sbin/ironrail-esp\n", 0o755, "etc/kernel"},
		{initrdHook, "#!/bin/sh\n[ ! -x /usr/local/sbin/ironrail-esp ] || /usr/local/sbin/ironrail-esp\n", 0o755, "etc/initramfs-tools"},
		{aptHook, "DPkg::Post-Invoke { \"[ ! -x /usr/local/sbin/ironrail-esp ] || /usr/local/sbin/ironrail-esp\"; };\n", 0o644, "etc/apt"},
		{rpmHook, "#!/bin/sh\n[ \"$1\" != add ] || [ ! -x /usr/local/sbin/ironrail-esp ] || /usr/local/sbin/ironrail-esp\n", 0o755, "usr/lib/kernel/install.d"},
	} {
		if f.only != "" && !rootfs.Exists(root, f.only) {
			continue
		}
		if err := rootfs.WriteText(root, f.name, f.text, f.mode); err != nil {
			return err
		}
	}
	return rootfs.Link(root, "/"+syncUnit, syncWanted)
}
