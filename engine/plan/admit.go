// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Differs says in what a plan that was saved asks for anything else than the plan that
// is made now of the same site, state and options: "" when each of its steps is also
// one of now, with the same effects, parameters and needs. Steps of now that it lacks
// are no difference, as long as no step of it needs them. What is only shown (title,
// reasons, place, estimate) is not compared.
func (p *Plan) Differs(now *Plan) (string, error) {
	of := make(map[StepID]*Step, len(now.Steps))
	for i := range now.Steps {
		of[now.Steps[i].ID] = &now.Steps[i]
	}
	saved := make(map[StepID]bool, len(p.Steps))
	for i := range p.Steps {
		id := p.Steps[i].ID
		if saved[id] {
			return fmt.Sprintf("%s is in it twice", id), nil
		}
		saved[id] = true
	}
	for i := range p.Steps {
		was := &p.Steps[i]
		is, ok := of[was.ID]
		if !ok {
			return fmt.Sprintf("%s would not be planned now", was.ID), nil
		}
		field, err := findDifference(was, is)
		if err != nil || field != "" {
			return fmt.Sprintf("%s would have another %q now", was.ID, field), err
		}
		for _, n := range is.Needs {
			if !saved[n.Step] {
				return fmt.Sprintf("%s needs %s, which is not in it", was.ID, n.Step), nil
			}
		}
	}
	return "", nil
}

// Narrow takes out of a plan the steps that another does not have, and out of what it
// erases the nodes that none of the others erases.
func (p *Plan) Narrow(to *Plan) {
	keep := make(map[StepID]bool, len(to.Steps))
	for i := range to.Steps {
		keep[to.Steps[i].ID] = true
	}
	steps, erased := p.Steps[:0:0], map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !keep[s.ID] {
			delete(p.Operations, s.ID)
			continue
		}
		steps = append(steps, *s)
		erased[s.Subject.Name] = erased[s.Subject.Name] || s.May.Has(Erase)
	}
	p.Erase.Nodes = slices.DeleteFunc(p.Erase.Nodes, func(n string) bool { return !erased[n] })
	p.Steps = steps
}

// findDifference names the first field in which two steps bind apply to different
// things; "" when there is none.
func findDifference(a, b *Step) (string, error) {
	was, err := encodeBinding(a)
	if err != nil {
		return "", err
	}
	is, err := encodeBinding(b)
	if err != nil || bytes.Equal(was, is) {
		return "", err
	}
	had, has := map[string]string{}, map[string]string{}
	err = eachField(was, func(name, value []byte) { had[string(name)] = string(value) })
	if err == nil {
		err = eachField(is, func(name, value []byte) { has[string(name)] = string(value) })
	}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if had[name] != has[name] {
			return name, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if _, was := had[name]; !was {
			return name, err
		}
	}
	return "order of fields", err
}

// encodeBinding is the JSON of a step without what is only shown.
func encodeBinding(s *Step) ([]byte, error) {
	x := *s
	x.Title, x.Why, x.Decl, x.Deadline = "", nil, SourceRange{}, Budget{}
	x.Inputs = nil
	for _, in := range s.Inputs {
		in.Decl = SourceRange{}
		x.Inputs = append(x.Inputs, in)
	}
	return json.Marshal(&x)
}
