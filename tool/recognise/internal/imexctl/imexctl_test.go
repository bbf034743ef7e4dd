// SPDX-License-Identifier: Apache-2.0

package imexctl

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

// The samples are composed after outputs that users of GB200 published, with less nodes.
func TestText(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "nvidia-imex-ctl.txt")
	r, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(r.Nodes) != 3 || r.Nodes[0].Host != "10.20.7.11" || r.Nodes[2].Version != "580.95.05" || r.Nodes[1].To[2] != connected || r.Domain != "UP" {
		t.Errorf("%+v", r)
	}
	if got := strings.Join(r.Summary(), "; "); got != "domain UP, 3 of 3 nodes READY" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "not ready", From: "10.20.7.12      - READY  ", To: "10.20.7.12      - UNAVAILABLE", Kind: tool.Failed, Line: 14, Text: "Node 1 (10.20.7.12) is UNAVAILABLE"},
		{Name: "degraded", From: "State: UP", To: "State: DEGRADED", Kind: tool.Failed, Text: "domain is DEGRADED"},
		{Name: "lists differ", From: "       1        C   C", To: "       1        C   !M!", Kind: tool.Failed, Text: "Node 1 (10.20.7.12) to node 1 is NODE_MAP_MISMATCH"},
		{Name: "versions", From: "Version: 580.95.05", To: "Version: 580.65.06", Kind: tool.Inconsistent, Text: "580.65.06, 580.95.05"},
		{Name: "a row less", From: "       2        C   C   C  \n", Kind: tool.Truncated, Text: "2 of 3 nodes"},
		{Name: "a cell less", From: "       2        C   C   C  \n", To: "       2        C   C\n", Kind: tool.Truncated, Line: 20, Text: "2 of 3 connections"},
		{Name: "no state", From: "Domain State: UP\n", Kind: tool.Truncated, Text: "state of the domain"},
		{Name: "torn node", From: "10.20.7.13      - READY                - Version: 580.95.05", To: "10.20", Kind: tool.Truncated, Line: 15, Text: "its end"},
		{Name: "unknown node", From: "       2        C", To: "       7        C", Kind: tool.Inconsistent, Line: 20, Text: "Node 7"},
	})
	tooltest.CheckTorn(t, Format, good, func(string) bool { return false })
}

func TestDocument(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "nvidia-imex-ctl.json")
	r, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(r.Nodes) != 2 || r.Nodes[1].Name != "r01-u02" || r.Nodes[1].To[0] != connected {
		t.Errorf("%+v", r)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "not ready", From: `"status": "READY",`, To: `"status": "WAITING_FOR_PEERS",`, Kind: tool.Failed, Text: "Node 0 (10.0.0.1) is WAITING_FOR_PEERS"},
		{Name: "not connected", From: `"CONNECTED"`, To: `"DISCONNECTED"`, Kind: tool.Failed, Text: "Node 0 (10.0.0.1) to node 0 is DISCONNECTED"},
		{Name: "down", From: `"UP"`, To: `"DOWN"`, Kind: tool.Failed, Text: "DOWN"},
		{Name: "no state", From: ",\n  \"status\": \"UP\"", Kind: tool.Missing, Text: "state of the domain"},
		{Name: "torn", From: ",\n  \"status\": \"UP\"\n}", Kind: tool.Truncated, Text: "before its end"},
	})
}

// TestQuery: -q prints one word.
func TestQuery(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"READY\n": 0, "WAITING_FOR_PEERS\n": 1} {
		r, problems, err := Parse([]byte(in))
		if err != nil || len(problems) != want || Format.Is([]byte(in)) == 0 || r.Summary()[0] != "the IMEX service of this node is "+strings.TrimSpace(in) {
			t.Errorf("%q: %+v, %v, %v", in, r, problems, err)
		}
	}
	if Format.Is([]byte("READY to go\n")) > 0 {
		t.Error("any text that begins so is taken for it")
	}
	if _, _, err := Parse([]byte(`{"nodes": {"a": {"status": "READY"}}}`)); err == nil {
		t.Error("a node without a number was read")
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "nvidia-imex-ctl.txt", "nvidia-imex-ctl.json")
}
