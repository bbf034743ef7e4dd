// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	healthRule = "+---------------------------+----------------------------------------------------------+\n"
	unwell     = healthRule + `| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Failure                                                  |
| GPU                       |                                                          |
| -> 1                      | Failure                                                  |
|    -> Errors              |                                                          |
|       -> Memory system    | Failure                                                  |
|                           | A DBE ECC error has been detected in this GPU's memory:  |
|                           | drain it and reset it.                                   |
|       -> PCIe system      | Warning                                                  |
|                           | 9 PCIe replays in the last minute.                       |
` + healthRule
	unwellJSON = `{"body":{"GPU":{"children":{"1":{"children":{"Errors":{"children":{"Memory system":{"overflow":["A DBE ECC error has been detected in this GPU's memory:","drain it and reset it."],"value":"Failure"},` +
		`"PCIe system":{"overflow":["9 PCIe replays in the last minute."],"value":"Warning"}}}},"value":"Failure"}}},"Overall Health":{"value":"Failure"}},"header":["Health Monitor Report"]}`
)

func TestHealth(t *testing.T) {
	t.Parallel()
	want := `{"command":"health","version":"","driver":"","health":"fail","tests":[{"category":"GPU","name":"Memory system","results":[{"entities":"1","status":"fail","warnings":["A DBE ECC error has been detected in this GPU's memory: drain it and reset it."]}]},` +
		`{"category":"GPU","name":"PCIe system","results":[{"entities":"1","status":"warn","warnings":["9 PCIe replays in the last minute."]}]}]}`
	for _, in := range []string{unwell, unwellJSON} {
		got, problems, err := Parse([]byte(in))
		if err != nil || matchFormat([]byte(in)) < 90 || len(problems) != 2 || !strings.HasSuffix(problemTexts(problems), ": PCIe system warns on GPU 1: 9 PCIe replays in the last minute.") || !strings.HasSuffix(problemTexts(problems[:1]), ": Memory system failed on GPU 1: A DBE ECC error has been detected in this GPU's memory: drain it and reset it.") {
			t.Errorf("%v %s", err, problemTexts(problems))
		}
		if b, _ := json.Marshal(got); string(b) != want {
			t.Errorf("got\n%s\nwant\n%s", b, want)
		}
		if s := got.Summary(); len(s) != 3 || s[0] != "dcgmi health: fail" {
			t.Errorf("summary %q", s)
		}
	}
	for in, want := range map[string]string{
		healthRule + "| Health Monitor Report                                                                |\n" + healthRule + "| Overall Health            | Healthy                                                  |\n" + healthRule: "",
		"+------------------+\n| Health Monitor Report                                                     |\n+==+\n| Overall Health:    Healthy                                                |\n+------------------+\n":                 "",
		"| Health Monitor Report           |\n":             "missing 0: the overall health is not there",
		unwell[:strings.Index(unwell, "| GPU")]:             "truncated 0: the table ends before its end\nfailed 0: the overall health is failure",
		unwellJSON[:strings.Index(unwellJSON, `,"header"`)]: "truncated 0",
	} {
		if _, problems, err := Parse([]byte(in)); err != nil || want == "" && len(problems) > 0 || !strings.HasPrefix(problemTexts(problems), want) {
			t.Errorf("%q: %v %s", in, err, problemTexts(problems))
		}
	}
}
