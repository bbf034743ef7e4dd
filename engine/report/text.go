// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/clock"
)

// worstShown is how many passing measurements of one test are listed, the
// nearest to their limit first; those that did not pass are all listed.
const worstShown = 8

// Text writes the report for a person. Text from outside is escaped.
func Text(w io.Writer, in Input) error {
	in = orderInput(in)
	var b bytes.Buffer
	writeHead(&b, in)
	writeOverview(&b, in)
	writeNodes(&b, in)
	writeList(&b, "Not proven", collectNotProven(in))
	writeRoles(&b, in)
	for _, t := range in.Tests {
		writeTest(&b, t)
	}
	writeTimes(&b, in)
	writeList(&b, "What a pass proves, and what not", collectProven(in))
	_, err := w.Write(wrapLines(b.Bytes(), textWidth))
	return err
}

// writeList writes sentences below a heading; nothing where there are none.
func writeList(b *bytes.Buffer, heading string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	for _, s := range sentences {
		fmt.Fprintf(b, "  - %s\n", clean(s))
	}
}

func clean(s string) string { return event.Escape(s) }

func writeHead(b *bytes.Buffer, in Input) {
	fmt.Fprintf(b, "Site %s, %s\n", clean(in.Site), in.At.UTC().Format(time.RFC3339))
	if in.Origin != "" {
		fmt.Fprintf(b, "%s\n", clean(in.Origin))
	}
	if in.Run != "" {
		took := ""
		if in.Duration > 0 {
			took = ", " + formatDuration(time.Duration(in.Duration))
		}
		fmt.Fprintf(b, "Run %s%s\n", clean(in.Run), took)
	}
	for _, a := range in.Approvals {
		fmt.Fprintf(b, "%s\n", clean(approvalText(a)))
	}
	for _, v := range in.Versions {
		fmt.Fprintf(b, "%s %s\n", clean(v.Name), clean(v.Version))
	}
	for _, i := range in.Images {
		fmt.Fprintf(b, "%s\n", clean(i.String()))
	}
	if in.Chain != nil {
		fmt.Fprintf(b, "%s\n", clean(chainText(*in.Chain)))
	}
}

func writeNodes(b *bytes.Buffer, in Input) {
	accepted := 0
	for _, n := range in.Nodes {
		if n.Status == Accepted {
			accepted++
		}
	}
	fmt.Fprintf(b, "\nNodes: %s\n", strings.Join(append([]string{fmt.Sprintf("%d of %d accepted", accepted, len(in.Nodes))}, countOthers(in)...), ", "))
	own, common := extractShared(in)
	for _, n := range own {
		writeNode(b, n)
	}
	for _, s := range common {
		writeShared(b, s)
	}
	for _, f := range in.Findings {
		writeFinding(b, f)
	}
}

func writeNode(b *bytes.Buffer, n Node) {
	words := []string{fmt.Sprintf("  %-12s %s", clean(n.Name), n.Status)}
	if !n.AcceptedAt.IsZero() && n.Status == Accepted {
		words = append(words, n.AcceptedAt.UTC().Format(time.RFC3339))
	}
	if s := n.SerialText(); s != "" {
		words = append(words, "serial "+clean(s))
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
		writeFinding(b, f)
	}
}

// writeShared writes what several nodes have in common, with the evidence of the
// first.
func writeShared(b *bytes.Buffer, s shared) {
	fmt.Fprintf(b, "  %s %s\n    %s\n", clean(s.Subjects()), s.Status, clean(s.Cause))
	for _, o := range s.Others {
		fmt.Fprintf(b, "    %s\n", clean(o))
	}
	for _, e := range s.Finding.Evidence {
		fmt.Fprintf(b, "      evidence of %s: %s\n", clean(s.Names[0]), clean(e))
	}
	if s.Action != "" {
		fmt.Fprintf(b, "      do: %s\n", clean(s.Action))
	}
}

func writeFinding(b *bytes.Buffer, f Finding) {
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

func writeTest(b *bytes.Buffer, t Test) {
	verdicts := map[string]int{}
	for _, m := range t.Measurements {
		verdicts[m.Verdict]++
	}
	over := ""
	if len(t.Members) > 0 {
		over = " over " + clean(strings.Join(t.Members, ", "))
	}
	fmt.Fprintf(b, "\nTest %s%s: %s\n", clean(t.Step), over, countOutcomes(t.Measurements))
	bad, good := splitPassed(t.Measurements)
	good = slices.DeleteFunc(good, func(m Measurement) bool { return m.Unit == "" }) // looks that passed are counted alone
	for _, m := range bad {
		writeMeasurement(b, m)
	}
	for _, m := range good[:min(len(good), worstShown)] {
		writeMeasurement(b, m)
	}
	if more := len(good) - worstShown; more > 0 {
		fmt.Fprintf(b, "  and %d more that passed\n", more)
	}
	for _, n := range t.NotJudged {
		fmt.Fprintf(b, "  not judged: %s\n", clean(n))
	}
	if refs := collectEvidence(t); len(refs) > 0 {
		fmt.Fprintf(b, "  evidence: %s\n", clean(strings.Join(refs, ", ")))
	}
}

// collectEvidence are the raw outputs that a test's measurements are from, each once; of many
// the first ones.
func collectEvidence(t Test) (refs []string) {
	for _, m := range t.Measurements {
		for _, ref := range m.Evidence {
			if ref != "" && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if n := len(refs) - worstShown; n > 0 {
		refs = append(refs[:worstShown], fmt.Sprintf("and %d more", n))
	}
	return refs
}

// countOutcomes says how the measurements of a test ended.
func countOutcomes(ms []Measurement) string {
	n := map[string]int{}
	for _, m := range ms {
		n[m.Verdict]++
	}
	text := fmt.Sprintf("%d passed, %d failed, %d not judged", n[Pass], n[Fail], n[NotJudged])
	if n[Allowed] > 0 {
		text += fmt.Sprintf(", %d allowed to fail", n[Allowed])
	}
	return text
}

// formatFigure is what was measured with its limit, and over what; of a look without a
// figure, what was looked at.
func formatFigure(m Measurement) string {
	if m.Unit == "" {
		return cmp.Or(m.Params, "nothing to look at")
	}
	text := fmt.Sprintf("%s (%s)", formatValue(m), formatLimit(m))
	if m.Transport != "" {
		text += ", " + m.Transport
	}
	return text
}

// splitPassed puts the measurements that did not pass first, and the others by how
// low they are.
func splitPassed(ms []Measurement) (bad, good []Measurement) {
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

func writeMeasurement(b *bytes.Buffer, m Measurement) {
	fmt.Fprintf(b, "  %-10s %s, %s: %s", m.Verdict, clean(m.Check), clean(formatPlace(m)), clean(formatFigure(m)))
	if m.Why != "" {
		fmt.Fprintf(b, "; %s", clean(m.Why))
	}
	b.WriteString("\n")
}

// formatPlace says what a measurement is about: the sender first, of a rail.
func formatPlace(m Measurement) string {
	switch n := len(m.Nodes); {
	case m.Part != "" && n == 2 && strings.HasPrefix(m.Part, "rail"):
		return strings.Join(m.Nodes, " -> ") + " " + m.Part
	case n == 0:
		return cmp.Or(m.Part, "the site")
	case m.Part != "" && n == 1 && !strings.HasPrefix(m.Check, "all_reduce."):
		return m.Nodes[0] + " " + m.Part
	case m.Part != "" && n <= 2:
		return strings.Join(m.Nodes, " and ") + ", scope " + m.Part
	case m.Part != "":
		return fmt.Sprintf("%d nodes, scope %s", n, m.Part)
	case n == 1:
		return m.Nodes[0]
	default:
		return fmt.Sprintf("%d nodes", n)
	}
}

func formatLimit(m Measurement) string {
	if m.Limit == "" {
		return "no limit"
	}
	if m.Rule != "" {
		return "limit " + m.Limit + ": " + m.Rule
	}
	return "limit " + m.Limit
}

// formatValue shows a figure with three digits that matter and the unit of its size.
func formatValue(m Measurement) string {
	if m.Unit == "" {
		return ""
	}
	if m.Verdict != Pass && m.Measured == 0 {
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

func writeTimes(b *bytes.Buffer, in Input) {
	phases := Phases(in.Steps)
	if len(phases) == 0 {
		return
	}
	b.WriteString("\nTimes\n")
	for i := 0; i < len(phases); {
		name := phases[i].Node
		var words []string
		for ; i < len(phases) && phases[i].Node == name; i++ {
			words = append(words, fmt.Sprintf("%s %s", clean(phases[i].Stage), formatDuration(phases[i].Wall)))
		}
		if name == "" {
			name = "site, groups"
		}
		fmt.Fprintf(b, "  %-12s %s\n", clean(name), strings.Join(words, ", "))
	}
	b.WriteString("  Longest steps:\n")
	longest := sortedBy(in.Steps, func(a, b Step) int { return int(min(max(b.Took-a.Took, -1), 1)) })
	longest = slices.DeleteFunc(longest, func(s Step) bool { return s.Started.IsZero() })
	for _, s := range longest[:min(len(longest), 5)] {
		fmt.Fprintf(b, "    %-8s %s\n", formatDuration(time.Duration(s.Took)), clean(s.ID))
	}
}

// formatDuration shows a duration as an engineer says it.
func formatDuration(d time.Duration) string { return clock.Text(d) }
