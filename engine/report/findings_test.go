// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestFindingsOfManyNodesAreToldOnce: 512 dead BMCs are one finding in the forms that
// people read; what differs in it is told for each node, and JSON has all.
func TestFindingsOfManyNodesAreToldOnce(t *testing.T) {
	t.Parallel()
	in := Input{Site: "s"}
	for i := range 512 {
		n := Node{Name: fmt.Sprintf("n%03d", i+1), Status: Quarantined}
		n.Findings = []Finding{{Part: n.Name + " BMC", Step: n.Name + "/bmc.reach", Cause: fmt.Sprintf("bmc 10.0.%d.%d: no route to host", i/256, i%256),
			Evidence: []string{"dialed 5 times"}, Action: "Check the BMC of " + n.Name + "."}}
		in.Nodes = append(in.Nodes, n)
	}
	for i, gpu := range []int{3, 5} {
		n := fmt.Sprintf("x%d", i+1)
		in.Nodes = append(in.Nodes, Node{Name: n, Status: Quarantined, Findings: []Finding{{Part: fmt.Sprintf("%s GPU %d", n, gpu), Cause: "fell off the bus", Action: "Reseat it."}}})
	}
	in.Nodes = append(in.Nodes, Node{Name: "y1", Status: Unfinished, Reason: "nothing was done yet"}, Node{Name: "y2", Status: Unfinished, Reason: "nothing was done yet"},
		Node{Name: "z", Status: Quarantined, Findings: []Finding{{Cause: "of its own", Action: "Look."}}})
	var text, html, js bytes.Buffer
	for _, err := range []error{Text(&text, in), HTML(&html, in), JSON(&js, in)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"  512 nodes: n[001-512] quarantined\n    NODE BMC: bmc 10.0.0.0: no route to host\n      evidence of n001: dialed 5 times\n      do: Check the BMC of NODE.\n",
		"  2 nodes: x[1-2] quarantined\n    NODE GPU 3: fell off the bus\n    x2: x2 GPU 5: fell off the bus\n      do: Reseat it.\n",
		"  2 nodes: y[1-2] unfinished\n    nothing was done yet\n",
		"  z            quarantined\n    of its own\n      do: Look.\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the text, which ends with\n%s", want, text.String()[max(0, text.Len()-1500):])
		}
	}
	// In the overview and among the nodes; on the page also in the text for a return.
	for most, form := range map[int]string{2: text.String(), 3: html.String()} {
		if n := strings.Count(form, "no route to host"); n != most {
			t.Errorf("a form says %d times that there is no route to host, and not %d", n, most)
		}
	}
	if n := strings.Count(js.String(), "no route to host"); n != 512 {
		t.Errorf("JSON has %d of 512 findings", n)
	}
	if len(in.Nodes[0].Findings) != 1 {
		t.Error("the input was changed")
	}
}
