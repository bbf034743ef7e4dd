// SPDX-License-Identifier: Apache-2.0

package opensmlog

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

// The sample is composed from lines of opensm 3.3.23 on ibsim and from the texts in
// opensm's sources (osm_sm_mad_ctrl.c for ERR 5411).
func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "opensm-log.txt")
	l, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if l.Version != "5.19.0.MLNX20240515.6da5a8f" || l.State != "MASTER" || l.Engine != "ftree" || l.Sweeps != 2 || l.Ready == nil || !*l.Ready || l.Lines != 13 {
		t.Errorf("%+v", l)
	}
	if len(l.Errors) != 2 || l.Errors[0].Code != "5411" || l.Errors[0].From != "log_send_error" || l.Errors[0].Line != 10 || !strings.HasPrefix(l.Errors[0].Text, "DR SMP Send") {
		t.Errorf("%+v", l.Errors)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 10, "IB_TIMEOUT")
	tooltest.WantProblem(t, problems, tool.Failed, 12, "3 hop path")
	if len(problems) != 2 {
		t.Errorf("%v", problems)
	}
	if got := l.Summary()[0]; got != "opensm 5.19.0.MLNX20240515.6da5a8f: state MASTER, routing engine ftree, 2 sweeps ended with the subnet up; 2 errors in 13 lines" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "partitions", From: "log_trap_info: Received", To: "PARSE ERROR: partitions.conf, line 3: Received", Kind: tool.Failed, Line: 9, Text: "partitions.conf"},
		{Name: "not up", From: "509012 [C98B06C0] 0x02 -> SUBNET UP", To: "509012 [C98B06C0] 0x80 -> Errors during initialization", Kind: tool.Failed, Text: "did not end with the subnet up"},
		{Name: "torn", From: "509012 [C98B06C0] 0x02 -> SUBNET UP\n", To: "509012 [C98B", Kind: tool.Truncated, Text: "its last line"},
	})
}

// TestStates: the state is the last that was entered.
func TestStates(t *testing.T) {
	t.Parallel()
	const begin = "Nov 20 15:29:26 732257 [CC8B7E80] 0x80 -> "
	for text, want := range map[string]string{"Entering STANDBY state": "STANDBY", "Entering NOT-ACTIVE state": "NOT-ACTIVE", "Exiting SM": "EXITED"} {
		l, problems, err := Parse([]byte(begin + "Entering MASTER state\n" + begin + text + "\n"))
		if err != nil || len(problems) > 0 || l.State != want {
			t.Errorf("%s: %+v, %v, %v", text, l, problems, err)
		}
	}
	if _, _, err := Parse([]byte("Nov 20 15:29:26 n1 kernel: x\n")); err == nil {
		t.Error("anything is taken for opensm")
	}
}

// TestManyErrors: of one code, the first few are told and the others are counted.
func TestManyErrors(t *testing.T) {
	t.Parallel()
	l, problems, err := Parse([]byte(strings.Repeat("Nov 20 15:31:02 331077 [C98B06C0] 0x01 -> log_send_error: ERR 5411: DR SMP Send completed with error\n", 30)))
	if err != nil || len(l.Errors) != 30 || len(problems) != mostShown+1 || !strings.Contains(problems[mostShown].Text, "25 more errors of code 5411") {
		t.Errorf("%v, %v", problems, err)
	}
	if s := l.Summary(); len(s) != 22 || s[21] != "and 10 more" {
		t.Errorf("%q", s)
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	l, problems, err := Parse([]byte(tooltest.ReadPublic(t, "ibsim-generated/opensm-ftree.log")))
	if err != nil || len(problems) > 0 || l.State != "EXITED" || l.Engine != "ftree" || l.Version != "3.3.23" || l.Sweeps != 1 {
		t.Errorf("%+v, %v, %v", l, problems, err)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "opensm-log.txt") }
