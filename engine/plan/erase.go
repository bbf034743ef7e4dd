// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"sort"
)

// applyEraseRules counts what the plan erases, of all waves together, and applies the
// safety rules to each erasing step. What is refused is not erased, and not counted.
func (d *differ) applyEraseRules() error {
	counted := map[string]bool{}
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		n := s.Subject.Name
		if !s.May.Has(Erase) {
			if s.Reinstalls {
				d.mayReinstall(s, n)
			}
			continue
		}
		may, err := d.mayErase(s, n)
		if err != nil {
			return err
		}
		if may && !counted[n] {
			counted[n] = true
			d.plan.Erase.Nodes = append(d.plan.Erase.Nodes, n)
		}
	}
	d.plan.Erase.Budget = d.opt.MaxErase
	sort.Strings(d.plan.Erase.Nodes)
	return nil
}

// mayErase refuses the plan when an erasing step has no leave, and reports whether it
// has.
func (d *differ) mayErase(s *Step, n string) (bool, error) {
	switch {
	case d.opt.Protected[n]:
		d.refuse(s, n+" is protected: no plan erases it", "remove `protect` from its role, or do it by hand")
	case !d.mayReinstall(s, n):
	case d.opt.Ambiguous != nil:
		why, err := d.opt.Ambiguous(s)
		if err != nil || why == (Reason{}) {
			return err == nil, err
		}
		d.refuse(s, why.Cause, why.Action)
	default:
		return true, nil
	}
	return false, nil
}

// mayReinstall refuses the plan when a step would take the system of a node in service away by an
// edit alone, and reports whether it did not.
func (d *differ) mayReinstall(s *Step, n string) bool {
	st, role := d.prior.Nodes[n], d.opt.RoleOf[n]
	if !st.Known() || d.opt.Replace[n] || d.opt.Retired[n] || d.opt.Rollouts[role].Given {
		return true
	}
	action := fmt.Sprintf("`ironrail rebuild %s`, or `ironrail plan --replace %s`, drains and reinstalls it", n, n)
	if role != "" {
		action += fmt.Sprintf("; or give role %s a rollout block, so that an edit reaches its nodes in waves", role)
	}
	d.refuse(s, n+" is in service ("+describeService(st)+"): it is not reinstalled by an edit alone", action)
	return false
}

func (d *differ) refuse(s *Step, cause, action string) {
	d.plan.Refusals = append(d.plan.Refusals, Refusal{Subject: s.Subject, Step: s.ID, Cause: cause, Action: action})
}

// describeService names how a node got into service.
func describeService(st NodeState) string {
	if st.Accepted {
		return "accepted"
	}
	return "adopted"
}
