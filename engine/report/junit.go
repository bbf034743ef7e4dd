// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The elements of JUnit's XML as CI systems read them: the schema junit-10.xsd of the
// Jenkins xUnit plugin. No error is ever reported: what could not be tested is skipped.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"` // UTC
		Cases     []junitCase `xml:"testcase"`
		Out       string      `xml:"system-out,omitempty"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"` // of a failure: the check
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report for CI systems: a suite of all nodes, in which one that is
// not accepted failed or was skipped, one of what was not tested, one for each role of
// what its nodes have in common, and one for each test, with a case for each
// measurement. What was not judged, and what is allowed to fail, is skipped, never
// passed. Text from outside is escaped.
func JUnit(w io.Writer, in Input) error {
	in = orderInput(in)
	doc := junitSuites{Name: clean(in.Site), Suites: []junitSuite{newNodesSuite(in)}}
	if len(in.Untested) > 0 {
		doc.Suites = append(doc.Suites, newUntestedSuite(in))
	}
	for _, r := range in.Roles {
		doc.Suites = append(doc.Suites, newRoleSuite(in, r))
	}
	for _, t := range in.Tests {
		doc.Suites = append(doc.Suites, newTestSuite(t))
	}
	for i := range doc.Suites {
		doc.Suites[i].distinguish()
		doc.Tests, doc.Failures = doc.Tests+doc.Suites[i].Tests, doc.Failures+doc.Suites[i].Failures
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// newNodesSuite is the suite of nodes.
func newNodesSuite(in Input) junitSuite {
	s := junitSuite{Name: "nodes", Timestamp: formatTime(in.At), Out: clean(strings.TrimPrefix(strings.Join(slices.Concat([]string{in.Origin}, collectNotProven(in), collectProven(in)), "; "), "; "))}
	for _, n := range in.Nodes {
		c := junitCase{Name: clean(n.Name), Class: "nodes"}
		switch {
		case n.Status.failed():
			c.Failure = newFailure(n.Status.String(), n.Findings)
		case n.Status != Accepted:
			c.Skipped = &junitMessage{Message: clean(strings.TrimSuffix(n.Status.String()+": "+n.Reason, ": "))}
		}
		s.add(c)
	}
	for _, f := range in.Findings {
		s.add(junitCase{Name: clean(cmp.Or(f.Part, f.Step)), Class: "findings", Failure: newFailure("", []Finding{f})})
	}
	return s
}

// newFailure is what findings say; message stands where there is none.
func newFailure(message string, findings []Finding) *junitMessage {
	m := &junitMessage{Message: message, Type: "finding"}
	var text []string
	for _, f := range findings {
		m.Message = clean(f.Cause)
		text = append(text, clean(strings.Join(append([]string{strings.TrimPrefix(f.Part+": "+f.Cause, ": ")}, f.Evidence...), "; ")), "do: "+clean(f.Action))
	}
	m.Text = strings.Join(text, "\n")
	return m
}

// newUntestedSuite is the suite of what no test has looked at.
func newUntestedSuite(in Input) junitSuite {
	s := junitSuite{Name: "not tested", Timestamp: formatTime(in.At)}
	for _, text := range in.Untested {
		name, _, _ := strings.Cut(text, ":")
		s.add(junitCase{Name: clean(name), Class: "not tested", Skipped: &junitMessage{Message: clean(text)}})
	}
	return s
}

// newRoleSuite is the suite of what the nodes of a role have in common.
func newRoleSuite(in Input, r Role) junitSuite {
	s := junitSuite{Name: "role " + clean(r.Name), Timestamp: formatTime(in.At)}
	for _, row := range r.Rows {
		c := junitCase{Name: clean(row.What), Class: s.Name, Out: clean(fmt.Sprintf("%d of %d nodes: %s", row.With, row.Nodes, row.most()))}
		differs := clean("differs: " + row.others())
		switch row.Verdict {
		case Fail:
			c.Failure = &junitMessage{Message: differs, Type: "differs", Text: c.Out}
		case Allowed, NotJudged:
			c.Skipped = &junitMessage{Message: differs}
		}
		s.add(c)
	}
	return s
}

// newTestSuite is the suite of one test.
func newTestSuite(t Test) junitSuite {
	s := junitSuite{Name: clean(t.Step), Timestamp: formatTime(t.At), Out: clean(t.Proves)}
	for _, m := range t.Measurements {
		c := junitCase{Name: clean(m.Check + ", " + formatPlace(m)), Class: clean(t.Step)}
		c.Out = clean(describeMeasurement(m))
		switch m.Verdict {
		case Pass:
		case Fail:
			c.Failure = &junitMessage{Message: clean(cmp.Or(m.Why, "it failed")), Type: clean(m.Check), Text: clean(formatFigure(m))}
		default:
			c.Skipped = &junitMessage{Message: clean(m.Verdict + ": " + m.Why)}
		}
		s.add(c)
	}
	for _, n := range t.NotJudged {
		s.add(junitCase{Name: "not judged", Class: clean(t.Step), Skipped: &junitMessage{Message: clean(n)}})
	}
	return s
}

// describeMeasurement is what was measured, and how.
func describeMeasurement(m Measurement) string {
	text := formatFigure(m)
	if m.Params != "" && m.Unit != "" {
		text += ", " + m.Params
	}
	if len(m.Evidence) > 0 {
		text += "; evidence: " + strings.Join(m.Evidence, ", ")
	}
	return text
}

// distinguish numbers cases of one name, which readers would take for one.
func (s *junitSuite) distinguish() {
	seen := map[string]int{}
	for i := range s.Cases {
		c := &s.Cases[i]
		if seen[c.Name]++; seen[c.Name] > 1 {
			c.Name += fmt.Sprintf(" (%d)", seen[c.Name])
		}
	}
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// formatTime is a time in UTC as JUnit writes it; empty when it is not known.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}
