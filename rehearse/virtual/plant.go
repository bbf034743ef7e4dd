// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
	"github.com/ironrail/ironrail/rehearse/virtual/wiring"
)

// Sizes of faults.
const (
	stallAfter     = 40 << 10             // bytes of the image that still come; its stand-in has some 100 KiB
	badSectors     = 2<<20 + 64<<10       // where a disk cannot be written: inside of the root partition
	badLength      = 1 << 20              // bytes
	emptySlot      = 3                    // DIMM
	hangsAfter     = 2_000_000_000        // nanoseconds after the kernel's start
	badBitRate     = 1e-7                 // of a degraded link; 1e-12 is what Ethernet promises (IEEE 802.3)
	oneLane        = 1                    // of four
	badSwitchShare = 0.7                  // of what goes beyond a leaf, or over a spine
	slowTrunkShare = 0.5                  // of what each flow brings
	oneNVLink      = 1                    // of eighteen
	halfLanes      = 8                    // of a GPU's sixteen
	faultyGPU      = 3                    // in the order of the bus, where a fault names none
	fifthSlower    = 0.2                  // of a memory's clock
	allPhases      = 0                    // of a PDU
	httpPort       = 80                   // of the controller
	flippedByte    = 0x01                 // of a serial number or a password
	wrongLogin     = "not-the-password-1" // of whoever locked the account
)

// plants is what each kind does to the rack. Kinds that are about the controller
// are planted by who runs it.
var plants = map[fault.Kind]func(*World, fault.Fault) error{
	fault.BMCDead:          onNode(func(n *Node, _ fault.Fault) error { n.oob.Cut(true); return nil }),
	fault.BMCLocked:        onNode((*Node).lock),
	fault.BMCWrongPassword: onNode((*Node).otherPassword),
	fault.BMCWriteLost:     onNode(func(n *Node, _ fault.Fault) error { n.chassis.LoseWrites("boot"); return nil }),
	fault.BMCSwapped:       (*World).swapBMCs,
	fault.DHCPLoss:         onNode((*Node).dropBootPackets),
	fault.UntaggedPort:     onNode(func(n *Node, _ fault.Fault) error { n.metal.UntagPort(); return nil }),
	fault.HTTPStall:        onNode(func(n *Node, _ fault.Fault) error { n.cable.StallAfter(stallAfter, httpPort); return nil }),
	fault.WrongSerial:      onNode((*Node).otherSerial),
	fault.MissingDIMM:      onNode((*Node).pullDIMM),
	fault.MissingNIC:       onNode((*Node).pullNIC),
	fault.DiskWriteError:   onNode((*Node).corruptDisk),
	fault.KernelHang:       onNode(func(n *Node, _ fault.Fault) error { n.metal.Hang(hangsAfter); return nil }),
	fault.DriverMismatch:   onNode((*Node).strayModule),
	fault.MissingGPU:       onGPU(func(hw *metal.Node, at string) { hw.RemovePCI(at) }),
	fault.PCIeWidth:        onGPU(func(hw *metal.Node, at string) { hw.NarrowPCI(at, halfLanes) }),
	fault.GPURowRemap:      damageMemory(metal.GPUMemory{BadRows: 1}),
	fault.GPUXid:           damageMemory(metal.GPUMemory{BadBits: 1}),
	fault.HotGPU:           onGPU(func(hw *metal.Node, at string) { hw.InsulateGPU(at, insulated) }),
	fault.SlowGPU:          onGPU(func(hw *metal.Node, at string) { hw.SlowGPU(at, sluggish) }),
	fault.DeadCores:        onGPU(func(hw *metal.Node, at string) { hw.IdleUnits(at, idleUnits) }),
	fault.WrongResults:     onGPU(func(hw *metal.Node, at string) { hw.StickBit(at) }),
	fault.PCIeErrors:       onGPU(func(hw *metal.Node, at string) { hw.DisturbPCIe(at, pcieErrors) }),
	fault.DIMMErrors:       onNode(func(n *Node, _ fault.Fault) error { n.metal.FlipBits(memoryErrors); return nil }),
	fault.NVLinkErrors:     onNVLink(func(hw *metal.Node, at string) { hw.DisturbNVLink(at, nvlinkErrors) }),
	fault.WeakHBM:          damageMemory(metal.GPUMemory{Slower: fifthSlower}),
	fault.OddFirmware:      onNode((*Node).flashOlder),
	fault.NICSettingLost:   onNode((*Node).loseSettings),
	fault.PSULost:          onNode(func(n *Node, _ fault.Fault) error { n.chassis.FailSupply(0); return nil }),
	fault.DeadFan:          onNode(func(n *Node, _ fault.Fault) error { n.chassis.StopFan(2); return nil }),
	fault.WarmAir:          onNode((*Node).warmAir),
	fault.WrongGPU:         onNode((*Node).exchangeGPU),
	fault.LessHBM:          damageMemory(metal.GPUMemory{Missing: missingHBM}),
	fault.PCIeSpeed:        onNode((*Node).slowGPU),
	fault.WrongCPU:         onNode(func(n *Node, _ fault.Fault) error { n.metal.SetCPUModel(otherCPU); return nil }),
	fault.SMTOff:           onNode(func(n *Node, _ fault.Fault) error { n.metal.DisableSMT(); return nil }),
	fault.SecureBootOff:    onNode(func(n *Node, _ fault.Fault) error { n.metal.DisableSecureBoot(); return nil }),
	fault.ModuleKeyMissing: onNode(func(n *Node, _ fault.Fault) error { n.chassis.LoseWrites("keys"); n.metal.LoseShim(); return nil }),
	fault.TPMOff:           onNode(func(n *Node, _ fault.Fault) error { n.metal.HideTPM(); return nil }),
	fault.NUMASplit:        onNode(func(n *Node, _ fault.Fault) error { n.metal.SplitNUMA(splitSocket); return nil }),
	fault.SmallDIMM:        onNode((*Node).shrinkDIMM),
	fault.SlowDIMM:         onNode((*Node).slowDIMM),
	fault.SlowMemory:       onNode(func(n *Node, _ fault.Fault) error { n.metal.LoseChannel(0); return nil }),
	fault.SlowCPU:          onNode(func(n *Node, _ fault.Fault) error { n.metal.CapCores(cappedClock); return nil }),
	fault.SlowDisk:         onNode((*Node).throttleDisk),
	fault.SlowNetwork:      onNode((*Node).slowNetwork),
	fault.PathMTU:          onNode(func(n *Node, _ fault.Fault) error { n.metal.LimitPackets(shortMTU); return nil }),
	fault.WornDisk:         onNode((*Node).wearDisk),
	fault.WrongNIC:         onNode((*Node).exchangeNIC),
	fault.WrongDisk:        onNode((*Node).exchangeDisk),
	fault.WrongMTU:         onNode((*Node).shortenFrames),
	fault.WrongOptic:       onNode((*Node).exchangeModule),
	fault.NVLinkDown:       onNVLink(func(hw *metal.Node, at string) { hw.DarkenNVLinks(at, oneNVLink) }),
	fault.NVLinkUnseated:   onNVLink(func(hw *metal.Node, at string) { hw.DarkenNVLinks(at, metal.AllNVLinks) }),
	fault.IMEXConfig:       onNode((*Node).leaveProlog),
	fault.IMEXChannel:      onNode((*Node).removeChannel),
	fault.NoTime:           onNode((*Node).dropTime),
	fault.CableSwap:        (*World).swapCables,
	fault.DegradedLink:     onNode((*Node).degrade),
	fault.HighBER:          onNode((*Node).damageBits),
	fault.LinkDown:         onPort(func(m *model.Model, id model.PortID) error { return m.SetDown(id, true) }),
	fault.RailConfig:       (*World).pauseMore,
	fault.SlowNIC:          onPort(func(m *model.Model, id model.PortID) error { return m.SetNICShare(id, slowNICShare) }),
	fault.BadUplink:        (*World).narrowTrunk,
	fault.BadLeaf:          func(w *World, f fault.Fault) error { return w.model.SetSwitchShare(f.Leaf, badSwitchShare) },
	fault.SlowTrunk: onTrunk(func(m *model.Model, c *inventory.Cable) error {
		return m.SetTrunkShare(trunkEnd(c.From), slowTrunkShare)
	}),
	fault.TrunkErrors: onTrunk(func(m *model.Model, c *inventory.Cable) error { return m.SetTrunkErrors(trunkEnd(c.To), badBitRate) }),
	fault.DeadTrunk:   onTrunk(func(m *model.Model, c *inventory.Cable) error { return m.SetTrunkDown(trunkEnd(c.From), true) }),
	fault.BadSpine:    func(w *World, f fault.Fault) error { return w.model.SetSwitchShare(f.Leaf, badSwitchShare) },
	fault.SMDead:      (*World).endManagers,
	fault.OtherSM:     (*World).switchOnManager,
	fault.OtherDHCP:   func(w *World, _ fault.Fault) error { w.other.Plug(true); return nil },
	fault.ShelfSupply: (*World).failShelfSupply,
	fault.PDUTrip:     func(w *World, f fault.Fault) error { return w.grid.Trip(f.PDU, allPhases) },
}

// Plant breaks something, now. Swapped BMCs can only be planted before Open.
func (w *World) Plant(f fault.Fault) error {
	plant := plants[f.Kind]
	if plant == nil {
		return errkind.New(errkind.Unsupported, "the virtual rack has no part that %s is about", f.Kind)
	}
	return plant(w, f)
}

// onNode plants in the node that the fault names.
func onNode(do func(*Node, fault.Fault) error) func(*World, fault.Fault) error {
	return func(w *World, f fault.Fault) error {
		n, ok := w.nodes[f.Node]
		if !ok {
			return errkind.New(errkind.NotFound, "there is no virtual node %s", f.Node)
		}
		return do(n, f)
	}
}

// lock spends the log-ins of the account, as a script with an old password does.
func (n *Node) lock(fault.Fault) error {
	for range 32 {
		if _, err := n.chassis.Login(n.inv.BMC.Username, wrongLogin); n.chassis.Locked(n.inv.BMC.Username) {
			_ = err // wrong, as it has to be
			return nil
		}
	}
	return errkind.New(errkind.Internal, "the account of %s does not lock", n.inv.Name)
}

// otherPassword changes one byte of the password that the BMC has stored.
func (n *Node) otherPassword(fault.Fault) error {
	for _, a := range n.chassis.Accounts() {
		if a.Username == n.inv.BMC.Username {
			a.Password = flipLast(n.world.password(n.inv.BMC.Password))
			return n.chassis.SetAccount(a)
		}
	}
	return errkind.New(errkind.Internal, "%s has no account %s", n.inv.Name, n.inv.BMC.Username)
}

// flipLast changes the last byte of a text to another printable one.
func flipLast(text string) string {
	if text == "" {
		return "x"
	}
	b := []byte(text)
	b[len(b)-1] ^= flippedByte
	return string(b)
}

// swapBMCs exchanges the network cables of two BMCs.
func (w *World) swapBMCs(f fault.Fault) error {
	a, b := w.nodes[f.Node], w.nodes[f.With]
	if a == nil || b == nil {
		return errkind.New(errkind.NotFound, "BMCs of %s and %s cannot be exchanged", f.Node, f.With)
	}
	a.bmcAt, b.bmcAt = b.bmcAt, a.bmcAt
	a.oob, b.oob = b.oob, a.oob
	return nil
}

// dropBootPackets loses every packet between the node's boot NICs and the relay.
func (n *Node) dropBootPackets(fault.Fault) error {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.world.unreachable[n.metal.Identity().BootMAC] = true
	return nil
}

// loses reports whether a packet of a NIC is lost.
func (w *World) loses(mac addr.MAC) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.byMAC[mac]; n != nil && !n.cable.Live() {
		return true
	}
	return w.unreachable[mac]
}

func (n *Node) otherSerial(fault.Fault) error {
	n.metal.SetSerial(flipLast(n.metal.Identity().Serial))
	return nil
}

func (n *Node) pullDIMM(fault.Fault) error {
	for slot := emptySlot; slot >= 0; slot-- {
		if n.metal.RemoveDIMM(slot) {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s has no DIMM", n.inv.Name)
}

// pullNIC takes out the PCI function of a port.
func (n *Node) pullNIC(f fault.Fault) error {
	id, err := n.port(f.Port)
	if err != nil {
		return err
	}
	for _, p := range n.metal.Ports() {
		if p.NIC == id.NIC && p.Index == id.Index && n.metal.RemovePCI(p.PCI) {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s has no PCI function for %s", n.inv.Name, id)
}

// corruptDisk makes sectors of the system disk unwritable.
func (n *Node) corruptDisk(fault.Fault) error {
	disk := n.systemDisk()
	if disk == nil {
		return errkind.New(errkind.NotFound, "%s has no disk", n.inv.Name)
	}
	disk.FailWrites(badSectors, badLength)
	return nil
}

// systemDisk is the one that faults of disks are planted in; nil: the node has none.
func (n *Node) systemDisk() *metal.Disk {
	if disks := n.metal.Disks(); len(disks) > 0 {
		return disks[0]
	}
	return nil
}

// FaultyPart is the hardware that a fault is planted in, as far as a name of the
// inventory does not say it.
type FaultyPart struct {
	GPU        int    // in the order of the bus; -1: no GPU
	GPUAddress string // PCI address; empty: none
	DiskSerial string
}

// FaultyPart returns it for a fault of a node; the zero part, without a GPU, where
// there is no such node.
func (w *World) FaultyPart(f fault.Fault) FaultyPart {
	part := FaultyPart{GPU: -1}
	n := w.nodes[f.Node]
	if n == nil {
		return part
	}
	if at, err := n.gpu(f); err == nil {
		part.GPU, part.GPUAddress = slices.Index(n.metal.GPUs(), at), at
	}
	if disk := n.systemDisk(); disk != nil {
		part.DiskSerial = disk.Serial()
	}
	return part
}

// strayVersions are the modules that lie on a node by themselves, as an installer
// outside of the packages left them.
var strayVersions = map[string]system.Stray{"nvidia": {Module: "nvidia", Version: "535.54.03"}, "amd": {Module: "amdgpu", Version: "6.3.6"}}

// strayModule puts an older module of the GPU driver where the loader looks first.
func (n *Node) strayModule(fault.Fault) error {
	for _, g := range n.inv.Hardware.GPUs {
		if s, ok := strayVersions[g.Vendor]; ok {
			n.stray.Store(&s)
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s has no GPU", n.inv.Name)
}

// gpu returns the address of the GPU that a fault is planted in.
func (n *Node) gpu(f fault.Fault) (string, error) {
	list := n.metal.GPUs()
	if len(list) == 0 {
		return "", errkind.New(errkind.NotFound, "%s has no GPU", n.inv.Name)
	}
	i := faultyGPU
	if f.GPU != "" {
		var err error
		if i, err = strconv.Atoi(f.GPU); err != nil {
			return "", errkind.New(errkind.Invalid, "%q is no number of a GPU", f.GPU)
		}
	}
	return list[min(i, len(list)-1)], nil
}

// onGPU changes the hardware at the address of the GPU that a fault is planted in.
func onGPU(change func(hw *metal.Node, address string)) func(*World, fault.Fault) error {
	return onNode(func(n *Node, f fault.Fault) error {
		at, err := n.gpu(f)
		if err == nil {
			change(n.metal, at)
		}
		return err
	})
}

// damageMemory changes the memory of a GPU.
func damageMemory(m metal.GPUMemory) func(*World, fault.Fault) error {
	return onGPU(func(hw *metal.Node, at string) { hw.SetGPUMemory(at, m) })
}

// onNVLink changes a GPU that has NVLinks.
func onNVLink(change func(hw *metal.Node, address string)) func(*World, fault.Fault) error {
	return onNode(func(n *Node, f fault.Fault) error {
		at, err := n.gpu(f)
		if err != nil {
			return err
		}
		for _, g := range n.inv.Hardware.GPUs {
			if g.Vendor == "nvidia" && (g.Interconnect == "nvlink" || g.Interconnect == "nvswitch") {
				change(n.metal, at)
				return nil
			}
		}
		return errkind.New(errkind.NotFound, "the GPUs of %s have no NVLink", n.inv.Name)
	})
}

// leaveProlog leaves a prolog of jobs on a node that writes the list of its IMEX.
func (n *Node) leaveProlog(fault.Fault) error {
	if n.inv.Domain == "" {
		return errkind.New(errkind.NotFound, "%s is in no NVLink domain", n.inv.Name)
	}
	n.prolog.Store(true)
	return nil
}

// dropTime has a filter on the way drop what time servers answer.
func (n *Node) dropTime(fault.Fault) error {
	n.noTime.Store(n.world.opt.Clock.Now().UnixNano())
	return nil
}

// restoreTime takes the filter away.
func (n *Node) restoreTime(fault.Fault) error {
	n.noTime.Store(0)
	return nil
}

// wornDisk is what a disk says of itself that is near its end: NVM Express Base Specification 2.0, figure 207,
// bit 0 of the critical warning is spare below its threshold.
var wornDisk = metal.Wear{Critical: 1, Used: 104, MediaErrors: 9}

// wearDisk wears the first NVMe disk of a node out.
func (n *Node) wearDisk(fault.Fault) error {
	for _, d := range n.metal.Disks() {
		if strings.HasPrefix(d.Name(), "nvme") && n.metal.WearDisk(d.Name(), wornDisk) {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s has no NVMe disk", n.inv.Name)
}

// timeUnanswered is since when time servers do not answer; zero: they answer.
func (n *Node) timeUnanswered() (since time.Time) {
	if at := n.noTime.Load(); at != 0 {
		since = time.Unix(0, at)
	}
	return since
}

// removeChannel takes the device of the IMEX channel out of a node.
func (n *Node) removeChannel(fault.Fault) error {
	if n.inv.Domain == "" {
		return errkind.New(errkind.NotFound, "%s is in no NVLink domain", n.inv.Name)
	}
	n.channel.Store(true)
	return nil
}

// port finds the port that a fault names.
func (n *Node) port(text string) (model.PortID, error) {
	nic, i, err := fault.PortOf(n.inv, text)
	if err != nil {
		return model.PortID{}, err
	}
	return portID(n.inv, nic, i), nil
}

func portID(n *inventory.Node, nic *inventory.NIC, i int) model.PortID {
	return model.PortID{Node: n.Name, NIC: nic.Name, Index: i}
}

// degrade leaves one lane of a link, with bit errors.
func (n *Node) degrade(f fault.Fault) error {
	id, err := n.port(f.Port)
	if err != nil {
		return err
	}
	if err := n.world.model.SetLanes(id, oneLane); err != nil {
		return err
	}
	return n.world.model.SetErrors(id, badBitRate)
}

// fewBits is the bit error rate of a link that trains well and is worn, after
// correction: a good one has less than 1e-15.
const fewBits = 1e-10

// damageBits lets a link make errors that retransmission hides.
func (n *Node) damageBits(f fault.Fault) error {
	id, err := n.port(f.Port)
	if err != nil {
		return err
	}
	return n.world.model.SetErrors(id, fewBits)
}

// slowNICShare is what a slow NIC handles of its rate.
const slowNICShare = 0.6

// stuckPriority is what a NIC pauses whatever it is told: not that of RDMA.
const stuckPriority = 5

// pauseMore makes an end of a cable pause one more priority than it is told.
func (w *World) pauseMore(f fault.Fault) error {
	if f.End == fault.EndSwitch {
		return w.pauseAtSwitch(f)
	}
	return onNode((*Node).pauseAtNode)(w, f)
}

// pauseAtNode makes a NIC pause one more priority than it is told.
func (n *Node) pauseAtNode(f fault.Fault) error {
	id, err := n.port(f.Port)
	if err != nil {
		return err
	}
	for _, p := range n.metal.Ports() {
		if p.NIC == id.NIC && p.Index == id.Index && n.metal.StickPause(p.PCI, stuckPriority) {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s has no PCI function for %s", n.inv.Name, id)
}

// swapCables plugs the cables of two nodes into each other's switch port.
func (w *World) swapCables(f fault.Fault) error {
	a, b := w.nodes[f.Node], w.nodes[f.With]
	if a == nil || b == nil {
		return errkind.New(errkind.NotFound, "cables of %s and %s cannot be exchanged", f.Node, f.With)
	}
	pa, err := a.port(f.Port)
	if err != nil {
		return err
	}
	pb, err := b.port(f.Port)
	if err != nil {
		return err
	}
	return errors.Join(w.cables.Swap(wiring.Port(pa), wiring.Port(pb)), w.model.Swap(pa, pb))
}
