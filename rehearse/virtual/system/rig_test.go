package system_test

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

	"github.com/ironrail/ironrail/engine/onnodetest"
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
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
)

var controller = netip.MustParseAddr("10.77.0.2")

// packages that every node of a rig has, unless a test takes them away.
var packages = []string{"perftest", "ibverbs-utils", "infiniband-diags", "openmpi-bin", "python3-mpi4py"}

// site has n nodes on one RoCE fabric. Without a speed the rails are software
// RDMA on an emulated NIC.
func site(n, rails int, speed unit.BitRate) *inventory.Inventory {
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
	image := &inventory.Image{Block: inventory.Block{Name: "debian"}, Packages: packages}
	for i := range n {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)}), BootNetwork: boot,
			Hardware: hw, Image: image, BootMAC: addr.MAC{0x52, 0x54, 0, 0x77, 0, byte(11 + i)}, Serial: fmt.Sprintf("SN%d", i)})
	}
	slices.SortFunc(inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	return inv
}

// rig is virtual nodes whose installed systems run. It implements onnode.Nodes by
// the real SSH client.
type rig struct {
	t       *testing.T
	ctx     context.Context
	inv     *inventory.Inventory
	board   *network.Memory
	model   *model.Model
	site    *system.Site
	pool    *remote.Pool
	signer  ssh.Signer
	clock   clock.Clock
	metal   map[string]*metal.Node
	hostKey map[string]ssh.PublicKey

	wg    sync.WaitGroup
	mu    sync.Mutex // guards what follows
	exits map[string]chassis.Exit
	power map[string]context.CancelFunc
}

// newRig installs every node of a site by hand and boots it. stop is to be called
// in the test's bubble.
func newRig(t *testing.T, inv *inventory.Inventory) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), inv: inv, board: network.NewMemory(), model: model.New(inv, 1), clock: clock.Wall{},
		metal: map[string]*metal.Node{}, hostKey: map[string]ssh.PublicKey{}, exits: map[string]chassis.Exit{}, power: map[string]context.CancelFunc{}}
	r.site = system.NewSite(r.model, 1)
	r.pool = remote.NewPoolOn(64, r.board.At(controller))
	signer, _, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	r.signer = signer
	shared, image := metal.NewShared(), metal.Image(5<<20, 1)
	for _, n := range inv.Nodes {
		r.metal[n.Name] = metal.Build(n, metal.Options{Seed: 1, Shared: shared, Link: func(nic string, index int) metal.Link {
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
func (r *rig) link(id model.PortID) metal.Link {
	s, c := r.model.State(id), r.model.Counters(id)
	return metal.Link{Down: !s.Up, Lanes: s.Lanes, Counters: map[string]int64{"symbol_error": c.SymbolError, "port_rcv_errors": c.PortRcvErrors, "link_downed": c.LinkDowned,
		"link_error_recovery": c.LinkErrorRecovery, "out_of_sequence": c.OutOfSequence, "carrier_changes": c.CarrierChanges}}
}

// install leaves on a node what the install stage leaves.
func (r *rig) install(n *inventory.Node, image []byte) {
	r.t.Helper()
	m := r.metal[n.Name]
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
	if r.hostKey[n.Name], err = ssh.NewPublicKey(public); err != nil {
		r.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"etc/hostname":                      n.Name + "\n",
		"etc/ssh/ssh_host_ed25519_key":      string(pem.EncodeToMemory(block)),
		"root/.ssh/authorized_keys":         remote.AuthorizedKey(r.signer, "controller"),
		"usr/local/sbin/ironrail-agent":     "agent",
		"etc/systemd/network/10-b.network":  fmt.Sprintf("[Match]\nMACAddress=%s\n\n[Network]\nAddress=%s/24\n", n.BootMAC, n.Address),
		"etc/systemd/network/README":        "not a network\n",
		"etc/systemd/system/a/keep.service": "",
	} {
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
func (r *rig) boot(n *inventory.Node) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.power[n.Name] = cancel
	r.mu.Unlock()
	r.wg.Go(func() {
		for ctx.Err() == nil {
			m := r.metal[n.Name]
			kernel := m.Boot(system.DefaultKernel, "root=LABEL=ironrail-root", m.Root())
			exit, err := system.Boot(ctx, system.Config{Node: n.Name, Address: n.Address, Hardware: n.Hardware, Image: n.Image, Kernel: kernel, Ports: portsOf(m),
				Root: kernel.Root(), Disks: kernel.Opener(ctx), Net: r.board.At(n.Address), Clock: r.clock, Site: r.site})
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

// off cuts the power of a node.
func (r *rig) off(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.power[node]()
}

// stop ends everything.
func (r *rig) stop() {
	r.pool.Close()
	for _, n := range r.inv.Nodes {
		r.off(n.Name)
	}
	r.wg.Wait()
}

// Run implements onnode.Nodes.
func (r *rig) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	n, ok := r.inv.Node(node)
	if !ok {
		return onnode.Output{}, errors.New("no node " + node)
	}
	cmd := remote.Command{Argv: c.Argv, Stdout: c.Stdout, Stderr: c.Stderr}
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	out, err := r.pool.Run(ctx, remote.Config{Node: node, Addr: netip.AddrPortFrom(n.Address, 22), User: "root", HostKey: r.hostKey[node], Signer: r.signer}, cmd)
	return onnode.Output{Stdout: out.Stdout, Stderr: out.Stderr, Exit: out.Exit}, err
}

// wait waits until every node answers.
func (r *rig) wait() {
	r.t.Helper()
	for len(r.site.Up()) < len(r.inv.Nodes) {
		if err := r.clock.Sleep(r.ctx, 1e9); err != nil {
			r.t.Fatal(err)
		}
	}
}

// sh runs a script on a node.
func (r *rig) sh(node, script string, args ...string) (string, int) {
	r.t.Helper()
	out, err := r.Run(r.ctx, node, onnode.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: []byte("input\n")})
	if err != nil {
		r.t.Fatalf("%s: %v", script, err)
	}
	return string(out.Stdout) + string(out.Stderr), out.Exit
}

// run is a stage.Run on the bubble's clock.
type run struct {
	*onnodetest.Run
	on clock.Clock
}

func (r run) Clock() clock.Clock { return r.on }

// causes are the findings of a run in a line each.
func (r run) causes() string {
	var list []string
	for _, f := range r.Findings {
		for _, s := range f.Suspects {
			list = append(list, s.Subject.Name+" "+s.Part+": "+f.Cause)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// newPool is a pool without connections.
func newPool(r *rig) *remote.Pool { return remote.NewPoolOn(64, r.board.At(controller)) }
