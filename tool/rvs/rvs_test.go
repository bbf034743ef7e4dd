// SPDX-License-Identifier: Apache-2.0

package rvs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	c, problems, err := Parse([]byte(tooltest.ReadSample(t, "rvs.txt")))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(c.GPUs) != 2 || c.GPUs[1] != (GPU{23018, "0000:26:00.0"}) {
		t.Errorf("GPUs %+v", c.GPUs)
	}
	if len(c.Memory) != 2 || c.Memory[0] != (Memory{28851, "Copy", 4125120.5 * (1 << 20)}) {
		t.Errorf("memory %+v", c.Memory)
	}
	if len(c.Host) != 2 || c.Host[0] != (Host{"to-gpu", 0, 28851, "0000:05:00.0", true, false, 55.664e9}) {
		t.Errorf("host %+v", c.Host)
	}
	if len(c.Peers) != 2 || c.Peers[1] != (Peer{Action: "peers", From: GPU{23018, "0000:26:00.0"}, To: GPU{28851, "0000:05:00.0"}, Rate: 48.914e9}) {
		t.Errorf("peers %+v", c.Peers)
	}
	if got := strings.Join(c.Summary(), "; "); got != "ROCm Validation Suite, 2 GPUs; host, to-gpu: 55.66 to 55.70 GB/s; memory, Copy: 4317.25 to 4325.50 GB/s; peers, peers: 48.91 to 48.96 GB/s" {
		t.Errorf("summary %s", got)
	}
}

// TestNewerTable: since ROCm 7.2 the columns behind the first are rates, and the
// units may be decimal.
func TestNewerTable(t *testing.T) {
	t.Parallel()
	c, problems, err := Parse([]byte("GPU Id      Function    MBytes/sec     Max MB/s       Min MB/s       Avg MB/s       \n" +
		"7           Triad       3885301.000    3885301.000    3880000.000    3884000.000    \n"))
	if err != nil || len(problems) != 0 || len(c.Memory) != 1 || c.Memory[0] != (Memory{7, "Triad", 3885301e6}) {
		t.Errorf("%v, %v, %+v", err, problems, c)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	sample := tooltest.ReadSample(t, "rvs.txt")
	for _, c := range []struct {
		name, from, to string
		kind           tool.ProblemKind
		line           int
		text           string
	}{
		{"cut", sample[strings.Index(sample, "[RESULT] [  4447"):], "", tool.Truncated, 0, "peers has 1 figures of 2"},
		{"nothing measured", "55.701 GBps", "(not measured)", tool.Failed, 24, "nothing was measured"},
		{"table without rows", "28851       Copy        4125120.500 0.00050     0.00052     0.00050     \n", "", tool.Truncated, 0, "no rows"},
		{"an error", "[RESULT] [  4416.610745]", "[ERROR ] [  4416.610745]", tool.Failed, 21, "[ERROR ]"},
	} {
		if !strings.Contains(sample, c.from) {
			t.Fatalf("%s: the sample has no %q", c.name, c.from)
		}
		_, problems, err := Parse([]byte(strings.Replace(sample, c.from, c.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		tooltest.WantProblem(t, problems, c.kind, c.line, c.text)
	}
	if _, _, err := Parse([]byte("nothing")); err == nil {
		t.Error("nothing is read as something")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(tooltest.ReadSample(f, "rvs.txt")))
	f.Add([]byte(verdicts))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(c); err != nil || len(c.Summary()) == 0 {
			t.Error(err)
		}
	})
}

// verdicts is written after gst_worker.cpp, iet_worker.cpp, rvs_memtest.cpp and
// do_yaml of rvsexec.cpp.
const verdicts = `[RESULT] [  5001.100000] Action name :heat
[RESULT] [  5001.100010] Module name :gst
[RESULT] [  5001.200000] [heat] [GPU:: 28851] Start of GPU ramp up
[RESULT] [  5004.200000] [heat] [GPU:: 28851] GFLOPS 81200
[RESULT] [  5021.200000] [heat] [GPU:: 28851] GFLOPS 81233 Target GFLOPS: 78000 met: TRUE
[RESULT] [  5021.200001] [heat] [GPU::  9021] GFLOPS 61233 Target GFLOPS: 78000 met: FALSE
[RESULT] [  5030.000000] [power] [GPU::  9021] Power(W) 741.000000
[RESULT] [  5031.000000] [power] [GPU::  9021] pass: TRUE
[RESULT] [  5032.000000] [slot] peqt false
[RESULT] [  5033.000000] [cells] mem Test 1: Change one bit memory addresss  
[RESULT] [  5034.000000] [cells] mem Test 1 : PASS
[RESULT] [  5035.000000] [ring] a2a-p2p-bandwidth[ 1/1] [GPU:: 2 - 28851 - 0000:05:00.0] [GPU:: 3 -  9021 - 0000:26:00.0] 47.500 GBps
RVS-ERROR [PEQT] [slot] Action failed to run successfully.
+=====================================================================+
|                 ROCm Validation Suite (RVS) Summary                 |
+=====================================================================+
| RVS version                      | 1.3.0                            |
| GPUs                             | 2                                |
+---------------------------------------------------------------------+
| AMD Instinct MI300X - 28851      | AMD Instinct MI300X - 9021       |
| 0 - 2 - 0000:05:00.0             | 1 - 3 - 0000:26:00.0             |
+=====================================================================+
| Action Name                      | Module         | Result          |
+=====================================================================+
| heat                             | GST            | PASS            |
| slot                             | PEQT           | FAIL            |
+---------------------------------------------------------------------+
`

func TestVerdicts(t *testing.T) {
	t.Parallel()
	if n := matchFormat([]byte(verdicts)); n != 95 {
		t.Errorf("%d sure", n)
	}
	c, problems, err := Parse([]byte(verdicts))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Compute) != 2 || c.Compute[0] != (Compute{"heat", 28851, 81233, 78000, true}) || c.Compute[1].Met {
		t.Errorf("compute %+v", c.Compute)
	}
	if len(c.Verdicts) != 5 || *c.Verdicts[0].GPU != 9021 || !c.Verdicts[0].Passed || c.Verdicts[1].Passed || c.Verdicts[2].Test != "1" || c.Verdicts[4] != (Verdict{Action: "slot", Module: "peqt"}) {
		t.Errorf("verdicts %+v", c.Verdicts)
	}
	if c.Version != "1.3.0" || len(c.GPUs) != 2 || c.GPUs[1] != (GPU{9021, "0000:26:00.0"}) || len(c.Peers) != 1 || !c.Peers[0].AllAtOnce || c.Peers[0].Rate != 47.5e9 {
		t.Errorf("%+v", c)
	}
	if len(problems) != 4 {
		t.Errorf("problems %v", problems)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 6, "GPU 9021 reached 61233 GFLOPS of 78000")
	tooltest.WantProblem(t, problems, tool.Failed, 9, "[slot] peqt false")
	tooltest.WantProblem(t, problems, tool.Failed, 13, "RVS-ERROR")
	tooltest.WantProblem(t, problems, tool.Failed, 26, "| slot | PEQT | FAIL |")
	if got := strings.Join(c.Summary(), "; "); !strings.Contains(got, "compute, heat: 61233 to 81233 GFLOPS") || !strings.HasSuffix(got, "5 verdicts, 3 passed") {
		t.Errorf("summary %s", got)
	}
	bare := "[RESULT] [  5001.100000] Action name :look\n[RESULT] [  5001.100010] Module name :gpup\n"
	if _, problems, err := Parse([]byte(bare)); err != nil || matchFormat([]byte(bare)) == 0 {
		t.Errorf("%v", err)
	} else {
		tooltest.WantProblem(t, problems, tool.Missing, 0, "no figure")
	}
}
