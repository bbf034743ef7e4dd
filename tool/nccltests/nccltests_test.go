// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// Parts of an output over two ranks: 1 GiB in 10 ms, so that both bandwidths are
// 107.37 GB/s.
const (
	asked1G = "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n"
	two     = "# Using devices\n#  Rank  0 Group  0 Pid     11 on         n1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n#  Rank  1 Group  0 Pid     22 on         n2 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
	header  = "#\n#                                                              out-of-place                       in-place\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
	row1G   = "  1073741824     268435456     float     sum      -1    10000  107.37  107.37      0    10000  107.37  107.37      0\n"
	footer  = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 107.37 \n#\n"
)

// problemTexts is what problems say, one a line.
func problemTexts(problems tool.Problems) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s %d: %s", p.Kind, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		rows     int
		root     string // of the first row
		wrong    string // of its first half
		problems string // a part of them; "" when there are none
	}{
		{"usual", asked1G + two + header + row1G + footer, 1, "-1", "0", ""},
		{"no root, error in place of a count", asked1G + two + "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n" +
			"  1073741824     268435456   float     sum    10000  107.37  107.37  5e-07    10000  107.37  107.37  5e-07\n" + footer, 1, "null", "null", ""},
		{"no reduction", asked1G + two + "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n" +
			"  1073741824     268435456   float    10000  107.37   53.69    N/A    10000  107.37   53.69    N/A\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 53.69\n", 1, "null", "null", ""},
		{"no check", asked1G + two + header + strings.ReplaceAll(row1G, " 0", " N/A") + footer, 1, "-1", "null", ""},
		{"single iterations", asked1G + two + "#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%\n" +
			"  1073741824     268435456     float     sum      -1    10000  107.37  107.37       0  9990.00    10020    10020     0.10    10000  107.37  107.37       0  9990.00    10020    10020     0.10\n" + footer, 1, "-1", "0", ""},
		{"timestamps", asked1G + two + strings.Replace(header, "#wrong\n", "#wrong           timestamp\n", 1) + strings.TrimSuffix(row1G, "\n") + "  2026-03-02 10:11:12\n" + footer, 1, "-1", "0", ""},
		{"time of the processor", asked1G + two + strings.ReplaceAll(header, "    time", " cputime") + strings.ReplaceAll(row1G, "10000", " 5.50") + footer, 1, "-1", "0", ""},
		{"cut at its top", row1G + footer, 1, "-1", "0", "missing 0: the list of devices"},
		{"cut in a row", asked1G + two + header + row1G[:80], 0, "", "", "truncated 10: the row of size 1073741824 is cut"},
		{"cut before the last figure", asked1G + two + header + strings.TrimSuffix(row1G, "0\n"), 0, "", "", "truncated 10: the row of size 1073741824 is cut"},
		{"no end", asked1G + two + header + row1G, 1, "-1", "0", "truncated 0: the end is not there"},
		{"log before the table and in it", asked1G + two + "n1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n" + header + "n1:11:11 [0] NCCL INFO Launch mode Parallel\n" + row1G + footer, 1, "-1", "0", ""},
		{"log within a row", asked1G + two + header + row1G[:52] + "n1:11:40 [0] NCCL INFO Connected all rings\n" + row1G[52:] + footer, 1, "-1", "0", ""},
		{"log behind the root", asked1G + two + header + row1G[:54] + "1n:11:40 [0] NCCL INFO Connected all rings\n" + row1G[54:] + footer, 1, "-1", "0", ""},
		{"warning of NCCL", asked1G + two + header + "n1:11:40 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out\n" + row1G + footer, 1, "-1", "0", "failed 10: NCCL warns: Call to ibv_modify_qp failed"},
		{"labels of another launcher", asked1G + two + header + "x3005c0s13b0n0.hsn 0: " + row1G + footer, 1, "-1", "0", ""},
		{"wrong elements", asked1G + two + header + strings.Replace(row1G, " 0 ", " 1e+06 ", 1) + "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 107.37 \n", 1, "-1", "1000000", "failed 11: 3 values were out of bounds"},
		{"bandwidth does not follow from the time", asked1G + two + header + strings.ReplaceAll(row1G, "10000", "12000") + footer, 1, "-1", "0", "inconsistent 10: size 1073741824, out of place: algbw 107.37 GB/s does not follow from the time, which gives 89.48"},
		{"bus bandwidth of other ranks", "$ all_reduce_perf -g 1\n" + asked1G + two + header + strings.ReplaceAll(row1G, "107.37  107.37", "107.37  201.32") + strings.Replace(footer, "107.37", "201.32", 1), 1, "-1", "0", "is not that of 2 ranks, which is 107.37"},
		{"average of other rows", asked1G + two + header + row1G + strings.Replace(footer, "107.37", "50.1", 1), 1, "-1", "0", "inconsistent 0: the average 50.10 GB/s is not that of the rows"},
		{"memory for less", strings.ReplaceAll(asked1G, "maxBytes 1073741824", "maxBytes 8589934592") + two + "#\n# Reducing maxBytes to 1573741824 due to memory limitation\n" + header + row1G + footer, 1, "-1", "0", "inconsistent 0: memory was enough for 1573741824 bytes only: 8589934592 bytes were asked for"},
		{"less than was asked for", strings.ReplaceAll(asked1G, "maxBytes 1073741824 step: 1048576(bytes)", "maxBytes 8589934592 step: 2(factor)") + two + header + row1G + footer, 1, "-1", "0", "inconsistent 0: the largest size is 1073741824 bytes, and 8589934592 were asked for"},
		{"below what was asked of the environment", asked1G + two + header + row1G + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 107.37 FAILED\n", 1, "-1", "0", "failed 12: the average bus bandwidth 107.37 GB/s is below"},
		{"one rank", asked1G + strings.Join(strings.SplitAfter(two, "\n")[:2], "") + header + strings.ReplaceAll(row1G, "107.37  107.37", "107.37    0.00") + strings.Replace(footer, "107.37", "0", 1), 1, "-1", "0", "inconsistent 0: only one rank ran"},
		{"copies beside each other", asked1G + asked1G + strings.Repeat(strings.Join(strings.SplitAfter(two, "\n")[:2], ""), 2) + header + header + row1G + row1G + footer + footer, 2, "-1", "0", "inconsistent 0: 2 copies of the program ran"},
		{"rank missing", asked1G + strings.Replace(two, "Rank  1", "Rank  3", 1) + header + row1G + footer, 1, "-1", "0", "missing 0: ranks are missing"},
		{"rows left out", asked1G + two + header + row1G + "  ...\n" + row1G + strings.Replace(footer, "107.37", "50", 1), 2, "-1", "0", "truncated 11: rows were left out here"},
		{"devices left out", asked1G + strings.Join(strings.SplitAfter(two, "\n")[:2], "") + "#  ...\n" + header + row1G + footer, 1, "-1", "0", "truncated 5: devices were left out here"},
		{"no slots", "$ mpirun -np 16 all_reduce_perf -b 8\n-----\nThere are not enough slots available in the system to satisfy the 16\nslots that were requested by the application:\n\n  all_reduce_perf\n", 0, "", "", "failed 3: There are not enough slots"},
		{"driver fails", asked1G + "# Using devices\nn1: Test CUDA failure common.cu:1030 'system not yet initialized'\n .. n1 pid 11: Test failure common.cu:937\n", 0, "", "", "failed 4: n1: Test CUDA failure common.cu:1030 'system not yet initialized'"},
		{"fails within a row", asked1G + two + header + row1G[:54] + " n1: Test CUDA failure common.cu:389 'an illegal memory access was encountered'\n", 0, "", "", "truncated 10: the row of size 1073741824 is cut"},
		{"infinite", asked1G + two + header + strings.Replace(row1G, "107.37  107.37", "inf  inf", 1) + footer, 1, "-1", "0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, problems, err := Parse([]byte(c.in))
			if err != nil || len(got.Rows) != c.rows || len(got.More) != 0 {
				t.Fatalf("%v, %d rows, %d more\n%s", err, len(got.Rows), len(got.More), problemTexts(problems))
			}
			if s := problemTexts(problems); c.problems == "" && s != "" || !strings.Contains(s, c.problems) {
				t.Errorf("got problems\n%s\nwant %q", s, c.problems)
			}
			if c.rows == 0 {
				return
			}
			row := got.Rows[0]
			if row.Size != 1<<30 || row.Count != 1<<28 || row.InPlace.Time == nil || text(row.Root) != c.root || text(row.OutOfPlace.Wrong) != c.wrong {
				t.Errorf("got %+v %+v, root %s, wrong %s", row, row.OutOfPlace, text(row.Root), text(row.OutOfPlace.Wrong))
			}
		})
	}
}

// text is a number or null.
func text(n *int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestSeveralTests(t *testing.T) {
	t.Parallel()
	in := "$ ./build/all_reduce_perf -b 1G\n" + asked1G + two + header + row1G + footer + "$ ./build/sendrecv_perf -b 1G\n" + asked1G + two + header + row1G + footer
	got, problems, err := Parse([]byte(in))
	if err != nil || len(problems) != 0 || len(got.Tests()) != 2 {
		t.Fatalf("%v, %d tests, %s", err, len(got.Tests()), problemTexts(problems))
	}
	if a, b := got.Tests()[0], got.Tests()[1]; a.Collective != "all_reduce" || b.Collective != "sendrecv" || len(b.Ranks) != 2 || len(b.Rows) != 1 {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestSplitCommunicators(t *testing.T) {
	t.Parallel()
	list := strings.Replace(two, "Rank  1 Group  0", "Rank  1 Group  1", 1)
	list += strings.NewReplacer("Rank  0", "Rank  2", "Rank  1", "Rank  3").Replace(strings.TrimPrefix(list, "# Using devices\n"))
	got, problems, err := Parse([]byte("$ all_reduce_perf\n" + asked1G + list + header + row1G + footer))
	if err != nil || len(problems) != 0 || got.RankCount() != 2 || len(got.Ranks) != 4 {
		t.Errorf("%v, %d ranks of %d, %s", err, got.RankCount(), len(got.Ranks), problemTexts(problems))
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	whole := `{"version":3,"args":["/opt/all_reduce_perf","-J","x"],"env":["TOKEN=hunter2"],"nccl_version":22809,
"config":{"nthreads":1,"ngpus":1,"minimum_bytes":1073741824,"maximum_bytes":1073741824,"step_factor":2,"warmup_iters":5,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,
"devices":[{"rank":0,"group":0,"pid":1,"hostname":"n1","device":0,"device_hex":"0000:1b:00","device_info":"NVIDIA H100"},{"rank":1,"group":0,"pid":2,"hostname":"n2","device":0,"device_hex":"0000:1b:00","device_info":"NVIDIA H100"}]},
"results":[{"size":1073741824,"count":268435456,"type":"float","redop":"sum","root":"    -1","out_of_place":{"time":10000.000000,"alg_bw":107.374182,"bus_bw":107.374182,"nwrong":0.0},"in_place":{"time":10000.0,"alg_bw":107.374182,"bus_bw":inf,"nwrong":null}}],
"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":107.374182,"okay":"unchecked"},"errors":[""]}`
	got, problems, err := Parse([]byte(whole))
	if err != nil || len(problems) != 0 {
		t.Fatalf("%v %s", err, problemTexts(problems))
	}
	row := got.Rows[0]
	if got.Library != "2.28.9" || got.Collective != "all_reduce" || len(got.Ranks) != 2 || text(row.Root) != "-1" || text(row.OutOfPlace.Wrong) != "0" || row.InPlace.Wrong != nil || row.InPlace.BusBW != nil {
		t.Errorf("got %+v", got)
	}
	cut := whole[:strings.Index(whole, `"in_place"`)]
	for in, want := range map[string]string{
		cut: "truncated 0: the file ends before its end",
		strings.Replace(whole, `"nwrong":0.0`, `"nwrong":7.0`, 1):                        "failed 0: 7 elements of size 1073741824 were wrong",
		strings.Replace(whole, `"okay":"unchecked"`, `"okay":"false"`, 1):                "failed 0: the average bus bandwidth is below",
		strings.Replace(whole, `[""]`, `["remote process exited"]`, 1):                   "failed 0: remote process exited",
		strings.Replace(whole, `"ngpus":1`, `"ngpus":8`, 1):                              "missing 0: the list has one device of each process, and each has 8",
		strings.Replace(whole, `"time":10000.000000`, `"time":20000.000000`, 1):          "inconsistent 0: size 1073741824, out of place: algbw",
		strings.Replace(whole, `"count":0,"okay":"true"`, `"count":2,"okay":"false"`, 1): "failed 0: 2 values were out of bounds",
	} {
		got, problems, err := Parse([]byte(in))
		if err != nil || !strings.Contains(problemTexts(problems), want) || len(got.Rows) != 1 {
			t.Errorf("%v, %d rows: got\n%s\nwant %s", err, len(got.Rows), problemTexts(problems), want)
		}
		if b, err := json.Marshal(got); err != nil || strings.Contains(string(b), "hunter2") {
			t.Errorf("%v: %s", err, b)
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	in := `[
{"numCycle":0, "name":"AllReduce", "nodes":1, "ranks":2, "ranksPerNode":2, "gpusPerRank":1, "size":1073741824, "type":"float", "redop":"sum", "inPlace":0, "time":10000.0, "algBw":107.374182, "busBw":107.374182, "wrong":"0"},
{"numCycle":0, "name":"AllReduce", "nodes":1, "ranks":2, "ranksPerNode":2, "gpusPerRank":1, "size":1073741824, "type":"float", "redop":"sum", "inPlace":1, "time":10000.0, "algBw":107.374182, "busBw":107.374182, "wrong":"N/A"}
]`
	got, problems, err := Parse([]byte(in))
	if err != nil || len(problems) != 0 || len(got.Rows) != 1 || got.Collective != "all_reduce" || got.RankCount() != 2 || got.Rows[0].InPlace == nil || got.Rows[0].InPlace.Wrong != nil {
		t.Errorf("%v %s %+v", err, problemTexts(problems), got)
	}
	if matchFormat([]byte(in), true) == 0 || matchFormat([]byte(in), false) != 0 {
		t.Error("records are not those of rccl-tests")
	}
}

// TestRealOutputs reads outputs of others when they lie beside the repository: all
// of them are sound, or say themselves where they were cut.
func TestRealOutputs(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../shared/samples/[nr]ccl-tests/*")
	if len(files) == 0 {
		t.Skip("no samples beside the repository")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, problems, err := Parse(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		row, ok := got.Largest()
		for _, p := range problems {
			if p.Kind == tool.Inconsistent || p.Kind == tool.Failed {
				t.Errorf("%s: %+v", filepath.Base(name), p)
			}
		}
		if !ok || row.Size < 512<<20 || row.InPlace.BusBW == nil {
			t.Errorf("%s: %+v", filepath.Base(name), row)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(asked1G + two + header + row1G + footer))
	f.Add([]byte(`{"average_bus_bandwidth":{"bandwidth":1},"results":[{"size":1,"count":1,"out_of_place":{"time":"nan"}}]}`))
	f.Add([]byte(`[{"name":"AllReduce","size":8,"inPlace":1,"busBw":1,"ranks":2}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
		if len(got.Summary()) == 0 {
			t.Error("no summary")
		}
	})
}

// TestOnlyTheLastRankShown: documents often cut the list of devices. Over how many
// ranks it ran is then not known, and no bandwidth contradicts that.
func TestOnlyTheLastRankShown(t *testing.T) {
	t.Parallel()
	in := "#  Rank 71 Group  0 Pid     22 on         n2 device  3 [0x01] NVIDIA GB200\n" + header + strings.ReplaceAll(row1G, "107.37  107.37", "107.37  211.76") + strings.Replace(footer, "107.37", "211.76", 1)
	got, problems, err := Parse([]byte(in))
	if err != nil || got.RankCount() != 0 || got.Collective != "all_reduce" || problemTexts(problems) != "missing 0: ranks are missing from the list of devices: 1 are there, up to rank 71" {
		t.Errorf("%v, %d ranks of %q: %s", err, got.RankCount(), got.Collective, problemTexts(problems))
	}
}

// TestVersion1: the tests of 2017 and 2018 give times in milliseconds, no process
// numbers, and the largest error in place of a count.
func TestVersion1(t *testing.T) {
	t.Parallel()
	in := "nThread 1 nGpus 2 minBytes 1048576 maxBytes 33554432 step: 32(factor) warmup iters: 5 iters: 20 validation: 1\n" +
		"# NCCL Tests compiled with NCCL 2.1\n# Using devices\n#   Rank  0 on         n1 device  0 [0x1b] Tesla V100-SXM2-16GB\n#   Rank  1 on         n1 device  1 [0x1c] Tesla V100-SXM2-16GB\n\n" +
		"#                                                 out-of-place                    in-place\n#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n" +
		"     1048576        262144   float     sum    0.040  26.21  26.21    2e-07    0.040  26.21  26.21    2e-07\n" +
		"    33554432       8388608   float     sum    0.500  67.11  67.11    2e-07    0.500  67.11  67.11    2e-07\n" +
		" Out of bounds values : 3 FAILED\n Avg bus bandwidth    : 46.66\n"
	c, problems, err := Parse([]byte(in))
	if err != nil || matchFormat([]byte(in), false) == 0 {
		t.Fatalf("%v, sure %d", err, matchFormat([]byte(in), false))
	}
	if len(problems) != 1 || problems[0].Kind != tool.Failed || problems[0].Text != "3 values were out of bounds" {
		t.Errorf("problems %v", problems)
	}
	if len(c.Ranks) != 2 || len(c.Rows) != 2 || *c.Rows[1].OutOfPlace.Time != 500 || *c.Rows[1].InPlace.Error != 2e-7 || c.Rows[1].InPlace.Wrong != nil {
		t.Errorf("%d ranks, %+v", len(c.Ranks), c.Rows)
	}
}

// TestHeadingsOfMarkdown: a first line that Markdown made a heading of is a comment
// all the same, so that no rank is missed.
func TestHeadingsOfMarkdown(t *testing.T) {
	t.Parallel()
	in := strings.Replace(two, "#  Rank  0", "  Rank  0", 1) + header + row1G + footer
	c, problems, err := Parse([]byte(in))
	if err != nil || len(c.Ranks) != 2 || len(problems) != 0 {
		t.Errorf("%v, %v, %d ranks", err, problems, len(c.Ranks))
	}
}

// TestOnePlacement: rccl-tests can leave the half out of place away, and its rows
// have one half then.
func TestOnePlacement(t *testing.T) {
	t.Parallel()
	const in = `# nThread 1 nGpus 8 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
rccl-tests: Version develop:0000000
# Using devices
#   Rank  0 Pid     11 on         n1 device  0 [0000:05:00.0] AMD Instinct MI300X
#   Rank  1 Pid     11 on         n1 device  1 [0000:26:00.0] AMD Instinct MI300X
#                                                              in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       
     1048576        262144     float     sum      -1    20.00   52.43   52.43      0
     2097152        524288     float     sum      -1    40.00   52.43   52.43    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 52.43 
`
	c, problems, err := Parse([]byte(strings.Replace(in, "nGpus 8", "nGpus 2", 1)))
	if err != nil || len(problems) != 0 || len(c.Rows) != 2 {
		t.Fatalf("%v, %v, %+v", err, problems, c.Rows)
	}
	if row := c.Rows[1]; row.OutOfPlace != nil || *row.InPlace.BusBW != 52.43 || *row.InPlace.Time != 40 || row.InPlace.Wrong != nil || *row.Root != -1 {
		t.Errorf("got %+v", row)
	}
	if c, _, err := Parse([]byte(strings.Replace(in, "#                                                              in-place", "#                                                              out-of-place", 1))); err != nil || c.Rows[0].InPlace != nil || *c.Rows[0].OutOfPlace.Time != 20 {
		t.Errorf("%v, %+v", err, c.Rows)
	}
}

// TestNewWarnings: what NCCL writes since 2.30 may stand behind the begun half of a
// row as what it wrote before.
func TestNewWarnings(t *testing.T) {
	t.Parallel()
	const in = `#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1n1:7:8 [0] transport/net_ib/p2p.cc:391 (ncclIbTest) NCCL WARN no answer
n1:7:8 [0] 12.345678 commAlloc:12 NCCL TRACE something
n1:7:8 NCCL CALL ncclAllReduce(1)
    20.00   52.43   91.75      0    20.00   52.43   91.75      0
n1: Test timeout (30s) common.cu:523
`
	c, problems, err := Parse([]byte(in))
	if err != nil || len(c.Rows) != 1 || *c.Rows[0].OutOfPlace.Time != 20 || *c.Rows[0].Root != -1 {
		t.Fatalf("%v, %v, %+v", err, problems, c.Rows)
	}
	var told []string
	for _, p := range problems {
		told = append(told, string(p.Kind)+" "+p.Text)
	}
	all := strings.Join(told, "; ")
	if !strings.Contains(all, "failed NCCL warns: no answer") || !strings.Contains(all, "failed n1: Test timeout (30s) common.cu:523") {
		t.Errorf("problems %s", all)
	}
	few := "$ ./build/all_reduce_perf -g 16\n[ERROR] The number of requested GPUs (16) is greater than the number of GPUs available (8)\n"
	if _, problems, err := RCCL().Parse([]byte(few)); err != nil || RCCL().Is([]byte(few)) == 0 || NCCL().Is([]byte(few)) != 0 || len(problems) == 0 || problems[0].Line != 2 {
		t.Errorf("%v, %v", err, problems)
	}
}

// TestRecordForms: what -Z of rccl-tests writes, in each of its forms.
func TestRecordForms(t *testing.T) {
	t.Parallel()
	const rows = `0,"AllReduce",1,8,8,1,1024,"float","sum",0,19.18,0.05,0.09,"0"
0,"AllReduce",1,8,8,1,1024,"float","sum",1,19.90,0.05,0.09,"N/A"
`
	for _, c := range []struct {
		name, in, problems string
		ranks              int
	}{
		{"CSV whose header has no nodes", "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong\n" + rows, "", 8},
		{"CSV", "numCycle,name,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inPlace,time,algBw,busBw,wrong\n" + rows, "", 8},
		{"CSV with blanks, without MPI", "numCycle, collective, gpus, size, type, redop, inplace, time, algbw, busbw, #wrong\n0, \"AllReduce\", 8, 1024, \"float\", \"sum\", 0, 19.18, 0.05, 0.09, \"0\"\n0, \"AllReduce\", 8, 1024, \"float\", \"sum\", 1, 19.90, 0.05, 0.09, \"N/A\"\n", "", 8},
		{"CSV that is cut", "numCycle,name,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inPlace,time,algBw,busBw,wrong\n" + rows + "0,\"AllReduce\",1,8,8", "truncated 4: the line has 5 fields of 14", 8},
		{"JSON without MPI", "[\n{\"numCycle\":0, \"name\":\"AllReduce\", \"gpus\":4, \"size\":1024, \"type\":\"float\", \"redop\":\"sum\", \"inPlace\":0, \"time\":19.18, \"algBw\":0.05, \"busBw\":0.08, \"wrong\":\"0\"},\n{\"numCycle\":0, \"name\":\"AllReduce\", \"gpus\":4, \"size\":1024, \"type\":\"float\", \"redop\":\"sum\", \"inPlace\":1, \"time\":19.90, \"algBw\":0.05, \"busBw\":0.08, \"wrong\":\"N/A\"}\n]\n", "", 4},
		{"a record on each line", `{"#wrong":"0","algBw":0.05338999,"busBw":0.08008499,"gpus":4,"inPlace":0,"name":"AllReduce","redop":"sum","size":1024,"time":19.18,"type":"float"}` + "\n" + `{"#wrong":"0","algBw":0.05145728,"busBw":0.07718592,"gpus":4,"inPlace":1,"name":"AllReduce","redop":"sum","size":1024,"time":19.90,"type":"float"}` + "\n", "", 4},
		{"records of which the last is cut", `{"#wrong":"0","algBw":0.05338999,"busBw":0.08008499,"gpus":4,"inPlace":0,"name":"AllReduce","redop":"sum","size":1024,"time":19.18,"type":"float"}` + "\n" + `{"#wrong":"0","algBw":0.05145728,"busBw":0.07718592,"gpus":4,"inPlace":1,"name":"AllReduce","redop":"sum","size":1024,"time":19.90,"type":"float"}` + "\n" + `{"#wrong":"0","algBw`, "truncated 3: the record on this line is cut", 4},
	} {
		got, problems, err := RCCL().Parse([]byte(c.in))
		if err != nil || RCCL().Is([]byte(c.in)) != 95 || NCCL().Is([]byte(c.in)) != 0 {
			t.Errorf("%s: %v, sure %d, %d", c.name, err, RCCL().Is([]byte(c.in)), NCCL().Is([]byte(c.in)))
			continue
		}
		all := ""
		for _, p := range problems {
			all += fmt.Sprintf("%s %d: %s\n", p.Kind, p.Line, p.Text)
		}
		if c.problems == "" && all != "" || !strings.Contains(all, c.problems) {
			t.Errorf("%s: problems %q, want %q", c.name, all, c.problems)
		}
		x := got.(Content)
		if len(x.Rows) != 1 || x.RankCount() != c.ranks || x.Collective != "all_reduce" || x.Rows[0].Size != 1024 || *x.Rows[0].OutOfPlace.Time != 19.18 || *x.Rows[0].InPlace.Time != 19.90 || *x.Rows[0].OutOfPlace.Wrong != 0 {
			t.Errorf("%s: got %+v", c.name, x)
		}
	}
}

// TestEventTime: rccl-tests 2.18 names itself as nccl-tests does, and has a column
// of its own between the time and the bandwidths.
func TestEventTime(t *testing.T) {
	t.Parallel()
	const in = `# rccl-tests version 2.18.3-rccl/gfx942:0000000 rccl-headers=23004 rccl-library=23004
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid     11 on         n1 device  0 [0000:05:00] AMD Radeon Graphics
#  Rank  1 Group  0 Pid     11 on         n1 device  1 [0000:26:00] AMD Radeon Graphics
#
#                                                              out-of-place                                 in-place
#       size         count      type   redop    root     time   hipevt   algbw   busbw  #wrong     time   hipevt   algbw   busbw  #wrong
#        (B)    (elements)                               (us)     (us)  (GB/s)  (GB/s)             (us)     (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    20.00    18.10   52.43   52.43       0    21.00    19.20   49.93   49.93       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 51.18
#
# Collective test concluded: all_reduce_perf
`
	for name, text := range map[string]string{"whole": in, "without its header": strings.ReplaceAll(in, "#       size", "# the size")} {
		c, problems, err := Parse([]byte(text))
		if err != nil || len(problems) != 0 || len(c.Rows) != 1 || RCCL().Is([]byte(text)) != 95 {
			t.Errorf("%s: %v, %v, %+v", name, err, problems, c)
			continue
		}
		if p := c.Rows[0].InPlace; c.Library != "2.30.4" || *p.Time != 21 || *p.Event != 19.2 || *p.AlgBW != 49.93 || *p.BusBW != 49.93 || *p.Wrong != 0 {
			t.Errorf("%s: got %+v, library %s", name, p, c.Library)
		}
	}
}
