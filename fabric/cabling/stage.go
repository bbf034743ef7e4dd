// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// The stage's name and the version of its fingerprints.
const (
	StageName = "cabling"
	Version   = 1
)

// StepID is the one step of the stage: whether two cables are exchanged can only
// be said of all of them together.
const StepID plan.StepID = "site/cabling.check"

// suspectsFact lists the nodes that the last check took out. It belongs to the
// site's cabling.
const suspectsFact = fact.Name[[]string]("cabling.suspects")

// NeighboursFact is whom the NICs of a node heard by LLDP when it listened last.
const NeighboursFact = fact.Name[[]wire.Neighbour]("node.neighbours")

// Times of the check: a node that is asked again listens for LLDP as long as
// neighbours take to speak.
const (
	limit     = 10 * time.Minute
	askLimit  = 2 * time.Minute
	askAtOnce = 32 // nodes
)

// Stage compares the cables of a site with what its nodes have heard by the time
// that their images were written. Nodes on a cable that is elsewhere are taken out
// before they are tested; the others go on.
type Stage struct {
	inv    *inventory.Inventory
	listen func(node string) plan.StepID
	nodes  onnode.Nodes
}

// New returns the stage. listen is the step in which a node hears its neighbours and
// learns NeighboursFact. nodes may be nil when only Plan is called.
func New(inv *inventory.Inventory, listen func(node string) plan.StepID, nodes onnode.Nodes) *Stage {
	return &Stage{inv: inv, listen: listen, nodes: nodes}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// Of is the subject of the check.
func Of() subject.ID { return subject.ID{Kind: subject.Site, Name: StageName} }

// listeningNodes lists the nodes that are installed and have a cable that LLDP can tell
// of, in the order of the site. Without any there is nothing to check.
func listeningNodes(inv *inventory.Inventory) (nodes []*inventory.Node) {
	cabled := make(map[*inventory.Node]bool, len(inv.Nodes))
	for _, b := range inv.Cables {
		if n := listeningNode(b); n != nil {
			cabled[n] = true
		}
	}
	for _, n := range inv.Nodes {
		if cabled[n] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Any reports whether listening lists any node.
func Any(inv *inventory.Inventory) bool {
	return slices.ContainsFunc(inv.Cables, func(b *inventory.Cable) bool { return listeningNode(b) != nil })
}

// listeningNode returns the installed node that LLDP can tell of a cable to; nil: none.
func listeningNode(b *inventory.Cable) *inventory.Node {
	from, _, ok := endsOf(b)
	if !ok || from.Node.Image == nil || from.NIC.Ports[from.Port].PCI == "" || infiniBand(from.NIC) {
		return nil
	}
	return from.Node
}

// Plan implements stage.Stage.
func (s *Stage) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) {
	nodes := listeningNodes(s.inv)
	if len(nodes) == 0 {
		return nil, nil
	}
	st := plan.Step{ID: StepID, Stage: StageName, Action: plan.Read, Subject: Of(), Barrier: true, Version: Version,
		Title: "compare the site's cables with what its nodes hear by LLDP", // of all that have said something, whomever the plan is about
		Decl:  stage.Source(s.inv.Cables[0].Decl), Deadline: plan.Budget{Limit: limit, Expected: time.Second},
		Yields: []fact.Key{suspectsFact.Of(Of())}, Needs: make([]plan.Need, 0, len(nodes)), Reads: make([]fact.Key, 0, len(nodes))}
	for _, n := range nodes {
		st.Needs = append(st.Needs, plan.Need{Step: s.listen(n.Name), On: plan.Settled, Triggers: true})
		st.Reads = append(st.Reads, NeighboursFact.Of(subject.OfNode(n.Name)))
	}
	return []plan.Step{st}, nil
}

// Observe implements stage.Stage: cables are compared, whenever that is planned.
func (s *Stage) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

// Apply implements stage.Stage. It fails when a cable is elsewhere, so that the
// next plan looks again.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	c := check{Stage: s, run: run, heard: map[string][]wire.Neighbour{}, fresh: map[string]bool{}, asked: map[string]bool{}, silent: map[string]error{}}
	for _, n := range st.Needs {
		c.fresh[nodeOf(n.Step)] = true
	}
	if err := c.recall(); err != nil {
		return err
	}
	if err := c.readNeighbours(ctx); err != nil {
		return err
	}
	return c.reportFindings(ctx)
}

// check is one look at the cables.
type check struct {
	*Stage
	run    stage.Run
	heard  map[string][]wire.Neighbour
	fresh  map[string]bool  // nodes that listened in this plan
	before []string         // nodes that an earlier check took out and that did not listen since, and those whose cages are split
	asked  map[string]bool  // these, by name
	silent map[string]error // those of them that do not answer
}

// recall reads what the nodes heard, and whom the last check took out.
func (c *check) recall() error {
	for _, n := range c.inv.Nodes {
		f, ok := c.run.Fact(NeighboursFact.Of(subject.OfNode(n.Name)))
		if !ok {
			continue
		}
		list, err := NeighboursFact.Get(f)
		if err != nil {
			return err
		}
		c.heard[n.Name] = list
		if c.fresh[n.Name] && n.Hardware.Splits() {
			c.heard[n.Name] = unsplit(n.Hardware, list)
		}
	}
	c.listenSplit()
	f, ok := c.run.Fact(suspectsFact.Of(Of()))
	if !ok {
		return nil
	}
	all, err := suspectsFact.Get(f)
	for _, name := range all {
		if _, ok := c.inv.Node(name); ok && !c.fresh[name] {
			c.before = append(c.before, name)
			c.asked[name] = true
		}
	}
	return err
}

// listenSplit lets nodes listen whose cages were split in this plan: in the ramdisk each cage
// was one port still.
func (c *check) listenSplit() {
	for _, n := range listeningNodes(c.inv) {
		if c.fresh[n.Name] && n.Hardware.Splits() {
			c.before = append(c.before, n.Name)
			c.asked[n.Name] = true
		}
	}
}

// unsplit is what the ports heard that are those of no cage that is split.
func unsplit(h *inventory.Hardware, heard []wire.Neighbour) []wire.Neighbour {
	return slices.DeleteFunc(slices.Clone(heard), func(x wire.Neighbour) bool {
		return slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool {
			return n.Split > 0 && slices.ContainsFunc(n.Ports, func(p inventory.NICPort) bool { return strings.EqualFold(p.PCI, x.PCI) })
		})
	})
}

// readNeighbours lets the nodes that were taken out, or split, listen again: what they heard is
// of before somebody exchanged plugs. The install ramdisk is gone by now; where the
// installed system does not answer, what was heard stands.
func (c *check) readNeighbours(ctx context.Context) error {
	answers := make([]wire.Neighbours, len(c.before))
	errs := make([]error, len(c.before))
	slots := make(chan struct{}, askAtOnce)
	var wg sync.WaitGroup
	for i, node := range c.before {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := c.run.Clock().WithTimeout(ctx, askLimit)
			defer cancel()
			errs[i] = onnode.Agent(ctx, c.nodes, node, nil, &answers[i], "neighbours")
		})
	}
	wg.Wait()
	for i, node := range c.before {
		if errs[i] != nil {
			c.silent[node] = errs[i]
			continue
		}
		c.heard[node] = mergeHeard(c.heard[node], answers[i].Neighbours)
		f, err := NeighboursFact.New(subject.OfNode(node), c.heard[node], "")
		if err != nil {
			return err
		}
		if err := c.run.Learn(ctx, f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// mergeHeard replaces what ports have heard. What a port heard that is silent now stands:
// a plug that was pulled is not where it belongs.
func mergeHeard(old, now []wire.Neighbour) []wire.Neighbour {
	list := slices.Clone(now)
	for _, n := range old {
		if !slices.ContainsFunc(now, func(o wire.Neighbour) bool { return o.PCI == n.PCI }) {
			list = append(list, n)
		}
	}
	return list
}

// reportFindings compares, makes the findings, and remembers whom they took out.
func (c *check) reportFindings(ctx context.Context) error {
	r := CompareCables(c.inv, c.heard)
	out := c.ends(r)
	suspects, listed := []string{}, map[string]bool{}
	for _, f := range r.Findings {
		for i, s := range f.Suspects {
			end, ok := out[s.Subject.Name]
			if s.Subject.Kind != subject.Link || !ok {
				continue
			}
			f.Suspects[i] = end
			if !listed[end.Subject.Name] {
				listed[end.Subject.Name] = true
				suspects = append(suspects, end.Subject.Name)
			}
			if err := c.silent[end.Subject.Name]; err != nil {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s was asked to listen again and does not answer: %v", end.Subject.Name, err))
				f.Action += fmt.Sprintf(" When that is done, `ironrail rebuild %s` lets it listen.", end.Subject.Name)
			}
		}
		if err := c.run.Blame(ctx, f); err != nil {
			return err
		}
	}
	f, err := suspectsFact.New(Of(), suspects, "")
	if err != nil {
		return err
	}
	if err := c.run.Learn(ctx, f); err != nil || len(r.Findings) == 0 {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s", r.Findings[0].Cause).Do(r.Findings[0].Action)
}

// ends maps the names of the links that take their node out to that end: the node
// has heard for itself, in this plan or by a check that took it out, that its cable
// is elsewhere. Silence takes nobody out, nor does an old fact one that was
// accepted since.
func (c *check) ends(r Report) map[string]stage.Suspect {
	unknown := map[string]bool{}
	for _, x := range r.Results {
		unknown[x.Cable.Name()] = x.State != Wrong
	}
	out := map[string]stage.Suspect{}
	for _, f := range r.Findings {
		for _, s := range f.Suspects {
			node, port := cutPort(s.Subject.Name)
			if s.Subject.Kind == subject.Link && !unknown[s.Subject.Name] && (c.fresh[node] || c.asked[node]) {
				if s.Part != "" {
					port += " (" + s.Part + ")"
				}
				out[s.Subject.Name] = stage.Suspect{Subject: subject.OfNode(node), Part: port}
			}
		}
	}
	return out
}

// nodeOf is the node of a step such as n1/install.configure.
func nodeOf(id plan.StepID) string {
	node, _ := cutPort(string(id))
	return node
}

// cutPort splits a name such as n1/rail/0 into the node and its port.
func cutPort(name string) (node, port string) {
	node, port, _ = strings.Cut(name, "/")
	return node, port
}
