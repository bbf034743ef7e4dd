// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/internal/wire"
)

// lvm runs a command of lvm(8) that sees one device alone. It asks nothing, waits for no
// udev, which the ramdisk does not have, and reads and writes no file: LVM_SYSTEM_DIR is
// empty. Settings that a version does not know are passed over.
func (n OnNode) lvm(ctx context.Context, device, command string, argv ...string) error {
	config := `devices{global_filter=["a|^` + device + `$|","r|.*|"] obtain_device_list_from_udev=0 external_device_info_source="none" use_devicesfile=0}` +
		` activation{udev_sync=0 udev_rules=0 monitoring=0} backup{backup=0 archive=0} global{use_lvmpolld=0 use_lvmlockd=0 notify_dbus=0 locking_dir="/run/lock/lvm"}`
	words := []string{"lvm", command, "--config", config, "--yes"}
	if n.inactive {
		words = append(words, "--driverloaded", "n")
	}
	return n.run(ctx, slices.Concat(words, argv)...)
}

// Group implements Node. The physical volume has the identifier of the volume. What an
// earlier run in this very ramdisk has left of the group below /dev is in the way.
func (n OnNode) Group(ctx context.Context, v wire.Volume, device string, remove []string) error {
	if v.Kept {
		for _, name := range remove {
			if err := n.lvm(ctx, device, "lvremove", "--force", v.Name+"/"+name); err != nil {
				return err
			}
		}
		return nil
	}
	if err := n.lvm(ctx, device, "pvcreate", "-ff", "--zero", "y", "--norestorefile", "--uuid", physicalID(v.UUID), "--dataalignment", "1m", device); err != nil {
		return err
	}
	return n.lvm(ctx, device, "vgcreate", "--physicalextentsize", strconv.Itoa(wire.ExtentSize)+"b", v.Name, device)
}

// physicalID is a UUID in the form of LVM.
func physicalID(guid string) string {
	h := strings.ReplaceAll(guid, "-", "")
	return strings.Join([]string{h[:6], h[6:10], h[10:14], h[14:18], h[18:22], h[22:26], h[26:]}, "-")
}

// Logical implements Node.
func (n OnNode) Logical(ctx context.Context, v wire.Volume, on string) (string, error) {
	device := v.MapperDevice()
	if v.Kept {
		return device, n.lvm(ctx, on, "lvchange", "--activate", "y", v.Group+"/"+v.Name)
	}
	extents := "100%FREE"
	if v.Size > 0 {
		extents = strconv.FormatInt(v.Size/wire.ExtentSize, 10)
	}
	fresh := []string{"--activate", "y", "--zero", "y", "--wipesignatures", "y"}
	if n.inactive {
		fresh = []string{"--activate", "n", "--zero", "n", "--wipesignatures", "n"}
	}
	return device, n.lvm(ctx, on, "lvcreate", slices.Concat(fresh, []string{"--name", v.Name, "--extents", extents, v.Group})...)
}

// deactivate takes apart the logical volumes on disks, by the kernel's names of these.
// The metadata of their group may be gone or damaged: device mapper is asked, not LVM.
func (n OnNode) deactivate(ctx context.Context, disks []string) error {
	devices, err := filepath.Glob("/sys/block/dm-*")
	if err != nil {
		return err
	}
	for _, d := range devices {
		id, _ := os.ReadFile(filepath.Join(d, "dm/uuid"))
		if !strings.HasPrefix(string(id), "LVM-") || !liesOn(d, disks) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(d, "dm/name"))
		if err != nil {
			return err
		}
		name := strings.TrimSpace(string(b))
		if err := n.run(ctx, "dmsetup", "remove", "--noudevsync", "--noudevrules", "--retry", name); err != nil {
			return err
		}
	}
	return n.forgetGroups()
}

// forgetGroups takes away links to logical volumes that are gone, and their folders: LVM
// makes no group whose folder is there.
func (n OnNode) forgetGroups() error {
	links, err := filepath.Glob("/dev/*/*")
	if err != nil {
		return err
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err != nil || filepath.Dir(to) != "/dev/mapper" {
			continue
		}
		if _, err := os.Stat(l); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Remove(l); err != nil {
			return err
		}
		os.Remove(filepath.Dir(l)) //nolint:errcheck // another link may be in it
	}
	return nil
}

// Groups implements Node. Every block device is looked at that is not on these disks,
// also behind the superblock of md: nothing assembles arrays here.
func (n OnNode) Groups(ctx context.Context, but []string) (map[string]string, error) {
	ours, err := kernelNames(but)
	if err != nil {
		return nil, err
	}
	devices, err := filepath.Glob("/sys/class/block/*")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, d := range devices {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if liesOn(d, ours) {
			continue
		}
		if name := groupOn("/dev/" + filepath.Base(d)); name != "" {
			all[name] = "/dev/" + filepath.Base(d)
		}
	}
	return all, nil
}

// groupOn is the volume group on a device; "": none, or it cannot be read.
func groupOn(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return ""
	}
	if m, ok := memberOf(f, 0, size); ok {
		if a, ok := assemble([]member{m}); ok {
			g, _, _ := lvm.Read(a, size) //nolint:errcheck // no group, then
			return g.Name
		}
	}
	g, _, _ := lvm.Read(f, size) //nolint:errcheck // no group, then
	return g.Name
}
