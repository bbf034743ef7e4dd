// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/roce"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// Kernel is a kernel that runs on a node: what is lost at a reboot. It is the
// roce.Network, the roce.RDMA and the roce.QoS of the node, and safe for
// concurrent use; no method blocks.
type Kernel struct {
	node    *Node
	root    *Root // nil: none
	release string
	cmdline string
	bootID  string
	began   time.Time
	loaded  atomic.Bool // another kernel is, for kexec

	mu        sync.Mutex
	netdevs   map[int]*netdev   // guarded by mu, like all below; by port, made when first changed
	settings  map[string]string // of the IPv4 stack, by "netdev/setting"
	routes    map[string]roce.Route
	softAdded map[int]bool // ports with a soft RDMA device
	bonds     map[string]*bond
	vlans     map[string]*vlan
}

// netdev is what a kernel holds of an interface.
type netdev struct {
	up        bool
	mtu       int
	addresses []netip.Prefix
	gateway6  netip.Addr       // of an IPv6 default route; the zero value: none
	sorting   wire.RoCESorting // zero: as NICs come up
}

var (
	_ roce.Network = (*Kernel)(nil)
	_ roce.RDMA    = (*Kernel)(nil)
	_ roce.QoS     = (*Kernel)(nil)
)

// Boot starts a kernel on the node: everything that the one before held is gone.
// root is what it has as /, nil for none.
func (n *Node) Boot(release, cmdline string, root *Root) *Kernel {
	n.started(root)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boots++
	n.kernel = &Kernel{node: n, root: root, release: release, cmdline: cmdline, bootID: n.bootID(), began: n.options.Clock.Now()}
	return n.kernel
}

// bootID makes the random id of a boot, which repeats with the seed. Called with
// mu held.
func (n *Node) bootID() string {
	b := binary.LittleEndian.AppendUint64([]byte(n.name+"\x00boot"), n.options.Seed)
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, n.boots))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Kernel returns the kernel that runs, or ran last.
func (n *Node) Kernel() *Kernel {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kernel
}

// FS is what the kernel that runs shows; see Kernel.FS.
func (n *Node) FS() fs.FS { return n.Kernel().FS() }

// FS is the files of the running node: /sys, /proc and /dev of the hardware, and
// everything else of its root file system.
func (k *Kernel) FS() fs.FS {
	return view{kernel: k, lookup: k.lookup, names: k.names, ways: &k.node.shape.ways}
}

// lookup returns the entry of a path without links, or nil.
func (k *Kernel) lookup(name string) *file {
	if f := k.node.shape.tree.files[name]; f != nil && f.present(k) {
		return f
	}
	if f := k.bondEntry(name); f != nil {
		return f
	}
	if f := k.vlanEntry(name); f != nil {
		return f
	}
	if k.root == nil {
		return nil
	}
	return k.root.lookup(name)
}

func (k *Kernel) names(dir string) []string {
	names := k.node.shape.tree.children[dir]
	if strings.HasPrefix(dir, classNet) {
		names = k.vlanNames(dir, k.bondNames(dir, names))
	}
	if k.root == nil || strings.HasPrefix(dir+"/", "sys/") || strings.HasPrefix(dir+"/", "proc/") {
		return names
	}
	all := append(slices.Clone(names), k.root.names(dir)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Root is the root file system that the kernel runs on; nil for none.
func (k *Kernel) Root() *Root { return k.root }

// Release is the kernel's release, such as 6.1.0-56-amd64.
func (k *Kernel) Release() string { return k.release }

// BootID is the kernel's random id of this boot.
func (k *Kernel) BootID() string { return k.bootID }

// Uptime is how long the kernel has run.
func (k *Kernel) Uptime() time.Duration { return k.node.options.Clock.Now().Sub(k.began) }

// Opener opens the disks of the node by path, /dev/nvme0n1. What a disk makes its
// user wait for ends with ctx, as at a loss of power.
func (k *Kernel) Opener(ctx context.Context) disk.Opener {
	return func(name string, use disk.Use) (disk.Device, error) {
		for _, d := range k.node.disks {
			if path.Join("/dev", d.slot.name) == name && !k.node.missing(d.slot.function) {
				return d.open(ctx, name, use), nil
			}
		}
		return nil, errkind.New(errkind.NotFound, "disk: %w", &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist})
	}
}

// port returns the number of an interface that is there.
func (k *Kernel) port(name string) (int, error) {
	for i, p := range k.node.shape.ports {
		if p.netdev == name && hasNetdev(p.function)(k) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("interface %s: %w", name, errkind.New(errkind.NotFound, "no such network interface"))
}

// change changes an interface.
func (k *Kernel) change(name string, do func(*netdev)) error {
	if k.changeBond(name, do) || k.changeVLAN(name, do) {
		return nil
	}
	i, err := k.port(name)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.netdevs == nil {
		k.netdevs = map[int]*netdev{}
	}
	if k.netdevs[i] == nil {
		k.netdevs[i] = &netdev{mtu: k.defaultMTU(i)}
	}
	do(k.netdevs[i])
	return nil
}

func (k *Kernel) defaultMTU(i int) int {
	if k.node.shape.ports[i].ib {
		return 2044 // IPoIB in datagram mode with an IB MTU of 2048
	}
	return 1500
}

// state returns an interface as it is.
func (k *Kernel) state(i int) netdev {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := k.netdevs[i]; d != nil {
		return *d
	}
	return netdev{mtu: k.defaultMTU(i)}
}

func (k *Kernel) isUp(i int) bool    { return k.state(i).up }
func (k *Kernel) carrier(i int) bool { return k.isUp(i) && k.node.link(i).up() }

// mtu is what an interface sends at once, bytes.
func (k *Kernel) mtu(i int) int {
	if fixed := k.node.fixedMTU(i); fixed > 0 {
		return fixed
	}
	return int(k.node.scales.Whole(quantity.PortMTU, k.node.shape.functions[k.node.shape.ports[i].function].address, int64(k.state(i).mtu)))
}

// softDevice reports whether the soft RDMA device of a port was made.
func (k *Kernel) softDevice(i int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.softAdded[i]
}

// ipv4 is a setting of the IPv4 stack.
func (k *Kernel) ipv4(netdev, setting string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, set := k.settings[netdev+"/"+setting]; set {
		return v
	}
	return "0"
}

// gid is a slot of the GID table of a port. Drivers fill it with the link-local
// address first, then the addresses in their order: by hardware for both versions
// of RoCE, by rxe for the second only. InfiniBand has its port GUID.
func (k *Kernel) gid(i, slot int) gid {
	p := k.node.shape.ports[i]
	if p.ib {
		if slot > 0 {
			return gid{}
		}
		a := [16]byte{0: 0xfe, 1: 0x80}
		binary.BigEndian.PutUint64(a[8:], uint64(guidOf(k.node.portMAC(i))))
		return gid{"IB/RoCE v1", netip.AddrFrom16(a)}
	}
	d := k.state(i)
	if !d.up {
		return gid{}
	}
	kinds := []string{"IB/RoCE v1", "RoCE v2"}
	if p.soft {
		kinds = kinds[1:]
	}
	kind := kinds[slot%len(kinds)]
	switch n := slot / len(kinds); {
	case n == 0:
		return gid{kind, linkLocal(k.node.portMAC(i))}
	case n <= len(d.addresses):
		return gid{kind, netip.AddrFrom16(d.addresses[n-1].Addr().As16())}
	}
	return gid{}
}
