// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory/unit"
)

// chart writes a plan as text: one step a line, "id seconds needs... uses...",
// with needs as <id, uses as name:units and uses until released as name:units!.
func chart(t *testing.T, text string) (*plan.Plan, []Row) {
	t.Helper()
	p := &plan.Plan{}
	var rows []Row
	for line := range strings.Lines(strings.TrimSpace(text)) {
		f := strings.Fields(line)
		var seconds float64
		if _, err := fmt.Sscan(f[1], &seconds); err != nil {
			t.Fatal(err)
		}
		s := plan.Step{ID: plan.StepID(f[0]), Stage: "work", Subject: subject.OfNode("n")}
		for _, w := range f[2:] {
			if id, ok := strings.CutPrefix(w, "<"); ok {
				s.Needs = append(s.Needs, plan.Need{Step: plan.StepID(id), On: plan.Settled})
				continue
			}
			name, units, _ := strings.Cut(w, ":")
			u := plan.Use{Resource: name, Hold: plan.ForStep}
			if strings.HasSuffix(units, "!") {
				u.Hold = plan.UntilReleased
			}
			if _, err := fmt.Sscan(strings.TrimSuffix(units, "!"), &u.Units); err != nil {
				t.Fatal(err)
			}
			s.Uses = append(s.Uses, u)
		}
		p.Steps = append(p.Steps, s)
		rows = append(rows, exact(f[0], time.Duration(seconds*float64(time.Second))))
	}
	return p, rows
}

// exact is a row without any spread.
func exact(kind string, d time.Duration) Row {
	return Row{Kind: kind, Low: d, Mid: d, High: d, Source: "test"}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, plan string
		capacity   map[string]int
		parallel   int
		hold       float64
		want       time.Duration
		path       string // kinds, each with what it waited for
	}{
		{"a chain adds up", "a 10\nb 20 <a\nc 5 <b", nil, 0, 0, 35 * time.Second, "a(start) b(need) c(need)"},
		{"the longer branch counts", "a 10\nb 20\nc 5 <a <b", nil, 0, 0, 25 * time.Second, "b(start) c(need)"},
		{"a resource makes a row of it", "a 10 r:1\nb 10 r:1\nc 10 r:1", map[string]int{"r": 1}, 0, 0, 30 * time.Second, "a(start) b(r) c(r)"},
		{"two units are two at a time", "a 10 r:1\nb 10 r:1\nc 10 r:1", map[string]int{"r": 2}, 0, 0, 20 * time.Second, "a(start) c(r)"},
		{"a resource without a capacity holds nobody", "a 10 r:1\nb 10 r:1", nil, 0, 0, 10 * time.Second, "a(start)"},
		{"a prefix names each of its resources", "a 10 inrush/x:1\nb 10 inrush/y:1\nc 10 inrush/y:1", map[string]int{"inrush/": 1}, 0, 0, 20 * time.Second, "b(start) c(inrush/y)"},
		{"steps at once", "a 10\nb 10\nc 10", nil, 2, 0, 20 * time.Second, "a(start) c(steps)"},
		{"held to the end of the step", "a 10 r:1!\nb 10 r:1!", map[string]int{"r": 1}, 0, 0, 20 * time.Second, "a(start) b(r)"},
		{"held until released", "a 10 r:1!\nb 10 r:1!", map[string]int{"r": 1}, 0, 0.25, 12500 * time.Millisecond, "a(start) b(r)"},
		{"a large claim is not starved by small ones", "x 5 r:1\nbig 10 r:2\na 10 r:1\nb 10 r:1", map[string]int{"r": 2}, 0, 0, 25 * time.Second, "x(start) big(r) a(r)"},
		{"claims on one resource add up", "a 10 r:1 r:1\nb 10 r:1", map[string]int{"r": 2}, 0, 0, 20 * time.Second, "a(start) b(r)"},
		{"nothing", "", nil, 0, 0, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, rows := &plan.Plan{}, []Row{}
			if c.plan != "" {
				p, rows = chart(t, c.plan)
			}
			for i := range rows {
				rows[i].Hold = c.hold
			}
			got, err := Estimate(p, Options{Capacity: c.capacity, Parallel: c.parallel, Table: rows})
			if err != nil {
				t.Fatal(err)
			}
			var path []string
			for _, h := range got.Path {
				path = append(path, fmt.Sprintf("%s(%s)", h.Step, h.For))
			}
			if got.Expected != c.want || got.Low != c.want || got.High != c.want || strings.Join(path, " ") != c.path {
				t.Errorf("%s to %s to %s by %q, want %s by %q", got.Low, got.Expected, got.High, strings.Join(path, " "), c.want, c.path)
			}
		})
	}
}

func TestDefectsOfAPlanAreErrors(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"not in the plan":   "a 1 <x",
		"need each other":   "a 1 <b\nb 1 <a",
		"which has 1":       "a 1 r:2",
		"is there twice":    "a 1\na 1",
		"uses 0 units of r": "a 1 r:0",
	} {
		p, rows := chart(t, text)
		if _, err := Estimate(p, Options{Capacity: map[string]int{"r": 1}, Table: rows}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// randomPlan makes a plan of n steps with needs, durations and at most so many
// uses each by chance.
func randomPlan(r *rand.Rand, n, most int) (*plan.Plan, []Row, map[string]int) {
	limit := map[string]int{"a": 1 + r.IntN(3), "b": 2 + r.IntN(3), "c/": 1}
	p := &plan.Plan{}
	var rows []Row
	for i := range n {
		id := fmt.Sprintf("s%d", i)
		s := plan.Step{ID: plan.StepID(id), Stage: "work", Subject: subject.OfNode(id), DepthKey: fmt.Sprint(i / 3)}
		for range r.IntN(3) {
			if i > 0 {
				s.Needs = append(s.Needs, plan.Need{Step: plan.StepID(fmt.Sprintf("s%d", r.IntN(i))), On: plan.Settled})
			}
		}
		for _, name := range []string{"a", "b", fmt.Sprintf("c/%d", r.IntN(3))} {
			if len(s.Uses) < most && r.IntN(3) == 0 {
				_, n := limitOf(Options{Capacity: limit}, name)
				s.Uses = append(s.Uses, plan.Use{Resource: name, Units: 1 + r.IntN(n), Hold: plan.ForStep})
			}
		}
		p.Steps = append(p.Steps, s)
		rows = append(rows, exact(id, time.Duration(1+r.IntN(100_000))*time.Millisecond))
	}
	return p, rows, limit
}

// TestBounds checks what no schedule can beat, and that the path explains it.
func TestBounds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, rows, capacity := randomPlan(r, 1+r.IntN(60), 3)
		o := Options{Capacity: capacity, Parallel: 1 + r.IntN(8), Table: rows}
		got, err := Estimate(p, o)
		if err != nil {
			t.Fatal(err)
		}
		took, longest, busy := map[plan.StepID]time.Duration{}, time.Duration(0), map[string]time.Duration{}
		for i, s := range p.Steps {
			var before time.Duration
			for _, n := range s.Needs {
				before = max(before, took[n.Step])
			}
			took[s.ID] = before + rows[i].Mid
			longest = max(longest, took[s.ID])
			for _, u := range s.Uses {
				busy[u.Resource] += rows[i].Mid * time.Duration(u.Units)
			}
			busy[stepSlots] += rows[i].Mid
		}
		for name := range maps.Keys(busy) {
			_, n := limitOf(o, name)
			longest = max(longest, busy[name]/time.Duration(n))
		}
		if got.Expected < longest.Truncate(time.Millisecond) {
			t.Errorf("seed %d: %s, but nothing is faster than %s", seed, got.Expected, longest)
		}
		var sum time.Duration
		for _, h := range got.Path {
			sum += h.Took
		}
		if off := sum - got.Expected; len(got.Path) == 0 || got.Path[0].For != "start" || max(off, -off) > time.Duration(len(got.Path))*time.Millisecond {
			t.Errorf("seed %d: the path %v adds up to %s of %s", seed, got.Path, sum, got.Expected)
		}
	}
}

func limitOf(o Options, name string) (string, int) {
	if name == stepSlots {
		return name, o.Parallel
	}
	return capacityOf(o.Capacity, name)
}

func TestStreamsShareTheUplink(t *testing.T) {
	t.Parallel()
	write := func(names ...string) *plan.Plan {
		p := &plan.Plan{}
		for _, n := range names {
			p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(n + "/install.write"), Stage: "install", Subject: subject.OfNode(n),
				Uses: []plan.Use{{Resource: streams, Units: 1}}, Inputs: []plan.Input{{Name: "image.os"}}})
		}
		return p
	}
	o := Options{Images: map[string]Image{"os": {Wire: 940e6, Disk: 940e6}}, Capacity: map[string]int{streams: 16},
		Profiles: map[string]Profile{"n1": {NIC: 1e9, Disk: "x"}, "n2": {NIC: 8e9, Disk: "x"}, "n3": {NIC: 8e9, Disk: "x"}}}
	tail := 940e6 / 500e6
	for _, c := range []struct {
		name string
		link float64 // bit/s
		of   []string
		want float64 // seconds
	}{
		{"alone, by its NIC", 100e9, []string{"n1"}, 8 + tail},
		{"alone, by its disk", 100e9, []string{"n2"}, 940e6/400e6 + tail},
		{"alone, by the uplink", 500e6, []string{"n1"}, 16 + tail},
		{"two halve it", 1e9, []string{"n2", "n3"}, 16 + tail},
		{"what a slow NIC leaves goes to the others", 3e9, []string{"n1", "n2", "n3"}, 8 + tail},
	} {
		o.Uplink = unit.BitRate(c.link)
		e := &estimate{plan: write(c.of...), opt: o}
		e.opt.Table, e.opt.Parallel = withChecks, 512
		e.findUplink()
		g, err := newGraph(e.plan, e.opt)
		if err != nil {
			t.Fatal(err)
		}
		e.graph = g
		e.measure()
		costs := e.costs(0)
		for i := range costs {
			costs[i].fixed = tail
		}
		if got := g.run(costs, e.uplink, "").wall; math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: %.2f s, want %.2f s", c.name, got, c.want)
		}
	}
}
