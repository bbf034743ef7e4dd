// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// declaredKind is the kind of the state objects that remember how nodes were
// declared: a Declared in JSON, by the name of the node. The format only grows.
const declaredKind = "declared"

// Declared is how the site's files declared a node when it was worked on last. It
// is what a node is decommissioned by whose block is gone. Other blocks are
// remembered by name; passwords by where they lie.
type Declared struct {
	Node    string           `json:"node"`
	Decl    plan.SourceRange `json:"decl"`
	Rack    string           `json:"rack,omitempty"`
	Unit    int              `json:"unit,omitempty"`
	Role    string           `json:"role,omitempty"`
	Serial  string           `json:"serial,omitempty"`
	UUID    string           `json:"uuid,omitempty"`
	BootMAC addr.MAC         `json:"boot_mac,omitzero"`
	Address netip.Addr       `json:"address,omitzero"`
	Network string           `json:"boot_network,omitempty"`

	Hardware string      `json:"hardware,omitempty"`
	Image    string      `json:"image,omitempty"`
	Handover string      `json:"handover,omitempty"`
	Protect  bool        `json:"protect,omitempty"`
	BMC      DeclaredBMC `json:"bmc"`
}

// DeclaredBMC is how a node's BMC was reached.
type DeclaredBMC struct {
	Profile     string            `json:"profile,omitempty"`
	Protocol    string            `json:"protocol,omitempty"`
	Address     netip.Addr        `json:"address,omitzero"`
	Port        uint16            `json:"port,omitempty"`
	CipherSuite int               `json:"cipher_suite,omitempty"`
	Endpoint    string            `json:"endpoint,omitempty"`
	Username    string            `json:"username,omitempty"`
	Password    secret.Ref        `json:"password,omitempty"` // where it lies
	TLS         inventory.TLSMode `json:"tls,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	CA          string            `json:"ca,omitempty"`
}

// declaredOf remembers a node.
func declaredOf(n *inventory.Node) Declared {
	d := Declared{Node: n.Name, Decl: stage.Source(n.Decl), Unit: n.Unit, Serial: n.Serial, UUID: n.UUID, BootMAC: n.BootMAC, Address: n.Address, Protect: n.Protect}
	b := n.BMC
	d.BMC = DeclaredBMC{Protocol: b.Protocol, Address: b.Address, Port: b.Port, CipherSuite: b.CipherSuite, Endpoint: b.Endpoint, Username: b.Username, Password: b.Password,
		TLS: b.TLS.Mode, Fingerprint: b.TLS.Fingerprint, CA: b.TLS.CA}
	if b.Profile != nil {
		d.BMC.Profile = b.Profile.Name
	}
	of := n.BlockNames()
	d.Rack, d.Role, d.Network, d.Hardware, d.Handover = of.Rack, of.Role, of.Network, of.Hardware, of.Handover
	d.Image, _, _ = strings.Cut(of.Image, pinMark)
	return d
}

// Remember makes durable how the nodes are declared that the state knows, and
// those that a plan is about (nil: no plan): once a block is taken out of the
// site's files, that is all that is left of it.
func Remember(ctx context.Context, store state.Store, fence state.Fence, inv *inventory.Inventory, p *plan.Plan) error {
	nodes, err := state.ReadNodes(ctx, store)
	if err != nil {
		return err
	}
	old, err := readObjects[Declared](ctx, store, declaredKind)
	if err != nil {
		return err
	}
	var b state.Batch
	for _, n := range inv.Nodes {
		_, known := nodes[n.Name]
		if p != nil && !known {
			_, known = p.Versions[subject.OfNode(n.Name)]
		}
		if !known || n.Retired {
			continue
		}
		now := declaredOf(n)
		if was, ok := old[n.Name]; ok && reflect.DeepEqual(was, now) {
			continue
		}
		put, err := state.PutOf(state.Key{Kind: declaredKind, Name: n.Name}, now)
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, put)
	}
	return state.AppendParts(ctx, store, fence, b.Split()...)
}

// tombstone makes the node again that a name stood for, for as long as it takes to
// decommission it. It has no role, no image and no tests: nothing but that is done
// to it. image is the block of the image that it had.
func (o *Desired) tombstone(ctx context.Context, r state.Reader, name string) (n *inventory.Node, image string, err error) {
	inv := o.Files
	forget := fmt.Sprintf("`ironrail decommission %s --forget-only` forgets it without touching it.", name)
	if n, ok := inv.Node(name); ok {
		return nil, "", errkind.New(errkind.Refused, "%s is still in the site (%s:%d), and a node of the site is not decommissioned", name, n.Decl.Filename, n.Decl.Start.Line).
			Do(fmt.Sprintf("Take it out first: out of %s:%d, or of the list that the block there is made from.", n.Decl.Filename, n.Decl.Start.Line))
	}
	d, version, err := state.Get[Declared](ctx, r, state.Key{Kind: declaredKind, Name: name})
	if err != nil {
		return nil, "", err
	}
	if version == state.Absent {
		if _, known, err := r.Object(ctx, state.NodeKey(name)); err != nil || known {
			return nil, "", errkind.New(errkind.NotFound, "the state knows %s, and not how it was declared", name).
				Do("Put its block back and run `ironrail apply` once, so that it is remembered; or " + forget)
		}
		return nil, "", errkind.New(errkind.Refused, "neither the site nor the state knows a node %q", name).Do("`ironrail plan` lists the nodes that are gone from the site.")
	}
	if err := d.elsewhere(inv, forget); err != nil {
		return nil, "", err
	}
	if err := d.elsewhere(o.Inv, forget); err != nil { // a replaced chassis may be this one
		return nil, "", err
	}
	n, err = d.node(inv, forget)
	return n, d.Image, err
}

// elsewhere refuses a node whose chassis, BMC or address is another node's now: to
// wipe it would be to wipe that one.
func (d Declared) elsewhere(inv *inventory.Inventory, forget string) error {
	for _, n := range inv.Nodes {
		what := ""
		switch {
		case d.Serial != "" && strings.EqualFold(d.Serial, n.Serial):
			what = "serial number " + n.Serial
		case d.UUID != "" && strings.EqualFold(d.UUID, n.UUID):
			what = "UUID " + n.UUID
		case !d.BootMAC.IsZero() && d.BootMAC == n.BootMAC:
			what = "boot MAC " + n.BootMAC.String()
		case d.BMC.Address.IsValid() && d.BMC.Address == n.BMC.Address:
			what = "BMC address " + n.BMC.Address.String()
		case d.Address.IsValid() && d.Address == n.Address:
			what = "address " + n.Address.String()
		default:
			continue
		}
		return errkind.New(errkind.Refused, "%s had the %s, which is %s's now (%s:%d): nothing of it is touched", d.Node, what, n.Name, n.Decl.Filename, n.Decl.Start.Line).
			Do("If the chassis has another name now, only the old name is to be forgotten: " + forget)
	}
	return nil
}

// node puts a node together from what is remembered and the blocks of the site.
func (d Declared) node(inv *inventory.Inventory, forget string) (*inventory.Node, error) {
	n := &inventory.Node{Name: d.Node, Retired: true, Unit: d.Unit, Serial: d.Serial, UUID: d.UUID, BootMAC: d.BootMAC, Address: d.Address, Protect: d.Protect}
	n.Decl.Filename, n.Decl.Start.Line, n.Decl.Start.Column = d.Decl.File, d.Decl.Line, d.Decl.Column
	n.Rack = &inventory.Rack{Name: d.Rack}
	n.BMC = inventory.BMCTarget{Protocol: d.BMC.Protocol, Address: d.BMC.Address, Port: d.BMC.Port, CipherSuite: d.BMC.CipherSuite, Endpoint: d.BMC.Endpoint, Username: d.BMC.Username,
		Password: d.BMC.Password, TLS: inventory.TLSTrust{Mode: d.BMC.TLS, Fingerprint: d.BMC.Fingerprint, CA: d.BMC.CA}}
	missing := func(block, name string) error {
		return errkind.New(errkind.NotFound, "%s %q, which %s was made of, is not in the site any more", block, name, d.Node).
			Do(fmt.Sprintf("Put the block back until %s is decommissioned; or %s", d.Node, forget))
	}
	for _, h := range inv.Hardware {
		if h.Name == d.Hardware {
			bare := *h // without its fabrics: it is a member of none any more
			bare.BIOS = nil
			bare.NICs = append([]inventory.NIC(nil), h.NICs...)
			for i := range bare.NICs {
				bare.NICs[i].Fabric = nil
			}
			n.Hardware = &bare
		}
	}
	if n.Hardware == nil {
		return nil, missing("hardware", d.Hardware)
	}
	for _, w := range inv.Networks {
		if w.Name == d.Network {
			n.BootNetwork = w
		}
	}
	if n.BootNetwork == nil || !n.Address.IsValid() || n.BootMAC.IsZero() {
		return nil, missing("network", d.Network)
	}
	for _, h := range inv.Handovers {
		if h.Name == d.Handover {
			n.Handover = h
		}
	}
	if d.Handover != "" && n.Handover == nil {
		return nil, missing("handover", d.Handover)
	}
	return n, nil
}
