// SPDX-License-Identifier: Apache-2.0

package rocmsmi

import (
	"encoding/json"
	"os"
	"path/filepath"
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

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// read reads a fixture that has nothing wrong with it.
func read(t *testing.T, name string) Report {
	t.Helper()
	r, p, err := Parse(load(t, name))
	if err != nil || len(p) > 0 || matchFormat(load(t, name)) < 80 {
		t.Fatalf("%s: %v, %v", name, p, err)
	}
	return r
}

// nothing is a GPU of which nothing is said, but for some fields.
const nothing = `"temperature_c":null,"memory_c":null,"power_w":null,"power_cap_w":null,"use_percent":null,"vram_percent":null,` +
	`"vram_total_bytes":null,"vram_used_bytes":null,"pcie_replays":null,"numa_node":null`

// with replaces nulls of nothing.
func with(pairs ...string) string {
	s := nothing
	for i := 0; i < len(pairs); i += 2 {
		s = strings.Replace(s, `"`+pairs[i]+`":null`, `"`+pairs[i]+`":`+pairs[i+1], 1)
	}
	return s
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"concise.txt": `{"gpus":[{"gpu":0,"device_id":"0x74a1",` + with("temperature_c", "35", "power_w", "140", "power_cap_w", "750", "use_percent", "7", "vram_percent", "1") +
			`,"memory_partition":"NPS1","compute_partition":"SPX"},{"gpu":1,"device_id":"0x74a1",` + with("temperature_c", "37", "power_cap_w", "750", "use_percent", "0", "vram_percent", "1") +
			`,"memory_partition":"NPS1","compute_partition":"SPX"}]}`,
		"sections.txt": `{"driver":"6.8.5","gpus":[{"gpu":0,"bus":"0000:0c:00.0","device_id":"0x74a1","serial":"692340000001",` + with("temperature_c", "35", "numa_node", "0") +
			`,"ras":[{"block":"UMC","status":"ENABLED","correctable":0,"uncorrectable":2},{"block":"GFX","status":"DISABLED","correctable":null,"uncorrectable":null}]},` +
			`{"gpu":1,"bus":"0000:1c:00.0","device_id":"0x74a1","serial":"692340000002",` + with("numa_node", "1") + `}],` +
			`"links":[{"from":0,"to":1,"type":"XGMI","weight":15,"hops":null,"accessible":null},{"from":1,"to":0,"type":"XGMI","weight":15,"hops":null,"accessible":null}]}`,
		"cards.json": `{"driver":"6.8.5","gpus":[{"gpu":0,"bus":"0000:0c:00.0","device_id":"0x74a1","unique_id":"0x8d1457e2c20f59d2","serial":"692340000001","vbios":"113-MI3SRIOV-001",` +
			with("temperature_c", "35", "power_w", "133", "power_cap_w", "750", "use_percent", "0", "vram_total_bytes", "206141652992", "pcie_replays", "4") +
			`}],"links":[{"from":0,"to":1,"type":"XGMI","weight":15,"hops":1,"accessible":null}]}`,
	} {
		if got := asJSON(t, read(t, name)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
	if s := read(t, "cards.json").Summary(); s[1] != "GPU 0, 0000:0c:00.0, 692340000001, 35 C, 133 W" {
		t.Errorf("summary %q", s)
	}
}

// TestTableOfOldVersions: before ROCm 4 the table had no title, before ROCm 3 no
// memory; what is not known stands as N/A in its column.
func TestTableOfOldVersions(t *testing.T) {
	t.Parallel()
	const banner, end = "========================ROCm System Management Interface========================\n================================================================================\n",
		"================================================================================\n==============================End of ROCm SMI Log ==============================\n"
	for in, want := range map[string]string{
		"GPU  Temp   AvgPwr  SCLK    MCLK    Fan   Perf  PwrCap  SCLK OD  MCLK OD  GPU%  \n0    26.0c  3.0W    852Mhz  167Mhz  9.0%  auto  220.0W  1%       2%       7%    \n": with("temperature_c", "26", "power_w", "3", "power_cap_w", "220", "use_percent", "7"),
		"GPU  Temp   AvgPwr   SCLK    MCLK    Fan     Perf  PwrCap  VRAM%  GPU%  \n0    23.0c  30.203W  300Mhz  300Mhz  42.75%  auto  150.0W  N/A    5%    \n":                 with("temperature_c", "23", "power_w", "30.203", "power_cap_w", "150", "use_percent", "5"),
		"GPU  Temp   AvgPwr   SCLK    MCLK    Fan     Perf  PwrCap  VRAM%  GPU%  \n0    23.0c  30.203W  300Mhz  300Mhz  42.75%  auto  Unsupported  8%    N/A    \n":            with("temperature_c", "23", "power_w", "30.203", "vram_percent", "8"),
	} {
		r, p, err := Parse([]byte(banner + in + end))
		if got := asJSON(t, r); err != nil || len(p) > 0 || got != `{"gpus":[{"gpu":0,`+want+`}]}` {
			t.Errorf("%v, %v: got %s, want %s", p, err, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	sections := string(load(t, "sections.txt"))
	for _, c := range []struct {
		name, in string
		kind     tool.ProblemKind
		text     string
	}{
		{"no driver", "ERROR:root:Driver not initialized (amdgpu not found in modules)\n", tool.Failed, "amdgpu not found"},
		{"end", sections[:strings.LastIndex(sections, "=== End")], tool.Truncated, "End of ROCm SMI Log"},
		{"row", strings.Replace(sections, "GPU1   15           0\n", "", 1), tool.Truncated, "1 of 2 rows"},
		{"cell", strings.Replace(sections, "GPU1   15           0\n", "GPU1   15\n", 1), tool.Truncated, "has 1 of 2 columns"},
		{"JSON", string(load(t, "cards.json")[:300]), tool.Truncated, "the JSON ends"},
		{"twice", strings.Replace(sections, "0000:1C", "0000:0C", 1), tool.Inconsistent, "both at 0000:0c:00.0"},
		{"gap", strings.ReplaceAll(string(load(t, "cards.json")), "card0", "card3"), tool.Missing, "there is GPU 3, and only 1"},
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
	if _, _, err := Parse([]byte("GPU 0\n")); err == nil {
		t.Error("anything is taken for rocm-smi")
	}
}

// TestSamples reads outputs of real machines, where they are.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../../../shared/samples/rocm-smi/*")
	if len(files) == 0 {
		t.Skip("no samples beside this checkout")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, p, err := Parse(b)
		if err != nil || len(p) > 0 || len(r.GPUs) == 0 || matchFormat(b) < 80 {
			t.Errorf("%s: %d sure, %v, %v, %q", file, matchFormat(b), p, err, r.Summary())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"concise.txt", "sections.txt", "cards.json"} {
		f.Add(load(f, name))
	}
	f.Add([]byte("device,GPU use (%)\ncard0,7\n\nname, value\n\"Driver version\", \"6.8.5\"\n"))
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

// TestOneSection: a section of --showtopo that somebody quotes alone is whole.
func TestOneSection(t *testing.T) {
	t.Parallel()
	const section = "=============================== Link Type between two GPUs ===============================\n       GPU0         GPU1         \nGPU0   0            XGMI         \nGPU1   XGMI         0            \n"
	for name, in := range map[string]string{
		"alone":         section,
		"with its end":  section + "================================== End of ROCm SMI Log ===================================\n",
		"indented, CRs": strings.ReplaceAll("   "+strings.ReplaceAll(section, "\n", "\n   "), "\n", "\r\n"),
	} {
		r, p, err := Parse([]byte(in))
		if err != nil || len(p) > 0 || len(r.GPUs) != 2 || len(r.Links) != 2 || r.Links[0].Type != "XGMI" || matchFormat([]byte(in)) < 70 {
			t.Errorf("%s: %v, %v, %+v, %d sure", name, err, p, r, matchFormat([]byte(in)))
		}
	}
}
