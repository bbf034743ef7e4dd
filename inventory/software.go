// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"net/netip"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Image is an operating system for disks. Kind is debian, ubuntu, rhel, oci,
// raw, installer or diskless; the kind's owner reads the rest through Block.
type Image struct {
	Block
	Arch     Arch // of the processors that it runs on
	Release  string
	Kernel   string // package name
	Packages []string
	Source   string // URL, path or reference of raw, oci and installer images
	Checksum string // of the file that Source names, "sha256:" and 64 hex digits; of raw images
	OS       string // the distribution that a raw or diskless image is of: debian, ubuntu or rhel; empty: not given
	Digest   string // pin, "sha256:" and 64 hex digits; empty: not pinned
	Registry Registry
	Archive  PackageArchive
	// Repositories are where the packages of an image of kind rhel come from, sorted by name.
	Repositories []PackageRepository
	CryptoPolicy string // of an image of kind rhel; "": as its distribution has it
	Vendor       VendorSignature
	// SecureBoot: some of its nodes boot with Secure Boot, so that all that boots them is signed.
	SecureBoot bool
	// Tagged: some of its nodes boot on a VLAN, by an iPXE that tags. It is found from the nodes.
	Tagged  bool
	Storage []string // what disk layouts of its nodes need in it: of StorageTree, StorageRAID and StorageXFS, sorted
}

// KindDiskless is the kind of images that nodes keep in memory.
const KindDiskless = "diskless"

// Diskless reports whether nodes keep the image in memory, and need no disk for it.
func (i *Image) Diskless() bool { return i.Kind == KindDiskless }

// Registry is how the registry that an image of kind oci comes from is reached.
type Registry struct {
	CA        string // PEM; empty: the authorities that the controller trusts
	PlainHTTP bool
	Username  string // empty: without a login
	Password  secret.Ref
}

// PackageArchive is where the packages of an image of kind ubuntu come from. The zero value:
// the block does not say it.
type PackageArchive struct {
	URL        string
	Key        string   // public keys that it is signed with, in ASCII armor
	Components []string // none: those that its kind takes
}

// PackageRepository is a repository of RPM packages of an image.
type PackageRepository struct {
	Name string // label of the block
	URL  string
	Key  string // public keys that its packages are signed with, in ASCII armor
}

// VendorSignature is who signed the file that Source of a raw image names, and where. The
// zero value: nobody is asked for.
type VendorSignature struct {
	List      string // URL or path of a list of checksums; empty: Signature is of the file itself
	Signature string // URL or path; empty: the list has it in itself
	Key       string // public keys in ASCII armor
}

// DiskLayout is how the disks of a role are used.
type DiskLayout struct {
	Name     string
	On       string // name of a disk block of the hardware
	RAID     int    // -1: none, else the level
	Root     FileSystem
	Swap     unit.Bytes
	Data     []FileSystem // further partitions, in order
	Preserve []string     // "label:X" kept by a reinstall
	Groups   []VolumeGroup
	Decl     hcl.Range
}

// VolumeGroup is a volume group of LVM on a partition, or on an array, of a disk layout.
type VolumeGroup struct {
	Name string
	Size unit.Bytes // of what its volumes have; 0: the rest of the disk
	On   string     // name of another disk block that it is on; "": the layout's own disks
	Decl hcl.Range
}

// Group returns a volume group of the layout by its name.
func (d *DiskLayout) Group(name string) (VolumeGroup, bool) {
	for _, g := range d.Groups {
		if g.Name == name {
			return g, true
		}
	}
	return VolumeGroup{}, false
}

// What disk layouts need in an image.
const (
	StorageLVM  = "lvm"  // programs of LVM, and loaders that read its volumes
	StorageRAID = "raid" // programs of md
	StorageTPM2 = "tpm2" // programs of LUKS2, and what unlocks its volumes by a TPM 2.0
	StorageTree = "tree" // its files beside its disk, and loaders that find another root
	StorageXFS  = "xfs"  // programs of XFS
)

// Storage is what a layout needs in an image; nothing where it takes the image's disk.
func (d *DiskLayout) Storage() (needs []string) {
	if d.Whole() || !d.Made() {
		return nil // an image is not another one for a layout that nobody makes
	}
	if len(d.Groups) > 0 {
		needs = append(needs, StorageLVM)
	}
	if d.RAID >= 0 {
		needs = append(needs, StorageRAID)
	}
	if len(d.Encrypted()) > 0 {
		needs = append(needs, StorageTPM2)
	}
	needs = append(needs, StorageTree)
	if d.Root.Filesystem == "xfs" || slices.ContainsFunc(d.Data, func(f FileSystem) bool { return f.Filesystem == "xfs" }) {
		needs = append(needs, StorageXFS)
	}
	return needs
}

// Encrypted are the data file systems of the layout that are encrypted, in order.
func (d *DiskLayout) Encrypted() (list []FileSystem) {
	for _, f := range d.Data {
		if f.Encryption != "" {
			list = append(list, f)
		}
	}
	return list
}

// Preserves reports whether a reinstall keeps the file system with a label.
func (d *DiskLayout) Preserves(label string) bool { return slices.Contains(d.Preserve, "label:"+label) }

// Whole reports whether the layout is that of an image's own disk, which is then
// written as it is: one ext4 root on one disk. Every other layout is made on the node,
// and takes the files of the image.
func (d *DiskLayout) Whole() bool {
	return d.RAID < 0 && len(d.Groups) == 0 && len(d.Data) == 0 && len(d.Preserve) == 0 && d.Swap == 0 && (d.Root.Filesystem == "" || d.Root.Filesystem == "ext4")
}

// Made reports whether this version makes the layout on a node: without RAID, or of a
// level whose copies a node boots from when a disk is gone.
func (d *DiskLayout) Made() bool { return d.RAID < 0 || d.RAID == 1 || d.RAID == 10 }

// EncryptionTPM2 is a file system in a LUKS2 volume that the TPM 2.0 of its node unlocks.
const EncryptionTPM2 = "tpm2"

// FileSystem is one file system of a disk layout.
type FileSystem struct {
	Name       string     // label of the block; "root" for root
	Size       unit.Bytes // 0: the rest of the disk
	Filesystem string     // "ext4" or "xfs"
	Mount      string
	On         string // of data: name of another disk block that it, or its volume group, is on; "": the layout's own disks
	Group      string // name of the volume group that it is a logical volume of; "": a partition or an array of its own
	Encryption string // of data: "", or EncryptionTPM2
	Decl       hcl.Range
}

// HostSettings are the operating system's own settings.
type HostSettings struct {
	Name       string
	Timezone   string
	Locale     string
	KernelArgs []string
	HoldKernel bool
	Sysctl     map[string]string
	Bonds      []Bond
	Accounts   Accounts
	UserData   string
	Decl       hcl.Range
	Ranges     map[string]hcl.Range // the places of the attributes that were given
}

// Bond is a link aggregation of NIC ports, each as "nic/index".
type Bond struct {
	Name, Mode string
	Members    []string
	Decl       hcl.Range
}

// Accounts is who may log in.
type Accounts struct {
	AuthorizedKeys []string // OpenSSH public keys of the administrator
	SudoGroups     []string
	Decl           hcl.Range
	Ranges         map[string]hcl.Range // the places of the attributes that were given
}

// Driver is a driver stack. Kind is cuda, rocm, doca, inbox or tools; the kind's owner
// reads the rest through Block.
type Driver struct {
	Block
	Version  string
	Packages []string
}

// Fabric is a high-speed network. Kind is infiniband, roce or nvlink. What every
// user of a fabric needs is here; the kind's owner reads the rest through Block.
type Fabric struct {
	Block
	Rails            int
	Link             unit.BitRate // 0: not given
	Topology         string       // "rail-optimized", "fat-tree", "top-of-rack" or "explicit"
	UnitSize         int          // nodes in a scalable unit; 0: not given
	Planes           int          // independent networks that each port is split over; default 1
	Levels           int          // of switches: 1, 2 or 3; 0: as few as do
	Oversubscription float64      // most that leaves may have of down to up; default 1
	Switch           SwitchModel  // of all tiers that do not say otherwise
	Spine, Core      SwitchModel  // where they differ; zero: as Switch
	Addressing       string       // "subnet", "point-to-point" or ""
	CIDR             netip.Prefix // invalid when the fabric has no IP addresses
	MTU              int          // bytes of IP; 0: not given
	Login            *Login       // to its switches; nil: they are not logged in to
	Partitions       []FabricPartition
}

// SwitchModel is what the switches of a fabric are. Zero fields were not given.
type SwitchModel struct {
	Model string
	OS    string
	Ports int          // of Speed each
	Speed unit.BitRate // of a port
	Split int          // independent links that one port may be split into; 0: not given, 1
	Decl  hcl.Range    // zero without a block
}

// FabricPartition is one partition (tenant) of a fabric.
type FabricPartition struct {
	Name  string
	PKey  uint16 // without the membership bit
	IPoIB bool
	Decl  hcl.Range
}

// Validation is what a role's nodes must prove.
type Validation struct {
	Name   string
	BurnIn unit.Duration
	Quorum unit.Percent // 0: not given, means 75 %
	// Provisional: what is left of a group that has lost its quorum is tested all the same.
	Provisional bool
	Pair        *PairTest
	AllReduce   *CollectiveTest
	Limits      []MeasureLimit // sorted by name
	Allowed     []AllowedGate  // sorted by name
	Decl        hcl.Range
	Ranges      map[string]hcl.Range // the places of the attributes that were given
}

// BetweenGPUs reports whether a test loads the rails of GPUs; t may be nil.
func (t *CollectiveTest) BetweenGPUs() bool {
	return t != nil && t.Engine != "mpi" && slices.ContainsFunc(t.Scope, func(scope string) bool { return scope != "node" })
}

// Limit returns the limits of that measure.
func (v *Validation) Limit(name string) (MeasureLimit, bool) {
	for _, l := range v.Limits {
		if l.Name == name {
			return l, true
		}
	}
	return MeasureLimit{}, false
}

// AllowedGate is a gate of a node's acceptance that the site lets it fail.
type AllowedGate struct {
	Gate   string
	Reason string
	Decl   hcl.Range
}

// PairTest is point-to-point traffic between two nodes.
type PairTest struct {
	Engine string // "perftest" (default)
	Size   unit.Bytes
	Decl   hcl.Range
	Ranges map[string]hcl.Range // the places of the attributes that were given
}

// CollectiveTest is a collective operation over growing sets of nodes.
type CollectiveTest struct {
	Engine string       // "nccl", "rccl" or "mpi"; empty: that of the GPUs
	Scope  []string     // of "node", "pair", "domain", "unit", "all"
	Sizes  []unit.Bytes // in ascending order
	Floor  unit.Percent // of what the links can carry; 0: not given
	// Operations are further collectives, of Operations, in that order. They run over the
	// largest scope.
	Operations []string
	Decl       hcl.Range
	Ranges     map[string]hcl.Range // the places of the attributes that were given
}

// Operations are the collectives that a site can ask for beside the all-reduce, by the
// names of their programs in nccl-tests and rccl-tests.
var Operations = []string{"all_gather", "alltoall", "reduce_scatter", "sendrecv"}

// MeasureLimit is a floor or a ceiling of one measure, such as gpu.hbm_copy.
type MeasureLimit struct {
	Name            string
	AtLeast, AtMost *unit.Quantity // nil: not given
	Decl            hcl.Range
	Ranges          map[string]hcl.Range // the places of the attributes that were given
}

// Handover is who gets the nodes: a scheduler, or whoever reads the files that a kind
// of export writes. Its owner reads the rest through Block.
type Handover struct {
	Block
	Export bool // its kind lists nodes beside the hand-over that they have (KindSpec.Export)
}
