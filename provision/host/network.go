// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// NetworkFact is how the interfaces of a node's networks were last found or made: what is
// no longer in the files is taken back by it.
const NetworkFact = fact.Name[wire.NetworkParams]("host.network")

// usualMTU is that of Ethernet (IEEE 802.3), which an interface gets back when the files
// no longer give its network one.
const usualMTU = 1500

// NetworkStepID returns the step of a node that sets its interfaces.
func NetworkStepID(node string) plan.StepID { return plan.StepID(node + "/" + Name + ".network") }

// Network are the interfaces of a node's networks as the files say: the ports of those
// networks that give something, and of bonds. Rails of fabrics are those of the fabric's
// own step.
func Network(n *inventory.Node) wire.NetworkParams {
	var bonds []wire.NetworkBond
	if n.Host != nil {
		for _, b := range n.Host.Bonds {
			bonds = append(bonds, wire.NetworkBond{Name: b.Name, Mode: b.Mode, Members: b.Members})
		}
	}
	return networkWith(n, wire.NetworkParams{Bonds: bonds, VLANs: vlansOf(n), IPv6: ipv6Of(n)})
}

// ipv6Of is the second address of a node as the files say; nil: it has none.
func ipv6Of(n *inventory.Node) *wire.NetworkAddress {
	if !n.Address6.IsValid() || n.BootNetwork == nil || n.BootMAC.IsZero() {
		return nil
	}
	return &wire.NetworkAddress{MAC: n.BootMAC, Address: netip.PrefixFrom(n.Address6, n.BootNetwork.CIDR6.Bits()), Gateway: n.BootNetwork.Gateway6}
}

// networkWith is Network with what an installation alone makes, bonds, VLAN interfaces and the
// IPv6 address, otherwise than by the files.
func networkWith(n *inventory.Node, made wire.NetworkParams) (p wire.NetworkParams) {
	if n.Hardware == nil {
		return p
	}
	bonds := slices.Clone(made.Bonds)
	for i := range bonds {
		bonds[i].MTU = 0
	}
	for _, nic := range n.Hardware.NICs {
		for i, port := range nic.Ports {
			q := wire.NetworkPort{Name: fmt.Sprintf("%s/%d", nic.Name, i), PCI: port.PCI}
			if nic.Network != nil {
				q.MTU = nic.Network.MTU
			}
			in := slices.IndexFunc(bonds, func(b wire.NetworkBond) bool { return slices.Contains(b.Members, q.Name) })
			if in >= 0 {
				bonds[in].MTU = q.MTU
			}
			carries := slices.ContainsFunc(made.VLANs, func(v wire.NetworkVLAN) bool { return v.Over == q.Name })
			if carries && q.MTU == 0 {
				q.MTU = usualMTU
			}
			if in >= 0 || carries || q.MTU != 0 && nic.Network != nil {
				p.Ports = append(p.Ports, q)
			}
		}
	}
	p.Bonds, p.VLANs, p.IPv6 = bonds, withMTUs(n, made.VLANs), made.IPv6
	return p
}

// wanted is how the interfaces of a node are to be as it is installed: bonds, VLANs and addresses are
// made by an installation alone, so that an edit of theirs is none of an installed node. Ports of
// which nothing is said any more get the usual MTU.
func wanted(n *inventory.Node, last wire.NetworkParams, known bool) wire.NetworkParams {
	return withoutOld(installed(n, last, known), last)
}

// installed is what the files say, with the bonds, VLAN interfaces and IPv6 address that an
// installation has made where these are known.
func installed(n *inventory.Node, last wire.NetworkParams, known bool) wire.NetworkParams {
	if known {
		return networkWith(n, last)
	}
	return Network(n)
}

// givesNetwork reports whether the files say anything of a node's interfaces.
func givesNetwork(n *inventory.Node) bool {
	return n.Image != nil && !n.Retired && hasAny(Network(n))
}

// hasAny reports whether anything is said of interfaces.
func hasAny(p wire.NetworkParams) bool { return len(p.Ports) > 0 || len(p.VLANs) > 0 || p.IPv6 != nil }

// withoutOld is what is wanted, with the usual MTU for ports of which nothing is said any
// more.
func withoutOld(want, last wire.NetworkParams) wire.NetworkParams {
	for _, p := range last.Ports {
		i := slices.IndexFunc(want.Ports, func(q wire.NetworkPort) bool { return q.PCI == p.PCI })
		switch {
		case p.MTU == 0 || p.MTU == usualMTU:
		case i < 0:
			p.MTU = usualMTU
			want.Ports = append(slices.Clip(want.Ports), p)
		case want.Ports[i].MTU == 0:
			want.Ports[i].MTU = usualMTU
		}
	}
	for i, b := range want.Bonds {
		j := slices.IndexFunc(last.Bonds, func(o wire.NetworkBond) bool { return o.Name == b.Name })
		if b.MTU == 0 && j >= 0 && last.Bonds[j].MTU != 0 {
			want.Bonds[i].MTU = usualMTU
		}
	}
	return want
}

// lastNetwork are the interfaces of a node by the state; unreadable ones count as none.
func lastNetwork(view stage.View, node string) (last wire.NetworkParams, known bool) {
	f, known := view.Fact(NetworkFact.Of(subject.OfNode(node)))
	if known {
		last, _ = NetworkFact.Get(f)
	}
	return last, known
}

// networkStep is the step of a node. An MTU that changes may take the link down for a
// moment, and what runs on the node with it.
func networkStep(n *inventory.Node) plan.Step {
	me := subject.OfNode(n.Name)
	st := plan.Step{ID: NetworkStepID(n.Name), Stage: Name, Subject: me, Title: "set up its networks: " + networkText(Network(n)), May: plan.Effects(plan.Config),
		Needs:    []plan.Need{{Step: bootStep(n.Name), On: plan.Success, Triggers: true}},
		Decl:     stage.Source(n.Decl),
		Deadline: plan.Budget{Limit: limit, Expected: 2 * time.Second},
		Version:  Version, DepthKey: n.Name, Yields: []fact.Key{NetworkFact.Of(me)}}
	if n.Hardware == nil {
		return st
	}
	for _, nic := range n.Hardware.NICs {
		if net := nic.Network; net != nil && net.MTU != 0 {
			st.Inputs = append(st.Inputs, mtuInput(nic.Name, net))
		}
		for _, net := range nic.Tagged {
			if net.MTU != 0 {
				st.Inputs = append(st.Inputs, mtuInput(nic.Name+" "+net.Name, net))
			}
		}
	}
	return st
}

func mtuInput(of string, net *inventory.Network) plan.Input {
	return plan.Input{Name: "mtu " + of, Value: fmt.Sprint(net.MTU), Decl: stage.Source(inventory.PlaceOf(net.Ranges, "mtu", net.Decl))}
}

// networkText says in words what is asked for.
func networkText(p wire.NetworkParams) string {
	var words []string
	for _, b := range p.Bonds {
		words = append(words, b.Name+" ("+b.Mode+")")
	}
	for _, v := range p.VLANs {
		words = append(words, fmt.Sprintf("VLAN %d on %s", v.ID, cmp.Or(v.Over, "the NIC that boots")))
	}
	if p.IPv6 != nil {
		words = append(words, "IPv6 address "+p.IPv6.Address.String())
	}
	for _, q := range p.Ports {
		if text := fmt.Sprintf("MTU %d", q.MTU); q.MTU != 0 && !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	if len(words) == 0 {
		return "nothing is asked for any more"
	}
	return strings.Join(words, ", ")
}

// observeNetwork asks the agent of a node.
func (s *Stage) observeNetwork(ctx context.Context, run stage.Run, n *inventory.Node) (stage.Observation, error) {
	last, known := lastNetwork(run, n.Name)
	want := wanted(n, last, known)
	out, err := s.nodes.Run(ctx, n.Name, onnode.Command{Argv: []string{"test", "-x", onnode.AgentPath}})
	if err != nil {
		return stage.Observation{State: stage.Unknown}, fmt.Errorf("node %s: %w", n.Name, err)
	}
	if out.Exit != 0 {
		return stage.Observation{State: stage.Unknown, Evidence: "the node has no agent program to ask"}, nil
	}
	r, err := s.askNetwork(ctx, n, want, "check")
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if wrong := problems(r); len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: networkText(want)}, learnNetwork(ctx, run, n, last, known)
}

func (s *Stage) askNetwork(ctx context.Context, n *inventory.Node, want wire.NetworkParams, command string) (r wire.NetworkResult, err error) {
	err = onnode.Agent(ctx, s.nodes, n.Name, want, &r, "network", command)
	const usage = 64 // of an agent that does not know the command
	if e, ok := errors.AsType[*onnode.ExitError](err); ok && e.Output.Exit == usage {
		return r, errkind.New(errkind.Unsupported, "node %s: its agent is of an older ironrail, which knows nothing of networks", n.Name).
			Do(fmt.Sprintf("Install it again, which erases it: `ironrail plan --replace %s`; or remove mtu.", n.Name))
	}
	return r, err
}

// problems are all of a report, each with its port.
func problems(r wire.NetworkResult) (list []string) {
	for _, l := range r.Links {
		list = append(list, l.Problems...)
	}
	return list
}

// applyNetwork has the agent set up the interfaces, and blames a port that is otherwise
// after that.
func (s *Stage) applyNetwork(ctx context.Context, run stage.Run, st plan.Step, n *inventory.Node) error {
	last, known := lastNetwork(run, n.Name)
	want := wanted(n, last, known)
	var r wire.NetworkResult
	err := run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s-%d", st.ID, run.Clock().Now().UnixNano()), // idempotent: each attempt is one of its own
		Kind: plan.Config, Repeatable: true, Does: "set up the networks of " + n.Name,
		Do: func(ctx context.Context) (err error) {
			r, err = s.askNetwork(ctx, n, want, "apply")
			for _, c := range r.Changed {
				run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: c})
			}
			return err
		}})
	if err != nil {
		return err
	}
	if f, wrong := s.networkFinding(run, n, r); wrong {
		return errors.Join(run.Blame(ctx, f), errkind.Begun(errkind.New(errkind.Mismatch, "%s", f.Cause).Do(f.Action)))
	}
	return learnNetwork(ctx, run, n, last, known)
}

// networkFinding is what is wrong with the interfaces of a node, each with its port and
// where that leads to.
func (s *Stage) networkFinding(view stage.View, n *inventory.Node, r wire.NetworkResult) (f stage.Finding, wrong bool) {
	for _, l := range r.Links {
		if len(l.Problems) == 0 {
			continue
		}
		part, far := l.Name, s.farEnd(view, n, l.Name)
		switch {
		case l.IPv6 != "":
			part = "IPv6 address"
		case l.VLAN:
			part = "interface " + l.Name
		case !strings.Contains(l.Name, "/"):
			part = "bond " + l.Name
		}
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(n.Name), Part: part})
		if f.Action == "" {
			f.Action = actionOf(n, l)
		}
		for _, p := range l.Problems {
			f.Evidence = append(f.Evidence, p+far)
		}
	}
	if len(f.Evidence) == 0 {
		return f, false
	}
	f.Cause = fmt.Sprintf("the networks of node %s were set up, and yet %s", n.Name, f.Evidence[0])
	if more := len(f.Evidence) - 1; more > 0 {
		f.Cause += fmt.Sprintf(" (and %d more)", more)
	}
	return f, true
}

// actionOf says what to do about an interface.
func actionOf(n *inventory.Node, l wire.InterfaceState) string {
	switch {
	case l.IPv6 != "":
		return actionOfIPv6(n, l)
	case l.VLAN:
		return "Find out on the node what changed it (`ip -d address show " + l.Name + "`, the log of systemd-networkd or NetworkManager), and restart the node. VLAN interfaces are made by an installation: `ironrail plan --replace " + n.Name + "` erases the node and makes it anew."
	case !l.Bonding:
		return "Give the network an mtu that the NIC can do, or find out what else sets it on the node (udev, another network manager); then run `ironrail apply`. A node that ironrail did not install has its networks set up by others: set it there."
	case !strings.Contains(l.Name, "/"): // the bond itself
		return "Install the node again, which erases it: `ironrail plan --replace " + n.Name + "`; or remove the bond from the files."
	}
	return "Check the cable of the port and its switch port: link, speed, LACP, and that the ports of all members are in one aggregation (of two switches: MLAG). Then run `ironrail apply`."
}

// actionOfIPv6 says what to do about an IPv6 address.
func actionOfIPv6(n *inventory.Node, l wire.InterfaceState) string {
	switch l.IPv6 {
	case wire.IPv6Duplicate:
		return fmt.Sprintf("Find the machine that has it: ping the address from another node of the network, whose `ip -6 neighbour` then shows the MAC. Take it from that machine, restart node %s, and run `ironrail apply`.", n.Name)
	case wire.IPv6Pending:
		return "Look at the link of the port: a switch port that blocks (spanning tree) or loses multicast keeps the node asking. Then run `ironrail apply`."
	case wire.IPv6Route:
		return "Find out what removed the route on the node (`ip -6 route`, the log of systemd-networkd or NetworkManager), and restart the node; then run `ironrail apply`."
	}
	return "Find out on the node what removed or moved it (`ip -6 address`, the log of systemd-networkd or NetworkManager, ipv6.disable in /proc/cmdline, a duplicate in the kernel's log), and restart the node. Addresses are written by an installation: `ironrail plan --replace " + n.Name + "` erases the node and makes it anew."
}

// farEnd says where the cable of a port ends: by the site's cables, else by what the port
// heard by LLDP; "" where nobody knows.
func (s *Stage) farEnd(view stage.View, n *inventory.Node, port string) string {
	if n.Hardware == nil {
		return ""
	}
	nic, index, ok := n.Hardware.Port(port)
	if !ok {
		return ""
	}
	is := func(e inventory.CableEnd) bool {
		return e.Node == n && e.NIC != nil && e.NIC.Name == nic.Name && e.Port == index
	}
	for _, c := range s.inv.Cables {
		switch {
		case is(c.From):
			return ", and its cable ends at " + c.To.String()
		case is(c.To):
			return ", and its cable ends at " + c.From.String()
		}
	}
	heard, known := view.Fact(cabling.NeighboursFact.Of(subject.OfNode(n.Name)))
	if !known {
		return ""
	}
	list, err := cabling.NeighboursFact.Get(heard)
	if err != nil {
		return ""
	}
	for _, x := range list {
		if strings.EqualFold(x.PCI, nic.Ports[index].PCI) {
			return fmt.Sprintf(", and it heard port %q of switch %q by LLDP", x.PortID, x.SystemName)
		}
	}
	return ""
}

// learnNetwork records what a node has now.
func learnNetwork(ctx context.Context, run stage.Run, n *inventory.Node, last wire.NetworkParams, known bool) error {
	f, err := NetworkFact.New(subject.OfNode(n.Name), installed(n, last, known), "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}
