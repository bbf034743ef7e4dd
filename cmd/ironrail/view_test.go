// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/predict"
)

// badEnd ends a run of samplePlan badly: n1 is broken by a finding, then its
// step fails for the same cause, and what needs it is left out.
func badEnd(text string) []event.Event {
	at := fixtureTime.Add(11 * time.Second)
	return []event.Event{
		{Time: at, Type: event.FindingMade, Node: "n1", Step: "n1/install.write", Text: "the disk reads back wrong " + text, Data: map[string]string{"action": "replace the disk " + text}},
		{Time: at, Type: event.StepFailed, Node: "n1", Step: "n1/install.write", Text: "the disk reads back wrong " + text, Data: map[string]string{"kind": "mismatch"}},
		{Time: at, Type: event.StepSkipped, Node: "n1", Step: "n1/install.boot", Text: "the disk reads back wrong " + text},
		{Time: at, Type: event.StepSkipped, Step: "all/validate.pair", Text: "n1 is quarantined " + text},
		{Time: at, Type: event.StepSkipped, Step: "all/validate.pair", Text: "n1 is quarantined " + text},
		{Time: at, Type: event.Held, Node: "n9", Text: "held by ann: " + text},
		{Time: at, Type: event.Note, Text: "draining " + text},
		{Time: at, Type: event.RunEnded, Text: "failed"},
	}
}

func TestRowsBelongToTheSubjectOfTheirSteps(t *testing.T) {
	t.Parallel()
	b := newBoard(samplePlan(""), fixtureTime)
	var names []string
	for _, r := range b.rows {
		names = append(names, r.name)
	}
	if want := []string{"image.os", "n1", "group/all"}; !slices.Equal(names, want) {
		t.Fatalf("rows %q, want %q", names, want)
	}
	for _, c := range []struct {
		e    event.Event
		want string
	}{
		{event.Event{Type: event.StepStarted, Step: "site/image.os"}, "image.os"},
		{event.Event{Type: event.StepStarted, Step: "all/validate.pair"}, "group/all"},
		{event.Event{Type: event.StepProgress, Node: "n2", Step: "all/validate.pair"}, "group/all"},
		{event.Event{Type: event.FindingMade, Node: "n1", Step: "all/validate.pair"}, "n1"},
		{event.Event{Type: event.Held, Node: "n1"}, "n1"},
		{event.Event{Type: event.Note, Node: "n1", Step: "n1/bmc"}, ""},
		{event.Event{Type: event.StepDone, Step: "n9/unknown"}, ""},
		{event.Event{Type: event.RunEnded}, ""},
	} {
		got := ""
		if r := b.of(c.e); r != nil {
			got = r.name
		}
		if got != c.want {
			t.Errorf("%s of %s%s is shown in row %q, want %q", c.e.Type, c.e.Node, c.e.Step, got, c.want)
		}
	}
}

func TestMarkOfARow(t *testing.T) {
	t.Parallel()
	step := func(k event.Type, id, kind string) event.Event {
		return event.Event{Type: k, Step: id, Text: "x", Data: map[string]string{"kind": kind}}
	}
	finding := event.Event{Type: event.FindingMade, Node: "n1", Step: "n1/bmc", Text: "cause"}
	hold, release := event.Event{Type: event.Held, Node: "n1", Text: "held"}, event.Event{Type: event.Released, Node: "n1"}
	for _, c := range []struct {
		name   string
		events []event.Event
		want   mark
		text   string
	}{
		{"nothing yet", nil, waiting, ""},
		{"running", []event.Event{step(event.StepStarted, "n1/bmc", "")}, working, ""},
		{"between steps", []event.Event{step(event.StepDone, "n1/bmc", "")}, waiting, ""},
		{"all done", []event.Event{step(event.StepDone, "n1/bmc", ""), step(event.StepDone, "n1/install.inspect", ""), step(event.StepDone, "n1/install.write", "")}, ended, ""},
		{"the first cause stays", []event.Event{finding, step(event.StepFailed, "n1/bmc", "auth"), step(event.StepSkipped, "n1/install.write", "")}, broken, "cause"},
		{"cut off is not failed", []event.Event{step(event.StepFailed, "n1/bmc", "interrupted")}, missed, "x"},
		{"a hold outlives the steps that it cuts", []event.Event{step(event.StepFailed, "n1/bmc", "interrupted"), hold}, onHold, "held"},
		{"released", []event.Event{hold, release}, waiting, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBoard(samplePlan(""), fixtureTime)
			for _, e := range c.events {
				b.take(e)
			}
			if r := b.node["n1"]; b.currentMark(r) != c.want || r.text != c.text {
				t.Errorf("mark %q text %q, want %q %q", b.currentMark(r), r.text, c.want, c.text)
			}
		})
	}
}

// manyNodes is a plan of one step for each of n nodes.
func manyNodes(n int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p", Site: "s"}
	for i := range n {
		name := fmt.Sprintf("n%03d", i)
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(name + "/bmc"), Subject: subject.OfNode(name), Title: "x"})
	}
	return p
}

// textOf is what a frame shows.
func textOf(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// TestFrameFitsTheTerminal: a hundred nodes are a few lines, those that stand the same way together, what is
// found first; where there is room, each has a line.
func TestFrameFitsTheTerminal(t *testing.T) {
	t.Parallel()
	v := newView(newApp(nil, &bytes.Buffer{}), manyNodes(100))
	take := func(e event.Event) {
		v.board.take(e)
		v.news(e)
	}
	for _, n := range []string{"n090", "n091"} {
		take(event.Event{Type: event.FindingMade, Node: n, Step: n + "/bmc", Text: "no answer from " + n, Data: map[string]string{"action": "look at " + n}})
	}
	take(event.Event{Type: event.StepStarted, Node: "n050", Step: "n050/bmc"})
	for i := range 40 {
		id := fmt.Sprintf("n%03d/bmc", i)
		take(event.Event{Type: event.StepDone, Node: id[:4], Step: id})
	}
	for _, height := range []int{2, 3, 4, 5, 8, 30, 100, 101, 200} {
		lines := v.frame(now, 80, height)
		if len(lines) > height {
			t.Errorf("%d lines on %d", len(lines), height)
		}
		all := textOf(lines)
		if height >= 8 && (!strings.Contains(all, "✗ 2: n[090-091]: no answer from NODE\n") || !strings.Contains(all, "> n050")) {
			t.Errorf("height %d does not show what is broken and what works:\n%s", height, all)
		}
		if !strings.Contains(all, "40 done, 1 working, 57 waiting, 2 failed") {
			t.Errorf("height %d does not count:\n%s", height, all)
		}
	}
	if all := textOf(v.frame(now, 80, 5)); !strings.Contains(all, "\n> n050 ") || !strings.HasSuffix(all, "\n  97 more rows\n") {
		t.Errorf("rows without room are not counted:\n%s", all)
	}
	if all := textOf(v.frame(now, 80, 30)); !strings.Contains(all, "  57 nodes   bmc") || !strings.Contains(all, "n[040-049,051-089,092-099]\n") || !strings.Contains(all, "✓ 40 nodes ") {
		t.Errorf("nodes that stand the same way are not together:\n%s", all)
	}
	if all := textOf(v.frame(now, 80, 200)); strings.Count(all, "\n  n") != 57 || strings.Count(all, "✓ n") != 40 {
		t.Errorf("on a tall terminal not each node has its line:\n%s", all)
	}
}

// TestEarlierFindings: findings without room are counted, and can be read where it says.
func TestEarlierFindings(t *testing.T) {
	t.Parallel()
	v := newView(newApp(nil, &bytes.Buffer{}), manyNodes(100))
	for i := range 20 {
		v.discover(event.Event{Type: event.FindingMade, Node: fmt.Sprintf("n%03d", i), Text: "broken " + string(rune('a'+i))})
	}
	if all := textOf(v.frame(now, 80, 19)); !strings.Contains(all, "  15 earlier findings; `ironrail why` has all\n✗ n015: broken p\n") {
		t.Errorf("findings without room:\n%s", all)
	}
	if all := textOf(v.rehearsal(false).frame(now, 80, 19)); !strings.Contains(all, "  15 earlier findings; the summary has all\n") {
		t.Errorf("findings of a rehearsal without room:\n%s", all)
	}
}

// TestLateRows: a row that takes longer than such steps do is alone, before those that are not late, and
// says by how much.
func TestLateRows(t *testing.T) {
	t.Parallel()
	p := manyNodes(100)
	for i := range p.Steps {
		p.Steps[i].Deadline = plan.Budget{Expected: 10 * time.Minute, Slow: 20 * time.Minute}
	}
	a := newApp(nil, &bytes.Buffer{})
	a.now = func() time.Time { return fixtureTime }
	v := newView(a, p)
	for i := range 30 {
		name := fmt.Sprintf("n%03d", i)
		since := fixtureTime.Add(time.Duration(i) * time.Second)
		if i == 7 {
			since = fixtureTime.Add(-20 * time.Minute)
		}
		v.board.take(event.Event{Time: since, Type: event.StepStarted, Node: name, Step: name + "/bmc", Text: "x"})
	}
	at := fixtureTime.Add(5 * time.Minute)
	lines := v.frame(at, 160, 10)
	all := textOf(lines)
	for _, want := range []string{"> n007       bmc  [##########]  99%  25m0s of 10m0s, LATE: P95 is 20m0s  x\n", "> 29 nodes   bmc  [#####-----]  47%  5m0s of 10m0s", "  70 nodes   bmc"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if late := slices.IndexFunc(lines, func(l line) bool { return strings.Contains(l.text, "LATE") }); late < 0 || lines[late].style != yellow || !strings.Contains(lines[late+1].text, "29 nodes") {
		t.Errorf("the late one is not before the others:\n%s", all)
	}
}

// TestTimeLeft: it is the longest chain of what is not done, scaled by the prediction, which knows limits.
func TestTimeLeft(t *testing.T) {
	t.Parallel()
	step := func(id string, takes time.Duration, needs ...plan.StepID) plan.Step {
		s := plan.Step{ID: plan.StepID(id), Subject: subject.OfNode("n1"), Deadline: plan.Budget{Expected: takes}}
		for _, n := range needs {
			s.Needs = append(s.Needs, plan.Need{Step: n})
		}
		return s
	}
	p := &plan.Plan{Format: plan.Format, ID: "p", Site: "s", Steps: []plan.Step{step("n1/a", 10*time.Minute), step("n1/b", 20*time.Minute, "n1/a"), step("n1/c", 10*time.Minute, "n1/a")}}
	at := fixtureTime
	a := newApp(nil, &bytes.Buffer{})
	a.now = func() time.Time { return at }
	for _, c := range []struct {
		guess predict.Prediction
		want  string
	}{
		{predict.Prediction{}, "[####------]  37% 15m0s elapsed, about 15m0s left: "},
		{predict.Prediction{Low: 50 * time.Minute, Expected: time.Hour, High: 2 * time.Hour}, "[####------]  37% 15m0s elapsed, about 30m0s left (25m0s to 1h0m): "},
	} {
		at = fixtureTime
		v := newView(a, p).predicted(c.guess)
		at = fixtureTime.Add(15 * time.Minute)
		v.board.take(event.Event{Type: event.StepDone, Node: "n1", Step: "n1/a", Time: fixtureTime.Add(10 * time.Minute)})
		v.board.take(event.Event{Type: event.StepStarted, Node: "n1", Step: "n1/b", Time: fixtureTime.Add(10 * time.Minute)})
		if got := textOf(v.frame(at, 119, 5)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, want %q first", got, c.want)
		}
		v.board.take(event.Event{Type: event.StepDone, Node: "n1", Step: "n1/b", Time: at})
		v.board.take(event.Event{Type: event.StepDone, Node: "n1", Step: "n1/c", Time: at})
		if got := textOf(v.frame(at, 119, 5)); !strings.HasPrefix(got, "[##########] 100% 15m0s elapsed: 1 done") {
			t.Errorf("at the end: %q", got)
		}
	}
}

// TestLastFrame: how a run ended is written below, so that its rows are gone.
func TestLastFrame(t *testing.T) {
	t.Parallel()
	v := newView(newApp(nil, &bytes.Buffer{}), manyNodes(100))
	if v.over = true; len(v.frame(now, 200, 40)) != 1 {
		t.Errorf("the last frame is\n%s", textOf(v.frame(now, 200, 40)))
	}
}

func TestColors(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	lines := func(int, int) []line { return []line{{"a long text in red", red}, {"plain", normal}} }
	size := func() (int, int) { return 10, 5 }
	(&screen{w: &b, size: size, color: true}).draw(nil, lines)
	if !strings.Contains(b.String(), "\x1b[31ma long te…\x1b[0m\x1b[K\nplain\x1b[K\n") {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	(&screen{w: &b, size: size}).draw(nil, lines)
	if strings.Contains(b.String(), "m") && strings.Contains(b.String(), "\x1b[31m") {
		t.Errorf("%q", b.String())
	}
	for _, c := range []struct {
		flag, no string
		want     bool
	}{{"always", "1", true}, {"never", "", false}, {"auto", "", false}, {"", "", false}} { // a buffer is no terminal
		a := newApp(nil, &b)
		a.color, a.environ = c.flag, func(string) (string, bool) { return c.no, c.no != "" }
		if got := a.colors(&b); got != c.want {
			t.Errorf("--color %q, NO_COLOR %q: %v", c.flag, c.no, got)
		}
	}
}

// glass is a small terminal: what a person would see after the bytes were
// written.
type glass struct {
	width, height int
	rows          [][]rune
	y, x          int
	wrap          bool
}

var sequence = regexp.MustCompile(`^\x1b\[(\??\d*)([A-Za-z])`)

func (g *glass) Write(b []byte) (int, error) {
	for s := string(b); s != ""; {
		if m := sequence.FindStringSubmatch(s); m != nil {
			g.control(m[1], m[2])
			s = s[len(m[0]):]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		g.put(r)
	}
	return len(b), nil
}

func (g *glass) control(arg, letter string) {
	n, _ := strconv.Atoi(arg)
	switch letter {
	case "F":
		g.y, g.x = max(0, g.y-max(1, n)), 0
	case "H":
		g.y, g.x = 0, 0
	case "K":
		g.line()
		g.rows[g.y] = g.rows[g.y][:min(g.x, len(g.rows[g.y]))]
	case "J":
		g.control("", "K")
		g.rows = g.rows[:g.y+1]
	case "h", "l":
		g.wrap = letter == "h"
	}
}

func (g *glass) put(r rune) {
	if r == '\n' {
		g.y, g.x = g.y+1, 0
	} else {
		if g.x == g.width {
			if !g.wrap {
				return
			}
			g.y, g.x = g.y+1, 0
		}
		g.line()
		for len(g.rows[g.y]) <= g.x {
			g.rows[g.y] = append(g.rows[g.y], ' ')
		}
		g.rows[g.y][g.x] = r
		g.x++
	}
	g.line()
	for ; g.y >= g.height; g.y-- {
		g.rows = g.rows[1:]
	}
}

func (g *glass) line() {
	for len(g.rows) <= g.y {
		g.rows = append(g.rows, nil)
	}
}

func (g *glass) String() string {
	var lines []string
	for _, r := range g.rows {
		lines = append(lines, strings.TrimRight(string(r), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func TestScreenRedrawsInPlace(t *testing.T) {
	t.Parallel()
	g := &glass{width: 20, height: 6, wrap: true}
	s := &screen{w: g, size: func() (int, int) { return g.width, g.height }}
	show := func(above []string, lines ...string) {
		t.Helper()
		s.draw(above, func(_, height int) (out []line) {
			for _, l := range lines[:min(len(lines), height)] {
				out = append(out, line{text: l})
			}
			return out
		})
	}
	want := func(lines ...string) {
		t.Helper()
		if got := g.String(); got != strings.Join(lines, "\n") {
			t.Errorf("the terminal shows\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
		}
	}
	show(nil, "n1 long text", "n2", "foot")
	want("n1 long text", "n2", "foot")
	show(nil, "n1", "n2 ok", "foot")
	want("n1", "n2 ok", "foot")
	show([]string{"news that is longer than the terminal is wide"}, "n1", "n2", "foot")
	want("than the terminal is", " wide", "n1", "n2", "foot")
	show(nil, "n1", "foot")
	want("than the terminal is", " wide", "n1", "foot")
	show(nil, "1", "2", "3", "4", "5", "6", "7")
	want("1", "2", "3", "4", "5")
	show(nil, strings.Repeat("w", 50), "2")
	want(strings.Repeat("w", 19)+"…", "2")
	g.width = 10
	show(nil, "after a resize", "2")
	want("after a r…", "2")
}

func TestViewOnATerminalShowsEachRowOnce(t *testing.T) {
	t.Parallel()
	g := &glass{width: 100, height: 12, wrap: true}
	clock := fixtureTime
	a := newApp(nil, g)
	a.now = func() time.Time { return clock }
	v := newView(a, samplePlan("x"))
	v.screen = &screen{w: g, size: func() (int, int) { return g.width, g.height }}
	for _, e := range append(sampleEvents("x"), badEnd("x")...) {
		v.take(e)
		clock = e.Time.Add(time.Second)
		v.redraw(true)
	}
	got := g.String()
	for _, want := range []string{"✓ image.os", "✗ n1", "- group/all ", "‖ n9", "elapsed\n1 done, 0 working"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is there %d times in\n%s", want, strings.Count(got, want), got)
		}
	}
	if strings.Count(got, "✗ n1: the disk reads back wrong x") != 1 || strings.Count(got, "do: replace the disk x") != 1 {
		t.Errorf("the finding is not shown once, with what to do:\n%s", got)
	}
}

func TestViewIsNotDrawnTooOften(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	clock := fixtureTime
	a := newApp(nil, &b)
	a.now = func() time.Time { return clock }
	v := newView(a, samplePlan(""))
	v.screen = &screen{w: &b, size: func() (int, int) { return 80, 24 }}
	v.redraw(false)
	b.Reset()
	v.redraw(false)
	if b.Len() > 0 {
		t.Error("drawn again at once")
	}
	clock = clock.Add(redrawMost)
	if v.redraw(false); b.Len() == 0 {
		t.Error("not drawn when it was time")
	}
}

func TestFollowEndsWithTheRun(t *testing.T) {
	t.Parallel()
	var out, talk bytes.Buffer
	bus := event.NewBus(100)
	for _, e := range append(sampleEvents("x"), badEnd("x")...) {
		bus.Emit(e)
	}
	bus.Close()
	newView(newApp(&out, &talk), samplePlan("")).follow(bus.Subscribe(0))
	if out.Len() > 0 || strings.Count(talk.String(), "\n") < 10 {
		t.Errorf("data %q, talk %q", out.String(), talk.String())
	}
	if n := strings.Count(talk.String(), "writing x"); n != 1 {
		t.Errorf("a phase is printed %d times", n)
	}
}

func TestApplyJSONIsAStreamOfLines(t *testing.T) {
	t.Parallel()
	var out, talk bytes.Buffer
	a := newApp(&out, &talk)
	a.json = true
	bus := event.NewBus(100)
	events := append(sampleEvents("x\ny"), badEnd("x")...)
	for _, e := range events {
		bus.Emit(e)
	}
	bus.Close()
	newView(a, samplePlan("")).follow(bus.Subscribe(0))
	a.printResult(sampleResult("x\ny"))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(events)+1 {
		t.Fatalf("%d lines for %d events and a result", len(lines), len(events))
	}
	for i, l := range lines {
		var v struct{ Type string }
		if err := json.Unmarshal([]byte(l), &v); err != nil || v.Type == "" {
			t.Fatalf("line %d %q: %v", i, l, err)
		}
		if (v.Type == "result") != (i == len(lines)-1) {
			t.Errorf("line %d is of type %s", i, v.Type)
		}
	}
	var res apply.Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); err != nil || len(res.Nodes) != 4 {
		t.Errorf("result %v %v", res, err)
	}
	if talk.String() != "draining x\n" {
		t.Errorf("talk %q", talk.String())
	}
}
