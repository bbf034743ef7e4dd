// SPDX-License-Identifier: Apache-2.0

package sminfo

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "sminfo.txt")
	r, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if want := (Manager{21, "0x946dae0300000001", 3190, 14, "MASTER"}); len(r.Managers) != 1 || r.Managers[0] != want {
		t.Errorf("%+v", r)
	}
	if got := strings.Join(r.Summary(), "; "); got != "LID 21, GUID 0x946dae0300000001: MASTER, priority 14, activity 3190" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "state", From: "state 3 SMINFO_MASTER", To: "state 0 SMINFO_NOTACT", Kind: tool.Failed, Line: 1, Text: "NOTACT"},
		{Name: "priority", From: "priority 14", To: "priority 16", Kind: tool.Inconsistent, Line: 1, Text: "past 15"},
		{Name: "lid", From: "lid 21", To: "lid 49152", Kind: tool.Inconsistent, Line: 1, Text: "49151"},
		{Name: "torn", From: " state 3 SMINFO_MASTER", Kind: tool.Truncated, Line: 1, Text: "its end"},
		{Name: "no answer", From: good, To: "sminfo: iberror: failed: query\n", Kind: tool.Failed, Line: 1, Text: "failed: query"},
	})
	// A word that is cut within its letters cannot be recognised: MASTE is one too.
	tooltest.CheckTorn(t, Format, good, func(rest string) bool { return strings.Contains(rest, "SMINFO_M") })
	if _, _, err := Parse([]byte("something else\n")); err == nil {
		t.Error("anything is taken for sminfo")
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	text := tooltest.ReadPublic(t, "ibsim-generated/diags-8x8-withSA.txt")
	from, to := strings.Index(text, "sminfo: "), strings.Index(text, "rc=0")
	r, problems, err := Parse([]byte(text[from:to]))
	if err != nil || len(problems) > 0 || len(r.Managers) != 1 || r.Managers[0].State != "MASTER" || r.Managers[0].LID != 21 {
		t.Errorf("%+v, %v, %v", r, problems, err)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "sminfo.txt") }
