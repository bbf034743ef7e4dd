package nccltests

import (
	"encoding/json"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// record is one line of what rccl-tests writes with -Z json: one placement of one
// size.
type record struct {
	Cycle   loose  `json:"numCycle"`
	Name    string `json:"name"` // "AllReduce"
	Ranks   loose  `json:"ranks"`
	Size    loose  `json:"size"`
	Type    string `json:"type"`
	Op      string `json:"redop"`
	InPlace loose  `json:"inPlace"`
	Time    loose  `json:"time"`
	AlgBW   loose  `json:"algBw"`
	BusBW   loose  `json:"busBw"`
	Wrong   loose  `json:"wrong"`
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
	var tests []Test
	var last record
	for _, r := range all {
		size := r.Size.whole()
		if size == nil {
			problems.Add(tool.Truncated, 0, "a record has no size")
			continue
		}
		if len(tests) == 0 || r.Name != last.Name || count(r.Ranks) != tests[len(tests)-1].counted {
			tests = append(tests, Test{Ranks: []Rank{}, Rows: []Row{}, Collective: collectives[strings.ToLower(r.Name)], counted: count(r.Ranks), ended: true})
		}
		tests[len(tests)-1].record(r, *size, last, problems)
		last = r
	}
	return tests
}

// record adds a placement: to the row before it when that is of the same size and
// has none, else as a row of its own.
func (t *Test) record(r record, size int64, last record, problems *tool.Problems) {
	p := &Placement{Time: r.Time.v, AlgBW: r.AlgBW.v, BusBW: r.BusBW.v, Wrong: whole(r.Wrong.v), shown: [3]string{sixDigits, sixDigits, sixDigits}}
	if p.Wrong != nil && *p.Wrong > 0 {
		problems.Add(tool.Failed, 0, "%d elements of size %d were wrong", *p.Wrong, size)
	}
	inPlace := count(r.InPlace) == 1
	if n := len(t.Rows); n > 0 && inPlace && t.Rows[n-1].InPlace == nil && t.Rows[n-1].Size == size && last.Type == r.Type && last.Op == r.Op && count(last.Cycle) == count(r.Cycle) {
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
