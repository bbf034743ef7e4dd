// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
)

// findExchanged groups cables that end in each other's ports: two that are swapped,
// or more in a ring, are one finding about exactly these. A cable in a port that
// another should have, which was not heard, is a finding about both; one in a
// port that is nobody's, about itself.
func findExchanged(results []Result) (findings []stage.Finding) {
	owner, taken := map[End]int{}, map[End]bool{}
	for i, r := range results {
		if j, shared := owner[r.Cable.end()]; !shared || results[j].State == Conforms {
			owner[r.Cable.end()] = i // of two in a split port the one that may be elsewhere
		}
		taken[r.Found] = taken[r.Found] || r.State == Wrong
	}
	seen := map[int]bool{}
	for i := range results {
		if results[i].State != Wrong || seen[i] || taken[results[i].Cable.end()] {
			continue
		}
		findings = append(findings, describeChain(results, followChain(results, owner, i, seen)))
	}
	// what is left are rings: somebody is in the port of each
	for i := range results {
		if results[i].State == Wrong && !seen[i] {
			findings = append(findings, describeChain(results, followChain(results, owner, i, seen)))
		}
	}
	return findings
}

// followChain follows from a cable to the one whose port it is in, and so on.
func followChain(results []Result, owner map[End]int, i int, seen map[int]bool) (list []int) {
	for !seen[i] {
		seen[i] = true
		list = append(list, i)
		if results[i].State != Wrong {
			break // it was not heard, or conforms
		}
		next, ok := owner[results[i].Found]
		if !ok {
			break
		}
		i = next
	}
	return list
}

// describeChain makes the finding about a chain.
func describeChain(results []Result, list []int) (f stage.Finding) {
	last := results[list[len(list)-1]]
	var cables []Cable
	var wrong []string
	for _, i := range list {
		r := results[i]
		if r.State == Conforms {
			continue // two cables in one port cannot be: one neighbour is stale
		}
		cables = append(cables, r.Cable)
		if r.State == Wrong {
			wrong = append(wrong, fmt.Sprintf("%s is in %s instead of %s", titleOf(r.Cable), r.Found, r.Cable.end()))
			f.Evidence = append(f.Evidence, r.evidence())
		} else {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s, and %s has another's plug", r.Cable.Name(), r.Why, r.Cable.end()))
		}
	}
	slices.SortFunc(cables, byName)
	for _, c := range cables {
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.ID{Kind: subject.Link, Name: c.Name()}, Part: c.panel()})
	}
	ring := last.State == Wrong && last.Found == results[list[0]].Cable.end()
	f.Cause, f.Action = describeExchange(cables, wrong, ring)
	return f
}

// again is what to do when a technician is done: the next apply reads the cables, and tests
// the nodes that they took out.
const again = "; then `ironrail apply`, which tests the nodes again"

// describeExchange says what is wrong and what to do.
func describeExchange(cables []Cable, wrong []string, ring bool) (cause, action string) {
	var ends, blocks []string
	for _, c := range cables {
		ends = append(ends, c.socket())
		if c.Block != nil && !c.Block.Computed() {
			blocks = append(blocks, fmt.Sprintf("%s:%d", c.Block.Decl.Filename, c.Block.Decl.Start.Line))
		}
	}
	blocks = slices.Compact(blocks)
	correct := ""
	if len(blocks) > 0 {
		correct = fmt.Sprintf(", or correct the cable block at %s", strings.Join(blocks, " and "))
	}
	cause = strings.Join(wrong, ", and ")
	switch {
	case ring && len(cables) == 2:
		return "two cables are exchanged: " + cause, fmt.Sprintf("Exchange the plugs at %s%s%s.", joinAnd(ends), correct, again)
	case ring:
		return fmt.Sprintf("%d cables are exchanged in a ring: %s", len(cables), cause), fmt.Sprintf("Plug the cables of %s back%s%s.", joinAnd(ends), correct, again)
	case len(cables) > 1:
		return cause, fmt.Sprintf("Look at the plugs in %s: each cable belongs where the site says%s%s.", joinAnd(ends), correct, again)
	}
	return cause, fmt.Sprintf("Plug it into %s%s%s.", ends[0], correct, again)
}

// evidence says where a cable was found.
func (r Result) evidence() string {
	if r.swept {
		return fmt.Sprintf("the sweep finds %s in port %s, and it should be in %s", r.Cable.Name(), r.Found, r.Cable.end())
	}
	return fmt.Sprintf("%s hears port %s by LLDP, and should hear %s", r.Cable.Name(), r.Found, r.Cable.end())
}

// titleOf names a cable with the label on the case.
func titleOf(c Cable) string {
	if p := c.panel(); p != "" {
		return fmt.Sprintf("%s (%s)", c.Name(), p)
	}
	return c.Name()
}

func joinAnd(list []string) string {
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}

// whole is the number of cables of one switch that, all wrong, speak of the
// switch and not of them.
const whole = 4

// findMisnamed finds switches of which no cable is where the site says, and takes
// these out of what the cables are blamed for.
func findMisnamed(results []Result) (findings []stage.Finding, rest []Result) {
	heard, wrong := map[string]int{}, map[string]int{}
	for _, r := range results {
		if r.State != Unknown {
			heard[r.Cable.Switch.Name]++
		}
		if r.State == Wrong {
			wrong[r.Cable.Switch.Name]++
		}
	}
	reported := map[string]bool{}
	for _, r := range results {
		name := r.Cable.Switch.Name
		if wrong[name] < whole || wrong[name] < heard[name] {
			rest = append(rest, r)
			continue
		}
		if r.State != Wrong || reported[name] {
			continue
		}
		reported[name] = true
		findings = append(findings, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Switch, Name: name}}},
			Cause:    fmt.Sprintf("none of the %d cables of switch %s that were heard is where the site says", wrong[name], name),
			Evidence: []string{r.evidence()},
			Action:   "See whether two switches have each other's name, or number their ports otherwise than the cable blocks.",
		})
	}
	return findings, rest
}
