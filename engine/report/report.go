// SPDX-License-Identifier: Apache-2.0

// Package report writes what a site is after a run: which nodes are accepted and
// on what measurements, which are not and what a person must do, how long each
// part took, and what all of that does not prove. Its input is plain data, so
// that the engine's side fills it in without knowing stages.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/maturity"
)

// Format is the version of the JSON form.
const Format = 1

// Simulated stands at the head of every report of a rehearsal, as its Origin.
const Simulated = "A rehearsal: the hardware was simulated, and no figure here was measured on any."

// Input is everything that a report says. Texts may quote the outside world:
// Text escapes them, JSON carries them as they are.
type Input struct {
	Format   int       `json:"format"` // set by the writers
	Site     string    `json:"site"`
	Run      string    `json:"run,omitempty"` // id of the run that ended last
	At       time.Time `json:"at"`
	Duration Duration  `json:"duration_ms,omitempty"` // of that run
	// Approvals say who let that run begin, and go on after it was stopped. Empty: it
	// was not recorded.
	Approvals []state.Approval `json:"approvals,omitempty"`
	Versions  []Version        `json:"versions,omitempty"`
	Images    []Image          `json:"images,omitempty"`
	Nodes     []Node           `json:"nodes"`
	Findings  []Finding        `json:"findings,omitempty"` // about things that are not one node
	Racks     []Rack           `json:"racks,omitempty"`    // with what stands in them, in the order of the site
	Roles     []Role           `json:"roles,omitempty"`    // what the nodes of each have in common
	Tests     []Test           `json:"tests,omitempty"`
	Untested  []string         `json:"untested,omitempty"` // sentences: what no test has looked at
	Steps     []Step           `json:"steps,omitempty"`
	Origin    string           `json:"origin,omitempty"`   // of nodes that ironrail did not install: a sentence
	Caveats   []string         `json:"caveats,omitempty"`  // such as "under emulation: no figure here is that of hardware"
	Maturity  []maturity.Part  `json:"maturity,omitempty"` // what the program itself was proven on
	// Chain is the end of the chain of raw outputs, of those that were there when the report
	// was made; nil: none was kept.
	Chain *evidence.Head `json:"evidence_chain,omitempty"`
}

// Duration is a time.Duration that is milliseconds in JSON.
type Duration time.Duration

// MarshalJSON writes whole milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).Milliseconds())
}

// UnmarshalJSON reads milliseconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	*d = Duration(time.Duration(ms) * time.Millisecond)
	return nil
}

// approvalText is an approval as the report says it. It is not escaped.
func approvalText(a state.Approval) string {
	return fmt.Sprintf("Approved %s by %s", a.At.UTC().Format(time.RFC3339), a)
}

// chainText says where the chain of raw outputs ends.
func chainText(h evidence.Head) string {
	return fmt.Sprintf("Evidence: %d raw %s; the last entry of their chain has the SHA-256 %s", h.Entries, plural(h.Entries, "output", "outputs"), h.SHA256)
}

// Version is a program with its version.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Image is an image that stands on nodes, by its content: Digest is what was written to
// their disks and read back, whatever the site's files say by now.
type Image struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`          // empty: it is installed on no node
	Nodes  int    `json:"nodes,omitempty"` // how many it is installed on
	Files  string `json:"files,omitempty"` // digest that the site's files have now, where it is another
}

// String says what is installed, and what the files have else.
func (i Image) String() string {
	text := "image " + i.Name
	if i.Digest == "" {
		text += ": installed on no node"
	} else {
		text += " " + i.Digest
		if i.Nodes > 0 {
			text += fmt.Sprintf(", on %d %s", i.Nodes, plural(i.Nodes, "node", "nodes"))
		}
	}
	if i.Files != "" {
		text += "; the site's files have " + i.Files + " now"
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Status is where a node stands.
type Status string

// The statuses.
const (
	Accepted    Status = "accepted"
	Quarantined Status = "quarantined"  // see Findings
	Held        Status = "held"         // see Reason
	Adopted     Status = "adopted"      // recorded as found, not tested
	Unfinished  Status = "unfinished"   // neither accepted nor found bad: see Reason
	NotAccepted Status = "not-accepted" // of nodes that another tool installed: see Findings
	NoReference Status = "no-reference" // the same; nothing was found, and too few are alike to compare with: see Reason
)

// String is the status in words.
func (s Status) String() string { return strings.ReplaceAll(string(s), "-", " ") }

// Class is the status as HTML's classes are written.
func (s Status) Class() string { return string(s) }

// failed reports whether something was found of a node in this status.
func (s Status) failed() bool { return s == Quarantined || s == NotAccepted }

// Node is one node.
type Node struct {
	Name       string    `json:"name"`
	Status     Status    `json:"standing"`
	Reason     string    `json:"reason,omitempty"`
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	Serial     string    `json:"serial,omitempty"` // as its ramdisk or its BMC told; empty: it was never seen
	// Declared is the serial number of the site's files where none was seen, or another.
	Declared string    `json:"declared_serial,omitempty"`
	Image    string    `json:"image,omitempty"` // digest of what is installed
	Kernel   string    `json:"kernel,omitempty"`
	Drivers  []Version `json:"drivers,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
}

// SerialText is the serial number that was seen, and the declared one where none was, or
// another.
func (n Node) SerialText() string {
	switch {
	case n.Declared == "":
		return n.Serial
	case n.Serial == "":
		return n.Declared + " (declared, not seen)"
	}
	return n.Serial + " (the site's files have " + n.Declared + ")"
}

// Finding is what is wrong, on what evidence, and what to do.
type Finding struct {
	Part     string    `json:"part,omitempty"` // one or several, in words
	At       time.Time `json:"at,omitzero"`    // when it was found
	Step     string    `json:"step,omitempty"`
	Cause    string    `json:"cause"`
	Evidence []string  `json:"evidence,omitempty"`
	Action   string    `json:"action,omitempty"`
	Suspects []Suspect `json:"suspects,omitempty"` // the parts, with their places and serial numbers
	Bundles  []Bundle  `json:"bundles,omitempty"`  // of vendors' programs, collected when it was found
}

// Test is one test with its measurements.
type Test struct {
	Title        string        `json:"title,omitempty"` // of all tests of its kind, such as Burn-in
	Rank         int           `json:"rank,omitempty"`  // the place of its kind among the others
	Step         string        `json:"step"`
	At           time.Time     `json:"at,omitzero"`
	Members      []string      `json:"members,omitempty"`
	Measurements []Measurement `json:"measurements,omitempty"`
	NotJudged    []string      `json:"not_judged,omitempty"`
	Proves       string        `json:"proves,omitempty"` // and what it does not prove
}

// The verdicts of measurements.
const (
	Pass      = "pass"
	Fail      = "fail"
	Allowed   = "allowed"    // it failed, and the site says why that may be
	NotJudged = "not-judged" // there was nothing to judge by, or no measurement
)

// Measurement is one figure against its limit, or one look at something that has no
// figure: then Unit is empty.
type Measurement struct {
	Check     string   `json:"check"`
	Nodes     []string `json:"nodes"`
	Part      string   `json:"part,omitempty"`
	Measured  float64  `json:"measured"`
	Unit      string   `json:"unit"` // B/s, elements, °C; empty: there is no figure
	Limit     string   `json:"limit,omitempty"`
	Rule      string   `json:"rule,omitempty"` // where the limit comes from
	Verdict   string   `json:"verdict"`        // Pass, Fail, Allowed or NotJudged
	Why       string   `json:"why,omitempty"`
	Transport string   `json:"transport,omitempty"`
	Params    string   `json:"params,omitempty"`
	Evidence  []string `json:"evidence,omitempty"`
}

// Step is how long one step of the run took.
type Step struct {
	ID       string    `json:"id"`
	Stage    string    `json:"stage"`
	Node     string    `json:"node,omitempty"` // empty for a group or the site
	State    string    `json:"state"`          // done, failed, skipped, interrupted
	Observed bool      `json:"observed,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Took     Duration  `json:"took_ms,omitempty"`
}

// orderInput returns in with every list in its fixed order, so that two reports of
// one state are the same bytes.
func orderInput(in Input) Input {
	in.Format = Format
	in.Nodes = sortedBy(in.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	in.Images = sortedBy(in.Images, func(a, b Image) int { return cmp.Compare(a.Name, b.Name) })
	in.Tests = sortedBy(in.Tests, func(a, b Test) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Step, b.Step)) })
	in.Steps = sortedBy(in.Steps, func(a, b Step) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	for i := range in.Nodes {
		in.Nodes[i].Drivers = sortedBy(in.Nodes[i].Drivers, func(a, b Version) int { return cmp.Compare(a.Name, b.Name) })
	}
	if in.Nodes == nil {
		in.Nodes = []Node{}
	}
	return in
}

func sortedBy[T any](list []T, by func(a, b T) int) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, by)
	return list
}

// JSON writes the report as one indented JSON object and a line end. Beside the
// fields of Input it has not_proven, the sentences that every form has.
func JSON(w io.Writer, in Input) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	in = orderInput(in)
	return e.Encode(struct {
		Input
		NotProven []string `json:"not_proven,omitempty"`
	}{in, collectNotProven(in)})
}
