// SPDX-License-Identifier: Apache-2.0

// Package wire is what the controller and the node agent say to each other:
// plain data in JSON over HTTP/1.1 with TLS. The agent dials out, says hello,
// asks for tasks of a closed list, and reports progress and results. Every task
// carries an effect key; a task that was already done answers with its old
// result. The format has a version; fields are only ever added.
package wire

import (
	"encoding/json"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
)

// Version of the protocol. The controller refuses an agent of another major.
const Version = 1

// Paths of the controller's agent API. The bearer token of the boot attempt
// authorises each call.
const (
	PathHello    = "/agent/v1/hello"    // POST Hello -> HelloReply
	PathTask     = "/agent/v1/task"     // GET ?wait=30s -> 200 Task, or 204 when there is none yet
	PathProgress = "/agent/v1/progress" // POST Progress -> 204
	PathResult   = "/agent/v1/result"   // POST Result -> 204; repeated until answered
)

// BootFile is where the per-node initrd segment puts its Boot, as JSON.
const BootFile = "/ironrail/boot.json"

// ToolsFolder is where the ramdisk has the programs of the image that disk layouts are
// made with.
const ToolsFolder = "/usr/lib/ironrail/tools"

// Boot is what a node is told when it netboots: whom to call and how to know
// it. It travels in the per-node initrd segment over the boot network, which is
// what the first boot trusts.
type Boot struct {
	Version    int      `json:"version"`
	Node       string   `json:"node"`
	Attempt    string   `json:"attempt"`    // id of the boot attempt
	Token      string   `json:"token"`      // bearer token of the attempt; expires with it
	Controller string   `json:"controller"` // https://ADDRESS:PORT
	Pin        string   `json:"pin"`        // base64 SHA-256 of the controller key's SubjectPublicKeyInfo (RFC 7469)
	BootMAC    addr.MAC `json:"boot_mac"`   // the NIC that booted; every other NIC is left alone
	Address    string   `json:"address"`    // CIDR of this node on the boot network, e.g. 10.77.0.11/24
	Gateway    string   `json:"gateway,omitempty"`
	VLAN       int      `json:"vlan,omitempty"`  // ID of the VLAN that the address is on, tagged on the NIC that booted; 0: untagged
	Debug      bool     `json:"debug,omitempty"` // say more on the console
}

// Hello is the agent's first word after each (re)connection.
type Hello struct {
	Version  int       `json:"version"`
	Attempt  string    `json:"attempt"`
	BootID   string    `json:"boot_id"` // kernel's random boot_id: tells a reboot from a reconnection
	Clock    time.Time `json:"clock"`
	Identity Identity  `json:"identity"`
}

// HelloReply answers Hello.
type HelloReply struct {
	Node  string    `json:"node"`
	Clock time.Time `json:"clock"` // the agent sets its clock from this
}

// Identity is what says which chassis this is. Strings are as the firmware
// gives them, trimmed of space; they are text from outside.
type Identity struct {
	Vendor  string   `json:"vendor"`
	Product string   `json:"product"`
	Serial  string   `json:"serial"` // SMBIOS type 1 serial number
	UUID    string   `json:"uuid"`   // SMBIOS type 1 UUID, lower case
	BootMAC addr.MAC `json:"boot_mac"`
	// Untagged: the controller answers without the tag of the boot network's VLAN, and not with it.
	Untagged bool `json:"untagged,omitempty"`
}

// TaskKind is one of the closed list of things an agent does.
type TaskKind string

// The tasks.
const (
	Inspect   TaskKind = "inspect"   // -> Hardware
	Write     TaskKind = "write"     // WriteParams -> WriteResult: erase, stream, verify
	Configure TaskKind = "configure" // ConfigureParams -> ConfigureResult
	Reboot    TaskKind = "reboot"    // RebootParams -> nothing; acknowledged before it happens
	Wipe      TaskKind = "wipe"      // WipeParams -> WipeResult: the node leaves its site
	Enrol     TaskKind = "enrol"     // EnrolParams -> nothing: shim asks for a certificate at the next boot
)

// Task asks the agent to do one thing. Key is the effect key: doing the same
// key again returns the first result.
type Task struct {
	Key    string          `json:"key"`
	Kind   TaskKind        `json:"kind"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Progress is how far a task is. Done and Total are bytes for Write.
type Progress struct {
	Key   string `json:"key"`
	Phase string `json:"phase"` // erase, write, verify, ...
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"` // such as "chunk 17 was corrupt on the wire, fetched again"
}

// Result ends a task. Exactly one of Output and Error is set.
type Result struct {
	Key    string          `json:"key"`
	Kind   TaskKind        `json:"kind"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  *TaskError      `json:"error,omitempty"`
}

// TaskError is a failed task. Kind is a name of errkind.
type TaskError struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Action string `json:"action,omitempty"`
	Part   Part   `json:"part,omitempty"`  // of the node, where the agent can tell
	Begun  bool   `json:"begun,omitempty"` // the task had begun to change the node when it failed
}

// Part is what of a node a task failed by.
type Part string

// The parts.
const (
	PartDisk   Part = "disk"         // it does not take or keep what is written
	PartStream Part = "image stream" // the bytes do not come
	PartChunk  Part = "image chunk"  // the bytes come, and they come damaged
)

// PartError is an error of which the part is known.
type PartError struct {
	Part Part
	Err  error
}

// Error is the text of the wrapped error.
func (e *PartError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *PartError) Unwrap() error { return e.Err }

// Hardware is the report of Inspect.
type Hardware struct {
	Identity Identity  `json:"identity"`
	BIOS     string    `json:"bios,omitempty"`     // vendor and version
	Firmware string    `json:"firmware,omitempty"` // "bios" or "uefi": how this boot came
	CPU      CPU       `json:"cpu"`
	Memory   Memory    `json:"memory"`
	NICs     []NIC     `json:"nics"`
	Disks    []Disk    `json:"disks"`
	PCI      []PCI     `json:"pci"`
	RDMA     []RDMADev `json:"rdma,omitempty"`
	TPM      string    `json:"tpm,omitempty"` // its version, "2.0" or "1.2", or NoTPM; empty: the kernel does not say
	// SecureBoot is what firmware and kernel show of it; nil: no UEFI, or an agent that does not look.
	SecureBoot *SecureBoot `json:"secure_boot,omitempty"`
}

// SecureBoot is what a node shows of Secure Boot.
type SecureBoot struct {
	State    string `json:"state,omitempty"`    // SecureBootOn and so on; empty: the kernel shows no variables of the firmware
	Lockdown string `json:"lockdown,omitempty"` // of the kernel: none, integrity or confidentiality; empty: it does not say
	// Authorities are the common names of the certificates in db: whose signatures the firmware takes.
	Authorities []string `json:"authorities,omitempty"`
	Damaged     bool     `json:"damaged,omitempty"` // db could not be read to its end
	// Keys are the SHA-256, in small hexadecimal letters, of the certificates in db and in shim's
	// list of the owner's keys (MOK): whose signatures the kernel takes.
	Keys []string `json:"keys,omitempty"`
}

// The states of Secure Boot.
const (
	SecureBootOn     = "on"
	SecureBootOff    = "off"
	SecureBootSetup  = "setup"  // off: the firmware has no platform key (PK)
	SecureBootAbsent = "absent" // the firmware has none
)

// NoTPM says that there is no TPM, or that the firmware hides it.
const NoTPM = "none"

// CPU counts what the kernel sees.
type CPU struct {
	Model   string `json:"model"`
	Sockets int    `json:"sockets"`
	Cores   int    `json:"cores"`   // physical cores, all sockets
	Threads int    `json:"threads"` // logical processors
	// NUMA counts the memory nodes that have CPUs, and SMT tells whether cores run two
	// threads or more; 0 and nil where the kernel does not say.
	NUMA int   `json:"numa,omitempty"`
	SMT  *bool `json:"smt,omitempty"`
}

// Memory is in bytes; Installed comes from SMBIOS type 17 and Usable from the kernel.
type Memory struct {
	Usable    int64 `json:"usable"`
	Installed int64 `json:"installed,omitempty"`
	DIMMs     int   `json:"dimms,omitempty"`
	// Modules are the populated slots, as the firmware lists them.
	Modules []Module `json:"modules,omitempty"`
}

// Module is one DIMM. Its texts are as the firmware has them.
type Module struct {
	Slot   string `json:"slot"`
	Serial string `json:"serial,omitempty"`
	Maker  string `json:"maker,omitempty"`
	Part   string `json:"part,omitempty"`
	Size   int64  `json:"size"`            // bytes
	Speed  int    `json:"speed,omitempty"` // MT/s, as the firmware has set it; 0: not known
}

// NIC is one network interface with a PCI parent.
type NIC struct {
	Name   string   `json:"name"` // as the ramdisk's kernel calls it; not stable
	MAC    addr.MAC `json:"mac"`
	PCI    string   `json:"pci"` // 0000:00:03.0
	Driver string   `json:"driver,omitempty"`
	Link   bool     `json:"link"`
	Speed  int64    `json:"speed,omitempty"` // bits per second; 0 when the driver does not say
}

// Disk is one whole disk. Content says what stands on it, for the blank-disk gate.
type Disk struct {
	Name    string `json:"name"` // vda, nvme0n1: as the ramdisk's kernel calls it; not stable
	Path    string `json:"path"` // /dev/disk/by-path style or /dev/NAME; valid during this boot
	PCI     string `json:"pci,omitempty"`
	Type    string `json:"type"` // nvme, ssd, hdd, virtio
	Model   string `json:"model,omitempty"`
	Serial  string `json:"serial,omitempty"`
	WWN     string `json:"wwn,omitempty"`
	ByPath  string `json:"by_path,omitempty"` // as udev names the link in /dev/disk/by-path: pci-0000:00:04.0, pci-0000:3b:00.0-nvme-1
	Bay     string `json:"bay,omitempty"`     // the slot that is printed on the chassis: of an SES enclosure or a PCIe hot-plug slot
	Sector  int    `json:"sector,omitempty"`  // bytes of a logical block, 512 or 4096; 0: not known
	Size    int64  `json:"size"`              // bytes
	Content string `json:"content,omitempty"` // "" when blank; else such as "GPT; p3 ext4 label ironrail-root"
	Marker  string `json:"marker,omitempty"`  // content of ironrail's install marker when the disk carries one
	State   string `json:"state,omitempty"`   // of the install that the marker stands for: writing, complete, configuring, configured
}

// PCI is one PCI function.
type PCI struct {
	Address string `json:"address"`
	Class   string `json:"class"`  // six hex digits
	Vendor  string `json:"vendor"` // four hex digits
	Device  string `json:"device"`
	Driver  string `json:"driver,omitempty"`
	// Modalias is what the kernel looks a driver up by; "" from an older agent.
	Modalias string `json:"modalias,omitempty"`
	// Socket is the CPU that a GPU hangs on, from 0 in the order of their numbers; nil
	// for other functions, and where the kernel does not say.
	Socket *int `json:"socket,omitempty"`
}

// RDMADev is one RDMA device and the network interface below it.
type RDMADev struct {
	Name   string `json:"name"`
	Netdev string `json:"netdev,omitempty"`
	GUID   string `json:"guid,omitempty"`
}

// Neighbour is what one NIC hears of the device at the other end of its cable
// (LLDP, IEEE 802.1AB). All but NIC and PCI is text from outside.
type Neighbour struct {
	NIC        string `json:"nic"` // as the kernel calls it
	PCI        string `json:"pci"`
	ChassisID  string `json:"chassis_id"`
	PortID     string `json:"port_id"`
	SystemName string `json:"system_name"`
}

// Neighbours is whom an installed node hears.
type Neighbours struct {
	Neighbours []Neighbour `json:"neighbours"`
	Error      *TaskError  `json:"error,omitempty"`
}

// WriteParams asks for an image on a disk. The disk is named by Path and, so
// that a renumbered disk is never erased, by Size and Serial as inspected.
type WriteParams struct {
	Disk        Disk   `json:"disk"`
	ManifestURL string `json:"manifest_url"` // http://.../images/DIGEST/manifest.json
	BlobURL     string `json:"blob_url"`     // chunks one after another, ranges allowed
	Digest      string `json:"digest"`       // sha256:... of the manifest file itself
	PublicKey   string `json:"public_key"`   // base64 ed25519 key that signed the manifest
	AllowData   bool   `json:"allow_data"`   // false: refuse a disk that is not blank and does not carry this attempt's marker
	RootSize    int64  `json:"root_size"`    // bytes the root partition is grown to; 0 leaves it, RestOfDisk takes all
	Marker      string `json:"marker"`       // written with the image: node and effect key
	// Layout is made in place of the image's own disk, and takes its files; nil: the image
	// is written to Disk as it is.
	Layout *Layout `json:"layout,omitempty"`
	// Memory keeps the image, which is a squashfs, in the memory of the ramdisk: no disk is
	// looked at. An agent that does not know it fails, since no Disk is named.
	Memory bool `json:"memory,omitempty"`
}

// RestOfDisk as a RootSize grows the root partition to the end of the disk.
const RestOfDisk = -1

// WriteResult says what was written and read back.
type WriteResult struct {
	Written  int64   `json:"written"`  // bytes that were not zero
	Size     int64   `json:"size"`     // bytes of the image
	Digest   string  `json:"digest"`   // sha256 (hex) of the image as read back from the disk
	Retried  int     `json:"retried"`  // chunks fetched more than once
	Seconds  float64 `json:"seconds"`  // write
	Verified float64 `json:"verified"` // seconds of reading back
	Already  bool    `json:"already"`  // the disk carried this marker and verified: nothing was written
	// Layout is the one that was asked for, as it is: what was kept has its own
	// identifiers.
	Layout *Layout `json:"layout,omitempty"`
}

// EnrolParams asks for variables of shim, which has MokManager enrol a certificate at the next boot.
// They hold no secret: the password is in neither.
type EnrolParams struct {
	List      []byte `json:"list"`      // MokNew: an EFI_SIGNATURE_LIST of the certificate
	Auth      []byte `json:"auth"`      // MokAuth: SHA-256 of List and the password
	Countdown int    `json:"countdown"` // MokTimeout: seconds for which MokManager waits for a key
}

// WipeParams asks for disks to be made blank. Each is named like that of a write,
// so that a renumbered disk is never wiped; all are found before the first is
// touched.
type WipeParams struct {
	Disks []Disk `json:"disks"`
}

// WipeResult says what was done to each disk.
type WipeResult struct {
	Disks []Wiped `json:"disks"`
}

// Wiped is one disk that reads as blank now.
type Wiped struct {
	Name      string  `json:"name"`
	Serial    string  `json:"serial,omitempty"`
	Size      int64   `json:"size"`      // bytes
	Discarded bool    `json:"discarded"` // the disk was told that nothing on it is needed, and took it
	Zeroed    int64   `json:"zeroed"`    // bytes, at the ends of the disk and of its partitions
	Seconds   float64 `json:"seconds"`
	Note      string  `json:"note,omitempty"` // such as why it was not discarded
}

// InMemory is which image a system that runs from memory is of.
type InMemory struct {
	Marker string `json:"marker"` // of the Write that brought it
	Digest string `json:"digest"` // of the image's manifest
}

// ConfigureParams are host settings, written into the root file system of the
// disk that Write wrote.
type ConfigureParams struct {
	Disk   Disk    `json:"disk"`
	Layout *Layout `json:"layout,omitempty"` // that Write has made, if any; Disk is its first
	// Memory: the image is in memory, and Disk is none.
	Memory         *InMemory `json:"memory,omitempty"`
	Hostname       string    `json:"hostname"`
	Domain         string    `json:"domain,omitempty"`
	Timezone       string    `json:"timezone,omitempty"`
	BootNIC        addr.MAC  `json:"boot_nic"` // gets Address by systemd-networkd, matched by MAC
	Address        string    `json:"address"`  // CIDR
	Gateway        string    `json:"gateway,omitempty"`
	DNS            []string  `json:"dns,omitempty"`
	TimeServers    []string  `json:"time_servers,omitempty"`
	KernelArgs     []string  `json:"kernel_args,omitempty"`
	Console        string    `json:"console,omitempty"`    // ttyS0,115200
	AuthorizedKeys []string  `json:"authorized_keys"`      // for root; the controller's key among them
	Files          []File    `json:"files,omitempty"`      // no secrets
	Agent          bool      `json:"agent"`                // install this very agent as /usr/local/sbin/ironrail-agent
	BootOrder      string    `json:"boot_order,omitempty"` // BootDisk or BootNetwork: what UEFI firmware is to try first; "" leaves it
	// Initrd has the agent make the initrds of the image's kernels, with the programs of the
	// image: the image has none.
	Initrd bool `json:"initrd,omitempty"`
	// Kexec has the kernel of the ramdisk load that of the system, for RebootParams.
	Kexec bool `json:"kexec,omitempty"`
	// Host are settings that can be changed later too. An agent that does not know them
	// leaves them to the step that does that.
	Host HostSettings `json:"host,omitzero"`
	// UserData runs once, at the first start of the installed system; see package userdata.
	UserData string `json:"user_data,omitempty"`
	// Network are the interfaces of the node's networks. An agent that does not know them
	// leaves them as they are; the step that looks at them says so.
	Network NetworkParams `json:"network,omitzero"`
}

// HostSettings are settings of an installed system that take effect without an
// installation.
type HostSettings struct {
	Sysctl     map[string]string `json:"sysctl,omitempty"`      // of sysctl.d(5), by key
	Locale     string            `json:"locale,omitempty"`      // C.UTF-8
	SudoGroups []string          `json:"sudo_groups,omitempty"` // whose members may become root
	HoldKernel *KernelPackages   `json:"hold_kernel,omitempty"` // nil: the kernel is not held
	NoUpdates  bool              `json:"no_updates,omitempty"`  // nothing is updated by itself
}

// KernelPackages are the names of packages that hold a kernel or lead to one, by package
// manager; they may have stars.
type KernelPackages struct {
	Dpkg []string `json:"dpkg,omitempty"`
	Dnf  []string `json:"dnf,omitempty"`
}

// What a BootOrder puts first.
const (
	BootDisk    = "disk"
	BootNetwork = "network"
)

// File is a small file written as given.
type File struct {
	Path    string `json:"path"` // absolute, below the root of the disk
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"`
}

// ConfigureResult carries the public half of the SSH host key that was made on the
// node, and whom its NICs have heard by LLDP since the boot: by then an image was
// written, so that each neighbour had time to speak.
type ConfigureResult struct {
	HostKey    string      `json:"host_key"` // authorized_keys form: "ssh-ed25519 AAAA..."
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	// BootOrder is what the firmware answered to the order that was written; nil: none
	// was asked for, or the node has a BIOS.
	BootOrder *BootOrder `json:"boot_order,omitempty"`
	// Kexec is which kernel is loaded; nil: none was asked for.
	Kexec *Kexec `json:"kexec,omitempty"`
}

// Kexec is the kernel of the installed system that the kernel of the ramdisk has loaded, so that it
// can be started without the firmware; or why there is none.
type Kexec struct {
	Kernel  string `json:"kernel,omitempty"` // its file in the system
	Args    string `json:"args,omitempty"`   // but for KexecArgument
	Problem string `json:"problem,omitempty"`
}

// KexecArgument is on the command line of a kernel that another kernel has started, and of no
// other.
const KexecArgument = "ironrail.boot=kexec"

// RebootParams says how the node leaves the ramdisk.
type RebootParams struct {
	// Kexec starts the kernel that is loaded, if there is one, and not the firmware.
	Kexec bool `json:"kexec,omitempty"`
	// SwitchRoot starts the system in memory that Configure has prepared, under the kernel that
	// runs: its boot_id stays.
	SwitchRoot bool `json:"switch_root,omitempty"`
	PowerOff   bool `json:"power_off,omitempty"`
}
