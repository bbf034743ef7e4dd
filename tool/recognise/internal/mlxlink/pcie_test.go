// SPDX-License-Identifier: Apache-2.0

package mlxlink

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

const links = `
PCIe Operational (Enabled) Info
-------------------------------
Depth, pcie index, node         : 0, 0, 0
Link Speed Active (Enabled)     : 32G-Gen 5 (32G-Gen 5)
Link Width Active (Enabled)     : 16X (16X)
Device Status                   : Correctable Error detected.

PCIe Operational (Enabled) Info
-------------------------------
Depth, pcie index, node         : 1, 0, 4
Link Speed Active (Enabled)     : 2.5G-Gen 1 (16G-Gen 4)
Link Width Active (Enabled)     : 4X (4X)
Device Status                   : N/A

Management PCIe Performance Counters Info
-----------------------------------------
TX Errors                       : 9

Errors
------
Showing Eye via SLRG raised the following exception: there is none at Gen1
[root@n1 ~]#
`

func TestPCIe(t *testing.T) {
	t.Parallel()
	l, problems, err := Parse([]byte(links))
	if err != nil || len(problems) != 1 || Format.Is([]byte(links)) == 0 || len(l.PCIe) != 2 {
		t.Fatalf("%v, %v, %+v", err, problems, l)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 22, "Eye via SLRG")
	if p := l.PCIe[0]; p != (PCIe{Speed: "32G-Gen 5", Width: "16X", EnabledSpeed: "32G-Gen 5", EnabledWidth: "16X", Status: "Correctable Error detected."}) {
		t.Errorf("%+v", p)
	}
	if p := l.PCIe[1]; p.Depth != 1 || p.Node != 4 || p.Speed != "2.5G-Gen 1" || !p.Downgraded || p.Status != "" {
		t.Errorf("%+v", p)
	}
	if l.Sections["Management PCIe Performance Counters Info"]["TX Errors"] != "9" || len(l.Sections) != 3 {
		t.Errorf("%v", l.Sections)
	}
	if s := l.Summary(); len(s) != 2 || s[1] != "PCIe 1, 0, 4 runs at 2.5G-Gen 1 4X of 16G-Gen 4 4X" {
		t.Errorf("%q", s)
	}
	tooltest.CheckWrong(t, Format, links, []tooltest.Case{
		{Name: "two devices", From: "1, 0, 4", To: "0, 0, 0", Kind: tool.Inconsistent, Text: "two devices"},
		{Name: "cut", From: "Link Width Active (Enabled)     : 16X (16X)\n", Kind: tool.Truncated, Text: "before its end"},
	})
}

// TestPCIeJSON: of several links, the object has one.
func TestPCIeJSON(t *testing.T) {
	t.Parallel()
	text := `{"result":{"output":{"PCIe Operational (Enabled) Info":{"Depth, pcie index, node":"0, 0, 0","Link Speed Active (Enabled)":"16G-Gen 4 (16G-Gen 4)","Link Width Active (Enabled)":"8X (16X)"}}},"status":{"code":0,"message":"success"}}`
	l, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || Format.Is([]byte(text)) == 0 || len(l.PCIe) != 1 || !l.PCIe[0].Downgraded {
		t.Errorf("%v, %v, %+v", err, problems, l)
	}
}

// TestReports: what mlxlink could not do stands in a part of its own, below all
// else.
func TestReports(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "mlxlink.txt")
	text := strings.TrimRight(good, "\n") + "\n\nErrors\n------\nShowing BER via PPCNT raised the following exception: access failed\n"
	l, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 1 || l.Sections["Errors"] != nil {
		t.Fatalf("%v, %v", err, problems)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 0, "BER via PPCNT")
}
