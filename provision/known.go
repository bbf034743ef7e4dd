package provision

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/reach"
)

// Known is what state and inventory know of a node: all but what is under way. A
// node that the state does not know has a story as well: nothing was done yet.
func Known(ctx context.Context, inv *inventory.Inventory, r state.Reader, node string) (control.Why, error) {
	w, err := control.ReadWhy(ctx, r, node, hangsOn(inv, node)...)
	if err != nil && errkind.Of(err) != errkind.NotFound {
		return w, err
	}
	w.Node.Name = node
	if n, ok := inv.Node(node); ok {
		w.Place = placeOf(inv, n, reach.Facts(r))
	}
	if w.Console, err = tailOf(r, w); err != nil {
		return w, err
	}
	w.Notes, err = notesOf(ctx, inv, r, node)
	return w, err
}

// hangsOn are the PDUs of a node: a node that goes on with half of its supplies has
// no finding of its own.
func hangsOn(inv *inventory.Inventory, node string) (out []subject.ID) {
	if n, ok := inv.Node(node); ok {
		for _, p := range pdusOf(n) {
			out = append(out, subject.ID{Kind: subject.PDU, Name: p})
		}
	}
	return out
}

// SiteNow is where the nodes of the inventory stand while no run is active.
func SiteNow(ctx context.Context, inv *inventory.Inventory, r state.Reader, now time.Time) (why.Site, error) {
	nodes, err := NodeStates(ctx, inv, r)
	if err != nil {
		return why.Site{}, err
	}
	left, err := control.ReadLastRun(ctx, r)
	if err != nil {
		return why.Site{}, err
	}
	last, version, err := state.Get[state.Run](ctx, r, state.LastRun)
	if err != nil {
		return why.Site{}, err
	}
	s := why.Site{Nodes: nodes, Skipped: left.Skipped, Findings: left.Findings, Now: now}
	if version != state.Absent {
		s.Last = &last
	}
	s.Notes, err = notesAll(ctx, inv, r, nodes)
	return s, err
}

// TraitsOf is what each node hangs on, in words.
func TraitsOf(inv *inventory.Inventory) why.Traits {
	t := make(why.Traits, len(inv.Nodes))
	for _, n := range inv.Nodes {
		all := []string{}
		if n.Rack != nil {
			all = append(all, "rack "+n.Rack.Name)
		}
		for _, p := range pdusOf(n) {
			all = append(all, "PDU "+p)
		}
		if n.Hardware != nil {
			all = append(all, "hardware "+n.Hardware.Name)
		}
		t[n.Name] = all
	}
	seen := map[[2]string]bool{}
	for _, c := range inv.Cables {
		node, far := nodeEnd(c)
		if node == nil || far.Switch == nil || seen[[2]string{node.Node.Name, far.Switch.Name}] {
			continue
		}
		seen[[2]string{node.Node.Name, far.Switch.Name}] = true
		t[node.Node.Name] = append(t[node.Node.Name], "switch "+far.Switch.Name)
	}
	return t
}

// nodeEnd is the end of a cable that is a node's, and the other one; nil when none
// is.
func nodeEnd(c *inventory.Cable) (node, far *inventory.CableEnd) {
	switch {
	case c.From.Node != nil:
		return &c.From, &c.To
	case c.To.Node != nil:
		return &c.To, &c.From
	}
	return nil, nil
}

func pdusOf(n *inventory.Node) (out []string) {
	seen := map[string]bool{}
	for _, f := range n.Feeds {
		if f.PDU != nil && !seen[f.PDU.Name] {
			seen[f.PDU.Name] = true
			out = append(out, f.PDU.Name)
		}
	}
	return out
}

// placeOf is where a node is, and what its cables lead to.
func placeOf(inv *inventory.Inventory, n *inventory.Node, facts func(fact.Key) (fact.Fact, bool)) *control.Place {
	p := &control.Place{Unit: n.Unit, Serial: n.Serial, PDUs: pdusOf(n), Protocol: n.BMC.Protocol}
	if n.Rack != nil {
		p.Rack = n.Rack.Name
	}
	if n.Role != nil {
		p.Role = n.Role.Name
	}
	if n.BMC.Address.IsValid() {
		p.BMC = n.BMC.Address.String()
	}
	if !n.BootMAC.IsZero() {
		p.BootMAC = n.BootMAC.String()
	}
	if n.Hardware != nil {
		p.Hardware = n.Hardware.Name
		p.BootNIC = bootNIC(n.Hardware)
	}
	ends := heardBy(n.Name, facts)
	for _, c := range inv.Cables {
		end, far := nodeEnd(c)
		if end == nil || end.Node != n || end.NIC == nil {
			continue
		}
		port := control.Port{Port: fmt.Sprintf("%s/%d", end.NIC.Name, end.Port), To: far.String()}
		if end.Port < len(end.NIC.Ports) {
			h := ends[strings.ToLower(end.NIC.Ports[end.Port].PCI)]
			port.Heard, port.HeardAt = h.text, h.at
		}
		p.Ports = append(p.Ports, port)
	}
	return p
}

// bootNIC is the port that a node boots from: "mgmt/0"; of a NIC with several ports, of
// which boot_mac says the one, "mgmt"; "" where none boots.
func bootNIC(h *inventory.Hardware) string {
	nic, ok := h.BootNIC()
	switch {
	case !ok:
		return ""
	case len(nic.Ports) > 1:
		return nic.Name
	}
	return nic.Name + "/0"
}

// heard is the far end of a cable as the node heard it.
type heard struct {
	text string
	at   time.Time
}

// heardBy is what a node heard by LLDP when it was inspected last, by PCI address.
func heardBy(node string, facts func(fact.Key) (fact.Fact, bool)) map[string]heard {
	out := map[string]heard{}
	f, ok := facts(cabling.NeighboursFact.Of(subject.OfNode(node)))
	if !ok {
		return out
	}
	list, err := cabling.NeighboursFact.Get(f)
	if err != nil {
		return out
	}
	for _, h := range list {
		out[strings.ToLower(h.PCI)] = heard{heardText(h), f.Observed.UTC()}
	}
	return out
}

func heardText(h wire.Neighbour) string {
	name := h.SystemName
	if name == "" {
		name = h.ChassisID
	}
	return strings.TrimSpace(name + " " + h.PortID)
}

// live adds what the run does to what is known of a node.
func (b *Backend) live(w *control.Why) {
	e := b.run.Executor
	run := e.Status()
	w.Draining = run.Draining
	w.Active, w.Paces = activeOn(run, w.Node.Name), nil
	var ids []plan.StepID
	for _, x := range w.Active {
		ids = append(ids, x.ID)
	}
	if len(ids) > 0 {
		w.Paces = e.Budgets(ids...)
	}
	if waits, ok := e.Waiting(w.Node.Name); ok {
		w.Waiting = &waits
	}
	for _, x := range w.Active {
		switch base := x.ID.Base(); {
		case x.Since.IsZero():
			continue
		case base == install.StepOf(w.Node.Name, install.Boot):
			w.Console = b.run.said.Of(w.Node.Name, x.ID)
		case base == install.StepOf(w.Node.Name, install.Netboot):
			w.Console = b.run.said.Of(w.Node.Name, x.ID)
			w.Guess = b.guess(w.Node.Name, x.Since)
		}
	}
}

// activeOn are the active steps of a run that are about a node.
func activeOn(run apply.Status, node string) (out []apply.StepStatus) {
	for _, x := range run.Active {
		if x.Node == node {
			out = append(out, x)
			continue
		}
		for _, m := range x.Members {
			if m == node {
				out = append(out, x)
			}
		}
	}
	return out
}

// guess is what the install stage would blame if the node stayed silent now.
func (b *Backend) guess(node string, since time.Time) *control.Guess {
	n, ok := b.run.site.Inv.Node(node)
	if !ok {
		return nil
	}
	lines, _ := b.run.said.Printed(node)
	d := install.Diagnose(n, b.run.saw.of(node, since), lines)
	return &control.Guess{Cause: d.Cause, Action: d.Action}
}

// tailOf is the console that was kept of a node's step that failed, unless the node
// has come further since.
func tailOf(r state.Reader, w control.Why) (*control.Console, error) {
	f, ok := reach.Facts(r)(install.ConsoleFact.Of(subject.OfNode(w.Node.Name)))
	if !ok || w.Node.Accepted {
		return nil, nil
	}
	t, err := install.ConsoleFact.Get(f)
	if err != nil {
		return nil, err
	}
	for _, x := range w.Steps {
		if x.ID == t.Step && x.State != state.StepIsDone && !t.At.Before(x.Started) {
			return &control.Console{Step: t.Step, At: t.At, Lines: t.Lines, Ref: t.Ref}, nil
		}
	}
	return nil, nil
}
