// SPDX-License-Identifier: Apache-2.0

package uniform

import (
	"context"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/target"
)

// mostShownOdd is how many nodes of a minority a note names, and how long a value
// may be in a sentence, bytes.
const (
	mostShownOdd   = 4
	mostValueShown = 120
)

// difference is one thing in which a node differs.
type difference struct{ part, cause, evidence, action string }

// uniformity judges a comparison.
type uniformity struct {
	inv    *inventory.Inventory
	role   string
	faults map[string][]difference // by node
	notes  []string
	// ofBlock is what the nodes are made of and their hardware block does not say.
	ofBlock []blockFinding
}

// row judges one row for the nodes that the step is about. Nodes in service are
// not taken out by a comparison that others asked for.
func (u *uniformity) row(r Row, about map[string]bool) {
	if len(r.Groups) > 0 {
		if r.Nodes >= Fewest {
			u.notes = append(u.notes, fmt.Sprintf("role %s: no majority of nodes has the same %s: %s", u.role, r.Name(), groupsInWords(r.Groups)))
		}
		return
	}
	kind := r.Kind()
	second := kind.Mixed && r.secondKind()
	for _, o := range r.Odd {
		if !about[o.Node] {
			u.notes = append(u.notes, fmt.Sprintf("%s, which is in service, has %s %s; %s", o.Node, r.Name(), shortenValue(o.Value), describeMajority(r, u.role)))
			continue
		}
		reason, let := u.allowed(o.Node, uniformGates[kind.Area])
		switch {
		case let:
			u.notes = append(u.notes, fmt.Sprintf("%s has %s %s; %s (gate %q, allowed by the site: %s)", o.Node, r.Name(), shortenValue(o.Value), describeMajority(r, u.role), uniformGates[kind.Area], reason))
		case !kind.Fault || second:
			u.notes = append(u.notes, fmt.Sprintf("%s has %s %s; %s", o.Node, r.Name(), shortenValue(o.Value), describeMajority(r, u.role)))
		default:
			u.faults[o.Node] = append(u.faults[o.Node], describeDifference(r, o, u.role))
		}
	}
}

// describeDifference puts an outlier into words.
func describeDifference(r Row, o Odd, role string) difference {
	part := Parts(o.Parts)
	if part == "" {
		part = r.Kind().Part
	}
	return difference{part: part, action: r.Kind().Action,
		cause:    fmt.Sprintf("%s: %s is %s, and %s", part, r.Name(), shortenValue(o.Value), describeMajority(r, role)),
		evidence: fmt.Sprintf("%s: %s in %s; %s in most of role %s", r.Name(), shortenValue(o.Value), part, shortenValue(r.Value), role)}
}

// describeMajority says what most have.
func describeMajority(r Row, role string) string {
	return fmt.Sprintf("%d of %d nodes of role %s have %s", r.With, r.Nodes, role, shortenValue(r.Value))
}

// shortenValue cuts a long value, such as a kernel's command line.
func shortenValue(v string) string {
	if len(v) <= mostValueShown {
		return v
	}
	return strings.ToValidUTF8(v[:mostValueShown], "") + "…"
}

// groupsInWords names who has what.
func groupsInWords(groups []Group) string {
	var list []string
	for i, g := range groups {
		if i == mostShownOdd {
			list = append(list, fmt.Sprintf("%d more values", len(groups)-i))
			break
		}
		who := strings.Join(g.Nodes, ", ")
		if len(g.Nodes) > mostShownOdd {
			who = fmt.Sprintf("%s and %d more", strings.Join(g.Nodes[:mostShownOdd], ", "), len(g.Nodes)-mostShownOdd)
		}
		list = append(list, fmt.Sprintf("%s (%s)", shortenValue(g.Value), who))
	}
	return strings.Join(list, "; ")
}

// allowed reports whether the site lets a node differ, and the reason that it
// gives.
func (u *uniformity) allowed(node, gate string) (reason string, ok bool) {
	n, found := u.inv.Node(node)
	if !found {
		return "", false
	}
	reason, ok = target.AllowedGates(n)[gate]
	return reason, ok
}

// reportNode makes one finding of all in which a part of a node differs.
func (u *uniformity) reportNode(ctx context.Context, run stage.Run, node string) error {
	var parts []string
	of := map[string][]difference{}
	for _, d := range u.faults[node] {
		if of[d.part] == nil {
			parts = append(parts, d.part)
		}
		of[d.part] = append(of[d.part], d)
	}
	for _, part := range parts {
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(node), Part: part}}, Action: of[part][0].action}
		var causes []string
		for _, d := range of[part] {
			cause := d.cause
			if len(causes) > 0 { // the part stands before the first
				cause = strings.TrimPrefix(cause, part+": ")
			}
			causes, f.Evidence = append(causes, cause), append(f.Evidence, d.evidence)
		}
		f.Cause = strings.Join(causes, "; ")
		if err := run.Blame(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
