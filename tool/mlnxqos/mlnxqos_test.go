// SPDX-License-Identifier: Apache-2.0

package mlnxqos

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "mlnx_qos.txt")
	q, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if p, known := q.Priority(26); !known || p != 3 {
		t.Errorf("DSCP 26 has priority %d", p)
	}
	if q.Trust != "dscp" || q.DCBX != "OS controlled" || !slices.Equal(q.Paused(), []int{3}) || q.MaxBuffer != 262016 || q.BufferSizes[1] != 130944 || q.Cable != 7 || q.Buffers[3] != 1 || len(q.DSCP) != 64 {
		t.Errorf("%+v", q)
	}
	if c := q.Classes[1]; c.TC != 3 || c.RateLimit != "90.5 Gbps" || c.Algorithm != "ets" || *c.Bandwidth != 50 || !slices.Equal(c.Priorities, []int{3}) {
		t.Errorf("%+v", c)
	}
	if c := q.Classes[2]; c.Bandwidth != nil || c.Algorithm != "strict" {
		t.Errorf("%+v", c)
	}
	if s := q.Summary(); s[0] != "trust dscp, PFC on priorities [3]" {
		t.Errorf("%q", s)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "no PFC", From: good[strings.Index(good, "PFC"):], Kind: tool.Missing, Text: "PFC"},
		{Name: "seven priorities", From: "enabled     0   0   0   1   0   0   0   0", To: "enabled     0   0   0   1   0   0   0", Kind: tool.Truncated, Line: 17, Text: "7 of 8"},
		{Name: "DSCP twice", From: "dscp:15,", To: "dscp:26,", Kind: tool.Inconsistent, Line: 7, Text: "DSCP 26"},
		{Name: "priority twice", From: "priority:  6", To: "priority:  3", Kind: tool.Inconsistent, Text: "two traffic classes"},
		{Name: "no class of one", From: "	 priority:  6\n", Kind: tool.Truncated, Text: "7 of 8"},
		{Name: "not supported", From: "Cable len: 7", To: "Buffers commands are not supported on your system", Kind: tool.Failed, Line: 14, Text: "not supported"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool { return strings.HasSuffix(strings.TrimSpace(rest), "bw: 50%") })
}

func TestOldAndShort(t *testing.T) {
	t.Parallel()
	q, problems, err := Parse([]byte("Priority trust state: dscp\n\nPFC configuration:\n        priority    0   1   2   3   4   5   6   7\n        enabled     0   0   0   1   0   0   0   0\n\ntc: 0 ratelimit: unlimited, tsa: ets, bw: 0%\ntc: 3 ratelimit: unlimited, tsa: ets, bw: 100%\n"))
	if err != nil || len(problems) != 0 || !slices.Equal(q.Paused(), []int{3}) || len(q.Classes) != 2 {
		t.Errorf("%+v, %v, %v", q, problems, err)
	}
	if _, known := q.Priority(26); known {
		t.Error("a DSCP is known without a map")
	}
	text := "Priority trust state: none\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0   \ntc: 0 ratelimit: unlimited, tsa: unknown\n"
	q, problems, err = Parse([]byte(text))
	if err != nil || len(problems) != 0 || q.Trust != "none" || q.Classes[0].Algorithm != "unknown" {
		t.Errorf("%+v, %v, %v", q, problems, err)
	}
	if _, _, err := Parse([]byte("prose\n")); err == nil {
		t.Error("anything is of mlnx_qos")
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "mlnx_qos.txt") }
