// SPDX-License-Identifier: Apache-2.0

// Package system is the operating system that runs on a virtual node after its
// image was written: an SSH server with the host key and the authorized keys of
// the node's root file system, the programs that ironrail's stages call, with the
// words and formats of the real ones, and the agent's own code. Measurements come
// from package model. What is not simulated: users other than root, terminals,
// forwarding, files that belong to packages, and every option of every program
// that no caller uses; an unknown program ends with status 127, as on a real node.
//
// All waits that stand for work go through Config.Clock.
package system

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/roce"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

const (
	// DefaultBootTime is how long kernel and services take until sshd answers; the
	// lab's nodes took 37 s.
	DefaultBootTime = 35 * time.Second
	// DefaultKernel is the release of an installed Debian 12.
	DefaultKernel = "6.1.0-56-amd64"
)

// sshPort is where sshd listens.
const sshPort = 22

// Kernel is the kernel that runs on the node's hardware: what it shows and what
// it is told. No method blocks. What it was told is gone with it.
type Kernel interface {
	roce.Network
	roce.RDMA
	roce.QoS
	FS() fs.FS // sys and proc, among others; links by fs.ReadLinkFS
	Up(netdev string) error
	SetGateway6(netdev string, gateway netip.Addr) error // a default route by it
	AddBond(name, mode string, mac addr.MAC)
	Enslave(netdev, bond string) error // and bring it up
	Bonds() []string                   // names
	AddVLAN(name string, id int, over string)
	VLANs() []string             // names
	Carrying(bond string) string // interface of the first member with a link; "": none
	Release() string
	Uptime() time.Duration
}

// Port is a network port of the node as the kernel calls it.
type Port struct {
	ID     model.PortID
	PCI    string
	Netdev string
	RDMA   string // device, also the one that can be made in software; "": none
}

// Config is one node's system.
type Config struct {
	Node     string
	Address  netip.Addr          // on the boot network; where sshd listens
	Hardware *inventory.Hardware // may be nil
	Image    *inventory.Image    // its packages are installed from the start; may be nil
	Twin     twin.Twin           // what the system says to be
	Domain   string              // NVLink domain that its tray is cabled to; "": none

	Kernel Kernel
	Ports  []Port
	Root   rootfs.Root // the installed root file system; it outlives the system
	Disks  disk.Opener // nil: no disk can be read

	Net      network.Network // nil: the operating system's
	Clock    clock.Clock     // nil: clock.Wall
	Site     *Site
	BootTime time.Duration // 0: DefaultBootTime
	// Stray is a module that no package brought and that the loader finds first;
	// nil, or a nil answer: there is none.
	Stray func() *Stray
	// GPUMemory is how the memory of the GPU at a PCI address is; nil: all are whole.
	GPUMemory func(address string) GPUMemory
	// GPUModel is the model of the GPU at a PCI address that was put in the place of another,
	// in lower case, or empty; nil: all are those of the hardware.
	GPUModel func(address string) string
	// Cards are the NICs that have settings in their flash; nil: none has.
	Cards Cards
	// Heat tells how warm the GPUs are; nil: all are at rest.
	Heat func() []GPUHeat
	// LoadGPUs puts load on all GPUs, or takes it off; nil: nobody notices.
	LoadGPUs func(on bool)
	// SMART reads the log page of an NVMe disk; nil: no disk answers.
	SMART func(device string) ([]byte, error)
	// Module reads the memory of the transceiver in a network interface; nil: none answers.
	Module func(netdev string, page byte, offset, length int) ([]byte, error)
	// DarkNVLinks is how many NVLinks of the GPU at a PCI address have no signal,
	// negative for all of them; nil: every one has.
	DarkNVLinks func(address string) int
	// CorrectedPCIe and CorrectedNVLink are how many errors the PCIe link and the first NVLink of
	// the GPU at a PCI address corrected; nil: none.
	CorrectedPCIe, CorrectedNVLink func(address string) int64
	// Prolog reports whether a drop-in of nvidia-imex, as a prolog of jobs leaves one,
	// writes the list of the last job when the service starts; nil: there is none.
	Prolog func() bool
	// NoChannel reports whether the device of IMEX channel 0 is not there; nil: it is.
	NoChannel func() bool
	// Unanswered is since when time servers do not answer; nil, or zero: they answer.
	Unanswered func() time.Time
	// TriadRate and RoundRate are what a CPU reaches in memory, bytes a second, and computes,
	// rounds a second, while all others do; ReadRate is how fast the disk of a path is read,
	// bytes a second. nil: nothing is measured.
	TriadRate, RoundRate func(cpu int) float64
	ReadRate             func(path string) float64
	// BootNetwork says what the boot NIC carries; nil: nobody knows, and nothing is measured.
	BootNetwork func() BootNetwork
	// Scales are by which factors physical quantities of the node differ; nil: none does.
	Scales *quantity.Scales
	// Volumes are the LUKS2 volumes on the disks, with the TPM that unlocks them; nil: there
	// are none.
	Volumes Volumes
	// Neighbours tells whom the NICs hear by LLDP; nil: nobody speaks.
	Neighbours func() []wire.Neighbour
}

// Volumes are the LUKS2 volumes on the disks of a node, by the links of udev to the devices that
// they lie on, and its TPM.
type Volumes interface {
	// ReadLUKS reads a volume, and what a device holds in words; NotFound is no device.
	ReadLUKS(device string) (v metal.LUKS, content string, err error)
	WriteLUKS(device string, v metal.LUKS) error
	// TPM is what the TPM seals by now; "": there is none.
	TPM() string
}

// GPUMemory is what has happened to the memory of a GPU.
type GPUMemory struct {
	BadRows int // that failed, and are remapped at the next reset
	BadBits int // double bit errors since the GPU's start
	// Slower is by which part the memory's clock is below what it should be.
	Slower float64
	// Missing is the part of the memory that is not there.
	Missing float64
}

// Stray is a file of a kernel module that lies on a node by itself.
type Stray struct{ Module, Version string }

// Site is what the systems of all nodes share. It is safe for concurrent use.
type Site struct {
	model *model.Model
	seed  uint64
	lists indexes

	measurements atomic.Uint32 // of networks; their ports follow one another

	clusters func(endpoint string) Cluster // set before the first boot; nil: there is none

	mu sync.Mutex // guards up; never held while waiting
	up map[netip.Addr]*node
}

// NewSite makes the shared part.
func NewSite(m *model.Model, seed uint64) *Site {
	return &Site{model: m, seed: seed, up: map[netip.Addr]*node{}}
}

// Up returns the names of the nodes whose system answers, in no order.
func (s *Site) Up() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.up))
	for _, n := range s.up {
		names = append(names, n.cfg.Node)
	}
	return names
}

// at returns the node whose system answers at an address.
func (s *Site) at(a netip.Addr) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up[a]
}

func (s *Site) enter(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up[n.cfg.Address] = n
}

func (s *Site) leave(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up[n.cfg.Address] == n {
		delete(s.up, n.cfg.Address)
	}
}

// node is a system that runs, from its kernel's start to its end.
type node struct {
	cfg   Config
	tree  *tree
	fs    sysfs.FS // the same tree, as the agent reads it
	procs processes
	links links
	units units
	dpkg  dpkg

	unlocked volumes
	burning  hold
	asked    queried

	going chan chassis.Exit  // how the system was asked to end
	leave func(chassis.Exit) // ends it
}

// stopTime is what services take to stop before a reboot.
const stopTime = 3 * time.Second

// Boot starts the system and runs it until ctx ends or somebody reboots it or
// switches it off. It returns when nothing of it runs any more. What was written
// to the root file system stays; /run, loaded modules, addresses and software
// RDMA devices are gone.
func Boot(ctx context.Context, cfg Config) (chassis.Exit, error) {
	cfg = cfg.withDefaults()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	how := chassis.Halt
	var once sync.Once
	n := newNode(cfg, func(e chassis.Exit) {
		once.Do(func() { how = e })
		stop()
	})
	if err := cfg.Clock.Sleep(ctx, cfg.BootTime); err != nil {
		return chassis.Halt, nil // power was cut while it started
	}
	err := n.run(ctx)
	once.Do(func() {}) // nobody changes how any more
	if err != nil && ctx.Err() == nil {
		return chassis.Halt, fmt.Errorf("system of node %s: %w", cfg.Node, err)
	}
	return how, nil
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.Wall{}
	}
	if c.BootTime <= 0 {
		c.BootTime = DefaultBootTime
	}
	c.Net = network.Or(c.Net)
	return c
}

func newNode(cfg Config, leave func(chassis.Exit)) *node {
	n := &node{cfg: cfg, leave: leave, going: make(chan chassis.Exit, 1)}
	n.tree = newTree(cfg.Kernel.FS(), cfg.Root)
	n.fs = sysfs.Of(n.tree)
	n.procs.init()
	return n
}

// run brings the services up and serves SSH.
func (n *node) run(ctx context.Context) error {
	host, err := n.hostKey()
	if err != nil {
		return err // no sshd: the node is up and nobody can log in
	}
	at := netip.AddrPortFrom(n.cfg.Address, sshPort).String()
	ln, err := n.cfg.Net.Listen(ctx, "tcp", at)
	if err != nil {
		return errkind.New(errkind.Refused, "sshd: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	n.startUnits(ctx)
	n.cfg.Site.enter(n)
	defer n.cfg.Site.leave(n)
	wg.Go(func() { n.finishStart(ctx) })
	wg.Go(func() { n.finish(ctx) })
	return n.serve(ctx, ln, host)
}

// finish ends the system some time after it was asked to.
func (n *node) finish(ctx context.Context) {
	select {
	case how := <-n.going:
		if n.cfg.Clock.Sleep(ctx, stopTime) == nil {
			n.leave(how)
		}
	case <-ctx.Done():
	}
}

// hostname is what the kernel says.
func (n *node) hostname() string {
	if name := n.fs.Text("etc/hostname"); name != "" {
		return name
	}
	return "localhost"
}
