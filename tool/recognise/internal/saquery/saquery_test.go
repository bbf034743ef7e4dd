// SPDX-License-Identifier: Apache-2.0

package saquery

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

// The samples are composed in the form in which saquery of infiniband-diags 44 answers on
// ibsim.
func TestManagers(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "saquery.managers.txt")
	a, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if got := strings.Join(a.Summary(), "; "); got != "2 SMInfoRecord; subnet manager 0x946dae0300000001 at LID 1: master, priority 14; subnet manager 0x946dae0300000801 at LID 9: standby, priority 13" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "two masters", From: "SMState...............2", To: "SMState...............3", Kind: tool.Inconsistent, Text: "2 subnet managers are master"},
		{Name: "none", From: "SMState...............3", To: "SMState...............2", Kind: tool.Failed, Text: "No subnet manager is master"},
		{Name: "discovering", From: "SMState...............2", To: "SMState...............1", Kind: tool.Failed, Line: 10, Text: "0x946dae0300000801 at LID 9 is in state 1"},
		{Name: "priority", From: "Priority..............13", To: "Priority..............15", Kind: tool.Inconsistent, Text: "has priority 14, and a standby has 15"},
		{Name: "torn", From: "SMState...............2\n", To: "SMState......", Kind: tool.Truncated, Line: 18, Text: "last record"},
	})
}

func TestPorts(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "saquery.ports.txt")
	a, problems, err := Parse([]byte(good))
	if err != nil || len(a.Records) != 1 || a.Records[0].Fields["LinkSpeedActive"] != "106.25 Gbps" || a.Records[0].Fields["EndPortLid"] != "5" {
		t.Fatalf("%+v, %v", a, err)
	}
	tooltest.WantNoProblems(t, problems)
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "down", From: "LinkState:.......................Active", To: "LinkState:.......................Down", Kind: tool.Failed, Line: 1, Text: "port 1 at LID 5 is Down"},
		{Name: "narrow", From: "LinkWidthActive:.................4X", To: "LinkWidthActive:.................1X", Kind: tool.Failed, Line: 1, Text: "runs at 1X"},
	})
}

func TestFailure(t *testing.T) {
	t.Parallel()
	const text = "ibpanic: [1] main: Failed to bind to the SA: Success\n"
	a, problems, err := Parse([]byte(text))
	if err != nil || len(a.Records) != 0 || Format.Is([]byte(text)) == 0 || a.Summary()[0] != "no record" {
		t.Errorf("%+v, %v", a, err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 1, "Failed to bind")
	if _, _, err := Parse([]byte("anything\n")); err == nil {
		t.Error("anything is taken for saquery")
	}
}

// TestSample: what opensm of ibsim answered; its last path was cut off there.
func TestSample(t *testing.T) {
	t.Parallel()
	text := tooltest.ReadPublic(t, "ibsim-generated/diags-8x8-withSA.txt")
	from, to := strings.Index(text, "=== saquery -s"), strings.Index(text, "=== saquery --node-info")
	a, problems, err := Parse([]byte(text[from:to]))
	if err != nil || len(problems) != 1 {
		t.Fatalf("%v, %v", problems, err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 0, "has LIDs 0 and 0")
	if got := a.Summary()[0]; got != "1 MCMemberRecord group, 1 NodeRecord, 3 PathRecord, 2 PortInfoRecord, 1 SA ClassPortInfo" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "saquery.managers.txt", "saquery.ports.txt")
}
