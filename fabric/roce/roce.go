// SPDX-License-Identifier: Apache-2.0

// Package roce is the fabric kind of RDMA over converged Ethernet, version 2:
// addresses, MTU, source routing and, where the hardware block asks for it, RDMA
// in software. The node's agent does the work on the node and finds there which
// RDMA device and which GID belong to which port.
package roce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// Name is the kind's name in the language.
const Name = "roce"

// RoCE brings RoCE fabrics up. Its zero value is not useful.
type RoCE struct {
	nodes onnode.Nodes
	links map[string]*Links // by fabric
	ports sync.Map          // portsKey to []port: thousands of nodes have one hardware
	kept  sync.Map          // *inventory.Fabric to settled: read once
	ends  Ends              // nil: nothing is known of the far ends
}

// settled is the lossless block of a fabric, as nodes are told it and in words;
// wire is nil where there is none.
type settled struct {
	wire *wire.RoCELossless
	text string
}

// lossless returns the block, which is not to be changed.
func (r *RoCE) lossless(f *inventory.Fabric) settled {
	if known, ok := r.kept.Load(f); ok {
		return known.(settled)
	}
	var s settled
	if l, asked := LosslessOf(f); asked {
		s = settled{l.wire(), l.String()}
	}
	r.kept.Store(f, s)
	return s
}

// portsKey is what the ports of a node on a fabric depend on.
type portsKey struct {
	f *inventory.Fabric
	h *inventory.Hardware
}

// portsOn is what the function of that name returns, which is not to be changed.
func (r *RoCE) portsOn(f *inventory.Fabric, n *inventory.Node) []port {
	k := portsKey{f, n.Hardware}
	if known, ok := r.ports.Load(k); ok {
		return known.([]port)
	}
	list := portsOn(f, n)
	r.ports.Store(k, list)
	return list
}

// New returns the kind. links are the addresses of the fabrics with
// point-to-point addressing; a fabric without them can be checked, not planned.
func New(nodes onnode.Nodes, links ...*Links) *RoCE {
	r := &RoCE{nodes: nodes, links: make(map[string]*Links, len(links))}
	for _, l := range links {
		r.links[l.Fabric.Name] = l
	}
	return r
}

// Ends compares what a node said of its ports, which are as the site wants them,
// with the far ends of their cables.
type Ends func(run stage.Run, f *inventory.Fabric, n *inventory.Node, said []wire.RoCEPortState) ([]stage.Finding, error)

// Against makes the kind compare the far ends too, and returns it.
func (r *RoCE) Against(e Ends) *RoCE {
	r.ends = e
	return r
}

// apart are the findings about the far ends; none where nothing is known of them.
func (r *RoCE) apart(run stage.Run, f *inventory.Fabric, n *inventory.Node, rep wire.RoCEResult) ([]stage.Finding, error) {
	if r.ends == nil {
		return nil, nil
	}
	return r.ends(run, f, n, rep.Ports)
}

// Check implements fabric.Kind.
func (r *RoCE) Check(f *inventory.Fabric, nodes []*inventory.Node) hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(at hcl.Range, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
	}
	switch f.Addressing {
	case "subnet", pointToPoint:
	default:
		add(f.Place("addressing"), "Fabric has no addressing", "Fabric %q of kind \"roce\" needs IP addresses: set addressing = \"subnet\", or \"point-to-point\".", f.Name)
		return diags
	}
	if !f.CIDR.IsValid() {
		add(f.Decl, "Fabric has no CIDR", "Fabric %q of kind \"roce\" needs IP addresses: set cidr, such as \"10.200.0.0/16\".", f.Name)
		return diags
	}
	for _, n := range nodes {
		r.checkNode(f, n, add)
	}
	return diags
}

func (r *RoCE) checkNode(f *inventory.Fabric, n *inventory.Node, add func(hcl.Range, string, string, ...any)) {
	ports := r.portsOn(f, n) // by rail
	for i := range ports {
		p := &ports[i]
		if i > 0 && p.Rail == ports[i-1].Rail {
			add(p.decl, "Two ports on one rail", "Hardware %q has two ports on rail %d of fabric %q; a rail has one subnet, and a node one address in it.", n.Hardware.Name, p.Rail, f.Name)
			continue
		}
		if p.PCI == "" {
			add(p.decl, "Port has no PCI address", "The port on rail %d of hardware %q is found on the node by its PCI address, such as \"0000:18:00.0\".", p.Rail, n.Hardware.Name)
		}
		if f.Addressing == pointToPoint {
			if r.links[f.Name].Split(n, p.nic, p.index) {
				add(p.decl, "Split port is not supported", "The port %s/%s/%d of fabric %q is several links, and has one address. Use addressing = \"subnet\"; or write each function of the card as a port with a rail of its own, with split = 2 in its block.", n.Name, p.nic.Name, p.index, f.Name)
			}
			continue // CheckLinks has looked whether it has a cable
		}
		if _, err := railAddress(f, n, p.Rail); err != nil {
			at := n.Ranges.Address
			if at.Filename == "" {
				at = n.Decl
			}
			add(at, "Node has no address on its rail", "Node %q: %v. Widen the cidr of fabric %q (%s), or give the node an address nearer to the start of its boot network.", n.Name, err, f.Name, f.CIDR)
		}
	}
}

// port is one port of the hardware with where it is declared.
type port struct {
	inventory.NICPort
	nic   *inventory.NIC
	index int // of the port in its NIC
	soft  string
	decl  hcl.Range
}

func portsOn(f *inventory.Fabric, n *inventory.Node) []port {
	var list []port
	for i := range n.Hardware.NICs {
		nic := &n.Hardware.NICs[i]
		if nic.Fabric != f {
			continue
		}
		for j, p := range nic.Ports {
			list = append(list, port{NICPort: p, nic: nic, index: j, soft: nic.SoftwareRDMA, decl: nic.Decl})
		}
	}
	slices.SortStableFunc(list, func(a, b port) int { return a.Rail - b.Rail })
	return list
}

func mtuOf(f *inventory.Fabric) int {
	if f.MTU == 0 {
		return defaultMTU
	}
	return f.MTU
}

// Inputs implements fabric.Kind.
func (r *RoCE) Inputs(f *inventory.Fabric, n *inventory.Node) []plan.Input {
	in := make([]plan.Input, 1, 2+len(r.portsOn(f, n)))
	in[0] = plan.Input{Name: "mtu", Value: strconv.Itoa(mtuOf(f)), Decl: stage.Source(f.Place("mtu"))}
	if l := r.lossless(f); l.wire != nil {
		in = append(in, plan.Input{Name: "lossless", Value: l.text, Decl: stage.Source(f.Place("lossless"))})
	}
	first := len(in)
	decl := stage.Source(f.Place("cidr"))
	var text []byte // of all ports, so that a node has one
	var ends [16]int
	to := ends[:0]
	r.addressed(f, n, func(p *port, a netip.Prefix, gateway netip.Addr) {
		text = append(append(text, p.PCI...), ' ')
		text = a.AppendTo(text)
		if gateway.IsValid() {
			text = gateway.AppendTo(append(text, " via "...))
		}
		if p.soft != "" {
			text = append(append(text, ' '), p.soft...)
		}
		to = append(to, len(text))
		in = append(in, plan.Input{Name: railName(p.Rail), Decl: decl})
	})
	all, from := string(text), 0
	for i, end := range to {
		in[first+i].Value, from = all[from:end], end
	}
	return in
}

// railNames are the names of inputs of the first rails.
var railNames = [...]string{"rail0", "rail1", "rail2", "rail3", "rail4", "rail5", "rail6", "rail7"}

func railName(rail int) string {
	if rail >= 0 && rail < len(railNames) {
		return railNames[rail]
	}
	return "rail" + strconv.Itoa(rail)
}

// addressed gives do every port of a node that has an address, by rail; gateway is
// valid for links that are networks of their own. The others Check has refused.
func (r *RoCE) addressed(f *inventory.Fabric, n *inventory.Node, do func(p *port, a netip.Prefix, gateway netip.Addr)) {
	ports := r.portsOn(f, n)
	for i := range ports {
		p := &ports[i]
		if f.Addressing == pointToPoint {
			if a, leaf, ok := r.links[f.Name].Port(n, p.nic, p.index); ok {
				do(p, a, leaf)
			}
		} else if a, err := railAddress(f, n, p.Rail); err == nil {
			do(p, a, netip.Addr{})
		}
	}
}

// params computes what the node should be; ports without an address are left
// out, which Check has already refused.
func (r *RoCE) params(f *inventory.Fabric, n *inventory.Node) wire.RoCEParams {
	ps := wire.RoCEParams{MTU: mtuOf(f), Lossless: r.lossless(f).wire}
	r.addressed(f, n, func(p *port, a netip.Prefix, gateway netip.Addr) {
		to := wire.RoCEPort{Rail: p.Rail, PCI: p.PCI, Address: a.String(), SoftwareRDMA: p.soft, Table: firstTable + p.Rail}
		if gateway.IsValid() {
			to.Gateway = gateway.String()
		}
		ps.Ports = append(ps.Ports, to)
	})
	return ps
}

// Apply implements fabric.Kind. A rail that is not as it should be is named as the
// part, so that it is not the node that is suspected.
func (r *RoCE) Apply(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]fabric.Port, error) {
	want := r.params(f, n)
	var rep wire.RoCEResult
	if err := onnode.Agent(ctx, r.nodes, n.Name, want, &rep, "roce", "apply"); err != nil {
		return nil, err
	}
	ports, wrong, rails := compareReport(want, rep)
	if len(wrong) == 0 {
		return ports, errkind.Begun(r.blameEnds(ctx, run, f, n, rep))
	}
	cause := fmt.Sprintf("node %s: fabric %s was configured and yet %s", n.Name, f.Name, strings.Join(wrong, "; "))
	if len(rails) > 0 {
		err := run.Blame(ctx, stage.Finding{Suspects: suspectRails(f, n, rails), Cause: cause, Evidence: evidenceOf(rep), Action: action})
		if err != nil {
			return nil, err
		}
	}
	return nil, errkind.Begun(errkind.New(errkind.Mismatch, "%s", cause).Do(action))
}

// blameEnds fails where a far end does not fit.
func (r *RoCE) blameEnds(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node, rep wire.RoCEResult) error {
	found, err := r.apart(run, f, n, rep)
	for _, x := range found {
		err = errors.Join(err, run.Blame(ctx, x))
	}
	if err != nil || len(found) == 0 {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s", found[0].Cause).Do(found[0].Action)
}

// Observe implements fabric.Kind.
func (r *RoCE) Observe(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) (stage.Observation, []fabric.Port, error) {
	want := r.params(f, n)
	out, err := r.nodes.Run(ctx, n.Name, onnode.Command{Argv: []string{"test", "-x", onnode.AgentPath}})
	if err != nil {
		return stage.Observation{State: stage.Unknown}, nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	if out.Exit != 0 {
		return stage.Observation{State: stage.Unknown, Evidence: "the node has no agent program to ask"}, nil, nil
	}
	var rep wire.RoCEResult
	if err := onnode.Agent(ctx, r.nodes, n.Name, want, &rep, "roce", "check"); err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil, nil
	}
	ports, wrong, _ := compareReport(want, rep)
	found, err := r.apart(run, f, n, rep)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, nil, err
	}
	for _, x := range found {
		wrong = append(wrong, x.Cause)
	}
	if len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, nil, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d ports active", len(ports))}, ports, nil
}

// Verify implements fabric.Verifying.
func (r *RoCE) Verify(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]stage.Finding, error) {
	want := r.params(f, n)
	var rep wire.RoCEResult
	if err := onnode.Agent(ctx, r.nodes, n.Name, want, &rep, "roce", "check"); err != nil {
		return nil, err
	}
	if _, wrong, rails := compareReport(want, rep); len(wrong) > 0 {
		suspects := suspectRails(f, n, rails)
		if len(suspects) == 0 { // what is wrong is of no rail
			suspects = []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "fabric " + f.Name}}
		}
		return []stage.Finding{{Suspects: suspects, Evidence: evidenceOf(rep), Action: action,
			Cause: fmt.Sprintf("node %s: fabric %s was configured and tested, and now %s", n.Name, f.Name, strings.Join(wrong, "; "))}}, nil
	}
	return r.apart(run, f, n, rep)
}

// compareReport holds a report against what is wanted and lists in words what is
// wrong, and the rails that it is about; with nothing wrong the ports are complete.
func compareReport(want wire.RoCEParams, rep wire.RoCEResult) (ports []fabric.Port, wrong []string, rails []int) {
	wrong = append(wrong, rep.Problems...)
	for _, w := range want.Ports {
		i := slices.IndexFunc(rep.Ports, func(p wire.RoCEPortState) bool { return p.Rail == w.Rail })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("rail %d (%s) is not reported", w.Rail, w.PCI))
			rails = append(rails, w.Rail)
			continue
		}
		p := rep.Ports[i]
		problems := p.Problems
		address, err := netip.ParsePrefix(w.Address)
		if bad := comparePort(want.MTU, w, p); len(problems) == 0 && err == nil && bad != "" {
			problems = []string{bad}
		}
		if bad := compareSorting(want.Lossless, w, p); len(problems) == 0 && bad != "" {
			problems = []string{bad}
		}
		if len(problems) > 0 {
			wrong = append(wrong, fmt.Sprintf("rail %d (%s): %s", w.Rail, w.PCI, strings.Join(problems, ", ")))
			rails = append(rails, w.Rail)
			continue
		}
		ports = append(ports, fabric.Port{Rail: p.Rail, Netdev: p.Netdev, Device: p.RDMADevice, GIDIndex: p.GIDIndex, GID: p.GID, MTU: p.MTU, ActiveMTU: p.ActiveMTU, Address: address})
	}
	if len(wrong) == 0 && !rep.Conforms {
		wrong = append(wrong, "the agent does not find it as it should be")
	}
	return ports, wrong, rails
}

// packetSize is how many bytes an RDMA packet carries at most where the interface has an MTU:
// one of InfiniBand's sizes, with its headers (iboe_get_mtu of Linux's include/rdma/ib_addr.h).
func packetSize(mtu int) int {
	const headers = 40 + 8 + 12 + 4 + 28 + 4
	for _, size := range []int{4096, 2048, 1024, 512} {
		if size+headers <= mtu {
			return size
		}
	}
	return 256
}

// comparePort does not rely on the agent's own opinion.
func comparePort(mtu int, w wire.RoCEPort, p wire.RoCEPortState) string {
	gid, err := netip.ParseAddr(p.GID)
	address, _, _ := strings.Cut(w.Address, "/")
	switch {
	case p.Netdev == "":
		return "there is no network interface"
	case p.RDMADevice == "":
		return "there is no RDMA device on " + p.Netdev
	case p.State != "ACTIVE":
		return fmt.Sprintf("it is in state %q, not ACTIVE", p.State)
	case p.Address != w.Address:
		return fmt.Sprintf("it has address %q, not %s", p.Address, w.Address)
	case p.MTU != mtu:
		return fmt.Sprintf("it has MTU %d, not %d", p.MTU, mtu)
	case p.ActiveMTU > 0 && p.ActiveMTU < packetSize(mtu):
		return fmt.Sprintf("its RDMA packets carry %d bytes, and %d fit into MTU %d", p.ActiveMTU, packetSize(mtu), mtu)
	case !strings.EqualFold(p.GIDType, "RoCE v2") || p.GIDIndex < 0:
		return "it has no RoCE v2 GID for " + address
	case err != nil || gid.Unmap().String() != address:
		return fmt.Sprintf("its GID %q at index %d is not that of %s", p.GID, p.GIDIndex, address)
	}
	return ""
}
