// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
)

// Traits are what each node of the site hangs on, in words: "rack r01", "PDU
// r01/a", "switch leaf-3". The order is that of how likely each is a cause.
type Traits map[string][]string

// shared says in a clause what nodes have in common that the others of the site
// have not; "" for one node, or when nothing stands out.
func (t Traits) shared(nodes []string) string {
	if len(nodes) < 2 || len(t) == 0 {
		return ""
	}
	if len(nodes) == len(t) {
		return fmt.Sprintf("that is the whole site, %d nodes: look at what all of it needs", len(t))
	}
	with := map[string]int{} // nodes of the site that have a trait
	for _, all := range t {
		for _, trait := range all {
			with[trait]++
		}
	}
	best, names := 0.0, []string(nil)
	for _, trait := range t[nodes[0]] {
		if slices.ContainsFunc(nodes, func(n string) bool { return !slices.Contains(t[n], trait) }) {
			continue
		}
		share := float64(len(nodes)) / float64(with[trait])
		switch {
		case with[trait] == len(t): // all nodes have it: it tells nothing
		case share > best:
			best, names = share, []string{trait}
		case share == best:
			names = append(names, trait)
		}
	}
	switch {
	case len(names) == 0 || best < 0.5:
		return ""
	case best == 1:
		return fmt.Sprintf("those are all nodes of %s: look at what they share", joinSome(names, len(names)))
	}
	return fmt.Sprintf("those are %d of %d nodes of %s: look at what they share", len(nodes), with[names[0]], joinSome(names, len(names)))
}
