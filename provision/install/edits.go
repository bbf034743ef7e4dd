// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Edits are the host settings that installed nodes have otherwise than the files.
type Edits struct {
	inv    *inventory.Inventory
	ofNode []nodeEdits // by place of the node in the inventory
}

// nodeEdits are the edited settings of one node.
type nodeEdits struct {
	settings []Setting
	was      []string // of each
	err      error
}

// edit is one host setting that the site's files have and nodes do not.
type edit struct {
	block, name string
	was, is     string // of settings that nodes have of their own: empty
	memory      bool   // the systems are kept in memory
}

// FindEdits compares the host settings of all nodes, or of the targets if there are any,
// with what they were given. It reads a fact of every installed node, by several
// goroutines; prior is not changed.
func FindEdits(inv *inventory.Inventory, prior plan.Prior, targets map[string]bool) Edits {
	out := make([]nodeEdits, len(inv.Nodes))
	var wg sync.WaitGroup
	parts := min(runtime.GOMAXPROCS(0), 1+len(out)/512)
	for part := range parts {
		wg.Go(func() {
			for i := len(out) * part / parts; i < len(out)*(part+1)/parts; i++ {
				if n := inv.Nodes[i]; n.Image != nil && !n.Retired && (len(targets) == 0 || targets[n.Name]) {
					out[i] = findNodeEdits(inv, prior, n)
				}
			}
		})
	}
	wg.Wait()
	return Edits{inv: inv, ofNode: out}
}

// findNodeEdits compares the host settings of one node with what it was given.
func findNodeEdits(inv *inventory.Inventory, prior plan.Prior, n *inventory.Node) (out nodeEdits) {
	f, ok := findGiven(prior, n.Name)
	settings := Settings(inv, n)
	if !ok || hasSettings(f.Value, settings) {
		return out
	}
	given, err := SettingsFact.Get(f)
	if err != nil {
		return nodeEdits{err: err}
	}
	for _, x := range settings {
		was, known := given.Values[x.Name]
		if !known || was == x.Value {
			continue
		}
		out.settings, out.was = append(out.settings, x), append(out.was, was)
	}
	return out
}

// Has reports whether host settings of a node were edited since it got its own, or whether that
// cannot be known.
func (e Edits) Has(node string) bool {
	i, here := slices.BinarySearchFunc(e.inv.Nodes, node, func(n *inventory.Node, name string) int { return strings.Compare(n.Name, name) })
	return here && (e.ofNode[i].err != nil || len(e.ofNode[i].settings) > 0)
}

// ListWarnings says which host settings were edited since nodes got theirs: they are
// written by an installation alone, and an edit by itself is no reason for one. One
// sentence for each edit, over all its nodes. Nodes that p installs get them anyway; of
// those that were adopted, or installed before settings were recorded, it is not known
// what they have.
func (e Edits) ListWarnings(p *plan.Plan) (out []string, err error) {
	installs := map[string]bool{}
	for i := range p.Steps {
		if st := &p.Steps[i]; st.ID.Base() == StepOf(st.Subject.Name, Configure) {
			installs[st.Subject.Name] = true
		}
	}
	var order []edit
	first, nodes := map[edit]string{}, map[edit][]*inventory.Node{}
	for i, n := range e.inv.Nodes {
		if e.ofNode[i].err != nil {
			return nil, e.ofNode[i].err
		}
		if installs[n.Name] {
			continue
		}
		for j, x := range e.ofNode[i].settings {
			was := e.ofNode[i].was[j]
			d := edit{block: x.Block, name: x.Name, was: was, is: x.Value, memory: n.Diskless()}
			if x.Own {
				d.was, d.is = "", ""
			}
			if nodes[d] == nil {
				order = append(order, d)
				first[d] = fmt.Sprintf("%s: %s %s -> %s%s", x.Block, x.Name, showSetting(was), showSetting(x.Value), showSource(stage.Source(x.Decl)))
			}
			nodes[d] = append(nodes[d], n)
		}
	}
	for _, d := range order {
		written, alone, does := "at install", "reinstalls", "erases and reinstalls them"
		if d.memory {
			written, alone, does = "when a system in memory is started", "restarts", "starts their systems anew"
		}
		out = append(out, fmt.Sprintf("%s is not on %s: host settings are written %s, and an edit alone %s nothing; `ironrail plan --replace %s` %s",
			first[d], subject.Some(listNames(nodes[d]), 3), written, alone, nameForCommand(e.inv, nodes[d]), does))
	}
	return out, nil
}

// findGiven is what an installed node was given; false when that is not known.
func findGiven(prior plan.Prior, node string) (f fact.Fact, ok bool) {
	if _, done := prior.Steps[StepOf(node, Configure)]; !done || prior.Nodes[node].Adopted {
		return f, false
	}
	return prior.Fact(SettingsFact.Of(subject.OfNode(node)))
}

// nameForCommand names nodes for a command: by their role where they are all of it, as
// long as they are many.
func nameForCommand(inv *inventory.Inventory, nodes []*inventory.Node) string {
	const few = 3
	role := nodes[0].Role
	if len(nodes) <= few || role == nil {
		return strings.Join(listNames(nodes), ",")
	}
	of := 0
	for _, n := range inv.Nodes {
		if n.Role == role {
			of++
		}
	}
	for _, n := range nodes {
		if n.Role != role {
			return "NODE,..."
		}
	}
	if of != len(nodes) {
		return "NODE,..."
	}
	return "role." + role.Name
}

// listNames are the names of nodes, in their order.
func listNames(nodes []*inventory.Node) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}

// showSetting shows the value of a setting.
func showSetting(v string) string {
	if v == "" {
		return "not given"
	}
	return strconv.Quote(v)
}

// showSource shows where a setting is declared.
func showSource(r plan.SourceRange) string {
	if r.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", r.File, r.Line)
}
