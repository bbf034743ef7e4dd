// SPDX-License-Identifier: Apache-2.0

// Package systemtest runs the installed systems of virtual nodes for tests, which reach
// them by the real SSH client. It knows no stage.
package systemtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// Controller is the address of the one who works on the nodes.
var Controller = netip.MustParseAddr("10.77.0.2")

// Packages are those that every node of a site has, unless a test takes them away.
var Packages = []string{"perftest", "ibverbs-utils", "infiniband-diags", "openmpi-bin", "python3-mpi4py"}

// NewSite has n nodes on one RoCE fabric. Without a speed the rails are software
// RDMA on an emulated NIC.
func NewSite(n, rails int, speed unit.BitRate) *inventory.Inventory {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "rail"}, Rails: rails, CIDR: netip.MustParsePrefix("10.77.16.0/20"), Addressing: "subnet", MTU: 9000}
	boot := &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix("10.77.0.0/24")}
	mgmt := inventory.NIC{Name: "mgmt", Network: boot, Boot: true, Ports: []inventory.NICPort{{Rail: -1, PCI: "0000:01:00.0"}}}
	rail := inventory.NIC{Name: "rail", Fabric: f, Speed: speed, HCA: speed > 0, LinkType: "ethernet", Model: "ConnectX-7"}
	if speed == 0 {
		rail.SoftwareRDMA, rail.LinkType, rail.Model, f.MTU = "rxe", "", "virtio", 1500
	}
	for r := range rails {
		rail.Ports = append(rail.Ports, inventory.NICPort{Rail: r, PCI: fmt.Sprintf("0000:%02x:00.0", 0x18+r)})
	}
	hw := &inventory.Hardware{Name: "h", CPU: inventory.CPU{Model: "Xeon", Sockets: 2, Cores: 64}, Memory: inventory.Memory{Size: 64 << 30, DIMMs: 4},
		Disks: []inventory.Disk{{Name: "os", Type: "nvme", Count: 1}}, NICs: []inventory.NIC{mgmt, rail},
		GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 2, Memory: 81559 << 20}}}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}, Networks: []*inventory.Network{boot}}
	image := &inventory.Image{Block: inventory.Block{Name: "debian"}, Packages: Packages}
	for i := range n {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)}), BootNetwork: boot,
			Hardware: hw, Image: image, BootMAC: addr.MAC{0x52, 0x54, 0, 0x77, 0, byte(11 + i)}, Serial: fmt.Sprintf("SN%d", i)})
	}
	slices.SortFunc(inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	return inv
}

// Rig is virtual nodes whose installed systems run. It implements onnode.Nodes by the
// real SSH client.
type Rig struct {
	Inv     *inventory.Inventory
	Board   *network.Memory
	Model   *model.Model
	Metal   map[string]*metal.Node
	HostKey map[string]ssh.PublicKey // that the controller expects of a node

	t      *testing.T
	ctx    context.Context
	site   *system.Site
	pool   *remote.Pool
	signer ssh.Signer
	clock  clock.Clock

	parts bool // systems see the parts of the hardware

	wg    sync.WaitGroup
	mu    sync.Mutex // guards what follows
	exits map[string]chassis.Exit
	power map[string]context.CancelFunc
}

// New installs every node of a site by hand and boots it. Stop is to be called in the
// test's bubble.
func New(t *testing.T, inv *inventory.Inventory) *Rig {
	t.Helper()
	return newRig(t, inv, false)
}

// NewWithParts is New with systems that see the parts of the hardware as those of the virtual
// rack do: how warm GPUs are, how fast disks and memory are, logs of disks and transceivers.
func NewWithParts(t *testing.T, inv *inventory.Inventory) *Rig {
	t.Helper()
	return newRig(t, inv, true)
}

func newRig(t *testing.T, inv *inventory.Inventory, parts bool) *Rig {
	t.Helper()
	r := &Rig{t: t, parts: parts, ctx: t.Context(), Inv: inv, Board: network.NewMemory(), Model: model.New(inv, 1), clock: clock.Wall{},
		Metal: map[string]*metal.Node{}, HostKey: map[string]ssh.PublicKey{}, exits: map[string]chassis.Exit{}, power: map[string]context.CancelFunc{}}
	r.site = system.NewSite(r.Model, 1)
	r.pool = r.newPool()
	signer, _, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	r.signer = signer
	shared, image := metal.NewShared(), metaltest.MakeImage(5<<20, 1)
	for _, n := range inv.Nodes {
		r.Metal[n.Name] = metal.BuildNode(n, metal.Options{Seed: 1, Shared: shared, Link: func(nic string, index int) metal.Link {
			return r.link(model.PortID{Node: n.Name, NIC: nic, Index: index})
		}})
		r.install(n, image)
	}
	for _, n := range inv.Nodes {
		r.boot(n)
	}
	return r
}

// link is the model as the hardware shows it.
func (r *Rig) link(id model.PortID) metal.Link {
	s, c := r.Model.State(id), r.Model.Counters(id)
	return metal.Link{Down: !s.Up, Lanes: s.Lanes, Counters: map[string]int64{"symbol_error": c.SymbolError, "port_rcv_errors": c.PortRcvErrors, "link_downed": c.LinkDowned,
		"link_error_recovery": c.LinkErrorRecovery, "out_of_sequence": c.OutOfSequence, "carrier_changes": c.CarrierChanges}}
}

// install leaves on a node what the install stage leaves.
func (r *Rig) install(n *inventory.Node, image []byte) {
	r.t.Helper()
	m := r.Metal[n.Name]
	if err := m.Disks()[0].Fill(0, image); err != nil {
		r.t.Fatal(err)
	}
	root := m.Root()
	if root == nil {
		r.t.Fatal("the image is not bootable")
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "root@"+n.Name)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.HostKey[n.Name], err = ssh.NewPublicKey(public); err != nil {
		r.t.Fatal(err)
	}
	files := map[string]string{
		"etc/hostname":                      n.Name + "\n",
		"etc/ssh/ssh_host_ed25519_key":      string(pem.EncodeToMemory(block)),
		"root/.ssh/authorized_keys":         remote.AuthorizedKey(r.signer, "controller"),
		"usr/local/sbin/ironrail-agent":     "agent",
		"etc/systemd/network/10-b.network":  fmt.Sprintf("[Match]\nMACAddress=%s\n\n[Network]\nAddress=%s/24\n", n.BootMAC, n.Address),
		"etc/systemd/network/README":        "not a network\n",
		"etc/systemd/system/a/keep.service": "",
	}
	if r.parts {
		files["usr/lib/modules/"+system.DefaultKernel+"/updates/dkms/nvidia.ko"] = "version: 550.90.07\nlicense: Dual MIT/GPL\n"
		for _, p := range m.Ports() {
			if p.RDMA != "" {
				files["etc/systemd/network/20-"+p.Netdev+".network"] = fmt.Sprintf("[Match]\nMACAddress=%s\n\n[Link]\nMTUBytes=9000\n", p.MAC)
			}
		}
	}
	for name, text := range files {
		if err := rootfs.WriteText(root, name, text, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
}

// portsOf lists the ports of a node as its system is told.
func portsOf(m *metal.Node) []system.Port {
	var list []system.Port
	for _, p := range m.Ports() {
		list = append(list, system.Port{ID: model.PortID{Node: m.Name(), NIC: p.NIC, Index: p.Index}, PCI: p.PCI, Netdev: p.Netdev, RDMA: p.RDMA})
	}
	return list
}

// boot starts the system of a node; it reboots when it is asked to.
func (r *Rig) boot(n *inventory.Node) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.power[n.Name] = cancel
	r.mu.Unlock()
	r.wg.Go(func() {
		for ctx.Err() == nil {
			m := r.Metal[n.Name]
			kernel := m.Boot(system.DefaultKernel, "root=LABEL=ironrail-root", m.Root())
			c := system.Config{Node: n.Name, Address: n.Address, Hardware: n.Hardware, Image: n.Image, Twin: twin.Of(n.Image), Kernel: kernel, Ports: portsOf(m),
				Root: kernel.Root(), Disks: kernel.Opener(ctx), Net: r.Board.At(n.Address), Clock: r.clock, Site: r.site}
			if r.parts {
				addParts(&c, m, kernel)
			}
			exit, err := system.Boot(ctx, c)
			if err != nil {
				r.t.Errorf("%s: %v", n.Name, err)
			}
			r.mu.Lock()
			r.exits[n.Name] = exit
			r.mu.Unlock()
			if exit != chassis.Reset {
				return
			}
		}
	})
}

// addParts lets a system see the parts of the hardware.
func addParts(c *system.Config, m *metal.Node, k *metal.Kernel) {
	c.SMART, c.Module, c.DarkNVLinks, c.CorrectedPCIe, c.CorrectedNVLink = k.SMART, k.Module, k.DarkNVLinks, k.CorrectedPCIe, k.CorrectedNVLink
	c.Scales, c.GPUModel, c.TriadRate, c.RoundRate, c.ReadRate, c.LoadGPUs = m.Scales(), k.GPUModel, k.TriadRate, k.RoundRate, k.ReadRate, m.LoadGPUs
	c.GPUMemory = func(address string) system.GPUMemory { return system.GPUMemory(k.GPUMemory(address)) }
	c.Heat = func() (list []system.GPUHeat) {
		for _, h := range k.Heats() {
			list = append(list, system.GPUHeat(h))
		}
		return list
	}
}

// Off cuts the power of a node.
func (r *Rig) Off(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.power[node]()
}

// Exit is how a node's system ended last.
func (r *Rig) Exit(node string) chassis.Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exits[node]
}

// newPool is a pool without connections.
func (r *Rig) newPool() *remote.Pool { return remote.NewPoolOn(64, r.Board.At(Controller)) }

// Disconnect ends all connections; the next command opens another one.
func (r *Rig) Disconnect() {
	r.pool.Close()
	r.pool = r.newPool()
}

// Stop ends everything.
func (r *Rig) Stop() {
	r.pool.Close()
	for _, n := range r.Inv.Nodes {
		r.Off(n.Name)
	}
	r.wg.Wait()
}

// Run implements onnode.Nodes.
func (r *Rig) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	n, ok := r.Inv.Node(node)
	if !ok {
		return onnode.Output{}, errors.New("no node " + node)
	}
	cmd := remote.Command{Argv: c.Argv, Stdout: c.Stdout, Stderr: c.Stderr}
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	out, err := r.pool.Run(ctx, remote.Config{Node: node, Addr: netip.AddrPortFrom(n.Address, 22), User: "root", HostKey: r.HostKey[node], Signer: r.signer}, cmd)
	return onnode.Output{Stdout: out.Stdout, Stderr: out.Stderr, Exit: out.Exit}, err
}

// Wait waits until every node answers.
func (r *Rig) Wait() {
	r.t.Helper()
	for len(r.site.Up()) < len(r.Inv.Nodes) {
		if err := r.clock.Sleep(r.ctx, 1e9); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Sh runs a script on a node.
func (r *Rig) Sh(node, script string, args ...string) (string, int) {
	r.t.Helper()
	out, err := r.Run(r.ctx, node, onnode.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: []byte("input\n")})
	if err != nil {
		r.t.Fatalf("%s: %v", script, err)
	}
	return string(out.Stdout) + string(out.Stderr), out.Exit
}

var _ onnode.Nodes = (*Rig)(nil)
