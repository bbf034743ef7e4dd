// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// UnmanagedReason is why a plan leaves a node alone that is not managed yet: the state
// has neither an accepted installation of it nor an adoption.
type UnmanagedReason string

// The reasons, the one that matters most first.
const (
	RunsUnknown   UnmanagedReason = "running"        // it runs, and is not in this state
	OnHold        UnmanagedReason = "held"           // it is on hold
	OutsideTarget UnmanagedReason = "outside-target" // --target leaves it out
)

// Unmanaged is the nodes that a plan leaves unmanaged for one reason.
type Unmanaged struct {
	Reason UnmanagedReason `json:"reason"`
	Nodes  []string        `json:"nodes"`  // sorted
	Action string          `json:"action"` // what to do about it, a full sentence
}

// unmanagedActions are what to do about unmanaged nodes.
var unmanagedActions = []struct {
	reason UnmanagedReason
	action string
}{
	{RunsUnknown, "To take them as they run: `ironrail adopt NODE`, or --all. To erase and reinstall them: `ironrail plan --replace NODE`."},
	{OnHold, "`ironrail release NODE` lets automation go on with them."},
	{OutsideTarget, "`ironrail plan` without --target plans for them."},
}

// leaveUnmanaged notes that the plan leaves a node alone.
func (d *differ) leaveUnmanaged(node string, reason UnmanagedReason) {
	if !d.prior.Nodes[node].Known() {
		d.left[reason] = append(d.left[reason], node)
	}
}

// listUnmanaged lists the nodes that the plan leaves unmanaged, by reason.
func (d *differ) listUnmanaged() (list []Unmanaged) {
	for _, x := range unmanagedActions {
		if nodes := d.left[x.reason]; len(nodes) > 0 {
			slices.Sort(nodes)
			list = append(list, Unmanaged{Reason: x.reason, Nodes: nodes, Action: x.action})
		}
	}
	return list
}

// Conforms reports whether everything that was planned for is as the site's files have
// it: no step is left, and no node is unmanaged but those that --target leaves out.
func (p *Plan) Conforms() bool { return p.Empty() && !HasUnmanagedTargets(p.Unmanaged) }

// HasUnmanagedTargets reports whether nodes are unmanaged that nobody left out by --target.
func HasUnmanagedTargets(list []Unmanaged) bool {
	return slices.ContainsFunc(list, func(u Unmanaged) bool { return u.Reason != OutsideTarget })
}
