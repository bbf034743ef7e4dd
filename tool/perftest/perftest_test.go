// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

const (
	head = `---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_0
 Number of qps   : 4		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 TX depth        : 128
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 3
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0901 PSN 0x5e30c8 RKey 0x2000201 VAddr 0x007fe663d20000
---------------------------------------------------------------------------------------
`
	gigabits = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
	mebi     = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
	latency  = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
)

func problemTexts(problems tool.Problems) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s %d: %s", p.Kind, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

func TestBandwidth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		gbps     float64
		problems string
	}{
		{"gigabits", head + gigabits + " 8388608    5000             392.51             392.50             0.005849\n", 392.50, ""},
		{"mebibytes", head + mebi + " 8388608    5000             46790.00             46789.00            0.005849\n", 392.494, ""},
		{"no rate", head + gigabits + " 65536      0             0.00             92.00\n", 0, "missing 0"},
		{"warning within the table", head + gigabits + "Conflicting CPU frequency values detected: 800.000000 != 3300.000000. CPU Frequency is not max.\n 8388608    5000             392.51             392.50             0.005849\n", 392.50, ""},
		{"rate of another bandwidth", head + gigabits + " 8388608    5000             392.51             392.50             0.002925\n", 392.50, "inconsistent 15: size 8388608: 392.50 Gb/s does not follow from 0.002925 million messages a second, which are 196.29"},
		{"cut", head + gigabits + " 8388608    5000             392.51", 0, "truncated 15: the row of size 8388608 is cut"},
		{"nobody there", "Couldn't connect to 10.77.0.12:18515\n Unable to open file descriptor for socket connection\n", 0, "failed 1: Couldn't connect to 10.77.0.12:18515"},
		{"the other side is gone", head + " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n", 0, "failed 15: Failed status 12: wr_id 0 syndrom 0x81"},
		{"utilisation", head + " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]    CPU_Util[%]\n 8388608    5000             392.51             392.50             0.005849	      12.50\n", 392.50, ""},
	} {
		got, problems, err := Parse([]byte(c.in))
		if err != nil || c.problems == "" && len(problems) > 0 || !strings.Contains(problemTexts(problems), c.problems) {
			t.Errorf("%s: %v, got\n%s\nwant %s", c.name, err, problemTexts(problems), c.problems)
		}
		if row, _ := got.Largest(); math.Abs(row.Gbps-c.gbps) > 0.01 {
			t.Errorf("%s: got %v Gb/s, want %v", c.name, row.Gbps, c.gbps)
		}
	}
	got, _, err := Parse([]byte(head + gigabits + " 8388608    5000             392.51             392.50             0.005849\n" + head + gigabits + " 8388608    5000             10             11             0.000164\n"))
	if err != nil || len(got.Runs()) != 2 || got.Device != "mlx5_0" || got.Link != "Ethernet" || got.MTU != 4096 || got.QPs != 4 || got.Connection != "RC" || *got.GIDIndex != 3 || got.Test != "RDMA_Write BW" {
		t.Errorf("%v %+v", err, got)
	}
	for _, in := range []string{head + " #bytes #iterations BW peak[kB/sec] BW average[kB/sec]\n", head + " #bytes #iterations BW peak[MB/sec]\n"} {
		if _, _, err := Parse([]byte(in)); !errors.Is(err, ErrUnit) {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := Parse([]byte("nothing\n")); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	got, problems, err := Parse([]byte(strings.Replace(head, "Write BW", "Write Latency", 1) + latency + " 2       1000          1.05           3.20         1.08     	       1.09        	0.04   		1.15    		3.20   \n"))
	if err != nil || len(problems) != 0 || len(got.Latencies) != 1 {
		t.Fatalf("%v %s %+v", err, problemTexts(problems), got)
	}
	if l := got.Latencies[0]; l.Size != 2 || *l.Min != 1.05 || *l.Average != 1.09 || *l.P99 != 1.15 || *l.P999 != 3.20 || l.PerSecond != nil {
		t.Errorf("got %+v", l)
	}
	got, _, err = Parse([]byte(" #bytes        #iterations       t_avg[usec]    tps average\n 2              5000000           1.09            458715.60\n"))
	if err != nil || len(got.Latencies) != 1 || *got.Latencies[0].PerSecond != 458715.60 {
		t.Errorf("%v %+v", err, got)
	}
}

// TestRealOutputs reads outputs of others when they lie beside the repository.
func TestRealOutputs(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../shared/samples/ib_write_bw/*")
	if len(files) == 0 {
		t.Skip("no samples beside the repository")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, problems, err := Parse(data)
		row, ok := got.Largest()
		if err != nil || !ok || len(problems) != 0 || row.Gbps < 80 || row.Gbps > 420 || row.MsgRate == nil {
			t.Errorf("%s: %v %+v %s", filepath.Base(name), err, row, problemTexts(problems))
		}
	}
}

const outJSON = `{
"test_info": {
"test": "RDMA_Write_Bidirectional_BW_Test",
"Dual_port": "OFF",
"Device": "mlx5_2",
"Number_of_qps": 4,
"Transport_type": "IB",
"Connection_type": "RC",
"Mtu": 4096,
"Link_type": "Ethernet",
"GID_index": 3,
"cuda_device": 5,
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 8388608,
"n_iterations": 5000,
"BW_peak": 392.51,
"BW_average": 392.50,
"MsgRate": 0.005849
}
}
`

func TestJSON(t *testing.T) {
	t.Parallel()
	lat := strings.Replace(outJSON[:strings.Index(outJSON, `"BW_peak"`)], "Bidirectional_BW", "Latency", 1) + "\"t_min\": 1.05,\n\"t_max\": 3.2,\n\"t_typical\": 1.08,\n\"t_avg\": 1.09,\n\"t_stdev\": 0.02,\n\"percentile_99\": 1.2,\n\"percentile_99.9\": 3.1\n}\n}\n"
	for _, c := range []struct{ name, in, summary, problems string }{
		{"gigabits", outJSON, "RDMA_Write Bidirectional BW on mlx5_2: 392.50 Gb/s at 8388608 bytes, 1 sizes", ""},
		{"mebibytes", strings.NewReplacer("392.51", "46790.00", "392.50", "46789.00").Replace(outJSON), "RDMA_Write Bidirectional BW on mlx5_2: 392.49 Gb/s at 8388608 bytes, 1 sizes", ""},
		{"no unit", strings.Replace(outJSON, "392.50", "120.00", 1), "RDMA_Write Bidirectional BW on mlx5_2: no results", "inconsistent 0: size 8388608: the average 120"},
		{"latency", lat, "RDMA_Write Latency on mlx5_2: 1.09 us at 8388608 bytes, 1 sizes", ""},
		{"cut", outJSON[:strings.Index(outJSON, `"results"`)], "RDMA_Write Bidirectional BW on mlx5_2: no results", "truncated 0"},
	} {
		got, problems, err := Parse([]byte(c.in))
		if err != nil || matchFormat([]byte(c.in)) < 90 || got.Summary()[0] != c.summary {
			t.Errorf("%s: %v %q", c.name, err, got.Summary())
		}
		if s := problemTexts(problems); c.problems == "" && s != "" || !strings.Contains(s, c.problems) {
			t.Errorf("%s: got problems %q", c.name, s)
		}
	}
	got, _, _ := Parse([]byte(outJSON))
	if got.GPU != "5" || *got.GIDIndex != 3 || !got.Bidirectional || got.Unit != "Gb/sec" || got.QPs != 4 {
		t.Errorf("%+v", got)
	}
}

// TestLatencyOfOldVersions: before 4.3 there was no average.
func TestLatencyOfOldVersions(t *testing.T) {
	t.Parallel()
	got, problems, err := Parse([]byte(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n 2       1000          1.45           28.40        2.05   \n"))
	if err != nil || len(problems) != 0 || len(got.Latencies) != 1 || *got.Latencies[0].Typical != 2.05 || got.Latencies[0].Average != nil || !strings.Contains(got.Summary()[0], "2.05 us") {
		t.Errorf("%v %+v %s", err, got, problemTexts(problems))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + gigabits + " 8388608    5000             392.51             392.50             0.005849\n"))
	f.Add([]byte(outJSON))
	f.Add([]byte(latency + " 2       1000          1.05           3.20         1.08     	       1.09\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(got); err != nil || len(got.Summary()) == 0 {
			t.Error(err)
		}
	})
}

// TestWarningsBeforeTheTitle: a run by duration warns before it says its name,
// and is one run all the same; one that failed is another than the next.
func TestWarningsBeforeTheTitle(t *testing.T) {
	t.Parallel()
	row := gigabits + " 65536      7480000          0.00               392.50             0.748634\n"
	warned := " WARNING: BW peak won't be measured in this run.\n" + head + row
	c, problems, err := Parse([]byte(warned))
	if err != nil || len(problems) != 0 || len(c.More) != 0 || c.Device != "mlx5_0" || len(c.Rows) != 1 || len(c.Notes) != 1 {
		t.Errorf("%v, %v, %+v", err, problems, c)
	}
	c, problems, err = Parse([]byte("Couldn't connect to 10.77.0.12:18515\n" + warned))
	if err != nil || len(c.More) != 1 || len(c.More[0].Rows) != 1 {
		t.Errorf("%v, %v, %+v", err, problems, c)
	}
}

// TestLevels: raw_ethernet_bw with --raw_qos has a row for each service level, and
// its column stands before that of the iterations.
func TestLevels(t *testing.T) {
	t.Parallel()
	in := strings.Replace(head, "RDMA_Write BW", "Send BW", 1) + " #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n" +
		" 1024       0           5000           48.50              48.40                  5.908203\n 1024       3           5000           24.10              24.00                  2.929688\n"
	c, problems, err := Parse([]byte(in))
	if err != nil || len(problems) != 0 || matchFormat([]byte(in)) < 90 || len(c.Rows) != 2 {
		t.Fatalf("%v, %s, %+v", err, problemTexts(problems), c)
	}
	if a, b := c.Rows[0], c.Rows[1]; *a.SL != 0 || *b.SL != 3 || b.Iterations != 5000 || b.Peak != 24.10 || b.Gbps != 24 || *b.MsgRate != 2.929688 {
		t.Errorf("got %+v, %+v", a, b)
	}
}

// TestComplaints: what a run says that it did not do is a problem, and what is no
// more than a setting is none.
func TestComplaints(t *testing.T) {
	t.Parallel()
	row := gigabits + " 8388608    5000             392.51             392.50             0.005849\n"
	for _, c := range []struct{ name, in, problems string }{
		{"a setting that the device does not have", strings.Replace(head, " TX depth", " PCIe relax order: Unsupported\n ibv_wr* API     : OFF\n TX depth", 1) + row, ""},
		{"below the limit", head + row + "Error: BW result is below bw limit\n", "failed 16: Error: BW result is below bw limit"},
		{"no such device", "IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\n", "failed 2: Unable to find"},
		{"a port that is down", " Port number 1 state is Down\n Couldn't set the link layer\n", "failed 1: Port number 1 state is Down"},
		{"another way is taken", " new post send flow is not supported, falling back to ibv_post_send\n" + head + row, ""},
	} {
		_, problems, err := Parse([]byte(c.in))
		if s := problemTexts(problems); err != nil || matchFormat([]byte(c.in)) == 0 || c.problems == "" && s != "" || !strings.Contains(s, c.problems) {
			t.Errorf("%s: %v, sure %d, got %q, want %q", c.name, err, matchFormat([]byte(c.in)), s, c.problems)
		}
	}
	if _, _, err := Parse([]byte(strings.ReplaceAll(latency, "usec", "cycles") + " 2       1000          1050           3200         1080     1090  40   1150    3200\n")); !errors.Is(err, ErrUnit) {
		t.Errorf("cycles are read as microseconds: %v", err)
	}
	if _, _, err := Parse([]byte("# ib_write_lat -a -n 5 -F -C 10.77.0.12\n" + latency + " 2       1000          1050           3200         1080     1090  40   1150    3200\n")); !errors.Is(err, ErrUnit) {
		t.Errorf("cycles are read as microseconds: %v", err)
	}
	if _, _, err := Parse([]byte("# ib_write_lat -a -c RC 10.77.0.12\n" + latency + " 2       1000          1.05           3.20         1.08     1.09  0.04   1.15    3.20\n")); err != nil {
		t.Error(err)
	}
	// With --output=bandwidth the file has a comma too many, and no unit.
	only := outJSON[:strings.Index(outJSON, `"MsgSize"`)] + "\"bw_avg\": 392.500000,\n\n}\n}\n"
	if _, problems, err := Parse([]byte(only)); err != nil || !strings.Contains(problemTexts(problems), "missing 0") || strings.Contains(problemTexts(problems), "truncated") {
		t.Errorf("%v, %s", err, problemTexts(problems))
	}
}

// TestTitles: each title is that of a run, whose settings follow it.
func TestTitles(t *testing.T) {
	t.Parallel()
	row := gigabits + " 8388608    5000             392.51             392.50             0.005849\n"
	for _, title := range []string{
		"RDMA_Write_imm BW", "Send_imm Bidirectional Post List BW", "Atomic FETCH_AND_ADD BW", "Atomic CMP_AND_SWAP Bidirectional BW", "Send BW Multicast", "Send BW forwarding", "RDMA_Read Latency",
	} {
		in := head + row + strings.NewReplacer("RDMA_Write BW", title, "mlx5_0", "mlx5_7").Replace(head) + row
		c, problems, err := Parse([]byte(in))
		if err != nil || len(problems) != 0 || len(c.More) != 1 || c.More[0].Test != title || c.More[0].Device != "mlx5_7" || c.More[0].Bidirectional != strings.Contains(title, "Bidirectional") {
			t.Errorf("%s: %v, %s, %+v", title, err, problemTexts(problems), c)
		}
	}
}

// TestCommands: what stands below a command is of its run, not of the one above.
func TestCommands(t *testing.T) {
	t.Parallel()
	row := gigabits + " 8388608    5000             392.51             392.50             0.005849\n"
	in := head + row + "[root@n1 ~]# ib_write_bw -R -d mlx5_0 n2\nReceived 10 times ADDR_ERROR\n Unable to perform rdma_client function\n"
	c, problems, err := Parse([]byte(in))
	if err != nil || len(c.More) != 1 || len(c.Notes) != 0 || len(c.More[0].Notes) != 2 || !strings.Contains(problemTexts(problems), "failed 17: Received 10 times ADDR_ERROR") || !strings.Contains(problemTexts(problems), "missing 0") {
		t.Errorf("%v, %s, %+v", err, problemTexts(problems), c)
	}
	in = head + row + "[root@n1 ~]# ib_write_bw -D 5 n2\n WARNING: BW peak won't be measured in this run.\n" + head + row
	if c, problems, err = Parse([]byte(in)); err != nil || len(problems) != 0 || len(c.More) != 1 || len(c.Notes) != 0 || len(c.More[0].Notes) != 1 || len(c.More[0].Rows) != 1 {
		t.Errorf("%v, %s, %+v", err, problemTexts(problems), c)
	}
}

// TestStatisticsAreNoFailure: the summary of sockperf, which ran beside it, has a
// standard error; a real error on such a line counts.
func TestStatisticsAreNoFailure(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"sockperf: ====> avg-latency=5.837 (std-dev=0.479, cv=0.082, std-error=0.002, 99.0% ci=[5.831, 5.843])": false,
		"Standard Error: 0.0021":          false,
		"Completion with error at client": true,
		"error: std is not a device":      true,
	} {
		if got := isNotable(line); got != want {
			t.Errorf("%q: notable %t", line, got)
		}
	}
}
