// SPDX-License-Identifier: Apache-2.0

// Package virtual is the virtual rack: every BMC, mainboard, disk, PDU, switch
// and cable of an inventory, simulated, on a network that the controller under
// rehearsal reaches as it would reach the real one. Faults are planted in
// physical quantities. What is measured, found and decided is none of its
// business: no product code imports it.
package virtual

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/firmware"
	"github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/power"
	"github.com/ironrail/ironrail/rehearse/virtual/slurm"
	"github.com/ironrail/ironrail/rehearse/virtual/sonic"
	"github.com/ironrail/ironrail/rehearse/virtual/subnet"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
	"github.com/ironrail/ironrail/rehearse/virtual/wire"
	"github.com/ironrail/ironrail/rehearse/virtual/wiring"
)

// What images stand for, in bytes: what the lab's image has on the wire and on a
// disk (178 MiB compressed of 1,086 MiB), with the drivers of a GPU node.
const (
	ImageWire = 1100 << 20
	ImageDisk = 3300 << 20
)

// Options of a World. Clock, Board and Controller must be set.
type Options struct {
	Seed  uint64
	Clock clock.Clock   // of the hardware
	Board network.Board // what everything is plugged into
	// What the stand-in of an image really has, in bytes: on a disk, where each
	// stands for ImageDisk/ImageBytes, and on the wire.
	ImageBytes, ImagePacked int64
	// Controller is the one that ironrail runs on, and Standbys are how many others have
	// a standby of a fabric's subnet manager.
	Controller *inventory.Controller
	Standbys   map[string]int // by fabric
}

// World is the virtual rack. Make it with New, then Open, then Run, each once.
// Plant may be called at any time.
type World struct {
	inv        *inventory.Inventory
	opt        Options
	controller netip.Addr
	model      *model.Model
	cables     *wiring.Plant
	hardware   *metal.Shared
	systems    *system.Site
	uplink     *wire.Uplink
	relay      *firmware.Relay
	other      *firmware.OtherDHCP
	grid       *power.Grid
	shelves    map[string]*shelf // with a control block
	slurm      *slurm.Controller
	clusters   map[string]*kubernetes.Cluster // by endpoint
	subnets    map[string]*subnet.Manager     // by fabric
	switches   map[string]*sonic.Switch       // with a login
	nodes      map[string]*Node
	parts      []part // what Run runs

	mu          sync.Mutex // guards what follows
	unreachable map[addr.MAC]bool
	byMAC       map[addr.MAC]*Node
	narrow      map[*inventory.Cable]int // lanes of links between switches; absent: all
}

// New builds the rack of an inventory. Nothing runs before Run.
func New(inv *inventory.Inventory, o Options) (*World, error) {
	w := &World{inv: inv, opt: o, controller: o.Controller.Address, model: model.New(inv, o.Seed),
		hardware: metal.NewShared(),
		nodes:    map[string]*Node{}, unreachable: map[addr.MAC]bool{}, byMAC: map[addr.MAC]*Node{}, narrow: map[*inventory.Cable]int{}}
	w.cables = wiring.New(inv, wiring.Options{Seed: o.Seed, Clock: o.Clock, Trunk: w.countTrunk})
	w.systems = system.NewSite(w.model, o.Seed)
	w.uplink = wire.NewUplink(uplinkRate(inv))
	w.relay = w.newRelay()
	w.other = w.newOtherDHCP()
	for i, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		node, err := w.newNode(n, i)
		if err != nil {
			return nil, fmt.Errorf("virtual %s: %w", n.Name, err)
		}
		w.nodes[n.Name] = node
		if !n.BootMAC.IsZero() && node.cable != nil {
			w.byMAC[node.metal.Identity().BootMAC] = node
		}
	}
	w.slurm = slurm.New(scheduledNodes(inv))
	if err := w.newClusters(); err != nil {
		return nil, err
	}
	w.newSubnets()
	w.newSwitches()
	w.newShelves()
	return w, w.newGrid()
}

// scheduledNodes returns the nodes that go to a scheduler, with their addresses.
func scheduledNodes(inv *inventory.Inventory) map[string]string {
	nodes := map[string]string{}
	for _, n := range inv.Nodes {
		if n.Handover != nil && n.Address.IsValid() {
			nodes[n.Name] = n.Address.String()
		}
	}
	return nodes
}

// Scheduler is the site's scheduler, whose programs run on the controller.
func (w *World) Scheduler() *slurm.Controller { return w.slurm }

// uplinkRate is the controller's rate on the boot network in bits a second: that
// of the fastest boot NIC, since nobody connects a controller more slowly.
func uplinkRate(inv *inventory.Inventory) float64 {
	rate := 10e9
	for _, h := range inv.Hardware {
		if nic, ok := h.BootNIC(); ok {
			rate = max(rate, float64(nic.Speed))
		}
	}
	return rate
}

// newRelay makes the relay agent of the boot network: the address that the site
// gives it, else the gateway, else the highest one that nobody has.
func (w *World) newRelay() *firmware.Relay {
	at := w.relayAddress()
	return firmware.NewRelay(firmware.RelayConfig{Net: w.opt.Board.At(at), Address: at, Server: w.controller, Beside: w.addressServer(), Loss: w.loses})
}

// addressServer is the site's own DHCP server, beside which ironrail gives boot files; nil
// where there is none. It has what the files say, at an address that nobody else has.
func (w *World) addressServer() *firmware.AddressServer {
	boot, taken := w.takenOnBoot()
	if boot == nil || boot.DHCP.Mode != inventory.DHCPProxy {
		return nil
	}
	of := map[addr.MAC]netip.Prefix{}
	for _, n := range w.inv.Nodes {
		if n.BootNetwork != nil && n.Address.IsValid() {
			of[n.BootMAC] = netip.PrefixFrom(n.Address, n.BootNetwork.CIDR.Bits())
		}
	}
	at := lastOf(boot.CIDR).Prev()
	for taken[at] || at == w.relayAddress() {
		at = at.Prev()
	}
	return &firmware.AddressServer{Address: at, Of: func(m addr.MAC) (netip.Prefix, bool) { a, ok := of[m]; return a, ok }}
}

func (w *World) relayAddress() netip.Addr {
	boot, taken := w.takenOnBoot()
	if boot == nil {
		return netip.AddrFrom4([4]byte{192, 0, 2, 1}) // RFC 5737: nobody asks
	}
	if len(boot.DHCP.Relays) > 0 {
		return boot.DHCP.Relays[0]
	}
	if boot.Gateway.IsValid() && !taken[boot.Gateway] {
		return boot.Gateway
	}
	for a := boot.CIDR.Addr().Next(); boot.CIDR.Contains(a); a = a.Next() {
		if !taken[a] {
			return a
		}
	}
	return boot.CIDR.Addr()
}

// takenOnBoot is the boot network, nil where no node has one, with the addresses that
// somebody has.
func (w *World) takenOnBoot() (boot *inventory.Network, taken map[netip.Addr]bool) {
	taken = map[netip.Addr]bool{w.controller: true}
	for _, n := range w.inv.Nodes {
		taken[n.Address], taken[n.BMC.Address] = true, true
		if boot == nil {
			boot = n.BootNetwork
		}
	}
	return boot, taken
}

// newOtherDHCP makes the DHCP server that somebody may plug in, at the highest address
// of the boot network that nobody has.
func (w *World) newOtherDHCP() *firmware.OtherDHCP {
	at := netip.AddrFrom4([4]byte{192, 0, 2, 2})
	if boot, taken := w.takenOnBoot(); boot != nil {
		taken[w.relayAddress()] = true
		for at = lastOf(boot.CIDR).Prev(); taken[at]; {
			at = at.Prev()
		}
	}
	return firmware.NewOtherDHCP(firmware.OtherConfig{Net: w.opt.Board.At(at), Address: at, Relay: w.relay, Lease: at.Prev(), File: "pxelinux.0", VendorClass: "PXEClient"})
}

// lastOf is the broadcast address of an IPv4 network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

// Node returns a node of the rack.
func (w *World) Node(name string) (*Node, bool) {
	n, ok := w.nodes[name]
	return n, ok
}

// Controller is the network as the controller has it.
func (w *World) Controller() network.Network { return w.opt.Board.At(w.controller) }

// Open opens the sockets of all BMCs, PDUs and power shelves, once, before Run and after the
// faults that exchange cables. An address that cannot be had is an error, after which
// nothing is open and the rack is of no use any more.
func (w *World) Open(ctx context.Context) error {
	err := w.open(ctx)
	if err != nil {
		closed, cancel := context.WithCancel(ctx)
		cancel()
		err = errors.Join(err, w.Run(closed))
	}
	return err
}

func (w *World) open(ctx context.Context) error {
	w.parts = append(w.parts, w.relay.Run, w.other.Run, w.grid.Run)
	for _, n := range w.inv.Nodes {
		node := w.nodes[n.Name]
		if node == nil {
			continue
		}
		w.parts = append(w.parts, node.chassis.Run)
		if !node.bmcAt.IsValid() || n.BMC.Endpoint != "" {
			continue
		}
		serve, err := node.openBMC(ctx)
		if err != nil {
			return fmt.Errorf("BMC of %s: %w", n.Name, err)
		}
		w.parts = append(w.parts, serve)
	}
	if err := w.openServices(ctx); err != nil {
		return err
	}
	if err := w.openClusters(ctx); err != nil {
		return err
	}
	if err := w.openSwitches(ctx); err != nil {
		return err
	}
	if err := w.openConsoles(ctx); err != nil {
		return err
	}
	if err := w.openShelves(ctx); err != nil {
		return err
	}
	for _, r := range w.inv.Racks {
		for _, p := range r.PDUs {
			if p.Control == nil {
				continue
			}
			serve, err := w.openPDU(ctx, p)
			if err != nil {
				return fmt.Errorf("PDU %s: %w", p.Name, err)
			}
			w.parts = append(w.parts, serve)
		}
	}
	return nil
}

// Run runs everything until ctx ends, and then returns nil when nothing runs any
// more.
func (w *World) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := w.parts
	var wg sync.WaitGroup
	errs := make([]error, len(parts))
	for i, run := range parts {
		wg.Go(func() {
			if errs[i] = run(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}

// postTime returns how long firmware takes from power-on to its first boot device. The
// figures are those of the prediction's table, less the boot itself (see
// docs/rehearsal.md for their sources).
func postTime(h *inventory.Hardware) time.Duration {
	const tib = 1 << 40
	switch gpus, memory := h.GPUCount(), int64(h.Memory.Size); {
	case gpus >= 8 && memory >= tib:
		return 10 * time.Minute
	case gpus >= 4:
		return 7 * time.Minute
	case memory >= tib/2:
		return 5 * time.Minute
	case len(h.Disks) > 0 && h.Disks[0].Type == "virtio":
		return 8 * time.Second // an emulated machine
	}
	return 3 * time.Minute
}
