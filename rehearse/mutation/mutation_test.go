// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/traits"
	"github.com/ironrail/ironrail/validate/speed"
	networks "github.com/ironrail/ironrail/validate/throughput/cohort"
	"github.com/ironrail/ironrail/validate/uniform"
)

var update = flag.Bool("update", false, "write docs/not-judged.md, and print what is missing in the list")

// page is where the list is shown.
const page = "../../docs/not-judged.md"

// atRest is what a node shows at rest: its parts by the agent and by the programs of its
// GPUs, its versions, and its chassis by the BMC.
type atRest struct {
	Seen    look.Seen
	Items   []wire.Item
	Chassis host.Chassis
}

// verdict is what checks make of four nodes, of which the first was changed.
type verdict struct {
	faults []string // of the first node
	notes  []string // that its report shows, those that are not judged included
	others []string // faults of the other nodes
}

// TestPage: the page is that of the list.
func TestPage(t *testing.T) {
	t.Parallel()
	if *update {
		if err := os.WriteFile(page, []byte(Page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil || string(have) != Page() {
		t.Errorf("docs/not-judged.md is not that of the list: run go test ./rehearse/mutation -update (%v)", err)
	}
}

// mutate changes each field of the first of four values, and compares what is found with
// the list.
//
// Fields that begin with one of the words in but are left out: another source has them.
func mutate[T any](t *testing.T, source string, four [4]T, decide func([4]T) verdict, but ...string) {
	t.Helper()
	listed, err := excused()
	if err != nil {
		t.Fatal(err)
	}
	if sources[source] == "" {
		t.Errorf("source %s is not in the list of sources", source)
	}
	base := decide(four)
	if len(base.faults)+len(base.others) > 0 {
		t.Fatalf("nodes that are well have faults: %q, %q", base.faults, base.others)
	}
	found, missed, total := 0, map[string]string{}, 0
	texts, textFaults, textNotes := 0, 0, 0
	seen := map[string]bool{}
	for i, f := range fieldsOf(copyOf(reflect.ValueOf(&four[0]).Elem())) {
		seen[plain(f.path)] = true
		if begins(f.path, but) {
			continue
		}
		tried := false
		for _, c := range changes {
			node := copyOf(reflect.ValueOf(&four[0]).Elem())
			if !fieldsOf(node)[i].change(c, othersOf(f, four)) {
				continue
			}
			tried, total = true, total+1
			changed := four
			changed[0] = node.Interface().(T)
			v := decide(changed)
			if len(v.others) > 0 {
				t.Errorf("%s %s %c: other nodes are blamed: %q", source, f.path, c, v.others)
			}
			text := isText(f)
			texts += text
			if len(v.faults) > 0 {
				found, textFaults = found+1, textFaults+text
				continue
			}
			if tells(base.notes, v.notes) {
				found, textNotes = found+1, textNotes+text
				continue
			}
			missed[source+" "+f.path] += string(c)
		}
		if !tried {
			missed[source+" "+f.path] += string(Valueless)
		}
	}
	for _, p := range typePaths(reflect.TypeFor[T]()) {
		if !seen[p] && !begins(p, but) {
			missed[source+" "+p] += string(Valueless)
		}
	}
	t.Logf("%s: %d changes, %d found; %d fields have a reason. Of texts %d changes: %d are faults, %d are noted", source, total, found, len(missed), texts, textFaults, textNotes)
	compare(t, source, missed, listed)
}

// isText is 1 of a field that is a text.
func isText(f field) int {
	if f.drop == nil && (f.get.Kind() == reflect.String || f.get.Kind() == reflect.Pointer && f.get.Type().Elem().Kind() == reflect.String) {
		return 1
	}
	return 0
}

// compare holds what was missed against the list, both ways.
func compare(t *testing.T, source string, missed, listed map[string]string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(missed)) {
		for _, c := range missed[key] {
			if !strings.ContainsRune(listed[key], c) {
				t.Errorf("MISSING %q: it is not found, and has no reason in the list", key+" "+string(c))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		if !strings.HasPrefix(key, source+" ") {
			continue
		}
		for _, c := range listed[key] {
			if !strings.ContainsRune(missed[key], c) {
				t.Errorf("STALE %q: the list has a reason for it, and it is found, or is no field", key+" "+string(c))
			}
		}
	}
}

// begins reports whether a path begins with one of some words.
func begins(path string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(path, w) })
}

// tells reports whether the report of a node says something that it did not before.
func tells(before, after []string) bool {
	return slices.ContainsFunc(after, func(n string) bool { return !slices.Contains(before, n) })
}

// othersOf are the values of a field on the other nodes, and those of other elements of its
// lists on this one.
func othersOf[T any](f field, four [4]T) (list []reflect.Value) {
	if f.drop != nil {
		return nil
	}
	for i := range four {
		list = append(list, valuesAt(reflect.ValueOf(&four[i]).Elem(), f.path)...)
	}
	return list
}

// valuesAt are the values of all elements of a path.
func valuesAt(root reflect.Value, path string) (list []reflect.Value) {
	w := collector{path: path}
	w.walk("", root)
	return w.list
}

type collector struct {
	path string
	list []reflect.Value
}

func (w *collector) walk(path string, v reflect.Value) {
	if path == w.path && v.Kind() != reflect.Struct && v.Kind() != reflect.Slice && v.Kind() != reflect.Map && !(v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct) {
		w.list = append(w.list, v)
		return
	}
	if !strings.HasPrefix(w.path, path) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				w.walk(join(path, f), v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			w.walk(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(path+"["+labelOf(v.Index(i))+"]", v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			w.walk(path+"{"+fmt.Sprint(k)+"}", v.MapIndex(k))
		}
	}
}

// atRestOf reads four virtual nodes, as the gates and the comparison of a role do.
func atRestOf(t *testing.T, gpus inventory.GPU) (h *inventory.Hardware, four [4]atRest) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(4, 2, 400e9)
		image := *inv.Nodes[0].Image
		image.Packages = append(slices.Clone(image.Packages), "chrony")
		for _, n := range inv.Nodes {
			n.Image = &image
		}
		h = inv.Nodes[0].Hardware
		h.GPUs = []inventory.GPU{gpus}
		h.Power.Supplies = 2
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		for i, n := range inv.Nodes {
			seen, _, err := look.ReadNode(t.Context(), r, n.Name, h)
			if err != nil {
				t.Fatal(err)
			}
			var b wire.Baseline
			if err := onnode.Agent(t.Context(), r, n.Name, wire.BaselineParams{Bare: true}, &b, "baseline"); err != nil {
				t.Fatal(err)
			}
			seen.Fabrics = []string{"rail"}
			four[i] = atRest{seen, b.Items, chassisOf()}
			complete(&four[i].Seen.Health)
		}
	})
	return h, four
}

// complete adds what the rig's nodes have no device for, disks' logs, transceivers and the module of
// NVIDIA's driver, and what the stage of fabrics sets on rails.
func complete(h *wire.Health) {
	open := true
	h.OpenGPU = &open
	for i := range h.Ports {
		h.Ports[i].State, h.Ports[i].Physical = "ACTIVE", "LinkUp"
	}
	for i := range h.Disks {
		h.Disks[i].SMART, h.Disks[i].Why = &wire.SMART{Spare: 100, SpareLeast: 10, Used: 1, Hours: 40}, ""
	}
	for i := range h.PCI {
		if h.PCI[i].MTU != nil && h.PCI[i].Vendor == "15b3" {
			mtu := int64(9000)
			h.PCI[i].MTU, h.PCI[i].Transceiver = &mtu, &wire.Transceiver{Maker: "NVIDIA", Part: "MMS4X00-NS", Serial: fmt.Sprintf("MT%d", i), Firmware: "46.120", Received: []float64{0.5, 0.7}, Sent: []float64{1.1, 1.2}}
		}
	}
}

// chassisOf is a chassis that is well.
func chassisOf() host.Chassis {
	celsius, limit, turns := 22.0, 35.0, 5400.0
	return host.Chassis{Logged: true, Parts: []chassis.Part{{Kind: chassis.Supply, Name: "PSU1"}, {Kind: chassis.Supply, Name: "PSU2"}, {Kind: chassis.Fan, Name: "FAN1", Speed: &turns}, {Kind: chassis.Fan, Name: "FAN2", Speed: &turns},
		{Kind: chassis.Inlet, Name: "Inlet", Reading: &celsius, Limit: &limit}},
		Log: []chassis.LogEntry{{ID: "7", Severity: "OK", Message: "Power was switched on", Sensor: "Power Unit"}}}
}

// judgeAtRest is what the gates and the comparison of the role say.
func judgeAtRest(h *inventory.Hardware) func([4]atRest) verdict {
	return func(four [4]atRest) (v verdict) {
		n := four[0]
		faults, notes, outcomes := gate.JudgeEach(h, nil, n.Seen)
		more, said := host.JudgeChassis(h, n.Chassis)
		for _, f := range append(faults, more...) {
			v.faults = append(v.faults, f.Cause)
		}
		for _, o := range append(outcomes, host.ChassisOutcomes(h, n.Chassis)...) {
			if o.Verdict == judge.NotJudged {
				notes = append(notes, o.Gate+" is not judged")
			}
		}
		v.notes = append(append(v.notes, notes...), said...)
		var nodes []uniform.Node
		for i, x := range four {
			name := fmt.Sprintf("n%d", i+1)
			nodes = append(nodes, uniform.Node{Name: name, Record: uniform.Record{Cohort: "c", Traits: append(traits.Common(name, x.Seen, x.Items), traits.Chassis(h, x.Chassis.Parts)...)}})
		}
		for _, s := range uniform.FindSilent(nodes) {
			text := fmt.Sprintf("%s tells %s of %d parts and most of %d", s.Node, s.Key, s.Told, s.Usual)
			if s.Node == "n1" {
				v.notes = append(v.notes, text)
			} else {
				v.others = append(v.others, text)
			}
		}
		for _, row := range uniform.CompareNodes(nodes) {
			for _, o := range row.Odd {
				text := fmt.Sprintf("%s: %s is %s", o.Node, row.Name(), o.Value)
				switch {
				case o.Node != "n1":
					v.others = append(v.others, text)
				case row.Kind().Fault:
					v.faults = append(v.faults, text)
				default:
					v.notes = append(v.notes, text)
				}
			}
		}
		return v
	}
}

func TestNVIDIAAtRest(t *testing.T) {
	t.Parallel()
	h, four := atRestOf(t, inventory.GPU{Vendor: "nvidia", Model: "H100", Count: 2, Memory: 81559 << 20, Interconnect: "nvswitch"})
	mutate(t, "NVIDIA", four, judgeAtRest(h), "Seen.AMD")
}

// amdOf is what amd-smi says of two GPUs that are well: the outputs that its parser is
// tested with, of the GPUs of a node.
func amdOf(t *testing.T, h wire.Health) *amdsmi.Report {
	t.Helper()
	var all []byte
	for _, name := range []string{"static.json", "metric.json"} {
		b, err := os.ReadFile("../../tool/amdsmi/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.ReplaceAll(string(b), `"total_uncorrectable_count": 4`, `"total_uncorrectable_count": 0`)+"\n"...)
	}
	all = append(all, `[{"gpu": 0, "retired": "No bad pages found."}, {"gpu": 1, "retired": "No bad pages found."}]`+"\n"...)
	r, _, err := amdsmi.Parse(all)
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, l := range h.PCI {
		if judge.IsGPU(l.Class) {
			at = append(at, l.Address)
		}
	}
	if len(at) != 2 || len(r.GPUs) != 2 {
		t.Fatalf("%d GPUs on the bus, %d in amd-smi, want 2", len(at), len(r.GPUs))
	}
	for i := range r.GPUs {
		r.GPUs[i].BDF = at[i]
	}
	r.Links = []amdsmi.Link{{From: 0, To: 1, FromBDF: at[0], ToBDF: at[1], Type: "XGMI", Access: "ENABLED"}}
	return &r
}

func TestAMDAtRest(t *testing.T) {
	t.Parallel()
	h, four := atRestOf(t, inventory.GPU{Vendor: "amd", Model: "MI300X", Count: 2, Memory: 192 << 30, Interconnect: "xgmi"})
	for i := range four {
		four[i].Seen.AMD, four[i].Seen.Gaps = amdOf(t, four[i].Seen.Health), nil
	}
	mutate(t, "AMD", four, judgeAtRest(h), "Seen.NVIDIA", "Seen.Links", "Seen.Health", "Seen.Kernel", "Seen.Time", "Seen.Gaps", "Seen.Fabrics", "Seen.Broken", "Items", "Chassis")
}

// passed is dcgmi diag -j of a test that passed on both GPUs.
const passed = `{"DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": [{"name": "diagnostic", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}, {"entity_group": "GPU", "entity_id": 1, "status": "Pass"}]}]}]}}`

// burntAt is where the GPUs of a burn-in are.
var burntAt = []string{"0000:19:00.0", "0000:3b:00.0"}

// burnt is what is seen of a node while its GPUs are loaded, as far as it is changed.
type burnt struct {
	Result        wire.BurnResult
	Names         map[string]string
	NVIDIA        *nvidiasmi.Log
	Before, After []wire.MemoryErrors
}

func (b burnt) seen() burnin.Seen {
	listed := nvidiasmi.Log{GPUs: []nvidiasmi.GPU{{BusID: burntAt[0]}, {BusID: burntAt[1]}}}
	return burnin.Seen{Result: b.Result, Names: b.Names, Before: look.Seen{NVIDIA: &listed, Health: wire.Health{Memory: b.Before}}, After: look.Seen{NVIDIA: b.NVIDIA, Health: wire.Health{Memory: b.After}}}
}

// judgeBurnIn judges what is seen of the first of some nodes by itself, and against the others.
func judgeBurnIn(gpus inventory.GPU, seen burnin.Seen, nodes []cohort.Node) (v verdict) {
	const long = 10 * time.Minute
	faults, notes, err := burnin.Judge(burnin.Of(&inventory.Hardware{GPUs: []inventory.GPU{gpus}}, long), long, seen)
	if err != nil {
		v.faults = append(v.faults, err.Error())
	}
	for _, f := range faults {
		v.faults = append(v.faults, f.Cause)
	}
	v.notes = notes
	_, odd := cohort.CompareNodes(nodes)
	for _, o := range odd {
		switch {
		case o.Node != "n1":
			v.others = append(v.others, o.Cause)
		case o.Note:
			v.notes = append(v.notes, o.Cause)
		default:
			v.faults = append(v.faults, o.Cause)
		}
	}
	return v
}

// TestBurnIn changes what is seen of a node while its GPUs are loaded.
func TestBurnIn(t *testing.T) {
	t.Parallel()
	span := func(least, most, mean float64) wire.Span {
		return wire.Span{Least: least, Most: most, Mean: mean, Count: 120}
	}
	slowdown, limit := 87.0, 700.0
	var four [4]burnt
	for i := range four {
		r := wire.BurnResult{Output: passed, Seconds: 601, Looks: 120}
		log := nvidiasmi.Log{}
		for _, at := range burntAt {
			r.GPUs = append(r.GPUs, wire.BurnGPU{Address: at, Core: span(55, 68, 66), Memory: span(60, 78, 75), Power: span(640, 700, 690), Clock: span(1500, 1600, 1550),
				Left: span(17, 30, 20), MemLeft: span(17, 30, 20), Held: map[string]int{"sw_power_cap": 118}})
			g := nvidiasmi.GPU{BusID: at}
			g.Temperature.Slowdown, g.Power.Limit = &slowdown, &limit
			log.GPUs = append(log.GPUs, g)
		}
		four[i] = burnt{Result: r, Names: map[string]string{}, NVIDIA: &log, Before: []wire.MemoryErrors{{Controller: "mc0"}}, After: []wire.MemoryErrors{{Controller: "mc0"}}}
	}
	mutate(t, "burn-in", four, func(four [4]burnt) verdict {
		var nodes []cohort.Node
		for i, s := range four {
			nodes = append(nodes, cohort.Node{Name: fmt.Sprintf("n%d", i+1), GPUs: s.Result.GPUs, Names: s.Names})
		}
		return judgeBurnIn(inventory.GPU{Vendor: "nvidia", Model: "H100", Count: 2}, four[0].seen(), nodes)
	}, "NVIDIA.Attached", "NVIDIA.CUDA", "NVIDIA.Driver", "NVIDIA.Time", "NVIDIA.GPUs[].A", "NVIDIA.GPUs[].B", "NVIDIA.GPUs[].C", "NVIDIA.GPUs[].D", "NVIDIA.GPUs[].E", "NVIDIA.GPUs[].F", "NVIDIA.GPUs[].G",
		"NVIDIA.GPUs[].I", "NVIDIA.GPUs[].M", "NVIDIA.GPUs[].N", "NVIDIA.GPUs[].Pa", "NVIDIA.GPUs[].Pe", "NVIDIA.GPUs[].Pl", "NVIDIA.GPUs[].Pr", "NVIDIA.GPUs[].PC", "NVIDIA.GPUs[].R", "NVIDIA.GPUs[].S", "NVIDIA.GPUs[].U", "NVIDIA.GPUs[].V",
		"NVIDIA.GPUs[].Power.D", "NVIDIA.GPUs[].Power.M", "NVIDIA.GPUs[].Temperature.G", "NVIDIA.GPUs[].Temperature.L", "NVIDIA.GPUs[].Temperature.M")
}

// burntAMD is what is seen of a node while its GPUs of AMD are loaded: what their firmware
// and their links counted by the end, since the load began.
type burntAMD struct {
	Result  wire.BurnResult
	Counted []countedAMD
}

type countedAMD struct {
	Ticks, Replays, HBM int64
	Held                map[string]int64
}

// look is what amd-smi says of GPUs that have counted so much.
func (b burntAMD) look(part int64) look.Seen {
	var r amdsmi.Report
	for i, c := range b.Counted {
		m := &amdsmi.Metric{Ticks: new(part * c.Ticks), Replays: new(part * c.Replays), Accumulated: map[string]int64{}, Blocks: map[string]amdsmi.ECC{"UMC": {Correctable: new(part * c.HBM)}}}
		for name, n := range c.Held {
			m.Accumulated[name] = part * n
		}
		r.GPUs = append(r.GPUs, amdsmi.GPU{GPU: i, BDF: burntAt[min(i, 1)], Metric: m})
	}
	width, speed := 16, 32.0
	s := look.Seen{AMD: &r}
	for _, at := range burntAt {
		s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: at, Class: "030200", Vendor: "1002", Width: &width, MaxWidth: &width, Speed: &speed, MaxSpeed: &speed})
	}
	return s
}

// TestBurnInOfAMD changes what is seen of a node while its GPUs of AMD are loaded.
func TestBurnInOfAMD(t *testing.T) {
	t.Parallel()
	span := func(least, most, mean float64) wire.Span {
		return wire.Span{Least: least, Most: most, Mean: mean, Count: 120}
	}
	output := ""
	for _, id := range []string{"28851", "23018"} {
		output += "[RESULT] [ 10000.1     ] [burn-in] [GPU:: " + id + "] Start of GPU ramp up\n[RESULT] [ 11800.1     ] [burn-in] [GPU:: " + id + "] GFLOPS 81290 Target GFLOPS: 70000 met: TRUE\n"
	}
	var four [4]burntAMD
	for i := range four {
		r := wire.BurnResult{Output: output, Seconds: 601, Looks: 120, KFD: map[string]string{"28851": burntAt[0], "23018": burntAt[1]}}
		for _, at := range burntAt {
			r.GPUs = append(r.GPUs, wire.BurnGPU{Address: at, Core: span(55, 78, 76), Memory: span(60, 78, 75), Power: span(640, 750, 740), Clock: span(1900, 2100, 2000), Left: span(17, 30, 20), MemLeft: span(17, 30, 20)})
			four[i].Counted = append(four[i].Counted, countedAMD{Ticks: 600_000, Replays: 20, Held: map[string]int64{"ppt": 500_000, "socket_thermal": 10, "hbm_thermal": 10, "vr_thermal": 10, "prochot": 10}})
		}
		four[i].Result = r
	}
	mutate(t, "gst burn-in", four, func(four [4]burntAMD) verdict {
		seen := burnin.Seen{Result: four[0].Result, Names: map[string]string{}, Before: four[1].look(0), After: four[0].look(1)}
		var nodes []cohort.Node
		for i, s := range four {
			nodes = append(nodes, cohort.Node{Name: fmt.Sprintf("n%d", i+1), GPUs: s.Result.GPUs, Names: map[string]string{}})
		}
		return judgeBurnIn(inventory.GPU{Vendor: "amd", Model: "MI300X", Count: 2}, seen, nodes)
	})
}

// TestBandwidth changes what is measured of a node's GPUs by themselves.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 8, Interconnect: "nvswitch"}}}
	var four [4]bandwidth.Output
	for i := range four {
		o := bandwidth.Output{Vendor: "nvidia", Program: "nvbandwidth 0.8", Params: "-t all", Printed: []byte("SUM")}
		for _, m := range bandwidth.Measures {
			least, _ := floor.OfGPU(h, m.Name)
			for g := range 8 {
				f := bandwidth.Figure{Measure: m.Name, GPU: fmt.Sprintf("0000:%d9:00.0", g), Rate: max(least, 1e10) * 1.05}
				for p := range 8 {
					if f.Peer = fmt.Sprintf("0000:%d9:00.0", p); m.Between && p != g {
						o.Figures = append(o.Figures, f)
					}
				}
				if f.Peer = ""; !m.Between {
					o.Figures = append(o.Figures, f)
				}
			}
		}
		four[i] = o
	}
	mutate(t, "bandwidth", four, func(four [4]bandwidth.Output) (v verdict) { return judgeMoves(h, four[0]) })
}

// judgeMoves judges the bandwidths of a node's GPUs.
func judgeMoves(h *inventory.Hardware, o bandwidth.Output) (v verdict) {
	for _, j := range bandwidth.Judge(h, o, func(string) bandwidth.Limit { return bandwidth.Limit{} }) {
		for _, f := range j.Bad {
			v.faults = append(v.faults, fmt.Sprintf("%s of %s", j.Measure.Name, f.GPU))
		}
	}
	v.notes = bandwidth.FindGaps(h, o)
	return v
}

// TestHost changes what is measured of a node's memory, CPUs and disks.
func TestHost(t *testing.T) {
	t.Parallel()
	var four [4]wire.Speed
	for i := range four {
		s := wire.Speed{CPU: wire.CPU{Model: "Intel(R) Xeon(R) Platinum 8480C", Sockets: 2, Cores: 8, Threads: 16, NUMA: 2}}
		for k := range 16 {
			s.DIMMs = append(s.DIMMs, wire.Module{Slot: fmt.Sprintf("DIMM%d", k), Size: 64 << 30, Speed: 4800})
		}
		for k := range 8 {
			s.Cores = append(s.Cores, wire.CoreSpeed{CPU: k, Node: k / 4, Rate: 480e6})
		}
		for k := range 2 {
			s.NUMA = append(s.NUMA, wire.NUMASpeed{Node: k, Cores: 4, Rate: 170e9})
			s.Disks = append(s.Disks, wire.DiskSpeed{Disk: wire.Disk{Name: fmt.Sprintf("nvme%dn1", k), Path: fmt.Sprintf("/dev/nvme%dn1", k), ByPath: fmt.Sprintf("pci-0000:5%d:00.0-nvme-1", k), Type: "nvme", Model: "PM9A3", Size: 3840755982336},
				Read: 2 << 30, Seconds: 0.3})
		}
		four[i] = s
	}
	mutate(t, "host", four, func(four [4]wire.Speed) (v verdict) {
		var nodes []speed.Node
		for i, s := range four {
			nodes = append(nodes, speed.Node{Name: fmt.Sprintf("n%d", i+1), Record: speed.NewRecord(s, speed.Limits{})})
		}
		return judgeSpeeds(nodes)
	}, "DIMMs[].Ma", "DIMMs[].P", "DIMMs[].Se", "DIMMs[].Sl", "Error")
}

// TestNetwork changes what a node has seen of a measurement of its boot network.
func TestNetwork(t *testing.T) {
	t.Parallel()
	names := []string{"n4", "n3", "n2", "n1"} // the last connects to the others, and looks for the largest packet
	var four [4]wire.Throughput
	for i := range four {
		four[i] = wire.Throughput{Link: wire.NetworkLink{Netdev: "eth0", PCI: fmt.Sprintf("0000:%d1:00.0", i), Address: fmt.Sprintf("10.1.0.%d", i+1), MTU: 1500, Bits: 25e9},
			Received: wire.Received{Bytes: 4_900_000_000, Seconds: 5.0 / 3}, Sent: wire.Sent{Segments: 4_000_000, Again: 100}, Path: &wire.PathMTU{Asked: 1500, Sent: 1500, Received: 1500}}
	}
	mutate(t, "network", four, func(four [4]wire.Throughput) (v verdict) {
		causes, notes := networks.JudgeNodes(names, func(a, b int) (wire.Throughput, wire.Throughput) { return four[3-a], four[3-b] })
		v.faults, v.notes = causes["n1"], notes
		for _, n := range append(names[:3:3], "") {
			v.others = append(v.others, causes[n]...)
		}
		return v
	}, "Error")
}

// judgeSpeeds judges what is measured of hosts, of which the first may be another.
func judgeSpeeds(nodes []speed.Node) (v verdict) {
	for _, f := range nodes[0].Faults {
		v.faults = append(v.faults, f.Cause)
	}
	_, found, notes := speed.CompareNodes(nodes)
	v.notes = append(nodes[0].Notes, notes...)
	for _, o := range found {
		v.add(o.Node, o.Cause)
	}
	return v
}
