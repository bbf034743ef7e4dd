// SPDX-License-Identifier: Apache-2.0

package wire

import "strings"

// Layout is how the disks of a node are used where the files of an image are put onto
// partitions, arrays and file systems that are made on the node. The controller computes
// it whole; the agent decides nothing but what is kept.
type Layout struct {
	Disks    []LayoutDisk `json:"disks"`
	Volumes  []Volume     `json:"volumes"`            // in the order in which they are made; the root is one of them
	Preserve []string     `json:"preserve,omitempty"` // labels of file systems that stay
}

// LayoutDisk is one disk of a layout. Every byte of it is lost that no preserved file
// system lies on.
type LayoutDisk struct {
	Disk       Disk              `json:"disk"`
	AllowData  bool              `json:"allow_data,omitempty"` // what lies on it may be lost
	System     bool              `json:"system,omitempty"`     // the firmware may start it: it has the loaders of the image
	GUID       string            `json:"guid"`
	Partitions []LayoutPartition `json:"partitions"`
}

// LayoutPartition is one partition, in bytes of the disk.
type LayoutPartition struct {
	Number int    `json:"number"`
	Type   string `json:"type"` // GUID, lower case
	GUID   string `json:"guid"`
	Name   string `json:"name"`
	Start  int64  `json:"start"`
	Size   int64  `json:"size"`
}

// VolumeUse is what a volume is for.
type VolumeUse string

// The uses.
const (
	VolumeRoot  VolumeUse = "root"
	VolumeSwap  VolumeUse = "swap"
	VolumeData  VolumeUse = "data"
	VolumeGroup VolumeUse = "group" // a volume group of LVM, with a physical volume
)

// Volume is a partition, an array or a logical volume with what is made on it.
type Volume struct {
	Use        VolumeUse `json:"use"`
	Name       string    `json:"name"`            // root, swap, or the name of the data block or the volume group
	Members    []Member  `json:"members"`         // the partitions; none: it is a logical volume
	RAID       int       `json:"raid"`            // level; -1: one partition and no array
	Array      string    `json:"array"`           // UUID of the array, in the form of a GUID
	Filesystem string    `json:"filesystem"`      // ext4, xfs, swap, or lvm for a volume group
	Label      string    `json:"label"`           //
	UUID       string    `json:"uuid"`            // of the file system, or of the physical volume
	Mount      string    `json:"mount"`           // absolute; "" for swap and a volume group
	Keep       bool      `json:"keep,omitempty"`  // what has this label stays, where it is already
	Kept       bool      `json:"kept,omitempty"`  // it stayed: nothing was made
	Group      string    `json:"group,omitempty"` // of a logical volume: name of its volume group, which comes before it
	// Encryption is that of data: "", or EncryptionTPM2. The partition is left blank by the
	// agent, or stays, and UUID and Label are those of the LUKS2 volume on it.
	Encryption string `json:"encryption,omitempty"`
	Size       int64  `json:"size,omitempty"` // of a logical volume, bytes, a multiple of ExtentSize; 0: what the others of its group leave
}

// EncryptionTPM2 is a LUKS2 volume that the TPM 2.0 of the node unlocks.
const EncryptionTPM2 = "tpm2"

// ExtentSize is that of volume groups, bytes, and what LVM has of a physical volume for
// itself.
const ExtentSize = 4 << 20

// MapperDevice is the device of a logical volume (lvm(8), VALID NAMES): hyphens of a name
// are doubled.
func (v Volume) MapperDevice() string {
	return "/dev/mapper/" + strings.ReplaceAll(v.Group, "-", "--") + "-" + strings.ReplaceAll(v.Name, "-", "--")
}

// Member is a partition of a volume.
type Member struct {
	Disk      int `json:"disk"`      // index in the disks of the layout
	Partition int `json:"partition"` // number
}
