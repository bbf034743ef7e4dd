// SPDX-License-Identifier: Apache-2.0

package mlxlink

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestText(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "mlxlink.txt")
	l, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if l.State != "Active" || l.Physical != "LinkUp" || l.Speed != "IB-NDR" || l.Width != "4x" || *l.Opcode != 0 || l.Firmware != "28.43.2026" || l.Part != "MCP4Y10-N002" {
		t.Errorf("%+v", l)
	}
	if *l.EffectiveBER != 15e-255 || *l.RawBER != 4e-12 || *l.LinkDown != 1 || l.SymbolBER != nil || l.Sections["Supported Info"]["Enabled Link Speed"] != "0x00000080 (NDR)" {
		t.Errorf("%+v", l)
	}
	if lines := l.Summary(); lines[0] != "Active/LinkUp IB-NDR 4x" || len(lines) != 5 {
		t.Errorf("%q", lines)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "cut", From: good[strings.Index(good, "Troubleshooting"):], To: "", Kind: tool.Truncated, Text: "Troubleshooting Info"},
		{Name: "two ports", From: "Supported Info\n--------------", To: "Operational Info\n----------------", Kind: tool.Inconsistent, Line: 13, Text: "two ports"},
		{Name: "advice", From: "No issue was observed", To: "Bad signal integrity", Kind: tool.Failed, Text: "Bad signal integrity"},
		{Name: "failed", From: "Tool Information", To: "-E- Failed to read the module\nTool Information", Kind: tool.Failed, Line: 23, Text: "module"},
		{Name: "end", From: "Link Down Counter                  : 1 \n", To: "Link Do", Kind: tool.Truncated, Line: 43, Text: "last line"},
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	text := tooltest.ReadSample(t, "mlxlink.json")
	l, problems, err := Parse([]byte(text))
	if err != nil || l.State != "Polling" || l.Speed != "" || *l.Opcode != 1024 || l.Sections["Supported Info"]["Enabled Link Speed"] != "0x0000003f (EDR,FDR)" {
		t.Errorf("%v, %+v", err, l)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 0, "Cable is unplugged. (status 1024)")
	_, problems, err = Parse([]byte(text[:strings.Index(text, `"Recommendation"`)]))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Truncated, 0, "object ends")
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "mlxlink.txt", "mlxlink.json") }
