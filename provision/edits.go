// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// edit is one host setting that the site's files have and nodes do not.
type edit struct {
	block, name string
	was, is     string // of settings that nodes have of their own: empty
}

// edited is what one node has otherwise than the files.
type edited struct {
	settings []install.Setting
	was      []string // of each
	err      error
}

// edited compares the host settings of all nodes with what they were given, by their
// place in the inventory. It reads a fact of every installed node, beside whatever
// else is planned.
func (s *Site) edited(prior plan.Prior, targets map[string]bool) []edited {
	out := make([]edited, len(s.Inv.Nodes))
	var wg sync.WaitGroup
	parts := min(runtime.GOMAXPROCS(0), 1+len(out)/512)
	for part := range parts {
		wg.Go(func() {
			for i := len(out) * part / parts; i < len(out)*(part+1)/parts; i++ {
				if n := s.Inv.Nodes[i]; n.Image != nil && !n.Retired && (len(targets) == 0 || targets[n.Name]) {
					out[i] = s.editedOn(prior, n)
				}
			}
		})
	}
	wg.Wait()
	return out
}

// editedOn compares the host settings of one node with what it was given.
func (s *Site) editedOn(prior plan.Prior, n *inventory.Node) (out edited) {
	f, ok := s.given(prior, n.Name)
	settings := install.Settings(s.Inv, n)
	if !ok || install.Gives(f.Value, settings) {
		return out
	}
	given, err := install.SettingsFact.Get(f)
	if err != nil {
		return edited{err: err}
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

// editWarnings says which host settings were edited since nodes got theirs: they are
// written by an installation alone, and an edit by itself is no reason for one. One
// sentence for each edit, over all its nodes. Nodes that this plan installs get them
// anyway; of those that were adopted, or installed before settings were recorded, it
// is not known what they have.
func (s *Site) editWarnings(of []edited, p *plan.Plan) (out []string, err error) {
	installs := map[string]bool{}
	for i := range p.Steps {
		if st := &p.Steps[i]; st.ID.Base() == install.StepOf(st.Subject.Name, install.Configure) {
			installs[st.Subject.Name] = true
		}
	}
	var order []edit
	first, nodes := map[edit]string{}, map[edit][]*inventory.Node{}
	for i, n := range s.Inv.Nodes {
		if of[i].err != nil {
			return nil, of[i].err
		}
		if installs[n.Name] {
			continue
		}
		for j, x := range of[i].settings {
			was := of[i].was[j]
			e := edit{block: x.Block, name: x.Name, was: was, is: x.Value}
			if x.Own {
				e.was, e.is = "", ""
			}
			if nodes[e] == nil {
				order = append(order, e)
				first[e] = fmt.Sprintf("%s: %s %s -> %s%s", x.Block, x.Name, settingText(was), settingText(x.Value), declared(stage.Source(x.Decl)))
			}
			nodes[e] = append(nodes[e], n)
		}
	}
	for _, e := range order {
		out = append(out, fmt.Sprintf("%s is not on %s: host settings are written at install, and an edit alone reinstalls nothing; `ironrail plan --replace %s` erases and reinstalls them",
			first[e], subject.Some(nodeNames(nodes[e]), 3), s.wordsFor(nodes[e])))
	}
	return out, nil
}

// given is what an installed node was given; false when that is not known.
func (s *Site) given(prior plan.Prior, node string) (f fact.Fact, ok bool) {
	if _, done := prior.Steps[install.StepOf(node, install.Configure)]; !done || prior.Nodes[node].Adopted {
		return f, false
	}
	return prior.Fact(install.SettingsFact.Of(subject.OfNode(node)))
}

// wordsFor names nodes for a command: by their role where they are all of it, as
// long as they are many.
func (s *Site) wordsFor(nodes []*inventory.Node) string {
	const few = 3
	role := nodes[0].Role
	if len(nodes) <= few || role == nil {
		return strings.Join(nodeNames(nodes), ",")
	}
	of := 0
	for _, n := range s.Inv.Nodes {
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

// nodeNames are the names of nodes, in their order.
func nodeNames(nodes []*inventory.Node) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}

// settingText shows the value of a setting.
func settingText(v string) string {
	if v == "" {
		return "not given"
	}
	return strconv.Quote(v)
}

// declared shows where a setting is declared.
func declared(r plan.SourceRange) string {
	if r.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", r.File, r.Line)
}
