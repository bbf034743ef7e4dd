// SPDX-License-Identifier: Apache-2.0

package ibdiagnet

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

// The samples are composed by hand: in the layout of NVIDIA's manual, with lines and
// columns in the forms that public readers of these files handle.
func TestLog(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibdiagnet.txt")
	r, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 36, "P27 / Performance Monitor counter         : Value / link_down_counter                   : 12")
	tooltest.WantProblem(t, problems, tool.Failed, 45, "r01-u02/U1/P1 - Unexpected actual link speed 100")
	if len(problems) != 2 {
		t.Errorf("%v", problems)
	}
	if got := strings.Join(r.Summary(), "; "); got != "6 nodes, 2 of them switches; 8 stages, 4 lines of errors and 1 of warnings; Port Counters: 1 errors, 0 warnings; Speed / Width checks: 1 errors, 0 warnings; Nodes Information: 0 errors, 1 warnings" {
		t.Error(got)
	}
	if m := r.Messages[len(r.Messages)-1]; m.Error || m.Stage != "Nodes Information" || r.Stages[7].Comment != "No routers were found" {
		t.Errorf("%+v, %+v", m, r.Stages)
	}
	tooltest.CheckWrong(t, Formats[0], good, []tooltest.Case{
		{Name: "elsewhere", From: "-I- Lids Check                0          0", To: "-I- Lids Check                0          3", Kind: tool.Failed, Text: `Stage "Lids Check" has 3 errors, which are not here`},
		{Name: "torn", From: "-I- Routers                   0          0         No routers were found\n", To: "-I- Routers", Kind: tool.Truncated, Line: 66, Text: "stage ends"},
		{Name: "cut off", From: good[strings.Index(good, "-I- Stage"):], Kind: tool.Truncated, Text: "The summary"},
	})
	if _, _, err := Parse([]byte("anything\n")); err == nil {
		t.Error("anything is taken for ibdiagnet")
	}
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ibdiagnet-db.csv")
	d, problems, err := ParseDatabase([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if got := strings.Join(d.Summary(), "; "); got != "5 sections: 3 nodes, 1 of them switches; 5 ports, 2 links; 1 ports have counted errors; 0x9c0591a000000001 port 2: LinkDownedCounter 3, SymbolErrorCounter 4711" {
		t.Error(got)
	}
	const second = "0x946dae0300000100,0x946dae0300000100,1,0x0000000000000000,0xfe80000000000000,1,2,2807162954,0,0,2,19,19,1,3841,2048,0,0,2,5,4"
	tooltest.CheckWrong(t, Formats[1], good, []tooltest.Case{
		{Name: "narrow at one end", From: second, To: strings.Replace(second, ",2,19,", ",1,19,", 1), Kind: tool.Inconsistent, Line: 11, Text: "port 1 of r01-u02 mlx5_0 and port 2 of Quantum-2, leaf1 have widths 1 and 2"},
		{Name: "slow at one end", From: second, To: strings.Replace(second, "2048", "512", 1), Kind: tool.Inconsistent, Line: 11, Text: "speeds 512 and 2048"},
		{Name: "down", From: second, To: strings.TrimSuffix(second, "5,4") + "2,1", Kind: tool.Failed, Line: 11, Text: "port 1 of r01-u02 mlx5_0 is not active: its state is 1"},
		{Name: "two masters", From: "END_SM_INFO", To: "0x1,0x1,1,0x1,0x0,1,3,14\nEND_SM_INFO", Kind: tool.Inconsistent, Text: "2 of 2 subnet managers"},
		{Name: "torn row", From: ",1,9,0,0,0,0,19,19,0,3841,0,0,0,2,2,1\n", To: ",1\n", Kind: tool.Truncated, Line: 14, Text: "6 of 21 columns"},
		{Name: "torn section", From: "END_PM_INFO\n", Kind: tool.Truncated, Line: 28, Text: "END_PM_INFO"},
		{Name: "errors", From: "START_SM_INFO", To: "START_ERRORS_LINKS\nScope,NodeGUID,PortGUID,PortNumber,EventName,Summary\nPORT,0x1,0x1,1,LINK_WIDTH,\"Unexpected width, 1x\"\nEND_ERRORS_LINKS\nSTART_SM_INFO", Kind: tool.Failed, Line: 25, Text: "Unexpected width, 1x"},
	})
	narrow := strings.ReplaceAll(strings.ReplaceAll(good, "0,0,0,2,19,19,0", "0,0,0,1,19,19,0"), "0,0,2,19,19,1", "0,0,1,19,19,1")
	_, problems, err = ParseDatabase([]byte(narrow))
	if err != nil || len(problems) != 2 {
		t.Errorf("%v, %v", problems, err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 10, "runs at 1x, and both ends support 4x")
}

func FuzzLog(f *testing.F)      { tooltest.Fuzz(f, Formats[0], "ibdiagnet.txt") }
func FuzzDatabase(f *testing.F) { tooltest.Fuzz(f, Formats[1], "ibdiagnet-db.csv") }
