// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	agentwire "github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/firmware"
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
	"github.com/ironrail/ironrail/rehearse/virtual/wire"
)

// Node is one virtual node with its BMC.
type Node struct {
	world   *World
	inv     *inventory.Node
	metal   *metal.Node
	chassis *chassis.Chassis
	kind    redfish.Personality
	board   chassis.Board
	cable   *wire.Wire // of the boot NIC
	oob     *wire.Wire // of the BMC
	bmcAt   netip.Addr // where the BMC is plugged in
	serial  *ipmi.Line // nil: firmware and kernel print nowhere that a BMC or a console server reads

	bmcTag  atomic.Pointer[int]          // VLAN that was set at the BMC; nil: the files'
	stray   atomic.Pointer[system.Stray] // a module of no package; nil: none
	channel atomic.Bool                  // the device of the IMEX channel is not there
	prolog  atomic.Bool                  // one of jobs writes the list of nvidia-imex
	noTime  atomic.Int64                 // since when time servers do not answer, ns since 1970; 0: they do
	stuck   atomic.Bool                  // it does not come up by kexec
	settled atomic.Bool                  // its operating system ran since it was switched on
	typing  sync.Mutex                   // guards misfits
	misfits map[model.PortID]bool        // ports that run as the other link type
}

// part is something that runs until its context ends.
type part func(context.Context) error

// newNode builds the i-th node of the inventory.
func (w *World) newNode(n *inventory.Node, i int) (*Node, error) {
	node := &Node{world: w, inv: n, bmcAt: n.BMC.Address}
	if (n.BMC.Protocol == "ipmi" || n.Console != nil) && n.Hardware.Console.Port != "" {
		node.serial = ipmi.NewLine()
	}
	node.metal = metal.BuildNode(n, metal.Options{Seed: w.opt.Seed, Clock: w.opt.Clock, Shared: w.hardware, Scale: max(1, ImageDisk/max(w.opt.ImageBytes, 1)), Link: node.link,
		BIOSVersion: deliveredVersion(n.Hardware.Versions.BIOS), HCAVersion: deliveredVersion(n.Hardware.Versions.HCA),
		Keys: func() []string { keys, _ := node.chassis.Keys(); return keys }})
	id := node.metal.Identity()
	node.kind = redfish.ForMaker(id.Vendor, id.Product)
	node.chassis = chassis.New(node.kind.Fit(chassis.Config{Node: n.Name, Manufacturer: id.Vendor, Product: id.Product, Serial: id.Serial, UUID: id.UUID,
		Timing: chassis.Timing{POST: postTime(n.Hardware)}, Supplies: n.Hardware.Power.Supplies, Components: componentsOf(n.Hardware), BIOS: biosOf(node.kind, n.Hardware), Keys: authoritiesOf(n.Hardware),
		Accounts: []chassis.Account{{ID: node.kind.AdminID, Username: n.BMC.Username, Password: w.password(n.BMC.Password), Role: "Administrator", Enabled: true}},
		Clock:    w.opt.Clock, Seed: w.opt.Seed}))
	if n.Address.IsValid() {
		node.cable = wire.New(w.opt.Board.At(n.Address), w.opt.Clock)
		if nic, ok := n.Hardware.BootNIC(); ok {
			node.cable.Rate(float64(nic.Speed), w.uplink)
			node.cable.Scale(httpPort, float64(ImageWire)/float64(max(w.opt.ImagePacked, 1)))
		}
	}
	if node.bmcAt.IsValid() {
		node.oob = wire.New(w.opt.Board.At(node.bmcAt), w.opt.Clock)
	}
	node.board = node.mainboard(!n.BootMAC.IsZero())
	return node, nil
}

// mainboard is the one that is there now; without a MAC that boots when the site
// gives none.
func (n *Node) mainboard(boots bool) chassis.Board {
	w, id := n.world, n.metal.Identity()
	var macs []addr.MAC
	if boots {
		macs = append(macs, id.BootMAC)
	}
	b := firmware.New(firmware.Config{Node: n.inv.Name, Chassis: n.chassis, Boot: n.inv.Hardware.Boot, Arch: n.inv.Hardware.Arch, SecureBoot: n.inv.Hardware.SecureBoot, MACs: macs, UUID: id.UUID, Clock: w.opt.Clock, Seed: w.opt.Seed,
		Relay: w.relay, Net: func(netip.Addr) network.Network { return n.cable.Scaled(1) }, Ramdisk: n.ramdisk, Disk: n.disk, Console: n.console(), Typed: n.typed(), Shim: n.metal.Variables()})
	return unplugged{b, n}
}

// console is where firmware and kernels print; nil: nowhere.
func (n *Node) console() io.Writer {
	if n.serial == nil {
		return nil
	}
	return n.serial
}

// typed is what is typed at the node; nil: nothing is.
func (n *Node) typed() <-chan byte {
	if n.serial == nil {
		return nil
	}
	return n.serial.Typed()
}

// Metal is the node's hardware.
func (n *Node) Metal() *metal.Node { return n.metal }

// Chassis is the node's physical part.
func (n *Node) Chassis() *chassis.Chassis { return n.chassis }

// busy is how hard the node works, from 0 to 1: what it draws follows.
func (n *Node) busy() float64 {
	if n.metal.Loaded() {
		return 1
	}
	if n.chassis.Phase() == "OS" {
		return 0.8
	}
	return 0.2
}

// ramdisk runs the install ramdisk with the real agent.
func (n *Node) ramdisk(ctx context.Context, k firmware.Kernel) chassis.Exit {
	n.starts()
	exit := metal.Ramdisk{Cmdline: k.Cmdline, Initrd: [][]byte{k.Initrd}, Neighbours: n.neighbours, Console: n.console(),
		Net: func(netip.Addr) network.Network { return n.cable }}.Boot(ctx, n.metal)
	if installed, ok := n.metal.FromMemory(); ok && ctx.Err() == nil {
		return n.run(ctx, installed, k.Cmdline)
	}
	if !n.metal.TakesOver() || ctx.Err() != nil {
		return exit
	}
	if n.stuck.Load() { // a device does not come up again: nothing is printed any more
		<-ctx.Done()
		return chassis.Halt
	}
	if next, ok := n.start(ctx, metal.InstalledArguments+" "+agentwire.KexecArgument); ok {
		return next
	}
	return exit
}

// disk runs the installed system; false when nothing on the disks boots.
func (n *Node) disk(ctx context.Context) (chassis.Exit, bool) {
	return n.start(ctx, metal.InstalledArguments)
}

// start runs the installed system, whose kernel has these arguments.
func (n *Node) start(ctx context.Context, arguments string) (chassis.Exit, bool) {
	installed, ok := n.metal.System()
	if !ok {
		return chassis.Halt, false
	}
	return n.run(ctx, installed, arguments), true
}

// run runs a system, whose kernel has these arguments.
func (n *Node) run(ctx context.Context, installed metal.System, arguments string) chassis.Exit {
	root := installed.Root
	n.starts()
	if n.serial != nil {
		_, _ = fmt.Fprintf(n.serial, metal.FirstLine, installed.Twin.Kernel)
	}
	kernel := n.metal.Boot(installed.Twin.Kernel, arguments, root)
	exit, err := system.Boot(ctx, system.Config{Node: n.inv.Name, Address: n.inv.Address, Domain: n.inv.Domain, Hardware: n.inv.Hardware, Image: n.inv.Image, Twin: installed.Twin,
		Kernel: kernel, Ports: n.ports(), Root: root, Disks: kernel.Opener(ctx), Net: n.cable, Clock: n.world.opt.Clock, Site: n.world.systems, Neighbours: n.neighbours, Stray: n.stray.Load, SMART: kernel.SMART, Volumes: kernel, Module: kernel.Module,
		DarkNVLinks: kernel.DarkNVLinks, CorrectedPCIe: kernel.CorrectedPCIe, CorrectedNVLink: kernel.CorrectedNVLink, Prolog: n.prolog.Load, NoChannel: n.channel.Load, Unanswered: n.timeUnanswered,
		Scales: n.metal.Scales(), GPUModel: kernel.GPUModel, Cards: cardsOf(kernel), TriadRate: kernel.TriadRate, RoundRate: kernel.RoundRate, ReadRate: kernel.ReadRate,
		BootNetwork: func() system.BootNetwork { return bootNetworkOf(kernel) },
		GPUMemory:   func(address string) system.GPUMemory { return system.GPUMemory(kernel.GPUMemory(address)) },
		Heat:        func() []system.GPUHeat { return heatOf(kernel) }, LoadGPUs: n.loadGPUs})
	if err != nil {
		return chassis.Halt
	}
	return exit
}

// bootNetworkOf is what the boot NIC carries.
func bootNetworkOf(k *metal.Kernel) (b system.BootNetwork) {
	b.Netdev, b.Sends, b.Receives, b.Packet = k.BootNetwork()
	return b
}

// ports are the node's network ports as its kernel calls them.
func (n *Node) ports() (all []system.Port) {
	for _, p := range n.metal.Ports() {
		all = append(all, system.Port{ID: model.PortID{Node: n.inv.Name, NIC: p.NIC, Index: p.Index}, PCI: p.PCI, Netdev: p.Netdev, RDMA: p.RDMA})
	}
	return all
}

// bmcVLAN is the VLAN that the BMC has: as its bmc block says, until somebody sets another.
func (n *Node) bmcVLAN() int {
	if id := n.bmcTag.Load(); id != nil {
		return *id
	}
	if b := n.inv.BMC; b.Profile != nil {
		return b.Profile.VLAN
	}
	return 0
}

// openBMC opens the socket of the node's BMC.
func (n *Node) openBMC(ctx context.Context) (part, error) {
	b := n.inv.BMC
	at := netip.AddrPortFrom(n.bmcAt, b.Port).String()
	if b.Protocol == "redfish" {
		ln, err := n.oob.Listen(ctx, "tcp", at)
		return func(ctx context.Context) error {
			return redfish.Serve(ctx, ln, n.chassis, n.kind, redfish.Options{Address: n.bmcAt, MAC: b.MAC, VLAN: n.bmcVLAN, Hardware: n.parts(), SecureBoot: n.metal.SecureBoot})
		}, err
	}
	conn, err := n.oob.ListenPacket(ctx, "udp", at)
	return func(ctx context.Context) error {
		line := n.serial
		if n.inv.Console != nil {
			line = nil // its port is at the console server
		}
		return ipmi.Serve(ctx, conn, n.chassis, ipmi.Options{Serial: line, VLAN: n.bmcVLAN})
	}, err
}

// unplugged is a mainboard whose network is gone before its programs are: peers
// of a node that loses its power hear nothing, not even goodbye.
type unplugged struct {
	chassis.Board
	node *Node
}

// Run implements chassis.Board.
func (u unplugged) Run(ctx context.Context, cold bool) chassis.Exit {
	at, board := u.node.inv.Address, u.node.world.opt.Board
	if cold {
		u.node.loadCards()
	}
	if cold && u.node.inv.Hardware.Power.Inrush > 0 {
		var wg sync.WaitGroup
		defer wg.Wait()
		settling, stop := context.WithCancel(ctx)
		defer stop()
		wg.Go(func() {
			if u.node.world.opt.Clock.Sleep(settling, settlesAfter) == nil {
				u.node.settle()
			}
		})
	}
	if !at.IsValid() {
		return u.Board.Run(ctx, cold)
	}
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer board.Attach(at)
	defer context.AfterFunc(ctx, func() {
		board.Detach(at)
		stop(context.Cause(ctx))
	})()
	return u.Board.Run(inner, cold)
}

// loadCards lets the NICs take up what is in their flash. A port that is Ethernet on an
// InfiniBand fabric, or the other way round, has no link with its switch.
func (n *Node) loadCards() {
	n.metal.PowerUp()
	n.matchTypes()
}

// matchTypes takes the links of ports away that run as the other link type, and gives them
// back to those that do not any more.
func (n *Node) matchTypes() {
	n.typing.Lock()
	defer n.typing.Unlock()
	for _, p := range n.metal.Ports() {
		id := model.PortID{Node: n.inv.Name, NIC: p.NIC, Index: p.Index}
		other := n.metal.OtherType(p.PCI)
		if other == n.misfits[id] {
			continue
		}
		if n.misfits == nil {
			n.misfits = map[model.PortID]bool{}
		}
		n.misfits[id] = other
		_ = n.world.model.SetDown(id, other) // it fails for ports that the model does not have, which have no link
	}
}

// parts is what the BMC knows of the node's network ports.
func (n *Node) parts() *redfish.Hardware {
	h := &redfish.Hardware{}
	for i, p := range n.metal.Ports() {
		nic := redfish.NIC{MAC: p.MAC, Now: func() addr.MAC { return n.metal.Ports()[i].MAC }}
		if block, ok := n.inv.Hardware.NIC(p.NIC); ok {
			nic.Mbps = int(block.Speed / 1e6)
		}
		h.NICs = append(h.NICs, nic)
	}
	return h
}

// factorySetting is what a setting has, as delivered, that only the site knows of.
const factorySetting = "Auto"

// biosOf is the settings of a board as delivered: those of its kind, and those that
// the site asks for.
func biosOf(kind redfish.Personality, h *inventory.Hardware) map[string]string {
	if len(h.BIOS) == 0 {
		return nil // those of the kind
	}
	all := map[string]string{}
	for k := range h.BIOS {
		all[k] = factorySetting
	}
	maps.Copy(all, kind.Attributes)
	return all
}

// componentsOf is the firmware of a chassis, at the versions that the block asks
// for.
func componentsOf(h *inventory.Hardware) []chassis.Component {
	version := func(want, or string) string {
		want = strings.TrimLeft(want, "<>= ")
		if want == "" {
			return or
		}
		return want
	}
	return []chassis.Component{
		{ID: "BMC", Name: "BMC", Version: version(h.Versions.BMC.String(), "1.03.18"), Updateable: true},
		{ID: "BIOS", Name: "BIOS", Version: version(h.Versions.BIOS.String(), "2.1"), Updateable: true},
	}
}
