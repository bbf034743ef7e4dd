// SPDX-License-Identifier: Apache-2.0

// Package fault is the language in which faults of a rehearsal are written: what
// breaks, on which part, and when. Each kind changes one physical quantity of
// the virtual rack (a byte, a lane, a voltage, a record); it never tells the
// code under rehearsal anything.
package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
)

// Kind names what breaks.
type Kind string

// The kinds.
const (
	BMCDead          Kind = "bmc-dead"
	BMCLocked        Kind = "bmc-locked"
	BMCWrongPassword Kind = "bmc-wrong-password"
	BMCWriteLost     Kind = "bmc-write-lost"
	BMCSwapped       Kind = "bmc-swapped"
	DHCPLoss         Kind = "dhcp-loss"
	UntaggedPort     Kind = "untagged-port"
	HTTPStall        Kind = "http-stall"
	WrongSerial      Kind = "wrong-serial"
	MissingDIMM      Kind = "missing-dimm"
	MissingNIC       Kind = "missing-nic"
	DiskWriteError   Kind = "disk-write-error"
	KernelHang       Kind = "kernel-hang"
	RepoGone         Kind = "repo-gone"
	DriverMismatch   Kind = "driver-mismatch"
	MissingGPU       Kind = "missing-gpu"
	PCIeWidth        Kind = "pcie-width"
	GPURowRemap      Kind = "gpu-row-remap"
	GPUXid           Kind = "gpu-xid"
	WeakHBM          Kind = "weak-hbm"
	HotGPU           Kind = "hot-gpu"
	SlowGPU          Kind = "slow-gpu"
	DeadCores        Kind = "dead-cores"
	WrongResults     Kind = "wrong-results"
	PCIeErrors       Kind = "pcie-errors"
	NVLinkErrors     Kind = "nvlink-errors"
	DIMMErrors       Kind = "dimm-errors"
	OddFirmware      Kind = "odd-firmware"
	NICSettingLost   Kind = "nic-setting-lost"
	PSULost          Kind = "psu-lost"
	DeadFan          Kind = "dead-fan"
	WarmAir          Kind = "warm-air"
	WrongGPU         Kind = "wrong-gpu"
	LessHBM          Kind = "less-hbm"
	PCIeSpeed        Kind = "pcie-speed"
	WrongCPU         Kind = "wrong-cpu"
	SMTOff           Kind = "smt-off"
	TPMOff           Kind = "tpm-off"
	SecureBootOff    Kind = "secure-boot-off"
	ModuleKeyMissing Kind = "module-key-missing"
	NUMASplit        Kind = "numa-split"
	SmallDIMM        Kind = "small-dimm"
	SlowDIMM         Kind = "slow-dimm"
	SlowMemory       Kind = "slow-memory"
	SlowCPU          Kind = "slow-cpu"
	SlowDisk         Kind = "slow-disk"
	SlowNetwork      Kind = "slow-network"
	PathMTU          Kind = "path-mtu"
	WornDisk         Kind = "worn-disk"
	WrongNIC         Kind = "wrong-nic"
	WrongDisk        Kind = "wrong-disk"
	WrongMTU         Kind = "wrong-mtu"
	WrongOptic       Kind = "wrong-optic"
	NVLinkDown       Kind = "nvlink-down"
	NVLinkUnseated   Kind = "nvlink-unseated"
	IMEXConfig       Kind = "imex-config"
	IMEXChannel      Kind = "imex-channel"
	NoTime           Kind = "no-time"
	CableSwap        Kind = "cable-swap"
	DegradedLink     Kind = "degraded-link"
	LinkDown         Kind = "link-down"
	RailConfig       Kind = "rail-config"
	HighBER          Kind = "high-ber"
	SlowNIC          Kind = "slow-nic"
	BadUplink        Kind = "bad-uplink"
	BadLeaf          Kind = "bad-leaf"
	SlowTrunk        Kind = "slow-trunk"
	TrunkErrors      Kind = "trunk-errors"
	DeadTrunk        Kind = "dead-trunk"
	BadSpine         Kind = "bad-spine"
	SMDead           Kind = "sm-dead"
	OtherSM          Kind = "other-sm"
	PDUTrip          Kind = "pdu-trip"
	ShelfSupply      Kind = "shelf-supply"
	OtherDHCP        Kind = "other-dhcp"
	ControllerKill   Kind = "controller-kill"
)

// Attributes that a kind may take or needs.
const (
	attrNode  = "node"
	attrLeaf  = "switch"
	attrWith  = "with"
	attrPDU   = "pdu"
	attrShelf = "shelf"
	attrPort  = "port"
	attrGPU   = "gpu"
	attrEnd   = "end"
	attrAt    = "at"
)

// Accepted is the moment of faults that begin after the site's bring-up ended, on
// nodes that are in service.
const Accepted = "accepted"

// EndSwitch is the end of a cable that is no node.
const EndSwitch = "switch"

// Row is one kind as the documents list it.
type Row struct {
	Kind     Kind
	Does     string   // the physical quantity that it changes
	Needs    []string // attributes without which it says nothing
	Takes    []string // further attributes
	At       string   // when it happens, unless said otherwise; empty: from the start
	Suspects string   // how small the evidence lets the suspect set be
	Serving  bool     // it can begin on a node that is in service
	Passing  bool     // it can come and go
}

// Rows is the table of kinds.
func Rows() []Row { return slices.Clone(rows) }

var rows = []Row{
	{Kind: BMCDead, Does: "the BMC's network port has no link", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node", Serving: true, Passing: true},
	{Kind: BMCLocked, Does: "the BMC's counter of failed log-ins stands at its limit", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node", Serving: true},
	{Kind: BMCWrongPassword, Does: "one byte of the password that the BMC stores differs", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node", Serving: true},
	{Kind: BMCWriteLost, Does: "the BMC's flash keeps no boot setting: writes are answered with success", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node"},
	{Kind: BMCSwapped, Does: "the network cables of two BMCs are exchanged", Needs: []string{attrNode, attrWith},
		Suspects: "the BMCs of the two nodes"},
	{Kind: DHCPLoss, Does: "no datagram of the node's boot NIC reaches the relay", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the boot NIC with its cable and switch port"},
	{Kind: UntaggedPort, Does: "the switch port of the boot NIC is an untagged member of the boot network's VLAN, and its firmware sets no tag", Needs: []string{attrNode},
		Suspects: "the boot NIC with its cable and switch port, where the boot network has a `vlan`"},
	{Kind: HTTPStall, Does: "in the middle of the image the node's cable carries no byte any more", Needs: []string{attrNode}, Takes: []string{attrAt},
		At: "install.write", Suspects: "the boot NIC with its cable and switch port"},
	{Kind: WrongSerial, Does: "one byte of the chassis' serial number differs", Needs: []string{attrNode},
		Suspects: "the chassis of that node"},
	{Kind: MissingDIMM, Does: "one DIMM slot is empty", Needs: []string{attrNode},
		Suspects: "the memory of that node; which slot only where the firmware says"},
	{Kind: MissingNIC, Does: "one PCI function of a fabric NIC is not there", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that NIC", Serving: true},
	{Kind: DiskWriteError, Does: "sectors of the system disk cannot be written", Needs: []string{attrNode},
		Suspects: "that disk"},
	{Kind: KernelHang, Does: "the install kernel executes no instruction any more after its start", Needs: []string{attrNode},
		Suspects: "the node, without a part: a silent kernel says no more"},
	{Kind: RepoGone, Does: "the files of the driver repository are not on the controller any more", Takes: []string{attrAt},
		At: "drivers", Suspects: "the repository; no node"},
	{Kind: DriverMismatch, Does: "a file of the GPU driver's module, of an older version, lies where the kernel's loader looks first", Needs: []string{attrNode},
		Suspects: "the driver of that node"},
	{Kind: MissingGPU, Does: "the PCI function of one GPU is not there", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "the GPUs of that node; which one only where its slot says", Serving: true},
	{Kind: PCIeWidth, Does: "half of the lanes of a GPU's PCIe link carry nothing", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true},
	{Kind: GPURowRemap, Does: "a row of a GPU's memory has failed, and waits for a spare one to take its place", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true},
	{Kind: GPUXid, Does: "two bits of one word in a GPU's memory have flipped: an Xid of NVIDIA's driver, a RAS error of AMD's", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true},
	{Kind: HotGPU, Does: "the heat sink of a GPU takes away less than two thirds of what it should", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true},
	{Kind: SlowGPU, Does: "the clock of a GPU's compute units is a sixth lower under load, and no reason is given", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU, of four nodes or more", Serving: true},
	{Kind: DeadCores, Does: "a fifth of a GPU's compute units do no work; its clock is right", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU, of four nodes or more", Serving: true},
	{Kind: WrongResults, Does: "one bit of what a GPU computes is wrong, always the same one, and nothing counts it", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU, where the driver `tools` brings its program", Serving: true},
	{Kind: PCIeErrors, Does: "the PCIe link of a GPU sends 400 frames a minute once more under load", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true, Passing: true},
	{Kind: NVLinkErrors, Does: "an NVLink of a GPU sends two packets a minute once more under load", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true, Passing: true},
	{Kind: DIMMErrors, Does: "a memory module of the host returns three words a minute with a wrong bit under load, which is corrected", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the memory of that node", Serving: true, Passing: true},
	{Kind: WeakHBM, Does: "the clock of a GPU's memory is a fifth lower than it should be", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true},
	{Kind: OddFirmware, Does: "the flash of a fabric NIC holds an older firmware", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that NIC", Serving: true},
	{Kind: NICSettingLost, Does: "the flash of a fabric NIC has the other link type, and keeps nothing that is written: writes are answered with success", Needs: []string{attrNode}, Takes: []string{attrPort},
		Suspects: "that NIC, where the site gives its `link_type` and `model`"},
	{Kind: PSULost, Does: "the first power supply of a node gives nothing any more; its mains are there", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "that supply", Serving: true},
	{Kind: DeadFan, Does: "the second fan of a node stands still, and the others turn faster", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "that fan", Serving: true},
	{Kind: WarmAir, Does: "the air that comes into a node has 38 degrees Celsius", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the inlet air of that node", Serving: true},
	{Kind: WrongGPU, Does: "in the place of one GPU is one of another model of the same vendor", Needs: []string{attrNode}, Takes: []string{attrGPU},
		Suspects: "that GPU"},
	{Kind: LessHBM, Does: "a fifth of a GPU's memory is not there: a stack is off", Needs: []string{attrNode}, Takes: []string{attrGPU},
		Suspects: "that GPU"},
	{Kind: PCIeSpeed, Does: "the PCIe link of a GPU runs at the speed of PCIe 4.0; both its ends can 5.0", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true},
	{Kind: WrongCPU, Does: "the CPUs are of another model with as many cores", Needs: []string{attrNode},
		Suspects: "the CPU of that node"},
	{Kind: SMTOff, Does: "a bit of the BIOS's flash lets each core run one thread", Needs: []string{attrNode},
		Suspects: "the CPU of that node"},
	{Kind: TPMOff, Does: "a bit of the BIOS's flash hides the TPM from the system", Needs: []string{attrNode},
		Suspects: "the TPM of that node"},
	{Kind: SecureBootOff, Does: "a bit of the firmware's flash switches Secure Boot off", Needs: []string{attrNode},
		Suspects: "Secure Boot of that node, where its block has secure_boot"},
	{Kind: ModuleKeyMissing, Does: "the firmware's flash keeps no certificate that is added to db, and none of shim's variables: writes are answered with success", Needs: []string{attrNode},
		Suspects: "Secure Boot of that node, where it needs the certificate for kernel modules"},
	{Kind: NUMASplit, Does: "a bit of the BIOS's flash makes four NUMA nodes of each socket", Needs: []string{attrNode},
		Suspects: "the CPU of that node"},
	{Kind: SmallDIMM, Does: "one memory module has half of its size, and another twice", Needs: []string{attrNode},
		Suspects: "these modules"},
	{Kind: SlowDIMM, Does: "one memory module runs at 4,400 MT/s, the others at 4,800", Needs: []string{attrNode},
		Suspects: "that module"},
	{Kind: SlowMemory, Does: "one memory channel of the first CPU carries nothing; its modules are listed", Needs: []string{attrNode},
		Suspects: "the memory of that node, of four nodes or more"},
	{Kind: SlowCPU, Does: "the clock of every core is a quarter lower under load, and no reason is given", Needs: []string{attrNode},
		Suspects: "the CPU of that node, of four nodes or more"},
	{Kind: SlowDisk, Does: "the last disk reads a third of what its model does", Needs: []string{attrNode},
		Suspects: "that disk, of four or more of its model in the role"},
	{Kind: SlowNetwork, Does: "the boot NIC sends six tenths of what its link carries, and its link is up at its speed; with `end = \"switch\"` the switch port sends it so little", Needs: []string{attrNode}, Takes: []string{attrEnd},
		Suspects: "that NIC with its cable and switch port, of four nodes or more with the same hardware"},
	{Kind: PathMTU, Does: "the switch port of the boot NIC passes packets of 1,400 bytes at most, and says so; the interface sends 1,500", Needs: []string{attrNode},
		Suspects: "that NIC with its cable and switch port, of three nodes or more with the same hardware"},
	{Kind: WornDisk, Does: "the first NVMe disk has used up its spare blocks, and met 9 errors of its media", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "that disk", Serving: true},
	{Kind: WrongNIC, Does: "in the place of one fabric NIC is one of another model that has its speed", Needs: []string{attrNode}, Takes: []string{attrPort},
		Suspects: "that NIC"},
	{Kind: WrongDisk, Does: "the last disk is of another maker; its size is right", Needs: []string{attrNode},
		Suspects: "that disk"},
	{Kind: WrongMTU, Does: "an interface sends 1,400 bytes at once, whatever MTU is set", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that NIC", Serving: true},
	{Kind: WrongOptic, Does: "in the Ethernet port of a fabric NIC is a transceiver of another model that has its speed", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that NIC with its transceiver", Serving: true},
	{Kind: NVLinkDown, Does: "one NVLink of a GPU has no signal", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU", Serving: true, Passing: true},
	{Kind: NVLinkUnseated, Does: "no NVLink of a GPU has a signal: its board is not seated", Needs: []string{attrNode}, Takes: []string{attrGPU, attrAt},
		Suspects: "that GPU on HGX; the NVLink of that node where a domain spans nodes", Serving: true, Passing: true},
	{Kind: IMEXConfig, Does: "a prolog of jobs writes IMEX's list of nodes without its last line whenever the service starts", Needs: []string{attrNode},
		Suspects: "the IMEX of that node"},
	{Kind: IMEXChannel, Does: "the device of the IMEX channel is not there: the GPUs of the node map no memory of other nodes", Needs: []string{attrNode},
		Suspects: "the NVLink between nodes of that node, where all-reduces have scope \"domain\""},
	{Kind: NoTime, Does: "a filter on the way to a node drops what time servers answer", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the clock of that node", Serving: true, Passing: true},
	{Kind: CableSwap, Does: "two fabric cables are plugged into each other's switch port", Needs: []string{attrNode, attrWith}, Takes: []string{attrPort, attrAt},
		Suspects: "the two cables", Serving: true},
	{Kind: DegradedLink, Does: "a fabric link has one lane of four and bit errors", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that port with its cable; with two nodes both ends, since neither can be told from the other", Serving: true, Passing: true},
	{Kind: LinkDown, Does: "the cable of a fabric port carries no signal", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that port with its cable", Serving: true, Passing: true},
	{Kind: RailConfig, Does: "a bit of a fabric NIC's register of paused priorities is stuck: it pauses one more; with `end = \"switch\"` a second program writes one more into the switch's entry of the far port", Needs: []string{attrNode}, Takes: []string{attrPort, attrEnd, attrAt},
		Suspects: "that port; with `end = \"switch\"` the far port, and the node is not accepted", Serving: true},
	{Kind: HighBER, Does: "one bit in ten thousand million of a fabric link is wrong; all its lanes carry", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that port with its cable", Serving: true, Passing: true},
	{Kind: SlowNIC, Does: "a fabric NIC handles six tenths of the rate of its port; its cable and its PCIe link are whole", Needs: []string{attrNode}, Takes: []string{attrPort},
		Suspects: "that port, and its NIC rather than its cable"},
	{Kind: BadUplink, Does: "an InfiniBand link between two switches has one lane of four", Needs: []string{attrPort}, Takes: []string{attrAt},
		Suspects: "that cable, by its lower end; no node", Serving: true, Passing: true},
	{Kind: BadLeaf, Does: "a leaf passes seven tenths of what nodes send beyond it; what stays on it is whole", Needs: []string{attrLeaf}, Takes: []string{attrAt},
		Suspects: "that leaf, of three or more to a rail; of two both; no node", Serving: true, Passing: true},
	{Kind: SlowTrunk, Does: "a cable between two switches passes half of what each flow brings; all its lanes are up, and nothing is counted", Needs: []string{attrPort}, Takes: []string{attrAt},
		Suspects: "that cable, by its lower end, where the counters of its switches are read; else what goes up from its leaf; no node", Serving: true, Passing: true},
	{Kind: TrunkErrors, Does: "one bit in ten million of what goes up a cable between two switches is wrong; what comes down is right", Needs: []string{attrPort}, Takes: []string{attrAt},
		Suspects: "that cable, by its lower end, where the counters of its switches are read; else what goes up from its leaf; no node", Serving: true, Passing: true},
	{Kind: DeadTrunk, Does: "a cable between two switches has no signal; what went over it goes over the others between the same two", Needs: []string{attrPort}, Takes: []string{attrAt},
		Suspects: "that cable, by its two ports, on InfiniBand and where the counters of its switches are read; no node", Serving: true},
	{Kind: BadSpine, Does: "a spine passes seven tenths of what goes over it", Needs: []string{attrLeaf}, Takes: []string{attrAt},
		Suspects: "that spine, where the counters of its cables are read; else the spines; no node", Serving: true, Passing: true},
	{Kind: SMDead, Does: "the process of the subnet manager on the controller has ended; what it wrote into the ports stays", Takes: []string{attrAt},
		At: "validate.accept", Suspects: "the subnet manager of the fabrics; no node", Serving: true},
	{Kind: OtherSM, Does: "the subnet manager of a managed InfiniBand switch is on, with the highest priority: it is the master and puts every port into the default partition alone", Needs: []string{attrLeaf}, Takes: []string{attrAt},
		At: "validate.accept", Suspects: "the subnet manager of that fabric; no node", Serving: true},
	{Kind: PDUTrip, Does: "the breaker of a PDU opens: its outlets have no voltage", Needs: []string{attrPDU}, Takes: []string{attrAt},
		At: "install.write", Suspects: "that PDU, where it or the power shelf that it feeds can be read", Serving: true},
	{Kind: ShelfSupply, Does: "a supply of a power shelf gives nothing any more; its input is there", Needs: []string{attrShelf}, Takes: []string{attrAt},
		Suspects: "that supply; no node", Serving: true},
	{Kind: OtherDHCP, Does: "a second DHCP server is plugged into the boot network; it offers whoever asks an address and a boot file", Takes: []string{attrAt},
		At: "install.netboot", Suspects: "that server; no node"},
	{Kind: ControllerKill, Does: "the controller's process ends between two records of its journal", Takes: []string{attrNode, attrAt},
		At: "install.write", Suspects: "nothing: the run is resumed"},
}

// FindRow returns the row of a kind.
func FindRow(k Kind) (Row, bool) {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Kind == k })
	if i < 0 {
		return Row{}, false
	}
	return rows[i], true
}

// Fault is one planted fault.
type Fault struct {
	// Leaf is a switch, scoped: net/leaf-1; of bad-spine a spine, of other-sm any one of InfiniBand.
	Leaf string `json:"switch,omitempty"`

	Kind  Kind   `json:"kind"`
	Node  string `json:"node,omitempty"`
	With  string `json:"with,omitempty"`  // the other node
	PDU   string `json:"pdu,omitempty"`   // scoped: r01/a
	Shelf string `json:"shelf,omitempty"` // of power supplies, scoped: r01/ps1
	Port  string `json:"port,omitempty"`  // of the node: rail/0; empty: the first of a fabric
	GPU   string `json:"gpu,omitempty"`   // of the node, from 0 in the order of the bus; empty: one of them
	End   string `json:"end,omitempty"`   // of the port's cable: "switch"; empty: the node
	At    string `json:"at,omitempty"`    // step, without the node: install.write; Accepted; empty: from the start
	Timing
	// Decl is where it was written; zero for one of the command line.
	Decl   hcl.Range `json:"-"`
	AtDecl hcl.Range `json:"-"` // of At; zero where that is not given
}

// Where names the part in words.
func (f Fault) Where() string {
	var words []string
	for _, w := range []string{f.PDU, f.Shelf, f.Leaf, f.Node, f.With} {
		if w != "" {
			words = append(words, w)
		}
	}
	where := strings.Join(words, " and ")
	if f.Port != "" {
		where += " " + f.Port
	}
	if f.GPU != "" {
		where += " GPU " + f.GPU
	}
	if f.End != "" {
		where += " at the " + f.End
	}
	if where == "" {
		where = "controller"
	}
	return strings.TrimSpace(where)
}

// attributes lists what is set.
func (f Fault) attributes() map[string]string {
	all := map[string]string{}
	for name, v := range map[string]string{attrNode: f.Node, attrWith: f.With, attrPDU: f.PDU, attrShelf: f.Shelf, attrPort: f.Port, attrGPU: f.GPU, attrEnd: f.End, attrAt: f.At} {
		if v != "" {
			all[name] = v
		}
	}
	if f.Leaf != "" {
		all[attrLeaf] = f.Leaf
	}
	return all
}

// complete checks a fault by itself and fills in when it happens.
func (f *Fault) complete() error {
	row, ok := FindRow(f.Kind)
	if !ok {
		return fmt.Errorf("%q is no kind of fault.%s The kinds are %s", f.Kind, diag.DidYouMean(string(f.Kind), kindNames()), strings.Join(kindNames(), ", "))
	}
	set := f.attributes()
	for _, need := range row.Needs {
		if set[need] == "" {
			return fmt.Errorf("fault %s needs %s: %s", f.Kind, need, row.Does)
		}
	}
	for name := range set {
		if !slices.Contains(row.Needs, name) && !slices.Contains(row.Takes, name) {
			return fmt.Errorf("fault %s takes no %q; it takes %s", f.Kind, name, strings.Join(append(slices.Clone(row.Needs), row.Takes...), ", "))
		}
	}
	if f.End != "" && f.End != EndSwitch {
		return fmt.Errorf("fault %s: end is %q or not given, not %q", f.Kind, EndSwitch, f.End)
	}
	if err := f.Timing.check(row, f.At); err != nil {
		return fmt.Errorf("fault %s: %w", f.Kind, err)
	}
	if f.At == "" {
		f.At = row.At
	}
	return nil
}

// kindNames lists the kinds.
func kindNames() []string {
	var all []string
	for _, r := range rows {
		all = append(all, string(r.Kind))
	}
	return all
}
