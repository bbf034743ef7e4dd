// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/subject"
)

// TestOperationsInReasons: what a plan says of a step that would write to a switch, by
// what the state and a look know of it, and which operations are in the plan.
func TestOperationsInReasons(t *testing.T) {
	t.Parallel()
	const id StepID = "net/leaf-1/fabric.x.switch"
	table := func(name, digest string) Input { return Input{Name: name, Value: "4 keys, sha256:" + digest} }
	step := Step{ID: id, Subject: subject.ID{Kind: subject.Switch, Name: "net/leaf-1"}, Version: 1,
		Inputs: []Input{{Name: "mtu", Value: "9000", Decl: SourceRange{File: "site.hcl", Line: 7}}, table("PORT", "aa"), table("QUEUE", "bb")}}
	same := LastSuccess{Version: 1, Inputs: step.Inputs}
	other := LastSuccess{Version: 1, Inputs: []Input{{Name: "mtu", Value: "1500"}, table("PORT", "cc"), table("QUEUE", "bb"), table("PFC_WD", "dd")}}
	tables := map[string]bool{"PORT": true, "QUEUE": true}
	few := []Operation{
		{Do: Changes, Table: "PORT", Key: "Ethernet0", Field: "mtu", From: "9100", To: "9216"},
		{Do: Adds, Table: "PORT", Key: "Ethernet0", Field: "fec", To: "rs"},
		{Do: Removes, Table: "PORT_QOS_MAP", Key: "Ethernet0", Field: "pfc_enable", From: "3,5"},
	}
	many := slices.Clone(few)
	for i := range 5 {
		many = append(many, Operation{Do: Changes, Table: "PORT", Key: fmt.Sprintf("Ethernet%d", 8+8*i), Field: "mtu", From: "9100", To: "9216"},
			Operation{Do: Adds, Table: "QUEUE", Key: fmt.Sprintf("Ethernet0|%d", i), To: "scheduler=A"})
	}
	var wide []Operation
	for i := range 8 {
		wide = append(wide, Operation{Do: Adds, Table: fmt.Sprintf("T%d", i), Key: "k"}, Operation{Do: Adds, Table: "T7", Key: fmt.Sprint(i)})
	}
	for name, c := range map[string]struct {
		done *LastSuccess
		seen Observation
		want []string // nil: nothing is planned
	}{
		"never done, nothing is known":            {nil, Observation{}, []string{"not done yet"}},
		"never done, and never read":              {nil, Observation{Evidence: "it was never read", Tells: map[string]bool{}}, []string{"not done yet: it was never read"}},
		"never done, and so already":              {nil, Observation{Evidence: "read now: 2 ports are configured", Tells: tables}, []string{"not done yet: read now: 2 ports are configured"}},
		"never done, and read":                    {nil, Observation{Differs: true, Evidence: "read now", Operations: few[:1], Tells: tables}, []string{"not done yet", "read now: 1 operation: 1 to change", "change: PORT|Ethernet0 mtu 9100 -> 9216"}},
		"done and the same":                       {&same, Observation{Evidence: "as read last", Operations: few, Tells: tables}, nil},
		"done, and another now":                   {&same, Observation{Differs: true, Evidence: "PORT|Ethernet0 mtu: 9100 -> 9216", Operations: few, Tells: tables}, []string{"observed: 3 operations: 1 to remove, 1 to change, 1 to add", "remove: PORT_QOS_MAP|Ethernet0 pfc_enable (is 3,5)", "change: PORT|Ethernet0 mtu 9100 -> 9216", "add: PORT|Ethernet0 fec rs"}},
		"done, and not saved":                     {&same, Observation{Differs: true, Evidence: "it is not saved"}, []string{"observed: it is not saved"}},
		"the site changed, it was read":           {&other, Observation{Evidence: "as read last", Operations: few[:1], Tells: tables}, []string{"mtu 1500 -> 9000 (site.hcl:7)", "PFC_WD is no longer given (was 4 keys, sha256:dd)", "as read last: 1 operation: 1 to change", "change: PORT|Ethernet0 mtu 9100 -> 9216"}},
		"the site changed, and the switch has it": {&other, Observation{Evidence: "as read last: nothing differs", Tells: tables}, []string{"mtu 1500 -> 9000 (site.hcl:7)", "PFC_WD is no longer given (was 4 keys, sha256:dd)", "as read last: nothing differs"}},
		"the site changed, it was not read":       {&other, Observation{Evidence: "it is not known", Tells: map[string]bool{}}, []string{"mtu 1500 -> 9000 (site.hcl:7)", "PORT 4 keys, sha256:cc -> 4 keys, sha256:aa", "PFC_WD is no longer given (was 4 keys, sha256:dd)", "it is not known"}},
		"the site changed, of another stage":      {&other, Observation{Evidence: "4 ports active"}, []string{"mtu 1500 -> 9000 (site.hcl:7)", "PORT 4 keys, sha256:cc -> 4 keys, sha256:aa", "PFC_WD is no longer given (was 4 keys, sha256:dd)"}},
		"many tables":                             {nil, Observation{Differs: true, Evidence: "read now", Operations: wide, Tells: tables}, []string{"not done yet", "read now: 16 operations: 16 to add", "add: T7 9, T0 1, T1 1, T2 1, T3 1, T4 1, 2 in 2 more tables"}},
		"many": {nil, Observation{Differs: true, Evidence: "read now", Operations: many, Tells: tables}, []string{"not done yet", "read now: 13 operations: 1 to remove, 6 to change, 6 to add", "remove: PORT_QOS_MAP|Ethernet0 pfc_enable (is 3,5)",
			"change: PORT|Ethernet0 mtu 9100 -> 9216, PORT|Ethernet8 mtu 9100 -> 9216, PORT|Ethernet16 mtu 9100 -> 9216, and 3 more (PORT 3)", "add: QUEUE 5, PORT 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prior := Prior{Steps: map[StepID]LastSuccess{}}
			if c.done != nil {
				prior.Steps[id] = *c.done
			}
			p, err := Diff([]Step{step}, prior, Options{Observed: map[StepID]Observation{id: c.seen}})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				if len(p.Steps)+len(p.Operations) > 0 {
					t.Errorf("planned: %+v, %+v", p.Steps, p.Operations)
				}
				return
			}
			if len(p.Steps) != 1 || !slices.Equal(p.Steps[0].Why, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(p.Steps[0].Why, "\n"), strings.Join(c.want, "\n"))
			}
			if !slices.Equal(p.Operations[id], c.seen.Operations) {
				t.Errorf("operations %+v", p.Operations)
			}
		})
	}
}

// TestOperationsAsJSON: other people's programs read them by these names.
func TestOperationsAsJSON(t *testing.T) {
	t.Parallel()
	p := Plan{Operations: map[StepID][]Operation{"s": {{Do: Changes, Table: "PORT", Key: "Ethernet0", Field: "mtu", From: "9100", To: "9216"}, {Do: Adds, Table: "INTERFACE", Key: "Ethernet0"}}}}
	b, err := json.Marshal(p.Operations)
	const want = `{"s":[{"do":"change","table":"PORT","key":"Ethernet0","field":"mtu","from":"9100","to":"9216"},{"do":"add","table":"INTERFACE","key":"Ethernet0"}]}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	all, err := json.Marshal(Plan{})
	if err != nil || strings.Contains(string(all), "operations") {
		t.Errorf("a plan without any: %s, %v", all, err)
	}
}
