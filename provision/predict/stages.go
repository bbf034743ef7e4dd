// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// kinds lists the durations that were used, in the order of the plan.
func (e *estimate) kinds() []Kind {
	out := make([]Kind, len(e.classes))
	for i, c := range e.classes {
		out[i] = c.Kind
	}
	return out
}

// stages sums a schedule up by stage and by node.
func (e *estimate) stages(s schedule, p *Prediction) {
	t := NewTally()
	for i := range e.plan.Steps {
		step := &e.plan.Steps[i]
		t.Add(step.Stage, step.Subject, toDuration(s.start[i]), toDuration(s.end[i]))
		for _, m := range membersOf(*step) {
			if m.Kind == subject.Node {
				p.Nodes[m.Name] = max(p.Nodes[m.Name], toDuration(s.end[i]))
			}
		}
	}
	p.Stages = t.Stages()
	for i := range p.Stages {
		p.Stages[i].Source = e.sourceOf(p.Stages[i].Name)
	}
}

// sourceOf says where the durations of a stage are from.
func (e *estimate) sourceOf(stage string) string {
	var parts []string
	runs := 0
	for _, c := range e.classes {
		switch {
		case c.Stage != stage:
		case c.Runs > 0:
			runs = max(runs, c.Runs)
		case !slices.Contains(parts, c.Source):
			parts = append(parts, c.Source)
		}
	}
	slices.Sort(parts)
	if runs > 0 {
		parts = append([]string{"history of " + formatCount(runs, "run")}, parts...)
	}
	return strings.Join(parts, " and ")
}

// Tally collects when the steps of each stage ran.
type Tally struct {
	order    []string
	steps    map[string][]interval
	subjects map[string]map[subject.ID]bool
}

// interval is when one step ran, from the start of the run.
type interval struct{ from, to time.Duration }

// NewTally makes an empty one.
func NewTally() *Tally {
	return &Tally{steps: map[string][]interval{}, subjects: map[string]map[subject.ID]bool{}}
}

// Add counts one step, which ran on something from and to a time of its run.
func (t *Tally) Add(stage string, on subject.ID, from, to time.Duration) {
	if t.subjects[stage] == nil {
		t.order = append(t.order, stage)
		t.subjects[stage] = map[subject.ID]bool{}
	}
	t.subjects[stage][on] = true
	t.steps[stage] = append(t.steps[stage], interval{from, to})
}

// Stages sums up, in the order in which the stages begin.
func (t *Tally) Stages() []Stage {
	out := make([]Stage, 0, len(t.order))
	for _, name := range t.order {
		ran := t.steps[name]
		slices.SortFunc(ran, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
		s := Stage{Name: name, Steps: len(ran), Start: ran[0].from}
		for _, i := range ran {
			s.Busy += i.to - i.from
			if i.to > s.End {
				s.Active += i.to - max(i.from, s.End)
				s.End = i.to
			}
		}
		s.Each = s.Busy / time.Duration(len(t.subjects[name]))
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Stage) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// FormatDuration writes a duration as an operator reads it: 3d 4h, 2h 14m, 12m 5s, 45s, 0.3s.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(0, d); {
	case d >= 2*day:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	case d.Round(time.Second) >= time.Minute:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
