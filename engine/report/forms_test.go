// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestHTML(t *testing.T) {
	t.Parallel()
	in := lab()
	in.Nodes[3].Reason = `<script>alert("x")</script>`
	var b bytes.Buffer
	if err := HTML(&b, in); err != nil {
		t.Fatal(err)
	}
	golden(t, "lab.html", b.Bytes())
	text := b.String()
	if strings.Contains(text, "<script") || strings.Contains(text, "http://") || strings.Contains(text, "\x1b") {
		t.Error("the page holds a script, an address, or a control character")
	}
	for _, want := range []string{"<strong>2 of 4 nodes are accepted, 1 quarantined, 1 held.</strong>", "Not accepted as a whole", "not prove the fabric", `<td class="fail">fail</td>`, "n1 -&gt; n3 rail 0", "&lt;script&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there", want)
		}
	}
	b.Reset()
	if err := HTML(&b, Input{Site: "new"}); err != nil || !strings.Contains(b.String(), "0 of 0 nodes") {
		t.Errorf("%v %s", err, b.String())
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := JUnit(&b, lab()); err != nil {
		t.Fatal(err)
	}
	golden(t, "lab.junit.xml", b.Bytes())
	strict(t, b.Bytes())
	var doc junitSuites
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string][3]int{"nodes": {4, 1, 1}, "not tested": {1, 0, 1}, "role worker": {3, 1, 1}, "n1/validate.gates": {1, 0, 0}, "n2/validate.gates": {3, 0, 2}, "n1/validate.burn": {1, 0, 0},
		"all/validate.all_reduce": {3, 0, 1}, "all/validate.pair": {4, 2, 0}}
	for _, s := range doc.Suites {
		if w := want[s.Name]; s.Tests != w[0] || s.Failures != w[1] || s.Skipped != w[2] {
			t.Errorf("%s: %d tests, %d failures, %d skipped; want %v", s.Name, s.Tests, s.Failures, s.Skipped, w)
		}
	}
	if len(doc.Suites) != len(want) {
		t.Errorf("%d suites", len(doc.Suites))
	}
	if f := doc.Suites[0].Cases[2].Failure; f == nil || !strings.HasPrefix(f.Message, "RDMA writes over n3 rail 0 are slow") {
		t.Errorf("got %+v", f)
	}
}

// TestHostile: text from outside is text in every form, whatever it holds.
func TestHostile(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;x\x07</td></system-out>]]><script>alert(1)</script>\"' onload=x \u202e\x00\xff&#x1b;"
	in := Input{Site: evil, Nodes: []Node{{Name: evil, Status: Quarantined, Serial: evil, Kernel: evil, Reason: evil, Drivers: []Version{{evil, evil}}, Findings: []Finding{{Part: evil, Cause: evil, Evidence: []string{evil}, Action: evil}}}},
		Findings: []Finding{{Part: evil, Cause: evil}}, Roles: []Role{{Name: evil, Rows: []RoleRow{{What: evil, Other: []string{evil}, Verdict: Fail}}}}, Untested: []string{evil}, Caveats: []string{evil},
		Tests: []Test{{Step: evil, Title: evil, Members: []string{evil}, NotJudged: []string{evil}, Proves: evil, Measurements: []Measurement{
			{Check: evil, Nodes: []string{evil}, Part: evil, Unit: evil, Limit: evil, Rule: evil, Verdict: Fail, Why: evil, Transport: evil, Params: evil, Evidence: []string{evil}}}}}}
	for name, write := range map[string]func(io.Writer, Input) error{"text": Text, "HTML": HTML, "JUnit": JUnit} {
		var b bytes.Buffer
		if err := write(&b, in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range []string{"\x1b", "\x07", "\x00", "\u202e", "\xff", "&#x1b;"} {
			if strings.Contains(b.String(), bad) && !(name == "text" && bad == "&#x1b;") { // which is no markup there
				t.Errorf("%s holds %q", name, bad)
			}
		}
		if name != "text" && strings.Contains(b.String(), "<script") {
			t.Errorf("%s holds a script", name)
		}
		if name == "JUnit" {
			strict(t, b.Bytes())
		}
	}
}

// strict reads JUnit as junit-10.xsd has it: known elements and attributes only, whole
// numbers that are those of the cases, names that are unique, and messages that say
// something.
func strict(t *testing.T, text []byte) {
	t.Helper()
	attributes := map[string]string{"testsuites": "name tests failures errors", "testsuite": "name tests failures errors skipped timestamp", "testcase": "name classname",
		"failure": "message type", "skipped": "message", "system-out": ""}
	below := map[string]string{"": "testsuites", "testsuites": "testsuite", "testsuite": "testcase system-out", "testcase": "failure skipped system-out"}
	d, path, seen := xml.NewDecoder(bytes.NewReader(text)), []string{""}, map[string]bool{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			if !slices.Contains(strings.Fields(below[path[len(path)-1]]), name) {
				t.Fatalf("<%s> in <%s>", name, path[len(path)-1])
			}
			have := map[string]string{}
			for _, a := range e.Attr {
				have[a.Name.Local] = a.Value
				if !slices.Contains(strings.Fields(attributes[name]), a.Name.Local) {
					t.Errorf("<%s %s=>", name, a.Name.Local)
				}
			}
			if id := have["classname"] + "\x00" + have["name"]; name == "testcase" && (seen[id] || have["name"] == "" || have["classname"] == "") {
				t.Errorf("case %q is there twice, or has no name", id)
			} else if name == "testcase" {
				seen[id] = true
			}
			if (name == "failure" || name == "skipped") && have["message"] == "" {
				t.Errorf("<%s> without a message", name)
			}
			path = append(path, name)
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
	var doc junitSuites
	if err := xml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	tests, failures := 0, 0
	for _, s := range doc.Suites {
		failed, skipped := 0, 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				failed++
			}
			if c.Skipped != nil {
				skipped++
			}
		}
		if s.Tests != len(s.Cases) || s.Failures != failed || s.Skipped != skipped || s.Errors != 0 {
			t.Errorf("%s counts %d, %d, %d; it has %d, %d, %d", s.Name, s.Tests, s.Failures, s.Skipped, len(s.Cases), failed, skipped)
		}
		tests, failures = tests+s.Tests, failures+s.Failures
	}
	if doc.Tests != tests || doc.Failures != failures {
		t.Errorf("%d tests and %d failures, in suites %d and %d", doc.Tests, doc.Failures, tests, failures)
	}
}

// TestOutcomes: a node's cell has the worst verdict and says how much of what.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	kinds := groupByTitle(orderInput(lab()).Tests)
	for _, c := range []struct{ title, node, class, text string }{
		{"Parts of each node", "n2", NotJudged, "1 passed, 1 allowed to fail, 1 not judged"}, {"Parts of each node", "n1", Pass, "1 passed"}, {"Parts of each node", "n3", "", ""},
		{"all/validate.pair", "n3", Fail, "2 failed"}, {"all/validate.pair", "n1", Fail, "2 passed, 2 failed"}} {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.Title == c.title })
		if i < 0 {
			t.Fatalf("%q is not there", c.title)
		}
		if got := kinds[i].Of(c.node); got != (testOutcome{c.class, c.text}) {
			t.Errorf("%s of %s: %+v", c.title, c.node, got)
		}
	}
	all := kind{Tests: []Test{{Members: []string{"n1"}, Measurements: []Measurement{{Verdict: Pass}}}}}
	if got := all.Of("n1"); got.Class != Pass || all.Of("n2").Class != "" {
		t.Errorf("of all members: %+v", got)
	}
}

// TestRules: each form says where the limit of a GPU's figure comes from, and which
// GPU it is of.
func TestRules(t *testing.T) {
	t.Parallel()
	in := Input{Site: "s", Nodes: []Node{{Name: "n1", Status: Accepted}}, Tests: []Test{{Step: "n1/validate.bandwidth", Members: []string{"n1"}, Measurements: []Measurement{{
		Check: "gpu.hbm_copy", Nodes: []string{"n1"}, Part: "GPU 3 at 0000:04:00.0", Measured: 3.02e12, Unit: "B/s", Limit: ">= 2.97TB/s", Rule: "98% of the median", Verdict: "pass", Transport: "memory of the GPU"}}}}}
	for name, write := range map[string]func(io.Writer, Input) error{"text": Text, "HTML": HTML, "JUnit": JUnit, "JSON": JSON} {
		var b bytes.Buffer
		if err := write(&b, in); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"98% of the median", "GPU 3 at 0000:04:00.0"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not say %q:\n%s", name, want, b.String())
			}
		}
	}
}
