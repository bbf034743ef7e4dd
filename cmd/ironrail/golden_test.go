// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
)

// now is the time at which the samples are shown.
var now = fixtureTime.Add(10 * time.Minute)

// shown are all the ways in which something is shown to a person. text stands
// where text comes from outside.
var shown = []struct {
	name  string
	write func(w io.Writer, text string)
}{
	{"plan", func(w io.Writer, text string) { writePlan(w, samplePlan(text), sampleGuess(samplePlan(text))) }},
	{"result", func(w io.Writer, text string) { writeResult(w, sampleResult(text), samplePlaces, 400, plainLines) }},
	{"rehearsal", func(w io.Writer, text string) {
		writeRehearsal(w, sampleRehearsal(text), samplePlaces, "", 400, plainLines)
	}},
	{"status", func(w io.Writer, text string) { writeStatus(w, sampleStatus(text), now) }},
	{"standing", func(w io.Writer, text string) {
		last := state.Run{ID: "r1", Outcome: state.RunDone, Ended: fixtureTime, Approvals: sampleStatus(text).Run.Approvals}
		writeStatus(w, newSiteStatus(why.Site{Nodes: sampleStatus(text).Nodes, Last: &last, Now: now}, nil), now)
	}},
	{"why", func(w io.Writer, text string) {
		live := sampleWhy(text)
		known := live
		known.Look = nil
		told := why.ExplainNode(known, false, now)
		io.WriteString(w, told.Text(now)+why.ExplainNode(live, false, now).LiveText(told.Answer, now))
	}},
	{"node", func(w io.Writer, text string) {
		var p page
		p.card(sampleCard(text))
		p.to(w)
	}},
	{"power", func(w io.Writer, text string) {
		a := newApp(w, w)
		a.now = func() time.Time { return now }
		a.powerKnown(why.SummariseNodes(why.Site{Nodes: sampleStatus(text).Nodes, Now: now}), []string{"n1", "n2"})
		a.powerLine(control.BMCAnswer{Node: "n1", State: "on"})
		a.powerLine(control.BMCAnswer{Node: "n2", Error: text})
	}},
	{"events", func(w io.Writer, text string) {
		a := newApp(w, w)
		for _, e := range sampleEvents(text) {
			a.printEvent(e)
		}
	}},
	{"lines", func(w io.Writer, text string) {
		v := newView(newApp(io.Discard, w), samplePlan(text))
		for _, e := range append(sampleEvents(text), badEnd(text)...) {
			v.take(e)
		}
	}},
	{"rows", func(w io.Writer, text string) {
		a := newApp(io.Discard, io.Discard)
		a.now = func() time.Time { return fixtureTime }
		v := newView(a, samplePlan(text))
		for _, e := range sampleEvents(text) {
			v.board.take(e)
			writeLines(w, v.news(e))
		}
		writeFrame(w, v.frame(now, 200, 20))
		for _, e := range badEnd(text) {
			v.board.take(e)
			writeLines(w, v.news(e))
		}
		writeFrame(w, v.frame(now, 200, 20))
	}},
}

func writeFrame(w io.Writer, lines []line) {
	for _, l := range lines {
		io.WriteString(w, l.text+"\n")
	}
}

func writeLines(w io.Writer, lines []string) {
	for _, l := range lines {
		io.WriteString(w, l+"\n")
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, s := range shown {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			s.write(&b, "(outside)")
			path := filepath.Join("testdata", s.name+".golden")
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != string(want) {
				t.Errorf("%s differs; run with -update and look at the difference. Got:\n%s", path, got)
			}
		})
	}
}

// TestNothingFromOutsideReachesTheTerminalRaw shows texts that try to clear the
// screen, forge lines and turn the direction of writing.
func TestNothingFromOutsideReachesTheTerminalRaw(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J\x1b]0;title\x07a\rb\nerror: forged\u009b1m\u202egnp\x7f\xff\u2028end"
	for _, s := range shown {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var bad, good bytes.Buffer
			s.write(&bad, hostile)
			s.write(&good, "harmless")
			if !strings.Contains(bad.String(), `\x1b[2J`) {
				t.Fatal("the text from outside is not shown at all")
			}
			if !utf8.ValidString(bad.String()) {
				t.Error("bytes that are no text reach the terminal")
			}
			for _, r := range bad.String() {
				if r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028') {
					t.Fatalf("%q reaches the terminal in %q", r, bad.String())
				}
			}
			if b, g := strings.Count(bad.String(), "\n"), strings.Count(good.String(), "\n"); s.name != "plan" && b != g {
				t.Errorf("hostile text makes %d lines of %d", b, g)
			}
			if strings.Contains(bad.String(), "\nerror: forged") {
				t.Error("a line is forged")
			}
		})
	}
}

// sampleGuess predicts a sample plan by the table.
func sampleGuess(p *plan.Plan) predict.Prediction {
	g, err := predict.Estimate(p, predict.Options{Table: provision.Durations()})
	if err != nil {
		panic(err)
	}
	return g
}
