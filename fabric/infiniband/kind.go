// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// InfiniBand brings InfiniBand fabrics up. Its zero value is not useful.
type InfiniBand struct {
	inv   *inventory.Inventory
	nodes onnode.Nodes
	host  func(fabric string) Host
}

// New returns the kind. host is where the subnet manager of a fabric runs; nodes
// and host may be nil when only plans are made.
func New(inv *inventory.Inventory, nodes onnode.Nodes, host func(fabric string) Host) *InfiniBand {
	return &InfiniBand{inv: inv, nodes: nodes, host: host}
}

// Check implements fabric.Kind.
func (b *InfiniBand) Check(f *inventory.Fabric, nodes []*inventory.Node) hcl.Diagnostics {
	diags := checkManager(b.inv, f)
	for _, n := range nodes {
		for i := range n.Hardware.NICs {
			nic := &n.Hardware.NICs[i]
			if nic.Fabric != f || !slices.ContainsFunc(nic.Ports, func(p inventory.NICPort) bool { return p.PCI == "" }) {
				continue
			}
			d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Port has no PCI address", Subject: nic.Decl.Ptr(),
				Detail: fmt.Sprintf("The ports of %q of hardware %q are found on the node by their PCI addresses, such as \"0000:18:00.0\".", nic.Name, n.Hardware.Name)}
			if !slices.ContainsFunc(diags, func(x *hcl.Diagnostic) bool { return *x.Subject == nic.Decl }) {
				diags = append(diags, d)
			}
		}
	}
	return diags
}

// Inputs implements fabric.Kind.
func (b *InfiniBand) Inputs(f *inventory.Fabric, n *inventory.Node) []plan.Input {
	in := []plan.Input{{Name: "pkeys", Value: keyText(PKeys(f, n)), Decl: stage.Source(f.Decl)}}
	if f.Link > 0 {
		in = append(in, plan.Input{Name: "link", Value: f.Link.String(), Decl: stage.Source(f.Place("link"))})
	}
	for _, m := range portsOf(f, n) {
		in = append(in, plan.Input{Name: "rail" + strconv.Itoa(m.Rail()), Value: m.NIC.Ports[m.Port].PCI, Decl: stage.Source(m.NIC.Decl)})
	}
	return in
}

func keyText(keys []uint16) string {
	var words []string
	for _, k := range keys {
		words = append(words, fmt.Sprintf("%#04x", k))
	}
	return strings.Join(words, " ")
}

// portsOf are the ports of a node on a fabric, by rail, without what only the node
// knows.
func portsOf(f *inventory.Fabric, n *inventory.Node) (list []Member) {
	for i := range n.Hardware.NICs {
		nic := &n.Hardware.NICs[i]
		if nic.Fabric != f {
			continue
		}
		for j := range nic.Ports {
			list = append(list, Member{Node: n, NIC: nic, Port: j})
		}
	}
	slices.SortStableFunc(list, func(a, b Member) int { return a.Rail() - b.Rail() })
	return list
}

// Bounds of a node's own step: a port gets its LID and P_Keys in the first sweep
// that finds it, which is every ten seconds (sweep_interval).
const (
	settleLimit = time.Minute
	settleEvery = 2 * time.Second
)

// Apply implements fabric.Kind: the subnet manager configures ports, so that there
// is only to wait for it.
func (b *InfiniBand) Apply(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]fabric.Port, error) {
	end := run.Clock().Now().Add(settleLimit)
	for {
		ports, wrong, err := b.comparePorts(ctx, f, n)
		if err != nil || len(wrong) == 0 {
			return ports, err
		}
		if run.Clock().Now().After(end) || run.Clock().Sleep(ctx, settleEvery) != nil {
			return nil, errkind.New(errkind.Mismatch, "node %s: fabric %s is not up: %s", n.Name, f.Name, strings.Join(wrong, "; ")).
				Do("Look at the cable of the port, then apply again.")
		}
	}
}

// Observe implements fabric.Kind.
func (b *InfiniBand) Observe(ctx context.Context, _ stage.Run, f *inventory.Fabric, n *inventory.Node) (stage.Observation, []fabric.Port, error) {
	ports, wrong, err := b.comparePorts(ctx, f, n)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil, nil
	case len(wrong) > 0:
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, nil, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d ports active", len(ports))}, ports, nil
}

// readPorts reads the RDMA ports of a node.
func (b *InfiniBand) readPorts(ctx context.Context, n *inventory.Node) ([]wire.InfiniBandPort, error) {
	var r wire.InfiniBand
	if err := onnode.Agent(ctx, b.nodes, n.Name, nil, &r, "infiniband"); err != nil {
		return nil, err
	}
	return r.Ports, nil
}

// comparePorts compares the ports of a node with what they should be.
func (b *InfiniBand) comparePorts(ctx context.Context, f *inventory.Fabric, n *inventory.Node) (ports []fabric.Port, wrong []string, err error) {
	have, err := b.readPorts(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range portsOf(f, n) {
		got, problem := portAt(have, m.NIC.Ports[m.Port].PCI)
		if problem != "" {
			wrong = append(wrong, m.title()+": "+problem)
			continue
		}
		if bad := comparePort(f, n, got); bad != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", m.title(), bad))
			continue
		}
		ports = append(ports, fabric.Port{Rail: m.Rail(), Device: got.Device, Netdev: got.Netdev, GID: "fe80::" + got.GUID[2:6] + ":" + got.GUID[6:10] + ":" + got.GUID[10:14] + ":" + got.GUID[14:]})
	}
	return ports, wrong, nil
}

// portAt is the RDMA port at a PCI address. An HCA that has two ports at one function
// has none there that could be told from the other: the inventory names functions.
func portAt(have []wire.InfiniBandPort, pci string) (found wire.InfiniBandPort, problem string) {
	var names []string
	for _, p := range have {
		if p.PCI == pci {
			found, names = p, append(names, fmt.Sprintf("%s/%d", p.Device, p.Number))
		}
	}
	switch len(names) {
	case 0:
		return found, "there is no RDMA device at " + pci
	case 1:
		return found, ""
	}
	return wire.InfiniBandPort{}, fmt.Sprintf("there are %d RDMA ports at %s (%s), and nothing tells which one is meant", len(names), pci, strings.Join(names, ", "))
}

// comparePort says what is wrong with a port; empty: nothing.
func comparePort(f *inventory.Fabric, n *inventory.Node, p wire.InfiniBandPort) string {
	switch rate, err := parseRate(p.Rate); {
	case p.Layer != "InfiniBand":
		return fmt.Sprintf("its link type is %s, not InfiniBand: set LINK_TYPE_P%d=1 with mlxconfig", p.Layer, max(p.Number, 1))
	case p.Physical != "LinkUp":
		return fmt.Sprintf("it has no link (%s)", p.Physical)
	case p.State != "ACTIVE":
		return fmt.Sprintf("it is in state %s, not ACTIVE: no subnet manager has configured it", p.State)
	case len(p.GUID) != 18:
		return "it has no port GUID"
	case err != nil && f.Link > 0:
		return fmt.Sprintf("its rate %q is not understood, and the fabric's is %s", p.Rate, f.Link)
	case f.Link > 0 && rate < f.Link:
		return fmt.Sprintf("it runs at %s, not %s", p.Rate, f.Link)
	}
	for _, k := range PKeys(f, n) {
		if !slices.Contains(p.PKeys, k) {
			return fmt.Sprintf("P_Key %#04x is missing in its table (%s)", k, keyText(p.PKeys))
		}
	}
	return ""
}

// parseRate reads "400 Gb/sec (4X NDR)".
func parseRate(text string) (unit.BitRate, error) {
	number, _, ok := strings.Cut(text, " Gb/sec")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is no rate", text)
	}
	return unit.BitRate(v * 1e9), nil
}
