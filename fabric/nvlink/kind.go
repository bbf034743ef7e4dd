// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
)

// partDomains is the further step of a fabric: site/fabric.nvl72.domains.
const partDomains = "domains"

const (
	joinWait = 3 * time.Minute // for the GPUs of a node to join, after their driver's start
	joinPoll = 10 * time.Second
	stepTime = 10 * time.Minute
)

// Clique is the NVLink partition that the GPUs of a node are in, as their driver
// says: two nodes reach each other's memory when both parts are the same.
type Clique struct {
	Cluster string `json:"cluster"` // UUID of the domain
	ID      int64  `json:"clique"`
}

// String writes it as NVIDIA's GPU feature discovery does.
func (c Clique) String() string { return fmt.Sprintf("%s.%d", c.Cluster, c.ID) }

// cliqueFact is the fact of a node's clique on the named fabric.
func cliqueFact(fabric string) fact.Name[Clique] { return fact.Name[Clique]("fabric.clique." + fabric) }

// NVLink brings NVLink domains up.
type NVLink struct {
	inv    *inventory.Inventory
	nodes  onnode.Nodes
	listed sync.Map // *inventory.Fabric to listing: every step of a node asks for it
}

// listing is the members of a fabric, and nodes_config.cfg of each domain.
type listing struct {
	members []*inventory.Node
	configs map[string][]byte
}

// listing is what the inventory says of a fabric; it is not to be changed.
func (k *NVLink) listing(f *inventory.Fabric) listing {
	if known, ok := k.listed.Load(f); ok {
		return known.(listing)
	}
	l := listing{membersOf(k.inv, f), map[string][]byte{}}
	for _, n := range l.members {
		if l.configs[n.Domain] == nil {
			l.configs[n.Domain] = nodesConfig(l.members, n.Domain)
		}
	}
	k.listed.Store(f, l)
	return l
}

var (
	_ fabric.Staged   = (*NVLink)(nil)
	_ fabric.Portless = (*NVLink)(nil)
)

// New returns the kind.
func New(inv *inventory.Inventory, nodes onnode.Nodes) *NVLink {
	return &NVLink{inv: inv, nodes: nodes}
}

// Members are the nodes of a fabric that are in a domain and have a driver whose
// programs can be asked, by domain and name.
func (k *NVLink) Members(f *inventory.Fabric) []*inventory.Node { return k.listing(f).members }

func membersOf(inv *inventory.Inventory, f *inventory.Fabric) (list []*inventory.Node) {
	if inv == nil || f.Kind != Name {
		return nil
	}
	domains, _ := listDomains(inv, f)
	for _, d := range domains {
		for _, n := range d.nodes {
			if hasDriver(n) && n.Image != nil && !n.Retired {
				list = append(list, n)
			}
		}
	}
	return list
}

// hasDriver reports whether a node has NVIDIA's driver from this site.
func hasDriver(n *inventory.Node) bool {
	return linksOutside(n.Hardware) && slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool { return d.Kind == "cuda" })
}

// GateSteps returns the steps about domains that have to be settled before nodes of a site
// are tested, since they find who is not in its domain.
func GateSteps(inv *inventory.Inventory) (ids []plan.StepID) {
	for _, f := range inv.Fabrics {
		if len(membersOf(inv, f)) > 0 {
			ids = append(ids, fabric.PartID("site", f.Name, partDomains))
		}
	}
	return ids
}

// Check implements fabric.Kind. The files were checked when they were loaded.
func (*NVLink) Check(*inventory.Fabric, []*inventory.Node) hcl.Diagnostics { return nil }

// Inputs implements fabric.Kind.
func (k *NVLink) Inputs(f *inventory.Fabric, n *inventory.Node) []plan.Input {
	in := []plan.Input{{Name: "domain", Value: n.Domain, Decl: stage.Source(n.Decl)}}
	if hasIMEX(f) {
		in = append(in, plan.Input{Name: "imex", Value: strings.ReplaceAll(strings.TrimSpace(string(k.listing(f).configs[n.Domain])), "\n", " "), Decl: stage.Source(f.Place("imex"))})
	}
	return in
}

// Apply implements fabric.Kind: the GPUs have joined, and IMEX knows its domain.
func (k *NVLink) Apply(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]fabric.Port, error) {
	c, err := k.joined(ctx, run, n)
	if err != nil {
		return nil, blamePart(ctx, run, n, "NVLink", "nvidia-smi -q: Fabric: State and Status of each GPU", err)
	}
	if hasIMEX(f) {
		if err := k.setIMEX(ctx, f, n); err != nil {
			return nil, blamePart(ctx, run, n, "IMEX", nodesFile+" and the state of "+imexService+" on the node", err)
		}
	}
	return nil, learnClique(ctx, run, f, n, c)
}

// blamePart names the part of a node that an error is about. One about the way to the
// node speaks against none.
func blamePart(ctx context.Context, run stage.Run, n *inventory.Node, part, evidence string, err error) error {
	if errkind.Of(err).Base() != errkind.Mismatch {
		return err
	}
	return errors.Join(run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: part}},
		Cause: strings.TrimPrefix(err.Error(), "node "+n.Name+": "), Evidence: []string{evidence}, Action: errkind.Action(err)}), err)
}

func learnClique(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node, c Clique) error {
	fc, err := cliqueFact(f.Name).New(subject.OfNode(n.Name), c, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, fc)
}

// Observe implements fabric.Kind.
func (k *NVLink) Observe(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) (stage.Observation, []fabric.Port, error) {
	c, wait, err := k.clique(ctx, n)
	switch {
	case wait != "":
		return stage.Observation{State: stage.Differs, Evidence: wait}, nil, nil
	case err != nil && errkind.Of(err).Base() == errkind.Mismatch:
		return stage.Observation{State: stage.Differs, Evidence: err.Error()}, nil, nil
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil, nil
	}
	if hasIMEX(f) {
		if differs, err := k.differsIMEX(ctx, f, n); err != nil {
			return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil, nil
		} else if differs != "" {
			return stage.Observation{State: stage.Differs, Evidence: differs}, nil, nil
		}
	}
	return stage.Observation{State: stage.Conforms, Evidence: "its GPUs are in clique " + c.String()}, nil, learnClique(ctx, run, f, n, c)
}

// joined waits until the GPUs of a node are in their domain: the driver asks the
// fabric manager on the switches for that after its start.
func (k *NVLink) joined(ctx context.Context, run stage.Run, n *inventory.Node) (Clique, error) {
	end := run.Clock().Now().Add(joinWait)
	for {
		c, wait, err := k.clique(ctx, n)
		if err != nil || wait == "" {
			return c, err
		}
		if !run.Clock().Now().Before(end) {
			return c, errkind.New(errkind.Mismatch, "node %s: %s after %s", n.Name, wait, joinWait).
				Do("Where other GPUs of the node are in it, look at the links of this one (nvidia-smi nvlink -s) and reseat the tray. Else look at the NVLink switches of its rack: their fabric manager must run and know this tray (nv show cluster apps). Then apply again.")
		}
		if err := run.Clock().Sleep(ctx, joinPoll); err != nil {
			return c, context.Cause(ctx)
		}
	}
}

// joinedOf counts the GPUs of a node that the fabric has registered.
func joinedOf(log nvidiasmi.Log) (n int) {
	for _, g := range log.GPUs {
		if g.Fabric.State == "Completed" {
			n++
		}
	}
	return n
}

// clique asks a node which clique its GPUs are in. wait says what they still wait
// for. Source: nvidia-smi(1), "Fabric": State is Completed when the GPU is
// registered with the fabric manager, Status then its success or error.
func (k *NVLink) clique(ctx context.Context, n *inventory.Node) (c Clique, wait string, err error) {
	out, err := onnode.Do(ctx, k.nodes, n.Name, "nvidia-smi", "-q", "-x")
	if err != nil {
		return c, "", err
	}
	log, problems, err := nvidiasmi.ParseXML(out)
	if err != nil || len(log.GPUs) == 0 {
		return c, "", errkind.New(errkind.Mismatch, "node %s: nvidia-smi -q -x names no GPU (%v %v)", n.Name, problems, err).Do("Look whether the driver runs: nvidia-smi on the node.")
	}
	for i, g := range log.GPUs {
		who := fmt.Sprintf("GPU %s (serial %s)", g.BusID, g.Serial)
		switch fab := g.Fabric; {
		case fab.State == "" || fab.State == "N/A" || fab.State == "Not Supported":
			return c, "", errkind.New(errkind.Mismatch, "node %s: %s knows no NVLink fabric", n.Name, who).Do("Look whether the tray is seated and its driver is one for NVLink between nodes.")
		case fab.State != "Completed":
			return c, fmt.Sprintf("%s is not in the NVLink fabric: state %s, and %d of %d GPUs of the node are in it", who, fab.State, joinedOf(log), len(log.GPUs)), nil
		case fab.Status != "Success":
			return c, "", errkind.New(errkind.Mismatch, "node %s: %s could not join the NVLink fabric: %s", n.Name, who, fab.Status).Do("Look at the fabric manager's log on the NVLink switches.")
		case fab.Cluster == "" || fab.Clique == nil:
			return c, "", errkind.New(errkind.Invalid, "node %s: %s does not say which clique it is in", n.Name, who).Do("Take a driver that does, 550 or later.")
		default:
			this := Clique{fab.Cluster, *fab.Clique}
			if i > 0 && this != c {
				return c, "", errkind.New(errkind.Conflict, "node %s: %s is in clique %s, and other GPUs of it in %s", n.Name, who, this, c).Do("Look at the partitions on the NVLink switches.")
			}
			c = this
		}
	}
	return c, "", nil
}
