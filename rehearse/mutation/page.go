// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason says why changes of fields are not found.
type Reason struct {
	Open   bool     // a gap that is known: it should be found
	Why    string   // a sentence
	Fields []string // source, path and changes: "NVIDIA Health.PCI[GPU].Width -+"
}

// Page returns docs/not-judged.md, of the list of reasons.
func Page() string {
	var b strings.Builder
	b.WriteString(`# What is not judged

Each field of what nodes show is changed, one at a time, on one node of four that are alike: lowered by 20 %, raised by 20 %, emptied, and made another's. The checks judge what
comes of it. A change that no check finds stands here with its reason, under the names of the program's own types. A test fails for a field that is neither found nor
listed, and for one that is both. This page is written by ` + "`go test ./rehearse/mutation -update`" + `.

Changes: ` + "`-`" + ` lowered, ` + "`+`" + ` raised (a 0 to 1), ` + "`0`" + ` emptied or taken away, ` + "`x`" + ` made another's, ` + "`n`" + ` nodes that are well show no value that could be changed.

What is changed:

| source | is |
|---|---|
`)
	for _, s := range slices.Sorted(maps.Keys(sources)) {
		fmt.Fprintf(&b, "| %s | %s |\n", s, sources[s])
	}
	b.WriteString("\nWhat is not changed by this test:\n\n")
	for _, s := range notCovered {
		fmt.Fprintf(&b, "- %s\n", s)
	}
	writeReasons(&b, "Open: should be found", true)
	writeReasons(&b, "Not judged, and why", false)
	writeQuantities(&b)
	writeNumbers(&b)
	return b.String()
}

func writeReasons(b *strings.Builder, title string, open bool) {
	fmt.Fprintf(b, "\n## %s\n", title)
	if !slices.ContainsFunc(slices.Concat(reasons, betweenReasons, collectiveReasons, physicsReasons, fabricReasons, judgedReasons), func(r Reason) bool { return r.Open == open }) {
		b.WriteString("\nNone of these changes.\n")
	}
	for _, r := range slices.Concat(reasons, betweenReasons, collectiveReasons, physicsReasons, fabricReasons, judgedReasons) {
		if r.Open != open {
			continue
		}
		fmt.Fprintf(b, "\n%s\n\n", r.Why)
		for _, f := range r.Fields {
			fmt.Fprintf(b, "- `%s`\n", f)
		}
	}
}

// excused returns the changes that have a reason, by source and path.
func excused() (map[string]string, error) {
	all := map[string]string{}
	for _, r := range slices.Concat(reasons, betweenReasons, collectiveReasons, physicsReasons, fabricReasons, judgedReasons) {
		for _, f := range r.Fields {
			i := strings.LastIndexByte(f, ' ')
			if i < 0 || strings.Trim(f[i+1:], "-+0xn") != "" {
				return nil, fmt.Errorf("%q has no changes behind its path", f)
			}
			for _, c := range f[i+1:] {
				if strings.ContainsRune(all[f[:i]], c) {
					return nil, fmt.Errorf("%q has two reasons", f)
				}
			}
			all[f[:i]] += f[i+1:]
		}
	}
	return all, nil
}

// writeNumbers adds the numbers of the simulator to the page.
func writeNumbers(b *strings.Builder) {
	b.WriteString("\n## Numbers of the simulator\n\nEach number that the simulated hardware holds, and each column of its tables. A quantity is lowered and raised by 20 % for one part or node.\n\n| number | is |\n|---|---|\n")
	for _, n := range numbers {
		is := n.why
		switch {
		case n.quantity != "":
			is = "the quantity `" + string(n.quantity) + "`"
		case n.evidence != "":
			is = "changed as evidence: `" + n.evidence + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.Join(n.names, "`, `"), is)
	}
}
