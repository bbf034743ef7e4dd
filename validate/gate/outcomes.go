package gate

import (
	"fmt"
	"strings"
)

// Outcome is what one gate makes of a node: it passes only where the gate had
// something to look at.
type Outcome struct {
	Gate    string  `json:"gate"`
	Verdict Verdict `json:"verdict"`
	Saw     string  `json:"saw,omitempty"` // what was looked at, in a few words
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

// sight is what a gate had to look at. Both empty: the node has nothing of the kind.
type sight struct{ saw, gap string }

// saw is what was looked at, in words.
func saw(format string, args ...any) sight { return sight{saw: fmt.Sprintf(format, args...)} }

// outcome sums up the gate that has just looked.
func (j *judge) outcome(what sight, failed, let []string) Outcome {
	o := Outcome{Gate: j.gate, Verdict: Pass, Saw: what.saw}
	switch {
	case len(failed) > 0:
		o.Verdict, o.Why = Fail, strings.Join(failed, "; ")
	case len(let) > 0:
		o.Verdict, o.Why = Allowed, strings.Join(let, "; ")
	case what.saw == "":
		o.Verdict, o.Why = NotJudged, what.gap
	}
	return o
}

// ofVendor is what was seen of a vendor's GPUs, where the node has some.
func (j *judge) ofVendor(vendor, program string, told bool, f func() sight) sight {
	if n, _ := j.declared(vendor); n == 0 {
		return sight{}
	}
	if !told {
		return sight{gap: program + " did not tell"}
	}
	return f()
}
