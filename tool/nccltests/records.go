// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// record is one line of what rccl-tests writes with -Z json or csv: one placement
// of one size.
type record struct {
	Cycle   loose  `json:"numCycle"`
	Name    string `json:"name"` // "AllReduce"
	Ranks   loose  `json:"ranks"`
	GPUs    loose  `json:"gpus"` // of a build without MPI, which has no other ranks
	Size    loose  `json:"size"`
	Type    string `json:"type"`
	Op      string `json:"redop"`
	InPlace loose  `json:"inPlace"`
	Time    loose  `json:"time"`
	AlgBW   loose  `json:"algBw"`
	BusBW   loose  `json:"busBw"`
	Wrong   loose  `json:"wrong"`
	Older   loose  `json:"#wrong"` // as it was called before ROCm 7
}

// over is how many ranks a record is of; 0 when it does not say.
func (r record) over() int {
	if n := parseCount(r.Ranks); n > 0 {
		return n
	}
	return parseCount(r.GPUs)
}

// collectives are the names of records as the programs are called.
var collectives = map[string]string{
	"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "alltoall": "alltoall", "alltoallv": "alltoallv",
	"broadcast": "broadcast", "reduce": "reduce", "gather": "gather", "scatter": "scatter", "sendrecv": "sendrecv",
}

// parseRecords reads the records of one or more tests. They have no list of
// devices and no end, only a count of ranks.
func parseRecords(data []byte, problems *tool.Problems) []Test {
	var all []record
	if err := json.Unmarshal(data, &all); err != nil {
		return nil
	}
	return foldRecords(all, problems)
}

// parseLines reads records that stand on a line each, without a list around them,
// as -Z json wrote them before ROCm 7.
func parseLines(data []byte, problems *tool.Problems) []Test {
	var all []record
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			problems.Add(tool.Truncated, n, "the record on this line is cut")
			continue
		}
		all = append(all, r)
	}
	return foldRecords(all, problems)
}

// csvHead is the first line of what -Z csv writes.
var csvHead = lazyregexp.New(`(?mi)^\s*numCycle, *(?:collective|name),.*\bbusbw\b.*$`)

// parseCSV reads the records of -Z csv. Builds with MPI before ROCm 7.3 have a
// column more in every row than in the header: the number of nodes before that of
// ranks.
func parseCSV(data []byte, problems *tool.Problems) []Test {
	var names []string
	var all []record
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		fields := strings.Split(strings.TrimSpace(line), ",")
		for i, f := range fields {
			fields[i] = strings.Trim(strings.TrimSpace(f), `"`)
		}
		switch {
		case csvHead.MatchString(line):
			names = strings.Split(strings.ToLower(strings.Join(fields, ",")), ",")
		case len(names) == 0 || len(fields) < 3:
		case len(fields) == len(names):
			all = append(all, recordOf(names, fields))
		case len(fields) == len(names)+1 && !slices.Contains(names, "nodes"):
			all = append(all, recordOf(slices.Insert(slices.Clone(names), 2, "nodes"), fields))
		default:
			problems.Add(tool.Truncated, n, "the line has %d fields of %d", len(fields), len(names))
		}
	}
	return foldRecords(all, problems)
}

// recordOf is the record that a line of CSV is.
func recordOf(names, fields []string) record {
	var r record
	for i, name := range names {
		value, f := fields[i], looseOf(fields[i])
		switch name {
		case "numcycle":
			r.Cycle = f
		case "collective", "name":
			r.Name = value
		case "ranks":
			r.Ranks = f
		case "gpus":
			r.GPUs = f
		case "size":
			r.Size = f
		case "type":
			r.Type = value
		case "redop":
			r.Op = value
		case "inplace":
			r.InPlace = f
		case "time":
			r.Time = f
		case "algbw":
			r.AlgBW = f
		case "busbw":
			r.BusBW = f
		case "wrong", "#wrong":
			r.Wrong = f
		}
	}
	return r
}

// foldRecords makes tests of records: a row of the two placements of one size.
func foldRecords(all []record, problems *tool.Problems) []Test {
	var tests []Test
	var last record
	for _, r := range all {
		size := r.Size.whole()
		if size == nil {
			problems.Add(tool.Truncated, 0, "a record has no size")
			continue
		}
		if len(tests) == 0 || r.Name != last.Name || r.over() != tests[len(tests)-1].counted {
			tests = append(tests, Test{Ranks: []Rank{}, Rows: []Row{}, Collective: collectives[strings.ToLower(r.Name)], counted: r.over(), ended: true})
		}
		tests[len(tests)-1].record(r, *size, last, problems)
		last = r
	}
	return tests
}

// record adds a placement: to the row before it when that is of the same size and
// has none, else as a row of its own.
func (t *Test) record(r record, size int64, last record, problems *tool.Problems) {
	p := &Placement{Time: r.Time.v, AlgBW: r.AlgBW.v, BusBW: r.BusBW.v, Wrong: toCount(cmp.Or(r.Wrong.v, r.Older.v)), shown: [3]string{r.Time.text, r.AlgBW.text, r.BusBW.text}}
	if p.Wrong != nil && *p.Wrong > 0 {
		problems.Add(tool.Failed, 0, "%d elements of size %d were wrong", *p.Wrong, size)
	}
	inPlace := parseCount(r.InPlace) == 1
	if n := len(t.Rows); n > 0 && inPlace && t.Rows[n-1].InPlace == nil && t.Rows[n-1].Size == size && last.Type == r.Type && last.Op == r.Op && parseCount(last.Cycle) == parseCount(r.Cycle) {
		t.Rows[n-1].InPlace = p
		return
	}
	row := Row{Size: size, Type: r.Type, Op: r.Op}
	if inPlace {
		row.InPlace = p
	} else {
		row.OutOfPlace = p
	}
	t.Rows = append(t.Rows, row)
}
