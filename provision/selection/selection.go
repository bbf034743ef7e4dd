// SPDX-License-Identifier: Apache-2.0

// Package selection reads the words with which operators choose nodes of a site.
package selection

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// ReadSet returns the nodes that words name; nil for no words. A word, or several
// with commas between them, is one of
//
//	r01-u09        a node
//	r01-*          a pattern of node names, as path.Match reads it
//	rack.r01       the nodes of a rack; rack.r0* those of several
//	role.worker    the nodes of a role
//	fabric.compute the nodes with ports in a fabric
//	!WORD          not these; with no other word, all nodes but these
//
// A word that names nothing is an error, and so is a choice of which nothing is
// left: a word with a typing error must not mean all, nor nothing.
func ReadSet(inv *inventory.Inventory, words []string) (map[string]bool, error) {
	in, out, err := splitWords(words)
	if err != nil || len(in)+len(out) == 0 {
		return nil, err
	}
	set := map[string]bool{}
	if len(in) == 0 {
		in = []string{"*"}
	}
	for _, w := range in {
		if err := matchWord(inv, w, func(n string) { set[n] = true }); err != nil {
			return nil, err
		}
	}
	for _, w := range out {
		if err := matchWord(inv, w, func(n string) { delete(set, n) }); err != nil {
			return nil, err
		}
	}
	if len(set) == 0 {
		return nil, errkind.New(errkind.Refused, "%q leaves no node: every one that it names is taken out again", strings.Join(words, ",")).
			Do("Take out less, or name more.")
	}
	return set, nil
}

// ReadNodes is ReadSet as a list, in the order of the inventory.
func ReadNodes(inv *inventory.Inventory, words []string) ([]string, error) {
	set, err := ReadSet(inv, words)
	var names []string
	for _, n := range inv.Nodes {
		if set[n.Name] {
			names = append(names, n.Name)
		}
	}
	return names, err
}

// ListWords lists the words that ReadSet knows, but for patterns: the nodes, and
// what they are grouped by. Shells complete them.
func ListWords(inv *inventory.Inventory) []string {
	words := ListNodes(inv)
	for _, g := range groupings {
		for _, name := range g.names(inv) {
			words = append(words, g.word+name)
		}
	}
	return words
}

// splitWords parts words at commas, and those that take out from the others.
func splitWords(words []string) (in, out []string, err error) {
	for _, list := range words {
		for w := range strings.SplitSeq(list, ",") {
			w = strings.TrimSpace(w)
			name, not := strings.CutPrefix(w, "!")
			switch {
			case name == "":
				return nil, nil, errkind.New(errkind.Refused, "%q names no node: a word of it is empty", list).
					Do("Name nodes, or leave the word out.")
			case not:
				out = append(out, name)
			default:
				in = append(in, name)
			}
		}
	}
	return in, out, nil
}

// matchWord calls f with each node that a word names. A node's own name comes first,
// so that one called rack.1 can be named. Linear in nodes for patterns and groups.
func matchWord(inv *inventory.Inventory, word string, f func(string)) error {
	if _, ok := inv.Node(word); ok {
		f(word)
		return nil
	}
	for _, g := range groupings {
		if pattern, ok := strings.CutPrefix(word, g.word); ok {
			return g.match(inv, word, pattern, f)
		}
	}
	hit, err := eachMatch(word, ListNodes(inv), f)
	if err != nil || hit {
		return err
	}
	if isPattern(word) {
		return errkind.New(errkind.Refused, "no node of this site is called like %q", word).
			Do("`ironrail status` lists the site's nodes.")
	}
	return errkind.New(errkind.Refused, "%q is not a node of this site.%s", word, diag.DidYouMean(word, ListNodes(inv))).
		Do("`ironrail status` lists the site's nodes.")
}

// grouping is something that nodes are named by together.
type grouping struct {
	word  string // what the word begins with
	noun  string
	names func(*inventory.Inventory) []string
	of    func(*inventory.Node) []string // the groups of a node
}

var groupings = []grouping{
	{"rack.", "rack", func(inv *inventory.Inventory) []string {
		return namesOf(inv.Racks, func(r *inventory.Rack) string { return r.Name })
	}, func(n *inventory.Node) []string {
		if n.Rack == nil {
			return nil
		}
		return []string{n.Rack.Name}
	}},
	{"role.", "role", func(inv *inventory.Inventory) []string {
		return namesOf(inv.Roles, func(r *inventory.Role) string { return r.Name })
	}, func(n *inventory.Node) []string {
		if n.Role == nil {
			return nil
		}
		return []string{n.Role.Name}
	}},
	{"fabric.", "fabric", func(inv *inventory.Inventory) []string {
		return namesOf(inv.Fabrics, func(f *inventory.Fabric) string { return f.Name })
	}, func(n *inventory.Node) []string {
		return namesOf(fabric.Of(n), func(f *inventory.Fabric) string { return f.Name })
	}},
}

// match calls f with each node of the groups that a pattern names.
func (g grouping) match(inv *inventory.Inventory, word, pattern string, f func(string)) error {
	all, in := g.names(inv), map[string]bool{}
	hit, err := eachMatch(pattern, all, func(name string) { in[name] = true })
	if err != nil {
		return err
	}
	if !hit {
		return errkind.New(errkind.Refused, "%q: no %s of this site is called %q.%s", word, g.noun, pattern, diag.DidYouMean(pattern, all)).
			Do(fmt.Sprintf("%s of this site: %s.", strings.ToUpper(g.noun[:1])+g.noun[1:]+"s", fold.Names(all)))
	}
	hit = false
	for _, n := range inv.Nodes {
		if slices.ContainsFunc(g.of(n), func(name string) bool { return in[name] }) {
			hit = true
			f(n.Name)
		}
	}
	if !hit {
		return errkind.New(errkind.Refused, "%q: no node is of that %s", word, g.noun).Do("Name nodes, or a " + g.noun + " that has some.")
	}
	return nil
}

// isPattern reports whether a word has a character of patterns.
func isPattern(word string) bool { return strings.ContainsAny(word, `*?[\`) }

// eachMatch calls f with each name that a pattern fits.
func eachMatch(pattern string, names []string, f func(string)) (hit bool, err error) {
	for _, n := range names {
		ok, err := path.Match(pattern, n)
		if err != nil {
			return false, errkind.New(errkind.Refused, "%q is not a pattern: %w", pattern, err).
				Do("* stands for any letters, ? for one, [a-c] for one of a range; quote the word for your shell.")
		}
		if ok {
			hit = true
			f(n)
		}
	}
	return hit, nil
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = name(v)
	}
	return names
}

// ListNodes lists the names of all nodes, in the order of the inventory.
func ListNodes(inv *inventory.Inventory) []string {
	return namesOf(inv.Nodes, func(n *inventory.Node) string { return n.Name })
}

// CheckNames checks node names that the operator typed, and returns them as a set.
func CheckNames(inv *inventory.Inventory, names []string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, name := range names {
		if _, ok := inv.Node(name); !ok {
			return nil, errkind.New(errkind.Refused, "%q is not a node of this site.%s", name, diag.DidYouMean(name, ListNodes(inv))).
				Do("`ironrail status` lists the site's nodes.")
		}
		set[name] = true
	}
	return set, nil
}
