// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
)

// Outcome is what one gate makes of a node: it passes only where the gate had
// something to look at.
type Outcome struct {
	Gate    string  `json:"gate"`
	Verdict Verdict `json:"verdict"`
	Covered string  `json:"saw,omitempty"` // what was read, in a few words
	Why     string  `json:"why,omitempty"` // of a verdict that is not pass
}

// Verdict is how a gate ended.
type Verdict string

// The verdicts.
const (
	Pass      Verdict = "pass"
	Fail      Verdict = "fail"
	Allowed   Verdict = "allowed"    // it failed, and the site says why that may be
	NotJudged Verdict = "not-judged" // nothing told how it is
)

// Coverage is what a gate could read. Both empty: the node has nothing of the kind.
type Coverage struct{ Covered, Missing string }

// Covered is what was read, in words.
func Covered(format string, args ...any) Coverage {
	return Coverage{Covered: fmt.Sprintf(format, args...)}
}

// Outcome sums up the gate that has just looked.
func (j *Node) Outcome(what Coverage, failed, let []string) Outcome {
	o := Outcome{Gate: j.Gate, Verdict: Pass, Covered: what.Covered}
	switch {
	case len(failed) > 0:
		o.Verdict, o.Why = Fail, strings.Join(failed, "; ")
	case len(let) > 0:
		o.Verdict, o.Why = Allowed, strings.Join(let, "; ")
	case what.Covered == "":
		o.Verdict, o.Why = NotJudged, what.Missing
	}
	return o
}

// OfVendor is what was seen of a vendor's GPUs, where the node has some.
func (j *Node) OfVendor(vendor, program string, reported bool, f func() Coverage) Coverage {
	if n, _ := j.Declared(vendor); n == 0 {
		return Coverage{}
	}
	if !reported {
		return Coverage{Missing: program + " did not report"}
	}
	return f()
}
