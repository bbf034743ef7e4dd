// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/result"
)

func span(values ...float64) (s wire.Span) {
	for _, v := range values {
		s.Add(v)
	}
	return s
}

func results(r result.Report, check string) (list []result.Result) {
	for _, one := range r.Results {
		if one.Check == check {
			list = append(list, one)
		}
	}
	return list
}

// TestBurnReport: the GPU that came nearest to its limit stands for those that are
// good, each that came too near stands for itself, and what nobody told is not judged.
func TestBurnReport(t *testing.T) {
	t.Parallel()
	r := Report{Asked: 30 * time.Minute, Seconds: 1812, Looks: 362, Vendor: "nvidia", Program: "dcgmi diag", Names: map[string]string{"a": "GPU 0"}, Rails: 8, Memories: 2, LinksTold: 9, Rates: map[string]burnin.Rate{"a": {Mean: 70e3, Best: 71e3}, "b": {Mean: 66e3, Best: 67e3}}, Least: 66500, Model: "MI300X", Source: "a file",
		GPUs: []wire.BurnGPU{{Address: "a", Core: span(60, 67), Clock: span(1755)}, {Address: "b", Core: span(60, 65), Clock: span(1755)}}, Left: map[string]float64{"a": 20, "b": 22}}
	good := r.Report("n1")
	for _, one := range good.Results {
		if one.Verdict != result.Pass || len(one.Nodes) != 1 {
			t.Errorf("%+v", one)
		}
	}
	if temp := results(good, burnTemperature); len(temp) != 1 || temp[0].Part != "GPU 0" || temp[0].Measured != 67 || temp[0].Limit != "<= 82 °C" {
		t.Errorf("%+v", temp)
	}
	if rate := results(good, burnRate); len(rate) != 1 || rate[0].Part != "GPU at b" || rate[0].Measured != 67e3 || rate[0].Limit != ">= 66500 GFLOPS" || !strings.Contains(rate[0].Rule, "a file") {
		t.Errorf("%+v", rate)
	}
	if links := results(good, burnLinks); len(links) != 1 || links[0].Measured != 0 {
		t.Errorf("%+v", links)
	}
	if len(good.NotJudged) != 0 {
		t.Errorf("not judged: %q", good.NotJudged)
	}

	r.Rates["a"], r.Links = burnin.Rate{Mean: 60e3, Best: 61e3}, map[string]burnin.LinkErrors{"a": {AER: 900, PerMinute: 60, Limit: 31}, "b": {AER: 1, PerMinute: 0.1, Limit: 31}}
	r.Left["b"], r.Worn, r.Seconds = 3, []string{"rail 3 counted"}, 900
	r.GPUs[1].Held = map[string]int{"hw_slowdown": 9, "hw_thermal_slowdown": 9, "sw_power_cap": 300}
	r.Faults, r.Memories = []judge.Fault{{Part: "GPU at b", Cause: "it is hot"}}, 0
	bad := r.Report("n1")
	for check, why := range map[string]string{burnTime: "ended early", burnFaults: "it is hot", burnTemperature: "3 °C were left", burnHeld: "held down", burnPorts: "rail 3 counted", burnRate: "below AMD's target", burnLinks: "more than a good link"} {
		if list := results(bad, check); len(list) != 1 || list[0].Verdict != result.Fail || !strings.Contains(list[0].Why, why) {
			t.Errorf("%s: %+v", check, list)
		}
	}
	if held := results(bad, burnHeld)[0]; held.Measured != 9 {
		t.Errorf("%+v", held)
	}
	if len(bad.NotJudged) != 1 || !strings.Contains(bad.NotJudged[0], "EDAC") {
		t.Errorf("not judged: %q", bad.NotJudged)
	}
	r.Vendor = "amd"
	if rep := r.Report("n1"); len(results(rep, burnHeld)) != 0 || len(rep.NotJudged) != 2 {
		t.Errorf("of AMD: %q", rep.NotJudged)
	}
	r.Least = 0
	if rep := r.Report("n1"); results(rep, burnRate)[0].Verdict != result.NotJudged || !strings.Contains(strings.Join(rep.NotJudged, "\n"), "no target known of MI300X: judged against the other GPUs alone") {
		t.Errorf("without a target: %q", rep.NotJudged)
	}
	r.Left = nil
	if temp := results(r.Report("n1"), burnTemperature); len(temp) != 1 || temp[0].Verdict != result.NotJudged {
		t.Errorf("%+v", temp)
	}
}

func TestHeatReport(t *testing.T) {
	t.Parallel()
	r := HeatReport{Slots: []cohort.Slot{{Address: "a", Median: 66, Most: 70, Nodes: 8}, {Address: "b", Median: 66, Most: 80, Nodes: 8}}}.Report()
	if len(r.Results) != 2 || r.Results[0].Verdict != result.Pass || r.Results[1].Verdict != result.Fail || r.Results[1].Measured != 14 {
		t.Errorf("%+v", r.Results)
	}
	if few := (HeatReport{Notes: []string{"too few"}}).Report(); few.Proves != "" || len(few.NotJudged) != 1 {
		t.Errorf("a comparison of nobody proves %q", few.Proves)
	}
}
