// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/burnin"
	judges "github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/mpi"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/perftest"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/transfer"
	"github.com/ironrail/ironrail/validate/trunk"
)

// word is a word of a text.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_/+-]*`)

// judgedText is a text of a program, and what checks say of it.
type judgedText struct {
	source string
	text   string
	lines  string // expression of the lines whose words are values, and no headings
	judge  func(t *testing.T, text string) []string
}

// TestJudgedTexts changes each number of a program's text up and down, and empties each word and
// makes it another: checks must say something else than of the text as it is. What they do not find
// stands in the list, by the shape of its line.
func TestJudgedTexts(t *testing.T) {
	t.Parallel()
	listed, err := excused()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		missed := map[string]map[string]string{}
		for _, x := range judgedTexts(t) {
			if sources[x.source] == "" {
				t.Errorf("source %s is not in the list of sources", x.source)
			}
			if missed[x.source] == nil {
				missed[x.source] = map[string]string{}
			}
			total, found := changeWords(t, x, missed[x.source])
			t.Logf("%s: %d changes, %d found", x.source, total, found)
		}
		for source, of := range missed {
			compare(t, source, of, listed)
		}
	})
}

// textChange is a text that was changed.
type textChange struct {
	key  string
	how  Change
	text string
}

// changesOf are the changes of the numbers and words of a text: of lines that are alike, of two.
func changesOf(x judgedText) (list []textChange) {
	lines, values := strings.SplitAfter(x.text, "\n"), regexp.MustCompile(x.lines)
	seen := map[string]int{}
	for i, line := range lines {
		shape := shapeOf(line)
		if seen[shape]++; seen[shape] > 2 {
			continue
		}
		with := func(at []int, key, value string, c Change) {
			changed := slices.Clone(lines)
			changed[i] = line[:at[0]] + value + line[at[1]:]
			list = append(list, textChange{x.source + " " + shape + " " + key, c, strings.Join(changed, "")})
		}
		for nth, at := range number.FindAllStringSubmatchIndex(line, -1) {
			for _, c := range []Change{Lowered, Raised} {
				if value, ok := scaleText(line[at[4]:at[5]], c); ok {
					with(at[4:6], fmt.Sprintf("number %d", nth+1), value, c)
				}
			}
		}
		if !values.MatchString(line) {
			continue
		}
		for nth, at := range word.FindAllStringIndex(line, -1) {
			with(at, fmt.Sprintf("word %d", nth+1), "", Emptied)
			with(at, fmt.Sprintf("word %d", nth+1), "other", Swapped)
		}
	}
	return list
}

func changeWords(t *testing.T, x judgedText, missed map[string]string) (total, found int) {
	t.Helper()
	if base := x.judge(t, x.text); len(base) > 0 {
		t.Fatalf("%s: a text that is well has faults: %q", x.source, base)
	}
	for _, c := range changesOf(x) {
		total++
		if len(x.judge(t, c.text)) > 0 {
			found++
			continue
		}
		if !strings.ContainsRune(missed[c.key], rune(c.how)) {
			missed[c.key] += string(c.how)
		}
	}
	return total, found
}

func judgedTexts(t *testing.T) []judgedText {
	t.Helper()
	counts := func(count countReader) func(*testing.T, string) []string {
		return func(t *testing.T, text string) []string { return judgeCounts(t, count, text) }
	}
	all := []judgedText{
		{"judged ib_write_bw", writeText, `^ \d|Mtu|Link`, judgeWrite},
		{"judged dcgmi", dcgmiText, `.`, judgeDiag},
		{"judged rvs", gstText(), `.`, judgeGST},
		{"judged nvbandwidth", moveText(), `^Device|^Running|^SUM|^ ?\d`, judgeMove},
		{"judged ibqueryerrors", countText(), `GUID`, counts(infinibandCounts)},
		{"judged interface counters", showText(), `IFACE|Ethernet`, counts(sonicCounts)},
		{"judged saquery and sminfo", managerText, `.`, judgeManagers},
		{"judged sums in host memory", sumText, `.`, judgeSum},
	}
	for _, does := range append([]string{""}, inventory.Operations...) {
		all = append(all, judgedText{"judged nccl-tests", collectiveText(does), `^#  Rank|^NCCL version|^n\d+:|^ *\d`, func(t *testing.T, text string) []string { return judgeCollective(t, does, text) }})
	}
	return all
}

// writeText is what ib_write_bw prints of a rail that is well.
const writeText = `---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_3
 Mtu             : 4096[B]
 Link type       : IB
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 1048576    5000             46900.12             46895.35		   0.046895
---------------------------------------------------------------------------------------
`

func judgeWrite(_ *testing.T, text string) (faults []string) {
	r, err := perftest.Parse([]byte(text))
	row, _ := r.Largest()
	if err != nil {
		return []string{err.Error()}
	}
	end := func(node string) rail.End {
		return rail.End{Node: &inventory.Node{Name: node, Hardware: &inventory.Hardware{Name: "h"}}, Need: rail.Need{Least: 45e9}}
	}
	var all []*transfer.Transfer
	for i := range 6 {
		x := &transfer.Transfer{From: end(fmt.Sprintf("n%d", i)), To: end(fmt.Sprintf("m%d", i)), Bw: 49e9, Tries: 1}
		if i == 0 {
			x.Bw = row.Average
		}
		all = append(all, x)
	}
	transfer.Compare(all)
	if all[0].Bad() {
		faults = append(faults, all[0].Outcome())
	}
	return faults
}

// dcgmiText is what dcgmi diag -j prints of two GPUs that are well.
const dcgmiText = `{"DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": [{"name": "diagnostic", "results": [
{"entity_group": "GPU", "entity_id": 0, "info": ["GPU 0 calculated at approximately 53000.00 gigaflops during this test"], "status": "Pass"},
{"entity_group": "GPU", "entity_id": 1, "info": ["GPU 1 calculated at approximately 53000.00 gigaflops during this test"], "status": "Pass"}]}]}]}}
`

func judgeDiag(t *testing.T, text string) []string {
	return judgeLoad(t, inventory.GPU{Vendor: "nvidia", Model: "H100", Count: 2}, wire.BurnResult{Output: text, Seconds: 601, Looks: 120}, dcgmiText)
}

// gstText is what rvs prints of two GPUs that are well.
func gstText() (text string) {
	for _, id := range []string{"28851", "23018"} {
		text += "[RESULT] [ 10000.1     ] [burn-in] [GPU:: " + id + "] Start of GPU ramp up\n[RESULT] [ 11800.1     ] [burn-in] [GPU:: " + id + "] GFLOPS 71290 Target GFLOPS: 70000 met: TRUE\n"
	}
	return text
}

func judgeGST(t *testing.T, text string) []string {
	return judgeLoad(t, inventory.GPU{Vendor: "amd", Model: "MI300X", Count: 2}, wire.BurnResult{Output: text, Seconds: 601, Looks: 120, KFD: map[string]string{"28851": burntAt[0], "23018": burntAt[1]}}, gstText())
}

// judgeLoad judges a burn-in by what its program printed, alone and beside three whose program
// printed what it should.
func judgeLoad(_ *testing.T, gpus inventory.GPU, r wire.BurnResult, well string) (faults []string) {
	const long = 10 * time.Minute
	load := burnin.Of(&inventory.Hardware{GPUs: []inventory.GPU{gpus}}, long)
	span := wire.Span{Least: 60, Most: 66, Mean: 64, Count: 120}
	s := look.Seen{}
	for _, at := range burntAt {
		width, speed := 16, 32.0
		s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: at, Class: "030200", Vendor: map[string]string{"amd": "1002", "nvidia": "10de"}[gpus.Vendor], Width: &width, MaxWidth: &width, Speed: &speed, MaxSpeed: &speed})
		r.GPUs = append(r.GPUs, wire.BurnGPU{Address: at, Core: span, Memory: span, Power: wire.Span{Least: 690, Most: 700, Mean: 695, Count: 120}, Clock: wire.Span{Least: 1500, Most: 1600, Mean: 1550, Count: 120}, Left: span, MemLeft: span})
	}
	names := map[string]string{burntAt[0]: "GPU 0 at " + burntAt[0], burntAt[1]: "GPU 1 at " + burntAt[1]}
	seen := burnin.Seen{Result: r, Names: names, Before: s, After: s}
	found, _, err := burnin.Judge(load, long, seen)
	if err != nil {
		faults = append(faults, err.Error())
	}
	for _, f := range found {
		faults = append(faults, f.Cause)
	}
	is := burnin.Rates(load, seen)
	seen.Result.Output = well
	for at, usual := range burnin.Rates(load, seen) {
		switch rate, ok := is[at]; {
		case !ok:
			faults = append(faults, "nobody says how fast "+at+" computed")
		case rate.Mean < 0.9*usual.Mean:
			faults = append(faults, at+" computed less")
		}
	}
	return faults
}

// moveText is what nvbandwidth prints of four H100 that are well.
func moveText() string {
	b := new(strings.Builder)
	b.WriteString("nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nCUDA Runtime Version: 13000\nCUDA Driver Version: 13000\nDriver Version: 580.82.07\n\nn1\n")
	for i := range 4 {
		fmt.Fprintf(b, "Device %d: NVIDIA H100 80GB HBM3 (00000000:%d9:00)\n", i, i+1)
	}
	for _, test := range []struct {
		name, what string
		rate       float64
		rows       bool
	}{{"device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)", 1515, false}, {"host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", 55.4, false},
		{"device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", 55.1, false}, {"device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", 376, true}} {
		fmt.Fprintf(b, "\nRunning %s.\n%s\n           0         1         2         3\n", test.name, test.what)
		rows, sum := 1, 0.0
		if test.rows {
			rows = 4
		}
		for row := range rows {
			fmt.Fprintf(b, "%2d", row)
			for k := range 4 {
				if test.rows && k == row {
					fmt.Fprintf(b, "%10s", "N/A")
					continue
				}
				sum += test.rate
				fmt.Fprintf(b, "%10.2f", test.rate)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "\nSUM %s %.2f\n", test.name, sum)
	}
	return b.String()
}

func judgeMove(t *testing.T, text string) []string {
	h := &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 4, Interconnect: "nvswitch"}}}
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{onnodetest.On("sh -c", "/usr/bin/nvbandwidth\n", 0), onnodetest.On("", text, 0)}}
	o, err := bandwidth.TakeFigures(t.Context(), nodes, "n1", "nvidia", h)
	if err != nil {
		return []string{err.Error()}
	}
	v := judgeMoves(h, o)
	return append(v.faults, v.notes...)
}

// collectiveText is what a test of nccl-tests prints over two nodes of eight H100 that are well.
func collectiveText(does string) string {
	const size, ranks = 8 << 30, 16
	factor := map[string]float64{"": 2 * 15.0 / 16, "all_gather": 15.0 / 16, "reduce_scatter": 15.0 / 16, "alltoall": 15.0 / 16, "sendrecv": 1}[does]
	rate := map[string]float64{"": 387, "all_gather": 380, "reduce_scatter": 381, "alltoall": 88, "sendrecv": 47}[does]
	b := new(strings.Builder)
	fmt.Fprintf(b, "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: %[1]s\n# nThread 1 nGpus 1 minBytes %[2]d maxBytes %[2]d step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n", nccl.ProgramOf(does), size)
	for r := range ranks {
		fmt.Fprintf(b, "#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%x9:00] NVIDIA H100 80GB HBM3\n", r, 4100+r, fmt.Sprintf("n%d", r/8+1), r%8, r%8+1)
	}
	b.WriteString("NCCL version 2.28.9+cuda13.0\n")
	for r := range ranks {
		fmt.Fprintf(b, "n%d:%d:4188 [%d] NCCL INFO Channel 00/0 : %d[%d] -> %d[%d] [send] via NET/IB/0/GDRDMA\n", r/8+1, 4100+r, r%8, r, r%8, (r+8)%ranks, r%8)
	}
	us := size * factor / rate / 1e3
	alg := size / us / 1e3
	fmt.Fprintf(b, "#\n#                                                              out-of-place                       in-place          \n#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n")
	fmt.Fprintf(b, "%12d  %12d  %8s  %6s  %6d", size, size/4, "float", map[bool]string{true: "sum", false: "none"}[does == "" || does == "reduce_scatter"], -1)
	for range 2 {
		fmt.Fprintf(b, "  %7.1f  %6.2f  %6.2f  %6d", us, alg, alg*factor, 0)
	}
	fmt.Fprintf(b, "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g \n#\n# Collective test concluded: %s\n", alg*factor, nccl.ProgramOf(does))
	return b.String()
}

func judgeCollective(t *testing.T, does, text string) []string {
	test := nccl.Test{Engine: nccl.NCCL, Does: does, Nodes: []string{"n1", "n2"}, GPUs: 8, Size: 8 << 30}
	read := func(text string) (nccl.Measured, error) {
		r := nccl.NewReader()
		if _, err := r.Stdout().Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return test.Judge(r)
	}
	m, err := read(text)
	if err != nil {
		return []string{err.Error()}
	}
	well, err := read(collectiveText(does))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	kind := runsOf[slices.IndexFunc(runsOf, func(r runOf) bool { return r.scope == "pair" && r.does == does })]
	var v verdict
	b.judge(&v, judges.New(b.job), kind, []ran{{Got: m}, {Got: well}, {Got: well}, {Got: well}})
	for node, says := range m.Indirect {
		v.faults = append(v.faults, node+": "+says)
	}
	return v.faults
}

// sumText is what the all-reduce in host memory prints of three nodes that are well.
const sumText = `{"ranks": 3, "hosts": ["alpha", "beta", "gamma"], "mpi": "Open MPI v4.1.4"}
{"size": 4096, "ranks": 3, "iterations": 20, "time_us": {"min": 90, "avg": 100, "max": 140}, "algbw": 40960000, "busbw": 54613333, "wrong": 0, "wrong_by_rank": [0, 0, 0]}
{"size": 1048576, "ranks": 3, "iterations": 20, "time_us": {"min": 990, "avg": 1000, "max": 1400}, "algbw": 1048576000, "busbw": 1398101333, "wrong": 0, "wrong_by_rank": [0, 0, 0]}
`

func judgeSum(_ *testing.T, text string) []string {
	out, err := mpi.Parse([]byte(text), mpi.Job{Members: make([]mpi.Member, 3), Sizes: []int64{4096, 1 << 20}, Iterations: 20})
	if err != nil {
		return []string{err.Error()}
	}
	if why := out.Problem(1.25e9, "at least 1.25GB/s"); why != "" {
		return []string{why}
	}
	return nil
}

// says is the host of a subnet manager on which programs print these texts.
type says map[string]string

func (s says) Run(_ context.Context, argv ...string) (onnode.Output, error) {
	return onnode.Output{Stdout: []byte(s[strings.Join(argv, " ")])}, nil
}
func (says) Read(context.Context, string) ([]byte, error)                 { return nil, os.ErrNotExist }
func (says) Write(context.Context, string, []byte) error                  { return nil }
func (says) Reload(context.Context, bool) error                           { return nil }
func (says) Log(context.Context, int64) (text []byte, end int64, e error) { return nil, 0, nil }

const master = "sminfo: sm lid 1 sm guid 0x11, activity count 3190 priority 14 state 3 SMINFO_MASTER\n"

// managerText is what saquery SMIR prints of a master and its standby, and sminfo of each.
const managerText = `SMInfoRecord dump:
		RID
		LID...................1
		SMInfo dump:
		GUID..................0x0000000000000011
		SM_Key................0x0000000000000000
		ActCount..............3190
		Priority..............14
		SMState...............3
SMInfoRecord dump:
		RID
		LID...................9
		SMInfo dump:
		GUID..................0x0000000000000021
		SM_Key................0x0000000000000000
		ActCount..............12
		Priority..............13
		SMState...............2
# sminfo 9
sminfo: sm lid 9 sm guid 0x21, activity count 12 priority 13 state 2 SMINFO_STANDBY
# sminfo 1
` + master

// controller is a reference to a controller, as the language evaluates it.
func controller(name string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("controller." + name)})
}

func judgeManagers(t *testing.T, text string) (faults []string) {
	r := newRoom("infiniband")
	r.f.Value = cty.ObjectVal(map[string]cty.Value{"subnet_manager": cty.ObjectVal(map[string]cty.Value{"run_on": cty.TupleVal([]cty.Value{controller("head1"), controller("head2")})})})
	records, rest, _ := strings.Cut(text, "# sminfo 9\n")
	standby, own, _ := strings.Cut(rest, "# sminfo 1\n")
	host := says{"saquery SMIR": records, "sminfo 9": standby, "sminfo 1": own, "sminfo -D 0": master}
	got, err := (&infiniband.Subnet{Inv: r.inv, Fabric: r.f, Host: host}).Managers(t.Context(), nil, &ibnetdiscover.Topology{})
	if err != nil {
		return []string{err.Error()}
	}
	return append(got.Wrong, causes(got.Findings)...)
}

// countText is what ibqueryerrors prints of a port of a leaf towards a spine after a minute, just
// below its limits.
func countText() string {
	return fmt.Sprintf("Errors for %[1]s \"MF0;net-leaf-1:MQM9700/U1\"\n   GUID %[1]s port 10: [SymbolErrorCounter == 590] [LinkErrorRecoveryCounter == 5] [PortXmitPkts == 1000000 (1000000.000)] [PortRcvPkts == 1000000 (1000000.000)] [PortXmitWait == 12]\n\n## Summary: 4 nodes checked, 1 bad nodes found\n", guidOf("net/leaf-1"))
}

// countReader reads what the switches of a room count.
type countReader func(t *testing.T, text string) (*room, map[fabric.SwitchPort]fabric.SwitchCounters, error)

func infinibandCounts(t *testing.T, text string) (*room, map[fabric.SwitchPort]fabric.SwitchCounters, error) {
	r, lids := newRoom("infiniband"), map[string]int{}
	found := new(strings.Builder)
	topology, _ := r.topology()
	for i, s := range r.inv.Switches {
		lids[s.Name] = i + 1
	}
	for _, s := range topology.Switches {
		fmt.Fprintf(found, "vendid=0x2c9\ndevid=0xd2f2\nswitchguid=%s(%s)\nSwitch\t65 \"S-%s\"\t\t# %q enhanced port 0 lid %d lmc 0\n", s.GUID, strings.TrimPrefix(s.GUID.String(), "0x"), strings.TrimPrefix(s.GUID.String(), "0x"), s.Name, s.LID)
		for _, l := range topology.Links {
			for _, e := range [2][2]ibnetdiscover.End{{l.From, l.To}, {l.To, l.From}} {
				if e[0].GUID == s.GUID && strings.HasPrefix(e[1].ID, "S") {
					fmt.Fprintf(found, "[%d]\t\"S-%s\"[%d]\t\t# %q lid %d 4xNDR\n", e[0].Port, strings.TrimPrefix(e[1].GUID.String(), "0x"), e[1].Port, e[1].Name, lids[e[1].Name])
				}
			}
		}
		found.WriteString("\n")
	}
	host := says{"ibnetdiscover": found.String(), "ibqueryerrors --counters --switch": "## Summary: 4 nodes checked\n", "ibqueryerrors --threshold-file /dev/null --switch": text}
	ports, err := infiniband.New(r.inv, nil, func(string) infiniband.Host { return host }).SwitchCounters(t.Context(), r.f)
	return r, ports, err
}

// loggedIn are switches that answer.
type loggedIn struct{ *onnodetest.Nodes }

func (loggedIn) HostKey(string) string { return "" }

// showText is what a leaf's `show interfaces counters` prints.
func showText() string {
	return "     IFACE    STATE          RX_OK         RX_BPS    RX_UTIL    RX_ERR    RX_DRP    RX_OVR          TX_OK         TX_BPS    TX_UTIL    TX_ERR    TX_DRP    TX_OVR\n" +
		"----------  -------  -------------  -------------  ---------  --------  --------  --------  -------------  -------------  ---------  --------  --------  --------\n" +
		"Ethernet72        U      1,114,907     12.10 KB/s      0.00%       590        41         0        880,114       0.55 B/s      0.00%         0         0         0\n"
}

func sonicCounts(t *testing.T, text string) (*room, map[fabric.SwitchPort]fabric.SwitchCounters, error) {
	r := newRoom("roce")
	for _, s := range r.inv.Switches {
		s.Login = &inventory.Login{Name: "l", Username: "admin"}
	}
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if c.Node == "net/leaf-1" {
			return onnode.Output{Stdout: []byte(text)}, nil, true
		}
		return onnode.Output{Stdout: []byte(strings.Split(text, "\n")[0] + "\n")}, nil, true
	}}}
	ports, err := switchos.New(roce.New(nil), r.inv, loggedIn{nodes}, nil).SwitchCounters(t.Context(), r.f)
	return r, ports, err
}

// judgeCounts judges what the switches of a room count, a minute after they had counted 0, and
// loaded: the cable of leaf 1 that carried nothing was not loaded.
func judgeCounts(t *testing.T, count countReader, text string) (faults []string) {
	r, ports, err := count(t, text)
	if err != nil {
		return []string{err.Error()}
	}
	at := r.inv.Cables[slices.IndexFunc(r.inv.Cables, func(c *inventory.Cable) bool { return c.From.Switch == r.leaves[0] })].From.String()
	began := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	for _, w := range trunk.WornBetween(r.inv, r.f, trunk.Reading{At: began, Ports: map[fabric.SwitchPort]fabric.SwitchCounters{at: {}}}, trunk.Reading{At: began.Add(time.Minute), Ports: ports}) {
		faults = append(faults, w.String())
	}
	if c := ports[at]; c.Sent+c.Received < 10_000 {
		faults = append(faults, "not loaded")
	}
	if ports[at].Down {
		faults = append(faults, "down")
	}
	return faults
}
