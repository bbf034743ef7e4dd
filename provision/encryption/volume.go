// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// plainUUID is one that ends up in arguments and files.
var plainUUID = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// volume is an encrypted volume of a node.
type volume struct {
	label, mount, filesystem string
	uuid                     string // of the LUKS2 volume
	device                   string // that it lies on, by an identifier that the layout gave it
}

// volumeOf finds the volume of a file system in the layout that a node was installed with.
func volumeOf(l *wire.Layout, f inventory.FileSystem) (v volume, err error) {
	if l == nil {
		return v, errkind.New(errkind.Refused, "it was installed without a disk layout of its own, and has no place for data %q", f.Name).Do("`ironrail rebuild` installs it anew.")
	}
	i := slices.IndexFunc(l.Volumes, func(v wire.Volume) bool { return v.Use == wire.VolumeData && v.Name == f.Name })
	if i < 0 || l.Volumes[i].Encryption == "" || !plainUUID.MatchString(l.Volumes[i].UUID) {
		return v, errkind.New(errkind.Refused, "it was installed with a disk layout that has no place for encrypted data %q", f.Name).Do("`ironrail rebuild` installs it anew.")
	}
	is := l.Volumes[i]
	v = volume{label: is.Label, mount: is.Mount, filesystem: is.Filesystem, uuid: is.UUID}
	v.device, err = deviceOf(*l, is)
	return v, err
}

// deviceOf is the device of a volume by the identifier that the layout gave it: links of udev
// (60-persistent-storage.rules, mdadm's 63-md-raid-arrays.rules), or device mapper's own name.
func deviceOf(l wire.Layout, v wire.Volume) (string, error) {
	switch {
	case v.Group != "":
		return v.MapperDevice(), nil
	case v.RAID >= 0:
		h := strings.ReplaceAll(v.Array, "-", "")
		if !plainUUID.MatchString(v.Array) {
			return "", errkind.New(errkind.Internal, "volume %s has no array", v.Name)
		}
		return "/dev/disk/by-id/md-uuid-" + strings.Join([]string{h[:8], h[8:16], h[16:24], h[24:]}, ":"), nil
	}
	for _, m := range v.Members {
		for _, p := range l.Disks[m.Disk].Partitions {
			if p.Number == m.Partition && plainUUID.MatchString(p.GUID) {
				return "/dev/disk/by-partuuid/" + p.GUID, nil
			}
		}
	}
	return "", errkind.New(errkind.Internal, "volume %s has no partition", v.Name)
}

// mapping is the name of the volume's decrypted device; no logical volume has such a name.
func (v volume) mapping() string { return "luks-" + v.uuid }

// mapped is the decrypted device.
func (v volume) mapped() string { return "/dev/mapper/" + v.mapping() }

// unlockUnit is the unit that systemd makes of its line in crypttab.
func (v volume) unlockUnit() string {
	return "systemd-cryptsetup@" + strings.ReplaceAll(v.mapping(), "-", `\x2d`) + ".service"
}

func (v volume) mountUnit() string { return hostfile.MountUnitName(v.mount) }

// Files of a node with a line for each volume.
const (
	crypttab = "/etc/crypttab"
	fstab    = "/etc/fstab"
)

// crypttabLine is that of crypttab(5): a start of the system does not depend on it, and nobody
// is asked for a key at a console.
func (v volume) crypttabLine() string {
	return fmt.Sprintf("%s UUID=%s none luks,tpm2-device=auto,headless=true,nofail,x-systemd.device-timeout=5min", v.mapping(), v.uuid)
}

// fstabLine is that of fstab(5), with the options of data that is not encrypted.
func (v volume) fstabLine() string {
	pass := 2
	if v.filesystem == "xfs" {
		pass = 0
	}
	return fmt.Sprintf("%s %s %s defaults,nofail,x-systemd.device-timeout=5min 0 %d", v.mapped(), v.mount, v.filesystem, pass)
}

// withLine is the text of a file with a line, which takes the place of others with the same value
// in a field: the name of a mapping, or a place to mount at.
func withLine(text, line string, field int) string {
	key := strings.Fields(line)[field]
	var b strings.Builder
	for old := range strings.Lines(text) {
		if f := strings.Fields(old); len(f) > field && !strings.HasPrefix(f[0], "#") && f[field] == key {
			continue
		}
		b.WriteString(strings.TrimSuffix(old, "\n") + "\n")
	}
	return b.String() + line + "\n"
}

// hasLine reports whether a file has a line.
func hasLine(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }

// format are the arguments that make the file system of a volume.
func (v volume) format() []string {
	if v.filesystem == "xfs" {
		return []string{"mkfs.xfs", "-f", "-q", "-L", v.label, v.mapped()}
	}
	return []string{"mkfs.ext4", "-F", "-q", "-L", v.label, v.mapped()}
}
