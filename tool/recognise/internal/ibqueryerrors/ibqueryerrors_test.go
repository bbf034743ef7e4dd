// SPDX-License-Identifier: Apache-2.0

package ibqueryerrors

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/recognise/internal/iblinkinfo"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibqueryerrors.txt")
	r, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(r.Nodes) != 2 || r.Checked == nil || r.Checked.Ports != 74 || r.Checked.BadPorts != 3 || len(r.Checked.Suppressed) != 2 {
		t.Fatalf("%+v", r)
	}
	hca, leaf := r.Nodes[0], r.Nodes[1]
	if p := hca.Ports[0]; p.Counters["PortRcvErrors"] != 2 || p.Counters["SymbolErrorCounter"] != 17 || p.Link == nil || p.Link.Rate != 425 || p.Link.Peer.Port != 12 {
		t.Errorf("%+v", p)
	}
	if leaf.GUID.String() != "0x946dae0300c51000" || len(leaf.Ports) != 3 || leaf.Ports[0].Port != AllPorts || leaf.Ports[2].Link.State != "Down" {
		t.Errorf("%+v", leaf)
	}
	if lines := r.Summary(); len(lines) != 4 || !strings.Contains(lines[1], "gpu-3 mlx5_1 port 1: PortRcvErrors 2") {
		t.Errorf("%q", lines)
	}
	if iblinkinfo.Format.Is([]byte(good)) != 0 {
		t.Error("iblinkinfo takes it for its own")
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "no summary", From: good[strings.Index(good, "## Summary"):], To: "", Kind: tool.Truncated, Text: "summary"},
		{Name: "ends within a counter", From: " (2.000)] [PortXmitDiscards == 3]", To: "", Kind: tool.Truncated, Line: 3, Text: "within a counter"},
		{Name: "counter twice", From: "[LinkDownedCounter == 2] [PortXmitWait", To: "[PortXmitWait == 1] [PortXmitWait", Kind: tool.Inconsistent, Line: 7, Text: "twice"},
		{Name: "other count", From: "3 ports have", To: "4 ports have", Kind: tool.Inconsistent, Text: "2 nodes and 4 ports"},
		{Name: "a port is gone", From: "   GUID 0x946dae0300c51000 port 40: [PortRcvSwitchRelayErrors == 1]\n", To: "", Kind: tool.Inconsistent, Text: "2 and 2 are here"},
		{Name: "link ends", From: "\"gpu-3 mlx5_1\" ( )", To: "\"gpu-3", Kind: tool.Truncated, Line: 8, Text: "link"},
		{Name: "queries failed", From: "## Suppressed", To: "##          5 PMA query failures\n## Suppressed", Kind: tool.Failed, Text: "5 queries"},
		{Name: "no answer", From: "Errors for \"gpu-3", To: "Query SA failed: Connection timed out; sa call path_query failed\nErrors for \"gpu-3", Kind: tool.Failed, Line: 2, Text: "timed out"},
		{Name: "two outputs", From: "## Suppressed", To: "## Summary: 1 nodes checked, 0 bad nodes found\n## Suppressed", Kind: tool.Inconsistent, Text: "two outputs"},
	})
}

// TestOtherForms: traffic has no errors to count, a clean subnet has a summary
// alone, and the script of old has the same summary.
func TestOtherForms(t *testing.T) {
	t.Parallel()
	clean := "\n## Summary: 16 nodes checked, 0 bad nodes found\n##          226 ports checked, 0 ports have errors beyond threshold\n## Thresholds: \n## Suppressed:\n"
	r, problems, err := Parse([]byte(clean))
	if err != nil || len(problems) != 0 || len(r.Nodes) != 0 || r.Checked.Nodes != 16 || Format.Is([]byte(clean)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, r)
	}
	data := "Data Counters for 0xe41d2d03007c1820 \"lustre-1 HCA-1\"\n   GUID 0xe41d2d03007c1820 port 1: [PortXmitData == 19892634015130 (  infPB)] [PortXmitPkts == 54122042328 (50.405G)]\n" + clean
	r, problems, err = Parse([]byte(data))
	if err != nil || len(problems) != 0 || !r.Nodes[0].Data || r.Nodes[0].Ports[0].Counters["PortXmitPkts"] != 54122042328 {
		t.Errorf("%v, %v, %+v", err, problems, r)
	}
	if script := "#warn: counter RcvErrors = 9035 \t(threshold 10) lid 193 port 3\nError check on lid 193 (leaf) port 3:  FAILED\n" + clean; Format.Is([]byte(script)) != 0 {
		t.Error("ibcheckerrors is taken for ibqueryerrors")
	}
	failed := "/usr/sbin/ibqueryerrors: iberror: failed: Failed to open port; (null):0\n"
	_, problems, err = Parse([]byte(failed))
	if err != nil || Format.Is([]byte(failed)) == 0 {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 1, "open port")
}

// TestOld: old versions have no summary.
func TestOld(t *testing.T) {
	t.Parallel()
	text := "Suppressing: RcvSwRelayErrors\nErrors for 0x0008f10400411f08 \"leaf\"\n   GUID 0x0008f10400411f08 port 3: [SymbolErrors == 65535] [XmtDiscards == 9]\n"
	r, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || r.Nodes[0].Ports[0].Counters["XmtDiscards"] != 9 || Format.Is([]byte(text)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, r)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "ibqueryerrors.txt") }
