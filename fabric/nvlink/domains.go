// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// imexWait is how long the IMEX services of a domain may take to find each other
// once all of them run.
const imexWait = 2 * time.Minute

func subjectOf(f *inventory.Fabric) subject.ID { return subject.ID{Kind: subject.Fabric, Name: f.Name} }

// Steps implements fabric.Staged: one that compares the nodes of each domain.
func (k *NVLink) Steps(_ stage.View, f *inventory.Fabric, nodes []*inventory.Node, _ func(*inventory.Node) []plan.Need) []plan.Step {
	st := plan.Step{ID: fabric.PartID("site", f.Name, partDomains), Action: plan.Read, Subject: subjectOf(f), Barrier: true,
		Title:    fmt.Sprintf("compare the domains of fabric %s with what their GPUs say", f.Name),
		Deadline: plan.Budget{Limit: stepTime, Expected: 10 * time.Second}}
	for _, n := range nodes {
		st.Needs = append(st.Needs, plan.Need{Step: fabric.StepID(n.Name, f.Name), On: plan.Settled, Triggers: true})
		st.Reads = append(st.Reads, cliqueFact(f.Name).Of(subject.OfNode(n.Name)))
	}
	return []plan.Step{st}
}

// Needs implements fabric.Staged.
func (*NVLink) Needs(*inventory.Fabric, *inventory.Node) []plan.Need { return nil }

// ObserveStep implements fabric.Staged: domains are compared whenever that is
// planned.
func (*NVLink) ObserveStep(context.Context, stage.Run, *inventory.Fabric, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

// ApplyStep implements fabric.Staged. Nodes that are in another clique than most of
// their domain are taken out, and those whose IMEX does not answer the others.
func (k *NVLink) ApplyStep(ctx context.Context, run stage.Run, f *inventory.Fabric, _ plan.Step) error {
	domains := map[string][]*inventory.Node{}
	var order []string
	for _, n := range k.Members(f) {
		if _, ok := k.cliqueOf(run, f, n); !ok {
			continue // its own step failed, and said so
		}
		if domains[n.Domain] == nil {
			order = append(order, n.Domain)
		}
		domains[n.Domain] = append(domains[n.Domain], n)
	}
	for _, name := range order {
		nodes, findings := k.findOutliers(run, f, name, domains[name])
		if hasIMEX(f) && len(nodes) > 0 {
			more, err := k.unready(ctx, run, f, name, nodes)
			if err != nil {
				return err
			}
			findings = append(findings, more...)
		}
		for _, x := range findings {
			if err := run.Blame(ctx, x); err != nil {
				return err
			}
		}
	}
	return k.refuseDuplicates(ctx, run, f, order, domains)
}

func (k *NVLink) cliqueOf(run stage.Run, f *inventory.Fabric, n *inventory.Node) (Clique, bool) {
	fc, ok := run.Fact(cliqueFact(f.Name).Of(subject.OfNode(n.Name)))
	if !ok {
		return Clique{}, false
	}
	c, err := cliqueFact(f.Name).Get(fc)
	return c, err == nil
}

// majority is the clique that most nodes are in; of several the first by name.
func (k *NVLink) majority(run stage.Run, f *inventory.Fabric, nodes []*inventory.Node) (most Clique, in int) {
	count := map[Clique]int{}
	for _, n := range nodes {
		c, _ := k.cliqueOf(run, f, n)
		count[c]++
	}
	for c, n := range count {
		if n > in || n == in && c.String() < most.String() {
			most, in = c, n
		}
	}
	return most, in
}

// findOutliers finds the nodes of a domain that are in another clique than most, and
// returns the others.
func (k *NVLink) findOutliers(run stage.Run, f *inventory.Fabric, name string, nodes []*inventory.Node) (same []*inventory.Node, found []stage.Finding) {
	most, in := k.majority(run, f, nodes)
	for _, n := range nodes {
		c, _ := k.cliqueOf(run, f, n)
		if c == most {
			same = append(same, n)
			continue
		}
		found = append(found, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "NVLink"}},
			Cause:    fmt.Sprintf("its GPUs are in NVLink clique %s, and %d of %d nodes of domain %s are in %s", c, in, len(nodes), name, most),
			Evidence: []string{"nvidia-smi -q: Fabric: ClusterUUID and CliqueId"},
			Action:   "Look at the partitions on the NVLink switches and at the cables of its tray; if it stands in another rack, correct `domain`. Then run `ironrail apply`."})
	}
	return same, found
}

// refuseDuplicates refuses two domains of the site that are one for their GPUs.
func (k *NVLink) refuseDuplicates(_ context.Context, run stage.Run, f *inventory.Fabric, order []string, domains map[string][]*inventory.Node) error {
	by := map[Clique]string{}
	for _, name := range order {
		c, _ := k.majority(run, f, domains[name])
		if other, taken := by[c]; taken {
			return errkind.New(errkind.Conflict, "domains %s and %s of fabric %s are one NVLink domain for their GPUs: clique %s", other, name, f.Name, c).
				Do("Correct the `domain` of their nodes, or the partitions on the NVLink switches.")
		}
		by[c] = name
	}
	return nil
}

// unready asks one node of a domain for the state of IMEX on all of them, and
// finds those that are not ready. Nodes that are out of the domain anyway leave it
// degraded, which is no finding of the others.
func (k *NVLink) unready(ctx context.Context, run stage.Run, f *inventory.Fabric, name string, nodes []*inventory.Node) ([]stage.Finding, error) {
	end := run.Clock().Now().Add(imexWait)
	for {
		out, err := onnode.Do(ctx, k.nodes, nodes[0].Name, "nvidia-imex-ctl", "-N", "-j")
		if err != nil {
			return nil, err
		}
		status, states, err := parseIMEX(out)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", nodes[0].Name, err)
		}
		troubles := troublesOf(nodes, states)
		if troubles.none() {
			return nil, nil
		}
		if run.Clock().Now().Before(end) {
			if err := run.Clock().Sleep(ctx, joinPoll); err != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		var found []stage.Finding
		for n, state := range troubles.nodes {
			found = append(found, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "IMEX"}},
				Cause:    fmt.Sprintf("its IMEX service is %s for the others of domain %s", state, name),
				Evidence: []string{fmt.Sprintf("nvidia-imex-ctl -N -j on %s: the domain is %s, %s is %s", nodes[0].Name, status, n.Address, cmp.Or(states[n.Address.String()].Status, "not listed"))},
				Action:   "Look at /var/log/nvidia-imex.log on the node, and whether the others reach its TCP ports 50000 and 50005; its driver must be of the version of the others. Then run `ironrail apply`."})
		}
		slices.SortFunc(found, func(a, b stage.Finding) int {
			return strings.Compare(a.Suspects[0].Subject.Name, b.Suspects[0].Subject.Name)
		})
		if len(troubles.pairs) > 0 {
			found = append(found, troubles.findingOfPairs(f, name, nodes[0].Name))
		}
		return found, nil
	}
}
