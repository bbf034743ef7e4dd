// SPDX-License-Identifier: Apache-2.0

// Package result holds what tests report, in one form: measurements with what they
// were held against, and what a report means for each of its nodes.
package result

import (
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// Verdict is what a measurement means.
type Verdict string

// The verdicts.
const (
	Pass      Verdict = "pass"
	Fail      Verdict = "fail"
	NotJudged Verdict = "not-judged" // there was nothing to judge by, or no measurement
)

// Measures that this version can take, by the names of their limits.
const (
	WriteBandwidth     = "rdma.write_bw"    // bytes per second, one way, of each pair and rail
	AllReduceBandwidth = "all_reduce.busbw" // bytes per second at the largest size
	WrongElements      = "all_reduce.wrong" // elements that were not the sum; none are allowed
)

// BandwidthOf and WrongOf name what is measured of a collective, by its program in
// nccl-tests: BandwidthOf("all_reduce") is AllReduceBandwidth.
func BandwidthOf(operation string) string { return operation + ".busbw" }

// WrongOf is the count of elements that were not as they should be.
func WrongOf(operation string) string { return operation + ".wrong" }

// Result is one measurement with what it was held against.
type Result struct {
	Check     string   `json:"check"`            // such as rdma.write_bw
	Nodes     []string `json:"nodes"`            // the sender first, for a pair
	Part      string   `json:"part,omitempty"`   // such as rail 0
	Measured  float64  `json:"measured"`         // in Unit
	Unit      string   `json:"unit"`             // B/s or elements
	Limit     string   `json:"limit,omitempty"`  // as in the site's files, such as >= 3MB/s
	Rule      string   `json:"rule,omitempty"`   // where the limit comes from, when it is not the site's alone
	Verdict   Verdict  `json:"verdict"`          //
	Why       string   `json:"why,omitempty"`    // of a verdict that is not pass
	Transport string   `json:"transport"`        // what carried the data, such as RoCE v2 (rxe0)
	Params    string   `json:"params,omitempty"` // how it was measured: sizes, iterations
	Evidence  []string `json:"evidence,omitempty"`
	// Explained is the part that is at fault for a bad result and is no node, such as
	// switch net/leaf-3: the result speaks against none of the nodes.
	Explained string `json:"explained,omitempty"`
}

// Explain notes the part that is at fault, if there is one.
func (r *Result) Explain(part string) {
	if part != "" {
		r.Explained, r.Why = part, r.Why+"; at fault is "+part
	}
}

// Report is all that one test of a group found.
type Report struct {
	At        time.Time `json:"at"`
	Members   []string  `json:"members"` // the nodes that took part
	Results   []Result  `json:"results"`
	Suspects  []string  `json:"suspects,omitempty"`   // nodes
	NotJudged []string  `json:"not_judged,omitempty"` // sentences: what was left out
	Proves    string    `json:"proves"`               // in one sentence, and what it does not prove
	// Provisional says that fewer nodes than the quorum took part, and how many; empty:
	// enough did.
	Provisional string `json:"provisional,omitempty"`
}

// OfGroup returns the subject of the named group.
func OfGroup(set string) subject.ID { return subject.ID{Kind: subject.Group, Name: set} }

// WithVerdict gives a result its verdict.
func WithVerdict(r Result, bad bool, why string) Result {
	if r.Verdict = Pass; bad {
		r.Verdict, r.Why = Fail, why
	}
	return r
}

// mostNamed is how many nodes a sentence names.
const mostNamed = 8

// NameSome names nodes for a sentence.
func NameSome(nodes []string) string { return subject.Some(nodes, mostNamed) }

// SetOf holds each name once.
func SetOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// FormatRate shows bytes per second with three digits that matter.
func FormatRate(bw float64) string {
	switch {
	case bw >= 1e12:
		return fmt.Sprintf("%.3gTB/s", bw/1e12)
	case bw >= 1e9:
		return fmt.Sprintf("%.3gGB/s", bw/1e9)
	case bw >= 1e6:
		return fmt.Sprintf("%.3gMB/s", bw/1e6)
	case bw >= 1e3:
		return fmt.Sprintf("%.3gkB/s", bw/1e3)
	}
	return fmt.Sprintf("%.3gB/s", bw)
}

// Acceptance says on what grounds a node was accepted.
type Acceptance struct {
	At      time.Time  `json:"at"`
	Checks  []string   `json:"checks"`            // step ids of the tests that it passed; empty when the site asks for none
	Results string     `json:"results"`           // sha256 over the sha256 of each report
	Reports []fact.Key `json:"reports,omitempty"` // where these are
	// Provisional has of each test that fewer nodes than the quorum took part in how many
	// did: the acceptance holds until the others come.
	Provisional []string `json:"provisional,omitempty"`
}

// AcceptedFact is the fact of a node's last acceptance.
const AcceptedFact = fact.Name[Acceptance]("validate.accepted")

// AllReduceReport is the fact of the last all-reduce of a group.
const AllReduceReport = fact.Name[Report]("validate.all_reduce")

// PairReport is the fact of the last test between the pairs of a group.
const PairReport = fact.Name[Report]("validate.pair")
