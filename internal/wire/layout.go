// SPDX-License-Identifier: Apache-2.0

package wire

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
	VolumeRoot VolumeUse = "root"
	VolumeSwap VolumeUse = "swap"
	VolumeData VolumeUse = "data"
)

// Volume is a partition or an array with what is made on it.
type Volume struct {
	Use        VolumeUse `json:"use"`
	Name       string    `json:"name"`           // root, swap, or the name of the data block
	Members    []Member  `json:"members"`        // the partitions
	RAID       int       `json:"raid"`           // level; -1: one partition and no array
	Array      string    `json:"array"`          // UUID of the array, in the form of a GUID
	Filesystem string    `json:"filesystem"`     // ext4, xfs or swap
	Label      string    `json:"label"`          //
	UUID       string    `json:"uuid"`           // of the file system
	Mount      string    `json:"mount"`          // absolute; "" for swap
	Keep       bool      `json:"keep,omitempty"` // what has this label stays, where it is already
	Kept       bool      `json:"kept,omitempty"` // it stayed: nothing was made
}

// Member is a partition of a volume.
type Member struct {
	Disk      int `json:"disk"`      // index in the disks of the layout
	Partition int `json:"partition"` // number
}
