// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/validate/result"
)

// Output is what one job measured.
type Output struct {
	Hosts []string // as each rank calls itself; text from outside
	MPI   string   // version of the library
	Rows  []Row    // in ascending order of size
}

// Row is the measurement of one size. Bandwidths are bytes per second.
type Row struct {
	Size        int64   `json:"size"`
	Ranks       int     `json:"ranks"`
	Iterations  int     `json:"iterations"`
	Time        Times   `json:"time_us"`
	AlgBW       float64 `json:"algbw"`
	BusBW       float64 `json:"busbw"`
	Wrong       int64   `json:"wrong"`         // elements that were not the sum, over all ranks and iterations
	WrongByRank []int64 `json:"wrong_by_rank"` // in the order of the members
}

// Times are microseconds of one iteration, of its slowest rank.
type Times struct {
	Min float64 `json:"min"`
	Avg float64 `json:"avg"`
	Max float64 `json:"max"`
}

// Largest returns the row of the largest size.
func (o Output) Largest() (Row, bool) {
	if len(o.Rows) == 0 {
		return Row{}, false
	}
	return o.Rows[len(o.Rows)-1], true
}

// Wrong is the number of wrong elements of all rows.
func (o Output) Wrong() int64 {
	var n int64
	for _, r := range o.Rows {
		n += r.Wrong
	}
	return n
}

// Problem returns why what was measured is bad: elements that are not the sum, or a
// bandwidth at the largest size below least, in bytes per second, which text says; ""
// where it is good.
func (o Output) Problem(least float64, text string) string {
	row, ok := o.Largest()
	switch {
	case !ok:
		return "there is no result"
	case o.Wrong() > 0:
		return fmt.Sprintf("%d elements were not the sum", o.Wrong())
	case row.BusBW < least:
		return fmt.Sprintf("bus bandwidth %s at %s, and the limit is %s", result.FormatRate(row.BusBW), unit.Bytes(row.Size), text)
	}
	return ""
}

// Parse reads the script's output and holds it against the job: as many ranks as
// members, each on a node of its own, every size there, and figures that fit
// together. A program that started once on each node without finding the others
// would otherwise report a splendid bandwidth.
func Parse(stdout []byte, j Job) (Output, error) {
	r := newReader(j)
	_, _ = r.Write(stdout) // never fails
	return r.output()
}

// header is the first line of the script.
type header struct {
	Ranks int      `json:"ranks"`
	Hosts []string `json:"hosts"`
	MPI   string   `json:"mpi"`
}

// bytesOfRank bounds what one rank adds to a line of the script: its name, which is
// that of a host (RFC 1035, 2.3.4), or a number.
const bytesOfRank = 256 + 4

// reader reads the one header and the rows among lines that are something else,
// while they come.
type reader struct {
	tool.Lines
	j     Job
	head  header
	heads int
	rows  []Row
	err   error // the first one
	bytes int64
}

func newReader(j Job) *reader {
	r := &reader{j: j}
	r.Each, r.Most = r.line, tool.LongestLine+bytesOfRank*len(j.Members)
	return r
}

// Write implements io.Writer and never fails.
func (r *reader) Write(p []byte) (int, error) {
	r.bytes += int64(len(p))
	return r.Lines.Write(p)
}

func (r *reader) line(line string) {
	line = strings.TrimSpace(line)
	if r.err != nil || line == "" || line[0] != '{' {
		return
	}
	if strings.Contains(line, `"hosts"`) {
		r.heads++
		if err := decode(line, &r.head); err != nil {
			r.err = wrongRun("header: %v", err)
		}
		return
	}
	if len(r.rows) > 10*len(r.j.Sizes)+100 {
		r.err = wrongRun("%d sizes were asked for, and there are more than %d rows", len(r.j.Sizes), len(r.rows))
		return
	}
	var row Row
	if err := decode(line, &row); err != nil {
		r.err = wrongRun("row: %v", err)
		return
	}
	r.rows = append(r.rows, row)
}

// decode reads a line of the script, which says nothing else than what is read: a name
// that is not known stands where one is missing, and a missing count is no zero.
func decode(line string, into any) error {
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind it")
	}
	return nil
}

// output is what was read, held against the job.
func (r *reader) output() (Output, error) {
	_ = r.Close()
	if r.Cut > 0 {
		return Output{}, errkind.New(errkind.Unsupported, "output of the all-reduce: %w: it has a line of more than %d bytes within its %d", onnode.ErrCut, r.Most, r.bytes).
			Do("Read the attached output of mpirun.")
	}
	switch {
	case r.err != nil:
		return Output{}, r.err
	case r.heads == 0:
		return Output{}, wrongRun("there is no header")
	case r.heads > 1:
		return Output{}, wrongRun("the program started %d times on its own", r.heads)
	}
	out := Output{Hosts: r.head.Hosts, MPI: r.head.MPI, Rows: r.rows}
	if err := checkOutput(out, r.head.Ranks, r.j); err != nil {
		return Output{}, err
	}
	slices.SortFunc(out.Rows, func(a, b Row) int { return cmp.Compare(a.Size, b.Size) })
	return out, nil
}

func checkOutput(out Output, ranks int, j Job) error {
	distinct := slices.Compact(slices.Sorted(slices.Values(out.Hosts)))
	if ranks != len(j.Members) || len(distinct) != len(j.Members) {
		return wrongRun("%d ranks on %d nodes, where %d members were asked for", ranks, len(distinct), len(j.Members))
	}
	for _, size := range j.Sizes {
		if !slices.ContainsFunc(out.Rows, func(r Row) bool { return r.Size == size }) {
			return wrongRun("there is no row of size %d", size)
		}
	}
	for _, r := range out.Rows {
		if err := checkRow(r, ranks, j.Iterations); err != nil {
			return err
		}
	}
	return nil
}

// checkRow recomputes the bandwidths and the sum of wrong elements: busbw of an
// all-reduce is algbw times 2(n-1)/n, as in nccl-tests.
func checkRow(r Row, ranks, iterations int) error {
	if r.Ranks != ranks || r.Size <= 0 || r.Iterations != iterations || !(r.Time.Avg > 0) || r.Wrong < 0 || len(r.WrongByRank) != ranks {
		return wrongRun("row of size %d is incomplete", r.Size)
	}
	var wrong int64
	for _, n := range r.WrongByRank {
		wrong += n
	}
	if wrong != r.Wrong || slices.Min(r.WrongByRank) < 0 {
		return wrongRun("row of size %d: %d wrong elements are not the sum of %v by rank", r.Size, r.Wrong, r.WrongByRank)
	}
	const rounded = 1 + 1e-6 // a mean of equal times may end one digit beside them
	if !(r.Time.Min <= r.Time.Avg*rounded && r.Time.Avg <= r.Time.Max*rounded) {
		return wrongRun("row of size %d: its average of %g us is not between %g and %g", r.Size, r.Time.Avg, r.Time.Min, r.Time.Max)
	}
	alg := float64(r.Size) / (r.Time.Avg / 1e6)
	bus := alg * 2 * float64(ranks-1) / float64(ranks)
	if !isNear(alg, r.AlgBW) || !isNear(bus, r.BusBW) {
		return wrongRun("row of size %d: %.0f B/s does not fit its time", r.Size, r.BusBW)
	}
	return nil
}

func isNear(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(a) }

func wrongRun(format string, args ...any) error {
	return errkind.New(errkind.Internal, "output of the all-reduce: "+format, args...).Do("Read the attached output of mpirun.")
}
