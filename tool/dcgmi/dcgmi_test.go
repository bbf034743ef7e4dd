// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func problemTexts(problems tool.Problems) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s %d: %s", p.Kind, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

const (
	line = "+---------------------------+------------------------------------------------+\n"
	top  = "Successfully ran diagnostic for group.\n" + line + "| Diagnostic                | Result                                         |\n" +
		"+===========================+================================================+\n|-----  Metadata  ----------+------------------------------------------------|\n" +
		"| DCGM Version              | 3.3.9                                          |\n| Driver Version Detected   | 570.133.20                                     |\n" +
		"|-----  Deployment  --------+------------------------------------------------|\n| Denylist                  | Pass                                           |\n"
)

func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string // of the last test
		problems       string
	}{
		{"pass", top + line, `{"category":"Deployment","name":"Denylist","results":[{"entities":"","status":"pass"}]}`, ""},
		{"no end", top, `{"category":"Deployment","name":"Denylist","results":[{"entities":"","status":"pass"}]}`, "truncated 0: the table ends"},
		{"note over two rows", top + "| Info                      | Persistence mode is disabled for                |\n|                           | GPU 0.                                         |\n" + line,
			`{"category":"Deployment","name":"Denylist","results":[{"entities":"","status":"pass","info":["Persistence mode is disabled for GPU 0."]}]}`, ""},
		{"failed on some", top + "+-----  Hardware  ----------+------------------------------------------------|\n| GPU Memory                | Fail - GPUs: 1, 3                              |\n| Warning                   | ECC                                            |\n" + line,
			`{"category":"Hardware","name":"GPU Memory","results":[{"entities":"GPUs: 1, 3","status":"fail","warnings":["ECC"]}]}`, "failed 11: GPU Memory failed on GPUs: 1, 3: ECC"},
		{"each entity on a row", top + "| software                  | Fail                                           |\n|                           | GPU0: Pass                                     |\n|                           | GPU1: Fail                                     |\n" + line,
			`{"category":"Deployment","name":"software","results":[{"entities":"","status":"fail"},{"entities":"GPU0","status":"pass"},{"entities":"GPU1","status":"fail"}]}`, "failed 10: software failed on GPU1"},
		{"a note of one entity", top + "| memory                    | Fail                                           |\n|                           | GPU0: Fail                                     |\n| Warning: GPU0             | Something is not as it should be, and this wor |\n|                           | d goes on below.                               |\n|                           | GPU1: Not Run                                  |\n| Info: GPU1                | by request                                     |\n| Info: GPU2                | of nobody                                      |\n" + line,
			`{"category":"Deployment","name":"memory","results":[{"entities":"","status":"fail"},{"entities":"GPU0","status":"fail","warnings":["Something is not as it should be, and this word goes on below."]},` +
				`{"entities":"GPU1","status":"skip","info":["by request"]},{"entities":"GPU2","status":"unknown","info":["of nobody"]}]}`, "failed 10: memory failed on GPU0: Something"},
		{"an error of no test", "+--+--+\n| Diagnostic                | Result   |\n|-----  Deployment  --------+----------|\n| Error                     | GPU 3 has uncorrectable memory errors and row  |\n|                           |  remappings are pending                        |\n" + line,
			`{"category":"Deployment","name":"Deployment","results":[{"entities":"","status":"fail","warnings":["GPU 3 has uncorrectable memory errors and row remappings are pending"]}]}`, "failed 4: Deployment failed: GPU 3 has uncorrectable"},
	} {
		got, problems, err := Parse([]byte(c.in))
		if err != nil || len(got.Tests) == 0 {
			t.Errorf("%s: %v %+v", c.name, err, got)
			continue
		}
		b, _ := json.Marshal(got.Tests[len(got.Tests)-1])
		if string(b) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, b, c.want)
		}
		if s := problemTexts(problems); c.problems == "" && s != "" || !strings.Contains(s, c.problems) {
			t.Errorf("%s: got %s, want %s", c.name, s, c.problems)
		}
	}
	_, problems, err := Parse([]byte("Error: unable to establish a connection to the specified host: localhost\nError: Unable to run diagnostic. The nv-hostengine is not running.\n"))
	if err != nil || !strings.Contains(problemTexts(problems), "failed 2: Error: Unable to run diagnostic") {
		t.Errorf("%v %s", err, problemTexts(problems))
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	whole := `Warning: something
{"DCGM GPU Diagnostic":{"version":"3.1","test_categories":[{"category":"Hardware","tests":[{"name":"GPU Memory","results":[{"gpu_ids":"0","status":"PASS"},{"gpu_ids":"1","status":"FAIL","warnings":"bad","info":["a","b"]}]}]}]}}`
	got, problems, err := Parse([]byte(whole))
	if err != nil || got.Version != "3.1" || len(got.Tests) != 1 || len(got.Tests[0].Results[1].Info) != 2 || problemTexts(problems) != "failed 0: GPU Memory failed on GPU 1: bad" {
		t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
	}
	got, problems, err = Parse([]byte(whole[:len(whole)-30]))
	if err != nil || len(got.Tests) != 1 || !strings.Contains(problemTexts(problems), "truncated 0") {
		t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
	}
	_, problems, err = Parse([]byte(`{"DCGM Diagnostic":{"runtime_error":"The system is busy"}}`))
	if err != nil || !strings.Contains(problemTexts(problems), "failed 0: The system is busy") || !strings.Contains(problemTexts(problems), "missing 0") {
		t.Errorf("%v %s", err, problemTexts(problems))
	}
}

// TestSummaryOfJSON: a note of no entity stands in the summary of its test alone.
func TestSummaryOfJSON(t *testing.T) {
	t.Parallel()
	one := `{"DCGM Diagnostic":{"test_categories":[{"category":"Deployment","tests":[{"name":"software","results":[{"entity_group":"GPU","entity_id":0,"status":"Pass"}],` +
		`"test_summary":{"status":"Fail","warnings":[{"warning":"nothing works"}]}}]}]},"metadata":{"version":"4.2.3","Driver Version Detected":"575.57.08"}}`
	same := `{"DCGM Diagnostic":{"test_categories":[{"category":"Hardware","tests":[{"name":"memory","results":[{"entity_group":"GPU","entity_id":1,"status":"Fail","warnings":[{"warning":"bad"}]}],` +
		`"test_summary":{"status":"Fail","warnings":[{"warning":"bad"}]}}]}]}}`
	for in, want := range map[string]string{
		one:  "failed 0: software failed: nothing works",
		same: "failed 0: memory failed on GPU 1: bad",
		"{\n\"iterations\": [\n" + one + ",\n" + same + "],\n\"result\": \"Fail\",\n\"warning\": \"it ended early\"}\n": "failed 0: it ended early\nfailed 0: software failed: nothing works\nfailed 0: memory failed on GPU 1: bad",
	} {
		got, problems, err := Parse([]byte(in))
		if err != nil || problemTexts(problems) != want || in != same && (got.Version != "4.2.3" || got.Driver != "575.57.08") {
			t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
		}
	}
}

func TestErrorCounts(t *testing.T) {
	t.Parallel()
	in := "+-----------------------------+------------------+\n| NVLINK Error Counts                            |\n| GPU 3                                          |\n+=============================+==================+\n" +
		"| Link 0                      |                  |\n| -> CRC FLIT Error           | 4                |\n| -> Replay Error             | 0                |\n| Link 1                      |                  |\n" +
		"| -> CRC FLIT Error           | 2                |\n+-----------------------------+------------------+\n"
	got, problems, err := Parse([]byte(in))
	if err != nil || len(problems) > 0 || matchFormat([]byte(in)) == 0 || len(got.GPUs) != 1 || got.GPUs[0].ID != 3 || got.GPUs[0].Errors["Link 0"]["CRC FLIT Error"] != 4 || got.GPUs[0].Errors["Link 1"]["CRC FLIT Error"] != 2 {
		t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
	}
	if s := got.Summary(); s[0] != "GPU 3: 6 NVLink errors" {
		t.Errorf("%q", s)
	}
	for cut, want := range map[string]string{in[:strings.LastIndex(in, "\n+---")]: "truncated 0: the table ends before its end", strings.Replace(in, "| 4 ", "| x ", 1): `inconsistent 6: CRC FLIT Error: "x" is no count`} {
		if _, problems, err := Parse([]byte(cut)); err != nil || problemTexts(problems) != want {
			t.Errorf("%v %s", err, problemTexts(problems))
		}
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	in := "3 GPUs found (All).\n+--------+---------------------------+\n| GPU ID | Device Information        |\n+--------+---------------------------+\n" +
		"| 0      | Name: NVIDIA H100         |\n|        | PCI Bus ID: 00000000:1B:00.0 |\n| 1      | Status: Lost              |\n|        | Name: NVIDIA H100 (last known) |\n" +
		"|        | PCI Bus ID: 00000000:43:00.0 (last known) |\n+--------+---------------------------+\n"
	got, problems, err := Parse([]byte(in))
	want := "truncated 0: 3 GPUs are announced and 2 are listed\nfailed 0: GPU 1 is not active: Lost"
	if err != nil || matchFormat([]byte(in)) == 0 || problemTexts(problems) != want || got.GPUs[1].Name != "NVIDIA H100" || got.GPUs[1].BusID != "00000000:43:00.0" {
		t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
	}
}

// TestErrors: what dcgmi says instead of what was asked for.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"Error: Health watches not enabled. Please enable watches. \n",
		"Error: unable to establish a connection to the specified host: localhost\n",
		"Error: Cannot get GPU list from remote node. Return: Host engine connection invalid/disconnected\n",
		"Error: Unable to retrieve NvLink link status from DCGM. Return: Not supported.\n",
	} {
		_, problems, err := Parse([]byte(in))
		if err != nil || matchFormat([]byte(in)) == 0 || len(problems) != 1 || problems[0].Kind != tool.Failed {
			t.Errorf("%q: %v, %v", in, err, problems)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	in := "+--+\n|  NvLink Link Status  |\n+--+\nGPUs:\n    gpuId 0:\n        U U D X _\n    gpuId 1:\nNvSwitches:\n    physicalId 11:\n        U D\n\nKey: Up=U, Down=D, Disabled=X, Not Supported=_\n"
	got, problems, err := Parse([]byte(in))
	want := "truncated 0: GPU 1 has no states of links\nfailed 0: 1 NVLinks of GPU 0 are down\nfailed 0: 1 NVLinks of NVSwitch 11 are down"
	if err != nil || len(got.GPUs) != 2 || len(got.GPUs[0].Links) != 5 || problemTexts(problems) != want {
		t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
	}
	_, problems, _ = Parse([]byte("8 GPUs found.\n| GPU ID | Device Information |\n| 0      | Name: NVIDIA H100 |\n"))
	if problemTexts(problems) != "truncated 0: 8 GPUs are announced and 1 are listed" {
		t.Error(problemTexts(problems))
	}
}

// TestRealOutputs reads outputs of others when they lie beside the repository.
func TestRealOutputs(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../shared/samples/dcgmi-*/*")
	if len(files) == 0 {
		t.Skip("no samples beside the repository")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Parse(data)
		if err != nil || len(got.Tests) < 9 && len(got.GPUs) != 8 {
			t.Errorf("%s: %v %+v", filepath.Base(name), err, got)
		}
		for _, test := range got.Tests {
			for _, r := range test.Results {
				if r.Status == Unknown {
					t.Errorf("%s: %s: unknown", filepath.Base(name), test.Name)
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(top + line))
	f.Add([]byte(`{"DCGM Diagnostic":{"test_categories":[{"tests":[{"results":[{"warnings":[{"warning":"x"}]}]}]}]}}`))
	f.Add([]byte("|  NvLink Link Status  |\n    gpuId 0:\n        U U D X _\n"))
	f.Add([]byte(unwell))
	f.Add([]byte(unwellJSON))
	f.Add([]byte("8 GPUs found.\n| GPU ID | Device Information |\n| 0      | Name: NVIDIA H100 |\n"))
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

func TestGFLOPS(t *testing.T) {
	t.Parallel()
	c, _, err := Parse([]byte(`{"DCGM Diagnostic":{"test_categories":[{"category":"Stress","tests":[{"name":"diagnostic","results":[
		{"entity_group":"GPU","entity_id":0,"status":"Pass","info":["GPU 0 calculated at approximately 51234.56 gigaflops during this test","Running in generic mode per user request."]},
		{"entity_group":"GPU","entity_id":1,"status":"Pass","info":["GPU 1 calculated at approximately 0.00 gigaflops during this test"]},
		{"entity_group":"GPU","entity_id":2,"status":"Skip"}]}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.GFLOPS(); len(got) != 1 || got[0] != 51234.56 {
		t.Errorf("%v", got)
	}
}
