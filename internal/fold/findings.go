// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"crypto/sha256"
	"encoding/base32"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Finding is what is said of one subject.
type Finding struct {
	Kind   string // of the subject: node, switch
	Name   string // of the subject
	Apart  string // what keeps findings apart besides: an outcome, a step; may hold the name
	Cause  string
	Action string // what to do about it; may be empty
}

// like is what findings have in common that are alike.
func (f Finding) like() string {
	return strings.Join([]string{"like", f.Kind, Symptom(f.Apart, f.Name), Symptom(f.Cause, f.Name), Symptom(f.Action, f.Name)}, "\x00")
}

// ID names all findings that are alike by eight characters, such as f-k2q9va: the same in every run,
// and for whatever subject.
func (f Finding) ID() string {
	sum := sha256.Sum256([]byte(f.like()))
	return "f-" + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:5]))[:6]
}

// Group is findings with the same kind of subject, cause and action.
type Group struct {
	Kind    string
	Names   []string // of the subjects, in the order of the findings
	Members []int    // the findings, by their place in the list
	// Cause and Action are the texts of the first finding; where those of the others
	// differ, the subject's name is the kind in capitals, NODE.
	Cause, Action string
	// Others are the causes of the later subjects where they differ in more than names,
	// addresses and times, each after the subject's name: "n2: GPU 5 is missing".
	Others []string
	// Actions are the members by what is to be done about each: more than one where the
	// actions differ in more than names, addresses and times, such as in the port of a plug.
	Actions []Action
}

// Action is what is to be done about some members of a group, with the name of the subject
// as in Group where they are several.
type Action struct {
	Text    string
	Members []int
}

// Findings groups findings, in the order of the first of each group. Causes are the
// same when they differ only in the subject's name, addresses and figures.
func Findings(list []Finding) (groups []Group) {
	index := map[string]int{}
	type member struct {
		group int
		name  string
	}
	named := map[member]bool{}
	for i, f := range list {
		raw := strings.Join([]string{"raw", f.Kind, f.Apart, f.Cause, f.Action}, "\x00")
		like := f.like()
		at, ok := index[raw] // one finding may name several subjects
		if !ok {
			at, ok = index[like]
		}
		if !ok {
			at = len(groups)
			groups = append(groups, Group{Kind: f.Kind})
		}
		index[raw], index[like] = at, at
		g := &groups[at]
		g.Members = append(g.Members, i)
		if m := (member{at, f.Name}); !named[m] {
			named[m] = true
			g.Names = append(g.Names, f.Name)
		}
	}
	for i := range groups {
		groups[i].write(list)
	}
	return groups
}

// write fills in the texts.
func (g *Group) write(list []Finding) {
	first := list[g.Members[0]]
	g.Cause, g.Action = first.Cause, first.Action
	g.act(list)
	if len(g.Names) == 1 {
		return
	}
	if !slices.ContainsFunc(g.Members, func(m int) bool { return list[m].Cause != first.Cause || list[m].Action != first.Action }) {
		return // one text for all
	}
	any := strings.ToUpper(g.Kind)
	g.Cause, g.Action = replaceName(first.Cause, first.Name, any), replaceName(first.Action, first.Name, any)
	same := withoutAddresses(g.Cause)
	for _, m := range g.Members[1:] {
		f := list[m]
		if cause := replaceName(f.Cause, f.Name, any); withoutAddresses(cause) != same {
			g.Others = append(g.Others, f.Name+": "+f.Cause)
		}
	}
}

// act fills in the actions.
func (g *Group) act(list []Finding) {
	index := map[string]int{}
	for _, m := range g.Members {
		f := list[m]
		text := replaceName(f.Action, f.Name, strings.ToUpper(g.Kind))
		key := withoutAddresses(text)
		at, known := index[key]
		if !known {
			at = len(g.Actions)
			index[key] = at
			g.Actions = append(g.Actions, Action{Text: f.Action})
		}
		a := &g.Actions[at]
		a.Members = append(a.Members, m)
		if len(a.Members) > 1 && f.Action != a.Text {
			a.Text = text
		}
	}
}

// Subjects writes the subjects of a group: "64 nodes: r1n[01-64]". A single one is its
// name.
func (g *Group) Subjects() string {
	if len(g.Names) == 1 {
		return g.Names[0]
	}
	return formatCount(len(g.Names), g.Kind) + ": " + Names(g.Names)
}

// Symptom is a text without what differs from subject to subject: its name, and every
// word with a digit, such as a number, an address or a time.
func Symptom(text, name string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(replaceName(text, name, "NAME")) {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			word = "#"
		}
		b.WriteString(word + " ")
	}
	return b.String()
}

// replaceName replaces a name where it stands as a word: n1 is not in n12.
func replaceName(text, name, with string) string {
	if name == "" {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, name)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		b.WriteString(text[:i])
		if i > 0 && isWord(before) || end < len(text) && isWord(after) {
			b.WriteString(name)
		} else {
			b.WriteString(with)
		}
		text = text[end:]
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// withoutAddresses is a text without addresses and times: what else differs is worth
// telling.
func withoutAddresses(text string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if bare := strings.Trim(word, `()[]{},;:."'`); isAddress(bare) {
			word = strings.Replace(word, bare, "#", 1)
		}
		b.WriteString(word + " ")
	}
	return b.String()
}

// isAddress reports whether a word is an address, a URL, a duration or a time.
func isAddress(word string) bool {
	if strings.Contains(word, "://") {
		return true
	}
	for _, parse := range []func(string) error{
		func(s string) error { _, err := netip.ParseAddr(s); return err },
		func(s string) error { _, err := netip.ParseAddrPort(s); return err },
		func(s string) error { _, err := netip.ParsePrefix(s); return err },
		func(s string) error { _, err := net.ParseMAC(s); return err },
		func(s string) error { _, err := time.ParseDuration(s); return err },
		func(s string) error { _, err := time.Parse(time.TimeOnly, s); return err },
		func(s string) error { _, err := time.Parse(time.RFC3339, s); return err },
	} {
		if parse(word) == nil {
			return true
		}
	}
	return false
}
