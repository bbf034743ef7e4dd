package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/event"
)

// worstShown is how many passing measurements of one test are listed, the
// nearest to their limit first; those that did not pass are all listed.
const worstShown = 8

// Text writes the report for a person. Text from outside is escaped.
func Text(w io.Writer, in Input) error {
	in = ordered(in)
	var b bytes.Buffer
	head(&b, in)
	nodes(&b, in)
	for _, t := range in.Tests {
		test(&b, t)
	}
	times(&b, in)
	if notes := unproven(in); len(notes) > 0 {
		b.WriteString("\nWhat this proves, and what not\n")
		for _, c := range notes {
			fmt.Fprintf(&b, "  - %s\n", clean(c))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func clean(s string) string { return event.Escape(s) }

func head(b *bytes.Buffer, in Input) {
	fmt.Fprintf(b, "Site %s, %s\n", clean(in.Site), in.At.UTC().Format(time.RFC3339))
	if in.Run != "" {
		fmt.Fprintf(b, "Run %s, %s\n", clean(in.Run), short(time.Duration(in.Duration)))
	}
	for _, v := range in.Versions {
		fmt.Fprintf(b, "%s %s\n", clean(v.Name), clean(v.Version))
	}
	for _, i := range in.Images {
		fmt.Fprintf(b, "image %s %s\n", clean(i.Name), clean(i.Digest))
	}
}

func nodes(b *bytes.Buffer, in Input) {
	count := map[Standing]int{}
	for _, n := range in.Nodes {
		count[n.Standing]++
	}
	fmt.Fprintf(b, "\nNodes: %d of %d accepted", count[Accepted], len(in.Nodes))
	for _, s := range []Standing{Quarantined, Held, Adopted, Unfinished} {
		if count[s] > 0 {
			fmt.Fprintf(b, ", %d %s", count[s], s)
		}
	}
	b.WriteString("\n")
	for _, n := range in.Nodes {
		node(b, n)
	}
	for _, f := range in.Findings {
		finding(b, f)
	}
}

func node(b *bytes.Buffer, n Node) {
	words := []string{fmt.Sprintf("  %-12s %s", clean(n.Name), n.Standing)}
	if !n.AcceptedAt.IsZero() && n.Standing == Accepted {
		words = append(words, n.AcceptedAt.UTC().Format(time.RFC3339))
	}
	if n.Serial != "" {
		words = append(words, "serial "+clean(n.Serial))
	}
	if n.Kernel != "" {
		words = append(words, "kernel "+clean(n.Kernel))
	}
	if n.Reason != "" {
		words = append(words, clean(n.Reason))
	}
	fmt.Fprintf(b, "%s\n", strings.Join(words, ", "))
	for _, d := range n.Drivers {
		fmt.Fprintf(b, "    driver %s: %s\n", clean(d.Name), clean(d.Version))
	}
	for _, f := range n.Findings {
		finding(b, f)
	}
}

func finding(b *bytes.Buffer, f Finding) {
	part := ""
	if f.Part != "" {
		part = clean(f.Part) + ": "
	}
	fmt.Fprintf(b, "    %s%s\n", part, clean(f.Cause))
	for _, e := range f.Evidence {
		fmt.Fprintf(b, "      evidence: %s\n", clean(e))
	}
	if f.Action != "" {
		fmt.Fprintf(b, "      do: %s\n", clean(f.Action))
	}
}

func test(b *bytes.Buffer, t Test) {
	verdicts := map[string]int{}
	for _, m := range t.Measurements {
		verdicts[m.Verdict]++
	}
	fmt.Fprintf(b, "\nTest %s over %s: %d passed, %d failed, %d not judged\n", clean(t.Step), clean(strings.Join(t.Members, ", ")), verdicts["pass"], verdicts["fail"], verdicts["not-judged"])
	bad, good := split(t.Measurements)
	for _, m := range bad {
		measurement(b, m)
	}
	for _, m := range good[:min(len(good), worstShown)] {
		measurement(b, m)
	}
	if more := len(good) - worstShown; more > 0 {
		fmt.Fprintf(b, "  and %d more that passed\n", more)
	}
	for _, n := range t.NotJudged {
		fmt.Fprintf(b, "  not judged: %s\n", clean(n))
	}
}

// split puts the measurements that did not pass first, and the others by how
// low they are.
func split(ms []Measurement) (bad, good []Measurement) {
	for _, m := range ms {
		if m.Verdict == "pass" {
			good = append(good, m)
		} else {
			bad = append(bad, m)
		}
	}
	slices.SortStableFunc(good, func(a, b Measurement) int {
		switch {
		case a.Check != b.Check:
			return strings.Compare(a.Check, b.Check)
		case a.Measured < b.Measured:
			return -1
		case a.Measured > b.Measured:
			return 1
		}
		return 0
	})
	return bad, good
}

func measurement(b *bytes.Buffer, m Measurement) {
	where := fmt.Sprintf("%d nodes", len(m.Nodes))
	if m.Part != "" && len(m.Nodes) == 2 { // of a pair, the sender first
		where = strings.Join(m.Nodes, " -> ") + " " + m.Part
	}
	limit := "no limit"
	if m.Limit != "" {
		limit = "limit " + m.Limit
	}
	fmt.Fprintf(b, "  %-10s %s, %s: %s (%s), %s", m.Verdict, clean(m.Check), clean(where), value(m), clean(limit), clean(m.Transport))
	if m.Why != "" {
		fmt.Fprintf(b, "; %s", clean(m.Why))
	}
	b.WriteString("\n")
}

// value shows a figure with three digits that matter and the unit of its size.
func value(m Measurement) string {
	if m.Verdict != "pass" && m.Measured == 0 {
		return "no result"
	}
	if m.Unit != "B/s" {
		return strconv.FormatFloat(m.Measured, 'g', 6, 64) + " " + clean(m.Unit)
	}
	v, prefix := m.Measured, ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if v < 1000 {
			break
		}
		v, prefix = v/1000, p
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + prefix + "B/s"
}

func times(b *bytes.Buffer, in Input) {
	phases := Phases(in.Steps)
	if len(phases) == 0 {
		return
	}
	b.WriteString("\nTimes\n")
	for i := 0; i < len(phases); {
		name := phases[i].Node
		var words []string
		for ; i < len(phases) && phases[i].Node == name; i++ {
			words = append(words, fmt.Sprintf("%s %s", clean(phases[i].Stage), short(phases[i].Wall)))
		}
		if name == "" {
			name = "site, groups"
		}
		fmt.Fprintf(b, "  %-12s %s\n", clean(name), strings.Join(words, ", "))
	}
	b.WriteString("  Longest steps:\n")
	longest := sorted(in.Steps, func(a, b Step) int { return int(min(max(b.Took-a.Took, -1), 1)) })
	longest = slices.DeleteFunc(longest, func(s Step) bool { return s.Started.IsZero() })
	for _, s := range longest[:min(len(longest), 5)] {
		fmt.Fprintf(b, "    %-8s %s\n", short(time.Duration(s.Took)), clean(s.ID))
	}
}

// short shows a duration as an engineer says it.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// unproven collects what the tests say about their own reach, the caveats, and
// what follows from what is missing.
func unproven(in Input) []string {
	var out []string
	for _, t := range in.Tests {
		if t.Proves != "" {
			out = append(out, t.Step+": "+t.Proves)
		}
	}
	if len(in.Tests) == 0 {
		out = append(out, "Nothing was measured.")
	}
	return append(out, in.Caveats...)
}
