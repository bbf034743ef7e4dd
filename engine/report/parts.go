// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/fold"
)

// Suspect is a part that a finding names: what it is, and where a technician finds it.
type Suspect struct {
	Kind string `json:"kind"` // of the subject: node, switch, link, fabric, site
	Name string `json:"name"` // of the subject
	Part string `json:"part,omitempty"`
	// Place are sentences: rack, unit, port and cable, as they are printed.
	Place []string `json:"place,omitempty"`
	// Parts are what may have to be exchanged, with serial numbers: the part, what it is
	// plugged into, and the node.
	Parts []Part `json:"parts,omitempty"`
}

// String is the part after its subject.
func (s Suspect) String() string { return strings.TrimSpace(s.Name + " " + s.Part) }

// Part is one piece of hardware, by what is printed on it. Texts are from outside; what is
// empty is not known.
type Part struct {
	What     string `json:"what"` // chassis, GPU 3, NIC, transceiver, cable, switch
	Model    string `json:"model,omitempty"`
	Serial   string `json:"serial,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Slot     string `json:"slot,omitempty"`
	Note     string `json:"note,omitempty"` // such as the light that a transceiver receives
}

// Bundle is what a vendor's own program collected about a part when it was found bad, or
// why there is none.
type Bundle struct {
	Program string `json:"program"`         // that collected it
	Ref     string `json:"ref,omitempty"`   // of the evidence; empty: there is none
	Bytes   int64  `json:"bytes,omitempty"` // of the file
	Why     string `json:"why,omitempty"`   // there is none
}

// FailedPart is all that the report says of one part, or of several that one finding
// names.
type FailedPart struct {
	Number   int           `json:"-"`     // on the page, from 1
	Title    string        `json:"title"` // its name, after its node's
	Nodes    []string      `json:"nodes,omitempty"`
	At       time.Time     `json:"at,omitzero"` // when the first finding was made
	Findings []Finding     `json:"findings"`
	Suspects []Suspect     `json:"suspects,omitempty"`
	Figures  []Measurement `json:"figures,omitempty"` // that did not pass, of what it is about
	Return   []string      `json:"return"`            // lines of the text for its return
}

// Failed are the parts that something was found of, and that one of the words names: a node,
// or the name of a part. No words: all of them.
func Failed(in Input, words []string) []*FailedPart {
	in = orderInput(in)
	list := []*FailedPart{}
	for _, p := range collectFailed(in) {
		if p.matches(words) {
			p.Return = returnText(in, p)
			list = append(list, p)
		}
	}
	return list
}

// apartMost is how many nodes may have a finding that is the same but for their names, so
// that each is told by itself: of more the cause is a common one.
const apartMost = 16

// collectFailed are the parts that something was found of, in the order of the report:
// several findings about the same parts are one entry, and so is one that very many nodes
// have.
func collectFailed(in Input) []*FailedPart {
	type one struct {
		node string
		f    Finding
	}
	var all []one
	var about []fold.Finding
	add := func(node string, status Status, f Finding) {
		all = append(all, one{node, f})
		about = append(about, fold.Finding{Kind: "node", Name: node, Apart: string(status), Cause: partCause(f), Action: f.Action})
	}
	for _, n := range in.Nodes {
		for _, f := range n.Findings {
			add(n.Name, n.Status, f)
		}
	}
	var list []*FailedPart
	at := map[string]*FailedPart{}
	put := func(key, title string) *FailedPart {
		p := at[key]
		if p == nil {
			p = &FailedPart{Number: len(list) + 1, Title: title}
			at[key], list = p, append(list, p)
		}
		return p
	}
	for _, g := range fold.Findings(about) {
		if len(g.Names) > apartMost {
			p := put(g.Subjects()+g.Cause, g.Subjects())
			for i, m := range g.Members {
				p.add(all[m].f, all[m].node, i == 0)
			}
			continue
		}
		for _, m := range g.Members {
			key := suspectsOf(all[m].node, all[m].f)
			put(key, key).add(all[m].f, all[m].node, true)
		}
	}
	for _, f := range in.Findings {
		key := suspectsOf("", f)
		put(key, key).add(f, "", true)
	}
	for _, p := range list {
		p.Figures = failedFigures(in, p)
	}
	return list
}

// suspectsOf names the parts of a finding.
func suspectsOf(node string, f Finding) string {
	return cmp.Or(f.Part, node, "the site")
}

// add takes a finding over, and its text where that is not said yet.
func (p *FailedPart) add(f Finding, node string, say bool) {
	if node != "" && !slices.Contains(p.Nodes, node) {
		p.Nodes = append(p.Nodes, node)
	}
	if say && !slices.ContainsFunc(p.Findings, func(o Finding) bool { return partCause(o) == partCause(f) }) {
		p.Findings = append(p.Findings, f)
	}
	if p.At.IsZero() || !f.At.IsZero() && f.At.Before(p.At) {
		p.At = f.At
	}
	for _, s := range f.Suspects {
		if !slices.ContainsFunc(p.Suspects, func(o Suspect) bool { return o.String() == s.String() }) {
			p.Suspects = append(p.Suspects, s)
		}
	}
}

// figuresMost is how many figures are listed of a part.
const figuresMost = 24

// failedFigures are the figures that did not pass, of the nodes that a part is of, and of that
// part where the figures name one. Nodes by themselves have all of theirs.
func failedFigures(in Input, p *FailedPart) (list []Measurement) {
	names := map[string]string{} // parts, by node
	for _, s := range p.Suspects {
		if s.Kind == "node" {
			names[s.Name] = s.Part
		}
	}
	for _, t := range in.Tests {
		for _, m := range t.Measurements {
			if m.Unit == "" && m.Verdict != Fail || m.Verdict == Pass || len(m.Nodes) > 2 {
				continue
			}
			about := slices.ContainsFunc(m.Nodes, func(n string) bool {
				part, named := names[n]
				return named && (part == "" || m.Part == "" || isSamePart(part, m.Part))
			})
			if about && len(list) < figuresMost {
				list = append(list, m)
			}
		}
	}
	return list
}

// isSamePart reports whether two names of a part mean the same: one begins as the other
// does, up to the end of a word.
func isSamePart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || strings.HasPrefix(b, a) && strings.ContainsAny(b[len(a):len(a)+1], " ,(")
}

// appendOnce appends what a list does not have.
func appendOnce[T comparable](list, more []T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// bundles are what vendors' programs collected about a part.
func (p *FailedPart) Bundles() (list []Bundle) {
	for _, f := range p.Findings {
		list = appendOnce(list, f.Bundles)
	}
	return list
}

// Parts are the pieces of hardware of all suspects, each once.
func (p *FailedPart) Parts() (list []Part) {
	for _, s := range p.Suspects {
		list = appendOnce(list, s.Parts)
	}
	return list
}

// Places are where all suspects are, each sentence once.
func (p *FailedPart) Places() (list []string) {
	for _, s := range p.Suspects {
		list = appendOnce(list, s.Place)
	}
	return list
}

// String says of a part what there is to say in one line.
func (p Part) String() string {
	words := []string{p.What}
	for _, x := range []struct{ word, value string }{{"", p.Model}, {"serial ", p.Serial}, {"firmware ", p.Firmware}, {"at ", p.Slot}, {"", p.Note}} {
		if x.value != "" {
			words = append(words, x.word+x.value)
		}
	}
	return strings.Join(words, ", ")
}

// String says what was collected, or why not.
func (b Bundle) String() string {
	if b.Ref == "" {
		return b.Program + ": " + b.Why
	}
	return fmt.Sprintf("%s: %s, %s", b.Program, bytesText(b.Bytes), b.Ref)
}

func bytesText(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}
