// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestNodesOfOthers: every form says that ironrail did not install the nodes, counts one
// that is not accepted as failed, and one without a reference as skipped, never as passed.
func TestNodesOfOthers(t *testing.T) {
	t.Parallel()
	in := Input{Site: "nodes.txt", At: time.Unix(0, 0), Origin: "Not installed by ironrail.", Nodes: []Node{
		{Name: "n1", Status: Accepted}, {Name: "n2", Status: NotAccepted, Findings: []Finding{{Part: "n2 GPU 3", Cause: "it has <fallen> off the bus", Action: "Reseat it."}}},
		{Name: "n3", Status: NoReference, Reason: "2 hosts are alike"},
	}}
	var text, html, junit bytes.Buffer
	if Text(&text, in) != nil || HTML(&html, in) != nil || JUnit(&junit, in) != nil {
		t.Fatal("a form was not written")
	}
	for _, c := range []struct{ form, want string }{
		{text.String(), "Site nodes.txt, 1970-01-01T00:00:00Z\nNot installed by ironrail.\n"},
		{text.String(), "Nodes: 1 of 3 accepted, 1 not accepted, 1 no reference\n"},
		{text.String(), "- n2: not accepted\n"},
		{text.String(), "- n3: not accepted (no reference)\n"},
		{html.String(), `<p class="open">Not installed by ironrail.</p>`},
		{html.String(), `<td class="not-accepted">not accepted</td>`},
		{html.String(), `<td class="no-reference">no reference</td>`},
		{junit.String(), `<testsuite name="nodes" tests="3" failures="1" errors="0" skipped="1"`},
		{junit.String(), `<system-out>Not installed by ironrail.; `},
		{junit.String(), `<skipped message="no reference: 2 hosts are alike">`},
	} {
		if !strings.Contains(c.form, c.want) {
			t.Errorf("%q is not in\n%s", c.want, c.form)
		}
	}
}
