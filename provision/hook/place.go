// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// placed is a hook with the name of its place: install.before, install.before-2.
type placed struct {
	name string
	hook *inventory.Hook
}

// listPlaces names hooks by stage and time; the second of one place has a number.
func listPlaces(hooks []*inventory.Hook) []placed {
	count := map[string]int{}
	out := make([]placed, 0, len(hooks))
	for _, h := range hooks {
		name := h.Stage + "." + h.When
		if count[name]++; count[name] > 1 {
			name += "-" + strconv.Itoa(count[name])
		}
		out = append(out, placed{name, h})
	}
	return out
}

// Place puts the steps of a site's hooks between those of its stages, for every
// node that a stage has steps of. A hook before a stage needs what the first steps
// of the stage on that node need, and all of them need the hook; it is planned
// when one of them is. A hook after a stage needs the last steps of the stage on
// that node and runs again with them; whoever needs those needs the hook as well.
// Steps of the whole site, such as the hand-over itself, have no hooks. It is
// pure; the steps given are changed.
func Place(inv *inventory.Inventory, steps []plan.Step) []plan.Step {
	all := listPlaces(inv.Hooks)
	if len(all) == 0 {
		return steps
	}
	p := placer{inv: inv, steps: steps}
	var done []string
	for _, h := range all {
		if !containsName(done, h.hook.Stage) {
			done = append(done, h.hook.Stage)
			p.stage(h.hook.Stage, all)
		}
	}
	return p.steps
}

func containsName(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// placer is the work of one Place.
type placer struct {
	inv   *inventory.Inventory
	steps []plan.Step
}

// work is what a stage does to one node: the indices of its steps.
type work struct {
	node  string
	steps []int
}

// stage places the hooks of one stage on every node that it works on.
func (p *placer) stage(name string, all []placed) {
	follows := map[plan.StepID]plan.StepID{} // last step of a node -> the last hook after it
	var added []plan.Step
	for _, w := range p.works(name) {
		first, last := p.ends(w)
		before, after := plan.StepID(""), plan.StepID("")
		for _, h := range all {
			switch {
			case h.hook.Stage != name:
			case h.hook.When == Before:
				added = append(added, p.before(h, w.node, first, before))
				before = added[len(added)-1].ID
			default:
				added = append(added, p.after(h, w.node, last, after))
				after = added[len(added)-1].ID
			}
		}
		if before != "" {
			p.need(w.steps, before)
		}
		if after != "" {
			for _, i := range last {
				follows[p.steps[i].ID] = after
			}
		}
	}
	p.follow(name, follows)
	p.steps = append(p.steps, added...)
}

// works lists the nodes that a stage works on, in the order of its steps. A node
// that is being taken out of the site is not installed: it has no hooks of that.
func (p *placer) works(name string) []work {
	var out []work
	at := map[string]int{}
	add := func(s subject.ID, i int) {
		n, ok := p.inv.Node(s.Name)
		if s.Kind != subject.Node || !ok || n.Retired && name == "install" {
			return
		}
		j, seen := at[s.Name]
		if !seen {
			j = len(out)
			at[s.Name] = j
			out = append(out, work{node: s.Name})
		}
		out[j].steps = append(out[j].steps, i)
	}
	for i, s := range p.steps {
		if s.Stage != name {
			continue
		}
		if s.Group == nil {
			add(s.Subject, i)
			continue
		}
		for _, m := range s.Group.Members {
			add(m, i)
		}
	}
	return out
}

// ends finds the steps that need none of the others, and those that none of the
// others needs.
func (p *placer) ends(w work) (first, last []int) {
	in, needed := map[plan.StepID]bool{}, map[plan.StepID]bool{}
	for _, i := range w.steps {
		in[p.steps[i].ID] = true
	}
	for _, i := range w.steps {
		begins := true
		for _, n := range p.steps[i].Needs {
			if in[n.Step] {
				needed[n.Step], begins = true, false
			}
		}
		if begins {
			first = append(first, i)
		}
	}
	for _, i := range w.steps {
		if !needed[p.steps[i].ID] {
			last = append(last, i)
		}
	}
	return first, last
}

// before is the step of a hook before a stage. earlier is the hook that stands
// before it; "": none.
func (p *placer) before(h placed, node string, first []int, earlier plan.StepID) plan.Step {
	st := hookStep(h, node)
	st.Only = plan.WhenNeeded
	if earlier != "" {
		st.Needs = []plan.Need{{Step: earlier, On: plan.Success}}
		return st
	}
	seen := map[plan.StepID]bool{}
	for _, i := range first {
		for _, n := range p.steps[i].Needs {
			own := p.steps[i].Group == nil || strings.HasPrefix(string(n.Step), node+"/")
			if own && !seen[n.Step] {
				seen[n.Step] = true
				st.Needs = append(st.Needs, plan.Need{Step: n.Step, On: plan.Success})
			}
		}
	}
	return st
}

// after is the step of a hook after a stage. It is planned under the condition of
// the steps that it follows.
func (p *placer) after(h placed, node string, last []int, earlier plan.StepID) plan.Step {
	st := hookStep(h, node)
	for _, i := range last {
		st.Needs = append(st.Needs, plan.Need{Step: p.steps[i].ID, On: plan.Success, Triggers: true})
		st.Only = p.steps[i].Only
	}
	if earlier != "" {
		st.Needs = append(st.Needs, plan.Need{Step: earlier, On: plan.Success})
	}
	return st
}

// need has steps need a hook before them; a barrier goes on without the nodes
// whose hooks failed.
func (p *placer) need(steps []int, hook plan.StepID) {
	for _, i := range steps {
		s := &p.steps[i]
		on := plan.Success
		if s.Barrier {
			on = plan.Settled
		}
		s.Needs = append(s.Needs[:len(s.Needs):len(s.Needs)], plan.Need{Step: hook, On: on})
	}
}

// follow has the steps of other stages that need the last step of a stage on a
// node need the hook after it too.
func (p *placer) follow(name string, hooks map[plan.StepID]plan.StepID) {
	if len(hooks) == 0 {
		return
	}
	for i := range p.steps {
		s := &p.steps[i]
		if s.Stage == name && s.Group == nil && s.Subject.Kind == subject.Node {
			continue
		}
		for _, n := range s.Needs {
			if hook, ok := hooks[n.Step]; ok && !hasNeed(s, hook) {
				s.Needs = append(s.Needs[:len(s.Needs):len(s.Needs)], plan.Need{Step: hook, On: n.On})
			}
		}
	}
}

func hasNeed(s *plan.Step, id plan.StepID) bool {
	for _, n := range s.Needs {
		if n.Step == id {
			return true
		}
	}
	return false
}

// hookStep returns what all hooks' steps have in common.
func hookStep(h placed, node string) plan.Step {
	return plan.Step{ID: plan.StepID(node + "/" + h.name), Stage: StageName, Action: plan.Change, Subject: subject.OfNode(node),
		Title: fmt.Sprintf("run %s", h.hook.Command[0]), May: plan.Effects(plan.Config), DepthKey: node, Version: Version,
		Uses: []plan.Use{{Resource: Resource, Units: 1, Hold: plan.ForStep}}, Decl: stage.Source(h.hook.Decl),
		Inputs: hookInputs(h.hook, h.name), Deadline: plan.Budget{Limit: h.hook.Timeout + leave, Expected: time.Second}}
}

// hookInputs returns what a hook is run again for.
func hookInputs(h *inventory.Hook, place string) []plan.Input {
	words := make([]string, len(h.Command))
	for i, w := range h.Command {
		words[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\") {
			words[i] = strconv.Quote(w)
		}
	}
	return []plan.Input{{Name: "hook." + place, Value: strings.Join(words, " "), Decl: stage.Source(h.Decl)}}
}
