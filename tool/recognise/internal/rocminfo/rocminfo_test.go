// SPDX-License-Identifier: Apache-2.0

package rocminfo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	whole := tooltest.ReadSample(t, "rocminfo.txt")
	i, p, err := Parse([]byte(whole))
	if err != nil || matchFormat([]byte(whole)) < 80 {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, p)
	got, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"runtime":"1.15","module":"6.12.12","xnack":false,"dmabuf":true,"agents":[` +
		`{"agent":1,"type":"CPU","name":"AMD EPYC 9654 96-Core Processor","marketing_name":"AMD EPYC 9654 96-Core Processor","uuid":"CPU-XX","node":0,"compute_units":96,"max_clock_mhz":2400,"chip_id":"0","bdf_id":0,"memory_kb":791000000},` +
		`{"agent":2,"type":"GPU","name":"gfx942","marketing_name":"AMD Instinct MI300X","uuid":"GPU-00112233aabbccdd","node":1,"compute_units":304,"max_clock_mhz":2100,"chip_id":"74a1","bdf_id":3072,"bus":"0c:00.0","memory_kb":201310208,` +
		`"isas":["amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-","amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-"]}]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := i.Summary(); len(s) != 3 || s[0] != "2 agents, 1 of them GPUs" || s[2] != "agent 2: GPU gfx942, AMD Instinct MI300X, 0c:00.0, GPU-00112233aabbccdd" {
		t.Errorf("summary %q", s)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tooltest.CheckWrong(t, Format, tooltest.ReadSample(t, "rocminfo.txt"), []tooltest.Case{
		{Name: "end", From: "*** Done ***", Kind: tool.Truncated, Text: "last line"},
		{Name: "agent left out", From: "Agent 2 ", To: "Agent 5 ", Kind: tool.Missing, Text: "agent 5 follows 1 agents"},
		{Name: "no type", From: "  Device Type:             GPU", Kind: tool.Truncated, Text: "agent 2 has no name or no type"},
		{Name: "dots", From: "  ISA Info:                \n*******", To: "[...]\n*******", Kind: tool.Missing, Text: "lines are left out here"},
		{Name: "heading", From: "*******                  \nAgent 2                  \n*******                  \n", Kind: tool.Missing, Text: "Name of agent 1 is there twice"},
		{Name: "call", From: "*** Done ***", To: "hsa api call failure at: rocminfo.cc:1282\n*** Done ***", Kind: tool.Failed, Text: "hsa api call failure"},
	})
	cut := strings.Replace(tooltest.ReadSample(t, "rocminfo.txt"), "Agent 2  ", "...\n", 1)
	if i, _, err := Parse([]byte(cut)); err != nil || len(i.Agents) != 1 || *i.Agents[0].Units != 96 || i.Agents[0].ISAs != nil {
		t.Errorf("values of an agent whose heading is left out: %v, %+v", err, i.Agents)
	}
	for _, in := range []string{
		"ROCk module is NOT loaded, possibly no GPU devices\n",
		"ROCk module is loaded\nUnable to open /dev/kfd read-write: Permission denied\n",
	} {
		_, p, err := Parse([]byte(in))
		if err != nil || len(p) != 1 || p[0].Kind != tool.Failed || matchFormat([]byte(in)) == 0 {
			t.Errorf("%q: %v, %v", in, p, err)
		}
	}
	if _, _, err := Parse([]byte("Agent: 4\n")); err == nil || !strings.Contains(err.Error(), "no agent") {
		t.Errorf("anything is taken for rocminfo: %v", err)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "rocminfo.txt") }
