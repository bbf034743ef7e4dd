// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Seconds is a duration that JSON shows as seconds.
type Seconds time.Duration

// MarshalJSON writes seconds with milliseconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', 3, 64), nil
}

// Summary is what came of a rehearsal.
type Summary struct {
	Site        string         `json:"site"`
	Seed        uint64         `json:"seed"`
	Accepted    []string       `json:"accepted"`
	Quarantined []Quarantined  `json:"quarantined"`
	Waiting     []Waiting      `json:"waiting,omitempty"`    // neither: what they wait for is no fault of theirs
	Findings    []Found        `json:"findings,omitempty"`   // about parts that are no node
	Unexpected  []ExtraSuspect `json:"unexpected,omitempty"` // what was blamed and is no planted fault's
	Faults      []Planted      `json:"faults"`
	Drift       []Drifted      `json:"drift,omitempty"` // where faults begin after acceptance: what `ironrail drift` finds of them

	Simulated []gaps.Simulated `json:"simulated"` // what of the site was not as in a run of the same plan

	WallTime      Seconds `json:"wall_time"`      // of the rehearsal itself
	SimulatedTime Seconds `json:"simulated_time"` // that passed on the virtual rack
	PredictedTime Seconds `json:"predicted_time"` // of the real bring-up without a fault
	Bottleneck    string  `json:"bottleneck"`     // of the real bring-up: the limit that costs most
	PeakMemory    uint64  `json:"peak_memory"`    // bytes that the rehearsal had from the operating system

	Outcome string `json:"outcome"` // of the last run: done, some-failed, ...
	Runs    int    `json:"runs"`    // 1, and one more for each time that the controller was killed
	Steps   int    `json:"steps"`   // of the plan
	Records uint64 `json:"records"` // of the journal

	Result     apply.Result `json:"-"` // of the last run
	unaccepted []string     // nodes that are not accepted though no fault is theirs
}

// AsExpected reports whether every planted fault was found, nothing was blamed beside
// them, and every node that no fault is planted in was accepted.
func (s Summary) AsExpected() bool {
	return len(s.unaccepted) == 0 && len(s.Unexpected) == 0 && !slices.ContainsFunc(s.Faults, func(p Planted) bool { return !p.Found })
}

// unaccepted lists the nodes that are not accepted though no fault is theirs.
func unaccepted(res apply.Result, inv *inventory.Inventory, faults []fault.Fault) (out []string) {
	for _, r := range res.Nodes {
		n, ok := inv.Node(r.Name)
		if !ok || r.Accepted && r.Outcome == apply.NodeDone || slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.At != fault.Accepted && touches(inv, f, n) }) {
			continue
		}
		out = append(out, r.Name)
	}
	return out
}

// touches reports whether a fault may keep a node from being accepted.
func touches(inv *inventory.Inventory, f fault.Fault, n *inventory.Node) bool {
	switch f.Kind {
	case fault.RepoGone, fault.OtherDHCP:
		return true
	case fault.SMDead, fault.OtherSM:
		return slices.ContainsFunc(managedBy(inv, f), func(of *inventory.Fabric) bool { return slices.Contains(fabric.Of(n), of) })
	case fault.ControllerKill:
		return false
	case fault.PDUTrip:
		return hangsOn(n, f.PDU)
	}
	return f.Node == n.Name || f.With == n.Name
}

// Quarantined is one node that was taken out.
type Quarantined struct {
	Node     string   `json:"node"`
	Part     string   `json:"part"`
	Cause    string   `json:"cause"`
	Evidence []string `json:"evidence"`
	Action   string   `json:"action"`
	Also     []Found  `json:"also,omitempty"` // what else was found of it
}

// Waiting is one node that is neither accepted nor to blame.
type Waiting struct {
	Node  string `json:"node"`
	Cause string `json:"cause"`
}

// Found is one finding about something that is no node.
type Found struct {
	Part     string   `json:"part"`
	Cause    string   `json:"cause"`
	Evidence []string `json:"evidence,omitempty"`
	Action   string   `json:"action"`
}

// Planted is one fault, and whether it was found.
type Planted struct {
	Kind  fault.Kind `json:"kind"`
	Where string     `json:"where"`
	// Expected is the suspect that this kind of fault leads to; Found says that a finding
	// names it: the subject and the part, not only something like it.
	Expected string `json:"expected"`
	When     string `json:"when,omitempty"` // "accepted": it began after acceptance, and drift is to find it
	Found    bool   `json:"found"`
}

// evaluate fills in what a result says.
func (s *Summary) evaluate(res apply.Result, inv *inventory.Inventory, faults []fault.Fault, partOf func(fault.Fault) virtual.FaultyPart, deaths int) {
	s.Result, s.Outcome, s.Steps = res, res.Outcome, len(res.Steps)
	s.Accepted, s.Quarantined, s.Faults = []string{}, []Quarantined{}, []Planted{}
	for _, n := range res.Nodes {
		switch {
		case n.Outcome == apply.NodeDone && n.Accepted:
			s.Accepted = append(s.Accepted, n.Name)
		case n.Finding != nil && !suspects(*n.Finding, subject.Node, ""):
			s.Waiting = append(s.Waiting, Waiting{Node: n.Name, Cause: n.Finding.Cause}) // the part at fault is no node
		case n.Finding != nil:
			f := n.Finding
			s.Quarantined = append(s.Quarantined, Quarantined{Node: n.Name, Part: partsOf(*f, n.Name), Cause: f.Cause,
				Evidence: append([]string{}, f.Evidence...), Action: f.Action, Also: foundBeside(*f, n.Name, res.Findings)})
		default:
			w := Waiting{Node: n.Name, Cause: string(n.Outcome)}
			if n.Cause != nil {
				w.Cause = n.Cause.Text
			}
			s.Waiting = append(s.Waiting, w)
		}
	}
	s.listFindings(res.Findings)
	s.unaccepted = unaccepted(res, inv, faults)
	var all []expectation
	for _, f := range faults {
		e := expect(f, inv, partOf(f))
		p := Planted{Kind: f.Kind, Where: f.Where(), Expected: e.String()}
		switch {
		case f.At == fault.Accepted: // it is not there yet
			p.When = f.At
		case f.Kind == fault.ControllerKill:
			p.Found = deaths > 0 // and this result is of the run that went on
			all = append(all, e)
		default:
			p.Found = e.matchesAny(res.Findings)
			all = append(all, e)
		}
		s.Faults = append(s.Faults, p)
	}
	s.Unexpected = listExtraSuspects(res.Findings, all)
}

// listFindings fills in the findings about parts that are no node, each once.
func (s *Summary) listFindings(all []stage.Finding) {
	told := map[string]bool{}
	for _, f := range all {
		if key := partsOf(f, "") + f.Cause; !aboutNodes(f) && !told[key] {
			told[key] = true
			s.Findings = append(s.Findings, Found{Part: partsOf(f, ""), Cause: f.Cause, Evidence: f.Evidence, Action: f.Action})
		}
	}
}

// foundBeside lists what else was found of a node that one finding has taken out.
func foundBeside(first stage.Finding, node string, all []stage.Finding) (also []Found) {
	shown := []stage.Finding{first}
	for _, f := range all {
		again := func(o stage.Finding) bool { return o.Step == f.Step && o.Cause == f.Cause || o.OfSameParts(f) }
		if suspects(f, subject.Node, node) && !slices.ContainsFunc(shown, again) {
			shown = append(shown, f)
			also = append(also, Found{Part: partsOf(f, node), Cause: f.Cause, Evidence: f.Evidence, Action: f.Action})
		}
	}
	return also
}

// aboutNodes reports whether every suspect is a node.
func aboutNodes(f stage.Finding) bool {
	return len(f.Suspects) > 0 && !slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject.Kind != subject.Node })
}

// partsOf lists the suspects in words; those of the node itself without its name.
func partsOf(f stage.Finding, node string) string {
	var parts []string
	for _, s := range f.Suspects {
		part := s.String()
		if s.Subject == subject.OfNode(node) && s.Part != "" {
			part = s.Part
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// suspects reports whether a finding suspects a subject: any of the kind when
// name is empty, a link by one of its ends.
func suspects(f stage.Finding, kind subject.Kind, name string) bool {
	return slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool {
		if s.Subject.Kind != kind {
			return false
		}
		return s.Subject.Name == name || name == "" || kind == subject.Link && strings.Contains(s.Subject.Name, name)
	})
}
