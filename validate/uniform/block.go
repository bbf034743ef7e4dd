// SPDX-License-Identifier: Apache-2.0

package uniform

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/result"
)

// Unlike is a part that is not what the hardware block of its node, or another word of the
// site, says.
type Unlike struct {
	Part     string   `json:"part"`
	Cause    string   `json:"cause"` // begins with the part
	Evidence []string `json:"evidence"`
	Action   string   `json:"action"`
	Of       string   `json:"of,omitempty"` // of the site, that says otherwise or is at fault; empty: the node's hardware block
}

// what is the same for the same difference on other nodes.
func (u Unlike) what() string { return strings.TrimPrefix(u.Cause, u.Part+": ") }

// unlikeBlock judges the nodes of a cohort that are not what their hardware block says. What most of them
// have is one finding about the block: it or the delivery is wrong. Else it is the
// node's. Nodes in service have a voice and are not judged. Of a node that another tool installed
// its gates have said so already: a part that they named is not named again.
func (u *uniformity) unlikeBlock(cohort []Node, about map[string]bool) {
	cohort = slices.DeleteFunc(slices.Clone(cohort), func(n Node) bool {
		of, known := u.inv.Node(n.Name)
		if known && of.Foreign {
			u.faults[n.Name] = slices.DeleteFunc(u.faults[n.Name], func(d difference) bool {
				return slices.ContainsFunc(n.Unlike, func(x Unlike) bool { return x.Part == d.part })
			})
		}
		return known && of.Foreign
	})
	who := map[string][]string{} // nodes by what differs
	first := map[string]Unlike{}
	var order []string
	for _, n := range cohort {
		counted := map[string]bool{}
		for _, x := range n.Unlike {
			w := x.what()
			if _, known := first[w]; !known {
				first[w], order = x, append(order, w)
			}
			if !counted[w] {
				counted[w], who[w] = true, append(who[w], n.Name)
			}
		}
	}
	for _, w := range order {
		if len(cohort) >= Fewest && shareOf*len(who[w]) >= share*len(cohort) {
			u.ofBlock = append(u.ofBlock, blockFinding{first[w], who[w], len(cohort)})
			continue
		}
		for _, n := range cohort {
			for _, x := range n.Unlike {
				if x.what() == w && about[n.Name] {
					u.faults[n.Name] = append(u.faults[n.Name], difference{part: x.Part, cause: x.Cause, evidence: strings.Join(x.Evidence, "; "), action: x.Action})
				}
			}
		}
	}
}

// blockFinding is what most nodes of a role have that their hardware block does not say.
type blockFinding struct {
	unlike Unlike
	nodes  []string
	of     int
}

// reportBlock makes one finding of each about the hardware block.
func (u *uniformity) reportBlock(ctx context.Context, run stage.Run, about map[string]bool) error {
	for _, b := range u.ofBlock { // the nodes are out of service by it, and not suspected
		x, block := b.unlike, u.role
		if n, ok := u.inv.Node(b.nodes[0]); ok {
			block = n.Hardware.Name
		}
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Site, Name: cmp.Or(x.Of, "hardware."+block)}, Part: kindOfPart(x.Part)}},
			Cause:    fmt.Sprintf("%s of %d of %d nodes of role %s: %s", kindOfPart(x.Part), len(b.nodes), b.of, u.role, x.what()),
			Evidence: append([]string{"nodes: " + result.NameSome(b.nodes)}, x.Evidence...), Action: x.Action}
		for _, n := range b.nodes {
			if about[n] {
				f.Affected = append(f.Affected, subject.OfNode(n))
			}
		}
		if err := run.Blame(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// kindOfPart is a part without what tells it from others of its kind: its place and its number.
func kindOfPart(part string) string {
	kind, _, _ := strings.Cut(part, " at ")
	return strings.TrimRight(kind, " 0123456789")
}
