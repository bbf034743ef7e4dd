// SPDX-License-Identifier: Apache-2.0

// Package roce makes the rails of a node RoCE ports, on the node itself: address,
// MTU, policy routing, soft RDMA devices, now and after every boot; and says what
// is there: the RDMA device of each rail, by rdmamap, and the index of its GID,
// by type and address. An index is never assumed: it moves when addresses do.
package roce

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Network is the part of the kernel that carries addresses and routes. Every
// Set is idempotent.
type Network interface {
	Addresses(netdev string) ([]netip.Prefix, error)
	SetLink(netdev string, mtu int) error // and bring it up
	SetAddress(netdev string, address netip.Prefix) error
	DropAddress(netdev string, address netip.Prefix) error
	Routing(netdev string, r Route) (bool, error) // is it so
	SetRouting(netdev string, r Route) error
	SetIPv4(netdev, setting, value string) error // net.ipv4.conf; netdev may be "all"
}

// RDMA is the part of the kernel that carries RDMA devices.
type RDMA interface {
	Device(netdev string) string // "" when there is none
	AddSoft(ctx context.Context, device, netdev string) error
}

// Route is the policy route of a rail: what comes from Address leaves by this
// rail, whatever the main table says.
type Route struct {
	Address netip.Prefix
	Table   int
	Gateway netip.Addr // not valid: none
}

// Priority returns the priority of the rule; one for each table.
func (r Route) Priority() int { return 10000 + r.Table }

// Node is the node that is configured.
type Node struct {
	FS      sysfs.FS                    // the root of the node
	Root    func() (rootfs.Root, error) // opens the same root for writing files
	Network Network
	RDMA    RDMA
	QoS     QoS                         // nil: RDMA packets cannot be sorted here
	Reload  func(context.Context) error // has NetworkManager read its configuration; nil: nothing is there to be reloaded
	// Held reports whether NetworkManager holds an interface; nil: nobody is asked.
	Held   func(ctx context.Context, netdev string) (bool, error)
	Settle time.Duration // how long GIDs and links may take to appear; default 10 s
}

// port is a checked wire.RoCEPort.
type port struct {
	wire.RoCEPort
	address netip.Prefix
	gateway netip.Addr
}

// parse checks the parameters.
func parse(p wire.RoCEParams) ([]port, error) {
	if p.MTU < 576 || p.MTU > 65520 {
		return nil, badParams("MTU %d", p.MTU)
	}
	if err := checkLossless(p.Lossless); err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var ports []port
	for _, w := range p.Ports {
		q, err := parsePort(w, seen)
		if err != nil {
			return nil, err
		}
		seen[w.Rail] = true
		ports = append(ports, q)
	}
	return ports, nil
}

// parsePort checks one port; seen are the rails before it.
func parsePort(w wire.RoCEPort, seen map[int]bool) (port, error) {
	q := port{RoCEPort: w}
	var err error
	if q.address, err = netip.ParsePrefix(w.Address); err != nil {
		return port{}, badParams("rail %d: %w", w.Rail, err)
	}
	if w.Gateway != "" {
		if q.gateway, err = netip.ParseAddr(w.Gateway); err != nil {
			return port{}, badParams("rail %d: gateway: %w", w.Rail, err)
		}
	}
	switch {
	case w.Rail < 0 || seen[w.Rail]:
		return port{}, badParams("rail %d stands there twice, or is below 0", w.Rail)
	case w.PCI == "" && w.MAC.IsZero():
		return port{}, badParams("rail %d has neither PCI address nor MAC", w.Rail)
	case w.SoftwareRDMA != "" && w.SoftwareRDMA != "rxe":
		return port{}, errkind.New(errkind.Unsupported, "rail %d: software RDMA %q", w.Rail, w.SoftwareRDMA).Do(`Use "rxe", or a NIC with RDMA.`)
	case reserved(w.Table):
		return port{}, badParams("rail %d: routing table %d is taken", w.Rail, w.Table)
	}
	return q, nil
}

// reserved reports whether a routing table is none for a rail: the first ones, and
// default, main and local, which are the kernel's (253 to 255). 0: no table.
func reserved(table int) bool {
	return table < 0 || table > 0 && table < 10 || table >= 253 && table <= 255
}

func badParams(format string, args ...any) error {
	return errkind.New(errkind.Internal, "parameters of the rails: "+format, args...)
}

// Apply makes the rails as asked for, for now and for every boot, and says how
// they are then. What is so already is not touched.
func (n Node) Apply(ctx context.Context, p wire.RoCEParams) wire.RoCEResult {
	ports, err := parse(p)
	if err != nil {
		return failed(err)
	}
	old := n.saved()
	var done changes
	if err := n.persist(p, ports, &done); err != nil {
		return failed(err)
	}
	if err := n.reload(ctx, ports, done); err != nil {
		return failed(err)
	}
	for _, q := range ports {
		err := n.applyPort(ctx, p.MTU, q, old, &done)
		if err == nil {
			err = n.applySorting(ctx, p, q, &done)
		}
		if err != nil {
			return failed(fmt.Errorf("rail %d: %w", q.Rail, err))
		}
	}
	result := n.settle(ctx, p, ports)
	result.Changed = done
	return result
}

// Check says how the rails are and changes nothing.
func (n Node) Check(p wire.RoCEParams) wire.RoCEResult {
	ports, err := parse(p)
	if err != nil {
		return failed(err)
	}
	return n.observe(p, ports)
}

// Up is what runs at every boot: it applies what Apply has saved, as soon as the
// network interfaces are there.
func (n Node) Up(ctx context.Context) wire.RoCEResult {
	saved := n.saved()
	if saved.MTU == 0 {
		return failed(errkind.New(errkind.NotFound, "no rails are saved in /%s", savedFile).Do("Run the fabric step of this node again."))
	}
	return n.Apply(ctx, saved)
}

// failed is a result that is only an error.
func failed(err error) wire.RoCEResult {
	return wire.RoCEResult{Error: &wire.TaskError{Kind: errkind.Of(err).String(), Text: err.Error(), Action: errkind.Action(err)}}
}

// saved returns the parameters of the last Apply; the zero value when there was none.
func (n Node) saved() (p wire.RoCEParams) {
	if b := n.FS.Bytes(savedFile); b != nil {
		json.Unmarshal(b, &p) // a damaged file counts as none
	}
	return p
}

// changes collects what was changed, in words.
type changes []string

// add notes a change of one rail.
func (c *changes) add(q port, format string, args ...any) {
	*c = append(*c, fmt.Sprintf("rail %d: ", q.Rail)+fmt.Sprintf(format, args...))
}

// applyPort makes one rail so, now.
func (n Node) applyPort(ctx context.Context, mtu int, q port, old wire.RoCEParams, done *changes) error {
	netdev, err := n.waitNetdev(ctx, q)
	if err != nil {
		return err
	}
	if n.FS.Int("sys/class/net", netdev, "mtu") != int64(mtu) {
		done.add(q, "mtu %d", mtu)
	}
	if err := n.Network.SetLink(netdev, mtu); err != nil {
		return err
	}
	if err := n.setSysctl(netdev); err != nil {
		return err
	}
	if err := n.applyAddress(netdev, q, old, done); err != nil {
		return err
	}
	if err := n.applyRouting(netdev, q, done); err != nil {
		return err
	}
	if q.SoftwareRDMA == "" || n.RDMA.Device(netdev) != "" {
		return nil
	}
	done.add(q, "RDMA device %s", softName(q))
	return n.RDMA.AddSoft(ctx, softName(q), netdev)
}

// applyAddress gives the rail its address and takes away the one it had before.
func (n Node) applyAddress(netdev string, q port, old wire.RoCEParams, done *changes) error {
	have, err := n.Network.Addresses(netdev)
	if err != nil {
		return err
	}
	for _, stale := range staleAddresses(q, old, have) {
		done.add(q, "address %s removed", stale)
		if err := n.Network.DropAddress(netdev, stale); err != nil {
			return err
		}
	}
	if slices.Contains(have, q.address) {
		return nil
	}
	done.add(q, "address %s", q.address)
	return n.Network.SetAddress(netdev, q.address)
}

// applyRouting sets the policy route, where one is asked for.
func (n Node) applyRouting(netdev string, q port, done *changes) error {
	if q.Table == 0 {
		return nil
	}
	route := Route{Address: q.address, Table: q.Table, Gateway: q.gateway}
	if is, err := n.Network.Routing(netdev, route); err != nil || is {
		return err
	}
	done.add(q, "routing table %d", q.Table)
	return n.Network.SetRouting(netdev, route)
}

// softName is the name of the RDMA device that is made for a rail.
func softName(q port) string { return fmt.Sprintf("%s%d", q.SoftwareRDMA, q.Rail) }

// staleAddresses returns what an earlier Apply gave to this rail and is no longer wanted.
func staleAddresses(q port, old wire.RoCEParams, have []netip.Prefix) []netip.Prefix {
	var stale []netip.Prefix
	for _, o := range old.Ports {
		a, err := netip.ParsePrefix(o.Address)
		if err == nil && o.PCI == q.PCI && o.MAC == q.MAC && a != q.address && slices.Contains(have, a) {
			stale = append(stale, a)
		}
	}
	return stale
}

// waitNetdev waits for the network interface of a rail: drivers take their time
// at boot.
func (n Node) waitNetdev(ctx context.Context, q port) (string, error) {
	until := time.Now().Add(n.settleLimit())
	for {
		if netdev := n.netdev(q); netdev != "" {
			return netdev, nil
		}
		if time.Now().After(until) {
			return "", errkind.New(errkind.NotFound, "%s", n.lacking(q)).
				Do("Look whether the NIC is in its slot and its driver is loaded, and has one interface for each PCI function.")
		}
		if err := (clock.Wall{}).Sleep(ctx, lookEvery); err != nil {
			return "", err
		}
	}
}

// settle looks until everything conforms, or time is up: the kernel adds GIDs
// some time after addresses.
func (n Node) settle(ctx context.Context, p wire.RoCEParams, ports []port) wire.RoCEResult {
	until := time.Now().Add(n.settleLimit())
	for {
		result := n.observe(p, ports)
		if result.Conforms || time.Now().After(until) || (clock.Wall{}).Sleep(ctx, lookEvery) != nil {
			return result
		}
	}
}

// lookEvery is how long rails that are not so yet are left alone between two looks.
const lookEvery = 100 * time.Millisecond

// settleLimit returns Settle or its default.
func (n Node) settleLimit() time.Duration {
	if n.Settle == 0 {
		return 10 * time.Second
	}
	return n.Settle
}
