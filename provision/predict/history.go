// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// History is how long the steps of a site took so far, by kind and hardware. The
// nil History is empty. It is read-only once made.
type History struct {
	classes map[historyKey]Past
	tails   map[historyKey]tails
}

type historyKey struct{ kind, hardware string }

// Past is what is known of steps of one kind on one hardware. Times are of one
// unit of the kind: of a round for tests between pairs.
type Past struct {
	Low, Median, High time.Duration // weighted: a run counts half of the one after it
	Steps, Runs       int
}

// past returns what is known of a kind on a hardware.
func (h *History) past(kind, hardware string) (Past, bool) {
	if h == nil {
		return Past{}, false
	}
	p, ok := h.classes[historyKey{kind, hardware}]
	return p, ok
}

// Len is how many classes of steps the history knows.
func (h *History) Len() int {
	if h == nil {
		return 0
	}
	return len(h.classes)
}

// ReadHistory makes a history from the journal of a state. Only steps count that
// did their work from start to end: no failed one, none that was found to be so
// already (on a node), and none that an earlier run had begun. The profiles say
// which nodes are alike now; a node without one is left out. The table says what the
// time of a test between nodes is the time of.
func ReadHistory(ctx context.Context, r state.Reader, profiles map[string]Profile, table []Row) (*History, error) {
	h := newJournalReader(profiles, table)
	if err := r.Read(ctx, 1, h.record); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return h.history(), nil
}

// recent is how many records of a journal a plan looks at for its deadlines: those
// of about ten thousand steps, read in a fraction of a second.
const recent = 40_000

// ReadRecent makes a history of the last records of a journal, at least 40,000 of
// them where there are as many: what a plan can afford to read.
func ReadRecent(ctx context.Context, r state.Reader, profiles map[string]Profile, table []Row) (*History, error) {
	last := uint64(0) // at least one record is after it
	step := uint64(recent)
	for step >= recent/4 {
		there, err := reachesRecord(ctx, r, last+step+1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("history: %w", err)
		case there:
			last += step
			step *= 2
		default:
			step /= 2
		}
	}
	h := newJournalReader(profiles, table)
	if err := r.Read(ctx, max(last, recent)-recent+1, h.record); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return h.history(), nil
}

// errThere stops a read at its first record.
var errThere = errors.New("there is one")

// reachesRecord reports whether a journal has a record of that number, or a later one.
func reachesRecord(ctx context.Context, r state.Reader, seq uint64) (bool, error) {
	err := r.Read(ctx, seq, func(state.Record) error { return errThere })
	if errors.Is(err, errThere) {
		return true, nil
	}
	return false, err
}

// sample is one step that was done.
type sample struct {
	took float64 // seconds of one unit
	run  int     // from 1
}

// journalReader reads a journal.
type journalReader struct {
	profiles map[string]Profile
	table    []Row
	runs     map[string]int    // number of each run, from 1
	frozen   map[string]int    // members of a group's step when it started
	hardware map[string]string // of those members
	begun    map[string]string // run in which a step was started and has not ended
	seen     map[historyKey][]sample
}

func newJournalReader(profiles map[string]Profile, table []Row) *journalReader {
	return &journalReader{profiles: profiles, table: table, runs: map[string]int{}, frozen: map[string]int{}, hardware: map[string]string{},
		begun: map[string]string{}, seen: map[historyKey][]sample{}}
}

// history sums up what was read.
func (h *journalReader) history() *History {
	out := &History{classes: make(map[historyKey]Past, len(h.seen)), tails: make(map[historyKey]tails, len(h.seen))}
	for k, samples := range h.seen {
		d := newDistribution(samples, len(h.runs))
		out.classes[k], out.tails[k] = d.past(), d.tails()
	}
	return out
}

// longest is what no step lasts: a clock that was set meanwhile.
const longest = 7 * 24 * time.Hour

// record takes in one line of the journal. Lines that cannot be read count for
// nothing: a prediction is no reason to refuse a state.
func (h *journalReader) record(r state.Record) error {
	if r.Run != "" && h.runs[r.Run] == 0 {
		h.runs[r.Run] = len(h.runs) + 1
	}
	switch r.Kind {
	case state.GroupFrozen:
		var f state.Frozen
		if json.Unmarshal(r.Data, &f) == nil && len(f.Members) > 0 { // those of a very large one are not in it
			h.frozen[r.Step], h.hardware[r.Step] = len(f.Members), hardwareOf(f.Members, h.profiles)
		}
	case state.StepStarted:
		if was, open := h.begun[r.Step]; !open || was == r.Run {
			h.begun[r.Step] = r.Run
		}
	case state.StepInterrupted: // begun stays: the next run finds it half done
	case state.StepFailed, state.StepSkipped, state.StepExamined:
		delete(h.begun, r.Step)
	case state.StepDone:
		h.done(r)
		delete(h.begun, r.Step)
	}
	return nil
}

func (h *journalReader) done(r state.Record) {
	var s state.Step
	if json.Unmarshal(r.Data, &s) != nil || h.begun[r.Step] != r.Run {
		return
	}
	took := s.Ended.Sub(s.Started)
	onSite := r.Subject.Kind == subject.Site
	if s.Started.IsZero() || took < 0 || took > longest || s.Observed && !onSite {
		return
	}
	key := historyKey{kind: kindOf(plan.StepID(r.Step), r.Subject.Kind)}
	units := 1.0
	switch r.Subject.Kind {
	case subject.Site:
	case subject.Node:
		p, known := h.profiles[r.Subject.Name]
		if !known {
			return
		}
		key.hardware = p.Hardware
	default:
		if h.frozen[r.Step] < 2 {
			return // one member alone is not tested
		}
		row, _ := lookupRow(h.table, key.kind, Profile{})
		key.hardware, units = h.hardware[r.Step], row.Per.in(h.frozen[r.Step])
	}
	h.seen[key] = append(h.seen[key], sample{took.Seconds() / units, h.runs[r.Run]})
}

// distribution is samples by duration, each with its weight: the newest of the
// runs weighs one, each older one half of the next.
type distribution struct {
	samples []sample
	weights []float64
	total   float64
	runs    int
}

func newDistribution(samples []sample, newest int) *distribution {
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.run, b.run)) })
	d := &distribution{samples: samples, weights: make([]float64, len(samples))}
	runs := map[int]bool{}
	for i, s := range samples {
		runs[s.run] = true
		d.weights[i] = math.Exp2(float64(max(s.run-newest, -60)))
		d.total += d.weights[i]
	}
	d.runs = len(runs)
	return d
}

// at is the duration, in seconds, that a share of the samples does not exceed.
func (d *distribution) at(q float64) float64 {
	sum := 0.0
	for i, w := range d.weights {
		if sum += w; sum >= q*d.total {
			if i+1 < len(d.samples) && sum == q*d.total {
				return (d.samples[i].took + d.samples[i+1].took) / 2
			}
			return d.samples[i].took
		}
	}
	return d.samples[len(d.samples)-1].took
}

// tails are its slow ends.
func (d *distribution) tails() tails {
	return tails{toDuration(d.at(0.95)), toDuration(d.at(0.99)), toDuration(d.samples[len(d.samples)-1].took)}
}

// past sums it up.
func (d *distribution) past() Past {
	const least = 0.1 // few samples look more alike than they are
	mid := d.at(0.5)
	return Past{Low: toDuration(min(d.at(0.1), mid*(1-least))), Median: toDuration(mid), High: toDuration(max(d.at(0.9), mid*(1+least))),
		Steps: len(d.samples), Runs: d.runs}
}
