// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

var update = flag.Bool("update", false, "write golden files")

func lab() Input {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pair := func(from, to string, bw float64, verdict, why string) Measurement {
		return Measurement{Check: "rdma.write_bw", Nodes: []string{from, to}, Part: "rail 0", Measured: bw, Unit: "B/s", Limit: ">= 3MB/s", Verdict: verdict, Why: why,
			Transport: "RDMA over rxe0", Params: "ib_write_bw, 64KiB messages, 200 of them", Evidence: []string{"evidence/ab12"}}
	}
	look := func(node, check, verdict, why string) Measurement {
		return Measurement{Check: check, Nodes: []string{node}, Verdict: verdict, Why: why, Params: "what was seen", Evidence: []string{"evidence/aa77"}}
	}
	step := func(id, stage, node string, from, took time.Duration) Step {
		return Step{ID: id, Stage: stage, Node: node, State: "done", Started: at.Add(from), Took: Duration(took)}
	}
	return Input{
		Site: "lab", Run: "r-1f2e", At: at.Add(5 * time.Minute), Duration: Duration(4*time.Minute + 31*time.Second),
		Approvals: []state.Approval{{By: "ann\x1b[31m", Host: "head1", At: at.Add(-time.Minute), How: state.ByNumber, Erase: 4, MaxErase: new(2), Sum: "5f0c"},
			{By: "bob", Host: "head2", At: at, How: state.ByResumed}},
		Versions: []Version{{"ironrail", "0.1.0"}},
		Images:   []Image{{Name: "os", Digest: "sha256:77aa", Nodes: 2}},
		Nodes: []Node{
			{Name: "n3", Status: Quarantined, Serial: "LAB0003", Image: "sha256:77aa", Kernel: "6.1.0-56-amd64", Findings: []Finding{{Part: "rail 0", Step: "all/validate.pair",
				Cause: "RDMA writes over n3 rail 0 are slow: n1 -> n3 rail 0 carries 524kB/s, and the limit is >= 3MB/s", Evidence: []string{"n1 -> n3 rail 0: 524kB/s (bad)", "evidence/cd34"},
				Action: "Check the cable, the transceiver and the switch port of the rail."}}},
			{Name: "n1", Status: Accepted, AcceptedAt: at.Add(4 * time.Minute), Serial: "LAB0001", Image: "sha256:77aa", Kernel: "6.1.0-56-amd64", Drivers: []Version{{"rdma", "rdma-core 44.0-2"}}},
			{Name: "n2", Status: Accepted, AcceptedAt: at.Add(4 * time.Minute), Serial: "\x1b[31mLAB\x07", Kernel: "6.1.0-56-amd64"},
			{Name: "n4", Status: Held, Declared: "LAB0004", Reason: "technician at work"},
		},
		Roles: []Role{{Name: "worker", Nodes: 3, Rows: []RoleRow{{What: "NIC firmware of MT4129", Value: "28.43.1014", With: 2, Nodes: 3, Verdict: Fail, Other: []string{"n3 has 28.39.1002 (NIC at 0000:18:00.0)"}},
			{What: "kernel", Value: "6.1.0-56-amd64", With: 3, Nodes: 3, Verdict: Pass}, {What: "BIOS", Nodes: 3, Verdict: NotJudged, Other: []string{"2.1: n1", "2.2: n2", "2.3\x1b[0m: n3"}}}}},
		Tests: []Test{
			{Step: "n2/validate.gates", Title: "Parts of each node", Rank: 1, At: at.Add(2 * time.Minute), Members: []string{"n2"}, Proves: "Each part is there.", Measurements: []Measurement{
				look("n2", "gate.acs", Allowed, "PCIe switches: ACS is on (allowed by the site: virtual machines)"), look("n2", "gate.driver", Pass, ""), look("n2", "gate.flaps", NotJudged, "no port tells how often its link went down")}},
			{Step: "n1/validate.gates", Title: "Parts of each node", Rank: 1, At: at.Add(2 * time.Minute), Members: []string{"n1"}, Proves: "Each part is there.", Measurements: []Measurement{look("n1", "gate.driver", Pass, "")}},
			{Step: "n1/validate.burn", Title: "Burn-in", Rank: 3, At: at.Add(3 * time.Minute), Members: []string{"n1"}, Proves: "All GPUs computed right results.", Measurements: []Measurement{
				{Check: "burn.temperature", Nodes: []string{"n1"}, Part: "GPU 3", Measured: 67, Unit: "°C", Limit: "<= 82 °C", Rule: "5 °C below the slowdown", Verdict: Pass, Transport: "full load", Params: "361 looks, 699 W", Evidence: []string{"evidence/ef56"}}}},
			{Step: "all/validate.pair", At: at.Add(3 * time.Minute), Members: []string{"n1", "n2", "n3"}, Proves: "RDMA writes between pairs of nodes. It does not prove the fabric under the load of all nodes at once.",
				Measurements: []Measurement{pair("n1", "n2", 12.6e6, "pass", ""), pair("n2", "n1", 11.9e6, "pass", "passed when it was measured once more, alone"), pair("n1", "n3", 524e3, "fail", "below the limit"), pair("n3", "n1", 0, "fail", "it hung and was ended")}},
			{Step: "all/validate.all_reduce", At: at.Add(4 * time.Minute), Members: []string{"n1", "n2"}, NotJudged: []string{"n3 was taken out before"},
				Proves: "All nodes compute one sum together over tcp (not RDMA). It is no figure of RDMA and uses no GPU.",
				Measurements: []Measurement{{Check: "all_reduce.busbw", Nodes: []string{"n1", "n2"}, Measured: 21.3e6, Unit: "B/s", Limit: ">= 1MB/s", Verdict: "pass", Transport: "tcp (not RDMA)"},
					{Check: "all_reduce.wrong", Nodes: []string{"n1", "n2"}, Measured: 0, Unit: "elements", Limit: "= 0", Verdict: "pass", Transport: "tcp (not RDMA)"}}},
		},
		Untested: []string{"GPUs were not burnt in: n2, n3"},
		Steps: []Step{step("n1/install.write", "install", "n1", 40*time.Second, 55*time.Second), step("n1/bmc", "bmc", "n1", 0, 420*time.Millisecond),
			step("n1/install.boot", "install", "n1", 95*time.Second, 38*time.Second), step("all/validate.pair", "validate", "", 150*time.Second, 31*time.Second),
			{ID: "n3/validate.accept", Stage: "validate", Node: "n3", State: "skipped"}},
		Caveats: []string{"Under emulation: no figure here is that of hardware."},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s differs (%v); got:\n%s", file, err, got)
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	var text, js, empty bytes.Buffer
	if err := Text(&text, lab()); err != nil {
		t.Fatal(err)
	}
	golden(t, "lab.txt", text.Bytes())
	if err := JSON(&js, lab()); err != nil {
		t.Fatal(err)
	}
	golden(t, "lab.json", js.Bytes())
	if err := Text(&empty, Input{Site: "new", At: lab().At}); err != nil {
		t.Fatal(err)
	}
	golden(t, "empty.txt", empty.Bytes())
}

func TestTextHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Text(&b, lab()); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }); i >= 0 {
		t.Errorf("control character %q at %d", b.String()[i], i)
	}
}

// TestJSONRoundTrip: a report that is read back is the same report.
func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := JSON(&b, lab()); err != nil {
		t.Fatal(err)
	}
	var back Input
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if want := orderInput(lab()); !reflect.DeepEqual(back, want) {
		t.Errorf("got %+v\nwant %+v", back, want)
	}
}

func TestWritersDoNotChangeTheInput(t *testing.T) {
	t.Parallel()
	in := lab()
	var b bytes.Buffer
	if err := Text(&b, in); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, lab()) {
		t.Error("the input was reordered")
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	got := Phases(lab().Steps)
	want := []Phase{
		{"n1", "bmc", 1, 420 * time.Millisecond},
		{"n1", "install", 2, 93 * time.Second},
		{"", "validate", 1, 31 * time.Second},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
