// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read reads a fixture that has nothing wrong with it.
func read(t *testing.T, name string) Report {
	t.Helper()
	b := load(t, name)
	if matchFormat(b) < 80 {
		t.Errorf("%s is not recognised", name)
	}
	r, p, err := Parse(b)
	if err != nil || len(p) > 0 {
		t.Fatalf("%s: %v, %v", name, p, err)
	}
	return r
}

// TestFormsAgree reads the same from JSON, text and CSV.
func TestFormsAgree(t *testing.T) {
	t.Parallel()
	for what, names := range map[string][]string{
		"list":      {"list.json", "list.txt", "list.csv"},
		"static":    {"static.json", "static.txt"},
		"metric":    {"metric.json", "metric.txt", "metric7.json"},
		"firmware":  {"firmware.json", "firmware.txt", "firmware.csv"},
		"bad pages": {"bad-pages.json", "bad-pages.txt"},
		"topology":  {"topology.json", "topology.txt"},
	} {
		want := read(t, names[0])
		for _, name := range names[1:] {
			if got := read(t, name); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s gives\n%s\nand %s\n%s", what, name, asJSON(t, got), names[0], asJSON(t, want))
			}
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMetric(t *testing.T) {
	t.Parallel()
	r := read(t, "metric.json")
	m := r.GPUs[1].Metric
	want := `{"power_w":134,"hotspot_c":41,"memory_c":33,"throttle_status":"UNTHROTTLED","pcie_width":16,"pcie_speed_gts":32,"pcie_replays":0,` +
		`"pcie_nak_received":3,"pcie_nak_sent":null,"ecc":{"correctable":2,"uncorrectable":4,"deferred":null},"ecc_blocks":{` +
		`"GFX":{"correctable":0,"uncorrectable":0,"deferred":null},"UMC":{"correctable":2,"uncorrectable":4,"deferred":0}},"vram_total_mb":196592,"vram_used_mb":283,"gfx_percent":0}`
	if got := asJSON(t, m); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s := r.Summary(); len(s) != 3 || !strings.Contains(s[2], "4 uncorrectable errors") {
		t.Errorf("summary %q", s)
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	g := read(t, "static.txt").GPUs[1]
	want := `{"name":"AMD Instinct MI300X","device_id":"0x74a1","serial":"0x00007E0000000001","oam_id":1,"product_serial":"692344000001",` +
		`"product_name":"AMD Instinct MI300X OAM","model_number":"102-G30211-0C","max_pcie_width":16,"max_pcie_speed_gts":32,"slot_type":"OAM",` +
		`"vbios":"022.040.003.043.000001","driver_version":"6.8.5","max_power_w":750,"power_limit_w":750,"vram_mb":196592,"numa_node":0,` +
		`"compute_partition":"SPX","memory_partition":"NPS1","ras":{"GFX":"DISABLED","UMC":"ENABLED"}}`
	if got := asJSON(t, g.Static); got != want || g.BDF != "0000:1c:00.0" {
		t.Errorf("%s: got %s, want %s", g.BDF, got, want)
	}
}

func TestBadPages(t *testing.T) {
	t.Parallel()
	r := read(t, "bad-pages.txt")
	if p := r.GPUs[0].BadPages; p.Retired == nil || len(p.Retired) > 0 || p.Unreservable != nil {
		t.Errorf("GPU 0: %s", asJSON(t, p))
	}
	want := `{"retired":[{"address":"0x7a3c1000","size":"4096","status":"RESERVED"},{"address":"0x7a3c2000","size":"4096","status":"RESERVED"}],"pending":[],"unreservable":[]}`
	if got := asJSON(t, r.GPUs[1].BadPages); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestXGMI(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"xgmi.txt", "xgmi.json"} {
		r, p, err := Parse(load(t, name))
		if err != nil || len(p) != 1 || p[0].Kind != tool.Failed || p[0].Text != "GPU 1: xGMI link 0 is down" {
			t.Fatalf("%s: %v, %v", name, p, err)
		}
		want := `{"bit_rate_gbps":32,"max_bandwidth_gbps":512,"type":"XGMI","status":["D","X"]}`
		if got := asJSON(t, r.GPUs[1].XGMI); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if len(r.Links) != 2 || *r.Links[0].Read != 7 || *r.Links[0].Written != 9 || *r.Links[1].Read != 2 {
			t.Errorf("%s: links %s", name, asJSON(t, r.Links))
		}
	}
}

func TestTopology(t *testing.T) {
	t.Parallel()
	want := `[{"from":0,"to":1,"from_bdf":"0000:0c:00.0","to_bdf":"0000:1c:00.0","type":"XGMI","access":"ENABLED","weight":15,"hops":1,"bandwidth":"50000-50000","read_kb":null,"written_kb":null},` +
		`{"from":1,"to":0,"from_bdf":"0000:1c:00.0","to_bdf":"0000:0c:00.0","type":"XGMI","access":"ENABLED","weight":15,"hops":1,"bandwidth":"50000-50000","read_kb":null,"written_kb":null}]`
	if got := asJSON(t, read(t, "topology.txt").Links); got != want {
		t.Errorf("got %s", got)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		kind     tool.ProblemKind
		text     string
	}{
		{"no driver", "ERROR:root:Unable to get devices, driver not initialized (amdgpu not found in modules)\n", tool.Failed, "driver not initialized"},
		{"not up", "amdsmi.amdsmi_exception.AmdSmiLibraryException: Error code:\n\t34 | AMDSMI_STATUS_NOT_INIT\n", tool.Failed, "AmdSmiLibraryException"},
		{"JSON cut", string(load(t, "metric.json")[:900]), tool.Truncated, "ends before its end"},
		{"table cut", "ACCESS TABLE:\n             0000:0c:00.0 0000:1c:00.0\n0000:0c:00.0 ENABLED      ENABLED\n", tool.Truncated, "1 of 2 rows"},
		{"row cut", "HOPS TABLE:\n 0000:0c:00.0 0000:1c:00.0\n0000:0c:00.0 0 1\n0000:1c:00.0 1\n", tool.Truncated, "has 1 of 2 columns"},
		{"CSV cut", "gpu,fw_id,fw_version\n0,SMU,1\n0,VC\n", tool.Truncated, "a row has 2 of 3 columns"},
		{"one address", strings.ReplaceAll(string(load(t, "list.csv")), "1c:00", "0c:00"), tool.Inconsistent, "are both at 0000:0c:00.0"},
		{"gap", strings.Replace(string(load(t, "list.txt")), "GPU: 1", "GPU: 7", 1), tool.Missing, "there is GPU 7, and only 2"},
		{"unknown", "HOPS TABLE:\n 0000:0c:00.0\n0000:0d:00.0 1\n", tool.Inconsistent, "has a row and no column"},
	} {
		_, problems, _ := Parse([]byte(c.in))
		found := false
		for _, p := range problems {
			found = found || p.Kind == c.kind && strings.Contains(p.Text, c.text)
		}
		if !found {
			t.Errorf("%s: got %+v", c.name, problems)
		}
	}
	if _, _, err := Parse([]byte("GPU temperature: 33\n")); err == nil {
		t.Error("anything is taken for amd-smi")
	}
}

// TestSamples reads outputs of real machines, where they are.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../shared/samples/amd-smi/*")
	if len(files) == 0 {
		t.Skip("no samples beside this checkout")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, p, err := Parse(b)
		if err != nil || len(p) > 0 || matchFormat(b) < 80 || len(r.GPUs) == 0 {
			t.Errorf("%s: %d sure, %v, %v, %s", file, matchFormat(b), p, err, r.Summary())
		}
	}
}

// FuzzParse gives the parser anything.
func FuzzParse(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if !file.IsDir() {
			f.Add(load(f, file.Name()))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := matchFormat(b); n < 0 || n > 100 {
			t.Errorf("%d sure", n)
		}
		r, _, err := Parse(b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		if len(r.Summary()) == 0 {
			t.Error("no summary")
		}
	})
}
