// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"bytes"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// loose is a number that may be written as a string, with blanks, or as "nan".
type loose struct {
	v    *float64
	text string // as it was written, for its precision
}

// UnmarshalJSON takes what it can make a finite number of; all else is null.
func (l *loose) UnmarshalJSON(b []byte) error {
	*l = looseOf(strings.Trim(string(b), `"`))
	return nil
}

func looseOf(text string) loose {
	text = strings.TrimSpace(text)
	return loose{parseNumber(text), text}
}

func (l loose) whole() *int64 {
	if l.v == nil || *l.v < -1e18 || *l.v > 1e18 {
		return nil
	}
	n := int64(*l.v)
	return &n
}

// report is the file of -J. It has no field for the environment, which the file
// holds whole, passwords included, and none for the arguments but the first.
type report struct {
	Args    []string `json:"args"`
	Library loose    `json:"nccl_version"`
	Config  struct {
		Threads      loose `json:"nthreads"`
		GPUs         loose `json:"ngpus"`
		MinimumBytes loose `json:"minimum_bytes"`
		MaximumBytes loose `json:"maximum_bytes"`
		StepBytes    loose `json:"step_bytes"`
		StepFactor   loose `json:"step_factor"`
		Warmups      loose `json:"warmup_iters"`
		Iterations   loose `json:"iterations"`
		Aggregated   loose `json:"aggregated_iterations"`
		Validation   loose `json:"validation"`
		Graph        loose `json:"graph"`
		Devices      []struct {
			Rank, Group, PID, Device loose
			Host                     string `json:"hostname"`
			BusID                    string `json:"device_hex"`
			Name                     string `json:"device_info"`
		} `json:"devices"`
	} `json:"config"`
	Results []result `json:"results"`
	Bounds  *struct {
		Count loose `json:"count"`
	} `json:"out_of_bounds"`
	Average *struct {
		Bandwidth loose `json:"bandwidth"`
		Okay      any   `json:"okay"`
	} `json:"average_bus_bandwidth"`
	Errors []string `json:"errors"`
}

type result struct {
	Size       loose     `json:"size"`
	Count      loose     `json:"count"`
	Type       string    `json:"type"`
	Op         string    `json:"redop"`
	Root       loose     `json:"root"`
	OutOfPlace *measured `json:"out_of_place"`
	InPlace    *measured `json:"in_place"`
	OutSpread  *spread   `json:"out_of_place_per_iter"`
	InSpread   *spread   `json:"in_place_per_iter"`
}

type measured struct {
	Time    loose  `json:"time"`
	CPUTime *loose `json:"cpu_time"`
	AlgBW   loose  `json:"alg_bw"`
	BusBW   loose  `json:"bus_bw"`
	Wrong   loose  `json:"nwrong"`
}

type spread struct {
	Min loose `json:"min_us"`
	Max loose `json:"max_us"`
	P99 loose `json:"p99_us"`
	CV  loose `json:"cv_pct"`
}

// sixDigits is the precision of figures in JSON: C's %lf, for half.
const sixDigits = "0.000000"

func parseJSON(data []byte, problems *tool.Problems) []Test {
	text, ok := jsontext.Find(data)
	if !ok {
		return nil
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "the file ends before its end: what it has so far was read")
	}
	switch {
	case bytes.HasPrefix(text.Data, []byte("[")):
		return parseRecords(text.Data, problems)
	case bytes.Contains(text.Data, []byte(`"inPlace":`)):
		return parseLines(data, problems)
	}
	var r report
	if err := json.Unmarshal(text.Data, &r); err != nil {
		return nil
	}
	return []Test{r.test(problems)}
}

// test makes of the file what the text would have said.
func (r report) test(problems *tool.Problems) Test {
	c := r.Config
	t := Test{
		Ranks: []Rank{}, Rows: []Row{}, ended: r.Average != nil,
		Config: Config{
			Threads: c.Threads.whole(), GPUs: c.GPUs.whole(), MinimumBytes: c.MinimumBytes.whole(), MaximumBytes: c.MaximumBytes.whole(),
			StepBytes: c.StepBytes.whole(), StepFactor: c.StepFactor.whole(), Warmups: c.Warmups.whole(), Iterations: c.Iterations.whole(),
			Aggregated: c.Aggregated.whole(), Validation: c.Validation.whole(), Graph: c.Graph.whole(),
		},
	}
	if v := r.Library.whole(); v != nil {
		t.Library = decodeVersion(strconv.FormatInt(*v, 10))
	}
	if len(r.Args) > 0 {
		if m := program.FindStringSubmatch(path.Base(r.Args[0])); m != nil {
			t.Collective = m[1]
		}
	}
	for _, d := range c.Devices {
		g := parseCount(d.Group)
		t.Ranks = append(t.Ranks, Rank{Rank: parseCount(d.Rank), Group: &g, PID: parseCount(d.PID), Host: d.Host, Device: parseCount(d.Device), BusID: d.BusID, Name: d.Name})
	}
	for _, x := range r.Results {
		t.add(x, problems)
	}
	r.ending(&t, problems)
	// One device of each process is in the list, however many it has.
	if n := devicesPerProcess(&t); n > 1 && len(t.Ranks) > 0 {
		problems.Add(tool.Missing, 0, "the list has one device of each process, and each has %d: over how many ranks this ran is not known", n)
		t.partial = true
	}
	return t
}

func (r report) ending(t *Test, problems *tool.Problems) {
	if r.Bounds != nil {
		if t.OutOfBounds = r.Bounds.Count.whole(); t.OutOfBounds != nil && *t.OutOfBounds > 0 {
			problems.Add(tool.Failed, 0, "%d values were out of bounds", *t.OutOfBounds)
		}
	}
	if r.Average != nil {
		if t.AvgBusBW = r.Average.Bandwidth.v; r.Average.Okay == "false" || r.Average.Okay == false {
			problems.Add(tool.Failed, 0, "the average bus bandwidth is below what NCCL_TESTS_MIN_BW asks for")
		}
	}
	for _, e := range r.Errors {
		if strings.TrimSpace(e) != "" {
			problems.Add(tool.Failed, 0, "%s", strings.TrimSpace(e))
		}
	}
}

// add adds a row.
func (t *Test) add(x result, problems *tool.Problems) {
	row := Row{Type: x.Type, Op: x.Op, Root: x.Root.whole(), OutOfPlace: x.OutOfPlace.placement(x.OutSpread), InPlace: x.InPlace.placement(x.InSpread)}
	if size, n := x.Size.whole(), x.Count.whole(); size != nil && n != nil {
		row.Size, row.Count = *size, *n
	} else {
		problems.Add(tool.Truncated, 0, "a row has no size or no count")
		return
	}
	for _, m := range []*measured{x.OutOfPlace, x.InPlace} {
		t.cpuTime = t.cpuTime || m != nil && m.CPUTime != nil
	}
	for _, p := range []*Placement{row.OutOfPlace, row.InPlace} {
		if p != nil && p.Wrong != nil && *p.Wrong > 0 {
			problems.Add(tool.Failed, 0, "%d elements of size %d were wrong", *p.Wrong, row.Size)
		}
	}
	t.Rows = append(t.Rows, row)
}

func (m *measured) placement(s *spread) *Placement {
	if m == nil {
		return nil
	}
	p := &Placement{Time: m.Time.v, AlgBW: m.AlgBW.v, BusBW: m.BusBW.v, Wrong: toCount(m.Wrong.v), shown: [3]string{sixDigits, sixDigits, sixDigits}}
	if m.CPUTime != nil {
		p.Time = m.CPUTime.v
	}
	if s != nil {
		p.Spread = &Spread{Min: s.Min.v, Max: s.Max.v, P99: s.P99.v, CV: s.CV.v}
	}
	return p
}

// parseCount returns a small number; 0 when it is none.
func parseCount(l loose) int {
	if n := l.whole(); n != nil && *n >= 0 && *n < 1<<31 {
		return int(*n)
	}
	return 0
}
