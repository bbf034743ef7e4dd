// SPDX-License-Identifier: Apache-2.0

// Package perftest reads what the programs of perftest print: ib_write_bw,
// ib_read_bw, ib_send_bw and their _lat sisters. Rates are normalised to Gb/s
// beside the figures as they were printed. It is pure.
//
// Source: perftest_parameters.c and perftest_resources.c of
// github.com/linux-rdma/perftest.
package perftest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Content is what one output says: its first run, and those behind it, such as
// the other side's.
type Content struct {
	Run
	More []Run `json:"more,omitempty"`
}

// Runs returns all runs in their order.
func (c Content) Runs() []Run { return append([]Run{c.Run}, c.More...) }

// Run is one side of one run. What is not said is empty or null.
type Run struct {
	Test          string    `json:"test"` // such as "RDMA_Write BW"
	Bidirectional bool      `json:"bidirectional"`
	Device        string    `json:"device"`
	Link          string    `json:"link"`       // IB or Ethernet
	Connection    string    `json:"connection"` // RC, UC, UD, XRC
	MTU           int       `json:"mtu"`        // bytes
	QPs           int       `json:"qps"`
	GIDIndex      *int      `json:"gid_index"`
	GPU           string    `json:"gpu"`  // whose memory is used; empty for the host's
	Unit          string    `json:"unit"` // of peak and average, as printed: MB/sec, MiB/sec, Gb/sec
	Rows          []Row     `json:"rows"`
	Latencies     []Latency `json:"latencies"`
	Notes         []string  `json:"notes"` // warnings and errors among the output

	failed bool // an error is among the notes
}

// Row is the bandwidth of one size.
type Row struct {
	Size       int64    `json:"size"` // bytes of a message
	Iterations int64    `json:"iterations"`
	Peak       float64  `json:"peak"` // in the unit of the run; 0 in runs by duration
	Average    float64  `json:"average"`
	PeakGbps   float64  `json:"peak_gbps"` // 10^9 bits per second
	Gbps       float64  `json:"gbps"`      // the average
	MsgRate    *float64 `json:"msg_rate_mpps"`
	SL         *int64   `json:"sl,omitempty"` // service level, of raw_ethernet_bw with --raw_qos
}

// Latency is that of one size, in microseconds; null where a run does not print it.
type Latency struct {
	Size       int64    `json:"size"`
	Iterations int64    `json:"iterations"`
	Min        *float64 `json:"min_us"`
	Max        *float64 `json:"max_us"`
	Typical    *float64 `json:"typical_us"`
	Average    *float64 `json:"average_us"`
	Deviation  *float64 `json:"stdev_us"`
	P99        *float64 `json:"p99_us"`
	P999       *float64 `json:"p999_us"`
	PerSecond  *float64 `json:"transactions_per_second"`
}

// Format is the format of perftest.
func Format() tool.Format {
	return tool.Format{Name: "perftest", Is: matchFormat, Parse: func(b []byte) (any, tool.Problems, error) { return Parse(b) }}
}

var (
	title  = lazyregexp.New(`(?m)^\s*((?:RDMA_(?:Write|Read)\w*|Send(?:_imm)?|Raw|Atomic\w*|Fetch_\w+|WRITE_IMM)\b[\w ]*?\b(?:BW|Latency)(?: forwarding)?(?: Multicast)?) Test\s*$`)
	header = lazyregexp.New(`(?m)^\s*#bytes\s+(?:#sl\s+)?#iterations\s+(?:BW |t_)`)
	alone  = lazyregexp.New(`(?m)\bib_(?:write|read|send|atomic)_(?:bw|lat)\b`)
	// early is what only perftest says when it ends before it has printed its name.
	early = lazyregexp.New(`(?m)^\s*(?:Unable to find the Infiniband/RoCE device|Unable to Connect the HCA's through the link|Unable to open file descriptor for socket connection|Couldn't set the link layer|Failed to modify QP \d+ to RT[RS])`)
)

func matchFormat(data []byte) int {
	switch {
	case header.Match(data), isJSON(data):
		return 95
	case title.Match(data):
		return 90
	case early.Match(data), alone.Match(data) && strings.Contains(string(data), "Couldn't connect to"):
		return 60
	}
	return 0
}

// gbps is how many Gb/s one of a unit is. perftest's MB is 2^20 bytes, and its Gb
// 10^9 bits (its own help says so).
var gbps = map[string]float64{"MB/sec": 8 * (1 << 20) / 1e9, "MiB/sec": 8 * (1 << 20) / 1e9, "Gb/sec": 1, "GB/sec": 8}

// cycles is a command that asks for cycles of the processor; the header says
// microseconds all the same.
var cycles = lazyregexp.New(`\bib_(?:write|read|send|atomic)_lat\s(?:.*\s)?(?:-[a-zA-Z]*C|--report-cycles)(?:\s|$)`)

// ErrUnit says that a table is in a unit that is not known.
var ErrUnit = errors.New("the table is in a unit that is not known")

// ErrNone says that a text is not of perftest.
var ErrNone = errors.New("there is no run of perftest in it")

// reader reads the lines of one or more runs.
type reader struct {
	runs     []Run
	columns  []string // of the table that lines belong to
	cycles   bool     // the last command asked for them
	command  bool     // a command stands below the rows of the run
	problems tool.Problems
	line     int
}

// Parse reads an output of perftest, also the two sides' in one file. Warnings
// among the lines are notes; a table in a unit that is not known is ErrUnit, and
// no sign of perftest ErrNone.
func Parse(data []byte) (Content, tool.Problems, error) {
	if isJSON(data) {
		return parseJSON(data)
	}
	r := &reader{}
	for line := range strings.Lines(string(data)) {
		r.line++
		if err := r.read(strings.TrimSpace(line)); err != nil {
			return Content{}, nil, err
		}
	}
	if len(r.runs) == 0 {
		return Content{}, nil, ErrNone
	}
	for i := range r.runs {
		r.check(&r.runs[i])
	}
	return Content{Run: r.runs[0], More: r.runs[1:]}, r.problems, nil
}

// run is the run that lines belong to; one begins when there is none.
func (r *reader) run() *Run {
	if len(r.runs) == 0 {
		r.begin()
	}
	return &r.runs[len(r.runs)-1]
}

func (r *reader) begin() {
	r.runs = append(r.runs, Run{Rows: []Row{}, Latencies: []Latency{}, Notes: []string{}})
	r.columns, r.command = nil, false
}

func (r *reader) read(line string) error {
	fields := strings.Fields(line)
	r.shell(line)
	switch {
	case line == "":
	case isTitle(line):
		name := title.FindStringSubmatch(line)[1]
		if r.run().ended() { // else the other side's, mixed in
			r.begin()
		}
		r.run().Test, r.run().Bidirectional = name, strings.Contains(name, "Bidirectional")
	case strings.HasPrefix(line, "#bytes"):
		return r.header(line)
	case isNotable(line):
		r.note(line)
	case r.columns == nil && isSetting(line):
		r.settings(line)
	case r.columns != nil && len(fields) >= 3 && fields[0][0] >= '0' && fields[0][0] <= '9':
		r.row(fields)
	case len(r.runs) > 0 && gpu.MatchString(line):
		r.run().GPU = gpu.FindStringSubmatch(line)[1]
	}
	return nil
}

// shell notes what a command says of the run that it begins: that it is another
// one, and that it is in cycles.
func (r *reader) shell(line string) {
	if strings.Contains(line, "_lat ") {
		r.cycles = cycles.MatchString(line)
	}
	if len(r.runs) > 0 && r.run().measured() && alone.MatchString(line) && !isNotable(line) {
		r.command = true
	}
}

// ended reports whether a title is that of another run. Warnings come before the
// title of the run that they are about.
func (r *Run) ended() bool {
	return r.measured() || r.failed || r.Test != "" && len(r.Notes) > 0
}

// measured reports whether a run has a row.
func (r *Run) measured() bool { return len(r.Rows)+len(r.Latencies) > 0 }

// gpu is the line that names the GPU whose memory is used.
var gpu = lazyregexp.New(`device name = \[(.*?)\]`)

// column is a name of the header, with its unit.
var column = lazyregexp.New(`(#bytes|#sl|#iterations|BW peak|BW average|BW [Pp]ort\d|MsgRate|CPU_Util|t_\w+|99(?:\.9)?% percentile|tps average)\s*(?:\[([^\]]*)\])?`)

// header reads the names of the columns.
func (r *reader) header(line string) error {
	run := r.run()
	if run.measured() { // another run without a title
		r.begin()
		run = r.run()
	}
	r.columns = nil
	for _, m := range column.FindAllStringSubmatch(line, -1) {
		r.columns = append(r.columns, m[1])
		switch {
		case m[1] == "BW average":
			run.Unit = m[2]
		case strings.HasPrefix(m[1], "t_") && (m[2] == "cycles" || r.cycles):
			return fmt.Errorf("%w: %q is in cycles of a processor", ErrUnit, line)
		}
	}
	if !slices.Contains(r.columns, "BW average") && !slices.Contains(r.columns, "t_avg") && !slices.Contains(r.columns, "t_typical") {
		return fmt.Errorf("%w: %q has no average", ErrUnit, line)
	}
	if _, ok := gbps[run.Unit]; !ok && slices.Contains(r.columns, "BW average") {
		return fmt.Errorf("%w: %q", ErrUnit, line)
	}
	return nil
}

// settings reads lines of the form "Dual-port : OFF  Device : mlx5_0".
func (r *reader) settings(line string) {
	run := r.run()
	for _, m := range setting.FindAllStringSubmatch(line, -1) {
		value := m[2]
		switch m[1] {
		case "Device":
			run.Device = value
		case "Link type":
			run.Link = value
		case "Connection type":
			run.Connection = value
		case "Mtu":
			run.MTU, _ = strconv.Atoi(strings.TrimSuffix(value, "[B]"))
		case "Number of qps":
			run.QPs, _ = strconv.Atoi(value)
		case "GID index":
			if n, err := strconv.Atoi(value); err == nil {
				run.GIDIndex = &n
			}
		}
	}
}

var setting = lazyregexp.New(`(Device|Link type|Connection type|Mtu|Number of qps|GID index)\s*: (\S+)`)

// isTitle and isSetting look for a word first, since patterns are slow.
func isTitle(line string) bool   { return strings.HasSuffix(line, "Test") && title.MatchString(line) }
func isSetting(line string) bool { return strings.Contains(line, ":") && setting.MatchString(line) }

// complaint is a word of an error or a warning.
type complaint struct {
	word  string
	fatal bool
}

// complaints are what a program says when something is wrong; those that are
// fatal end it without a result.
var complaints = []complaint{
	{"WARNING", false}, {"Warning", false}, {"Conflicting", false}, {"CPU Frequency is not max", false}, {"Couldn't", true}, {"Failed", true}, {"Fail to ", true}, {"Unable", true}, {"Completion with error", true},
	{"falling back", false}, {"syndrom", true}, {"error", true}, {"Error", true}, {"ERROR", true}, {"failed", true}, {"not found", true}, {"Problems with warm up", true}, {"Unsupported", true}, {"Invalid", true},
	{"not supported", true}, {"does not support", true}, {"Bad wc status", true}, {" mismatch: local=", true}, {"Port number ", true},
}

// isNotable reports whether a line is such a complaint. A setting that the device
// does not have, as in "PCIe relax order: Unsupported", is none.
func isNotable(line string) bool {
	complains := func(c complaint) bool { return strings.Contains(line, c.word) }
	return slices.ContainsFunc(complaints, complains) && !plain.MatchString(line) && !statistics.MatchString(line)
}

// plain is a line of the settings, whose value says nothing of the run.
var plain = lazyregexp.New(`^(?:PCIe relax order|ibv_wr\* API)\s*:`)

// statistics are figures that are called errors and are none: "std-error=0.002" in the
// summary of a program that ran beside it.
var statistics = lazyregexp.New(`(?i)\b(?:std|standard|mean|rms|relative)[- _]?error\s*[=:]?\s*[0-9.]+`)

// mostNotes is how many notes of a run are kept.
const mostNotes = 50

func (r *reader) note(line string) {
	if r.command { // it is of the run that this command begins
		r.begin()
	}
	run := r.run()
	if len(run.Notes) < mostNotes {
		run.Notes = append(run.Notes, line)
	}
	for _, c := range complaints {
		if strings.Contains(line, c.word) {
			if c.fatal {
				run.failed = true
				r.problems.Add(tool.Failed, r.line, "%s", line)
			}
			return
		}
	}
}

// row reads the figures of one size. The names of the columns say which is which.
func (r *reader) row(fields []string) {
	values := make([]*float64, len(r.columns))
	for i := range min(len(fields), len(values)) {
		values[i] = parseNumber(fields[i])
	}
	at := func(name string) *float64 {
		if i := slices.Index(r.columns, name); i >= 0 {
			return values[i]
		}
		return nil
	}
	size, n := at("#bytes"), at("#iterations")
	if size == nil || n == nil || *size <= 0 || *n <= 0 || *size != math.Trunc(*size) || *n != math.Trunc(*n) {
		return
	}
	if slices.Contains(r.columns, "BW average") {
		r.bandwidth(int64(*size), int64(*n), at)
		return
	}
	if last := r.columns[len(r.columns)-1]; at("t_avg") == nil && (last != "t_typical" || at(last) == nil) { // old versions have no average
		r.problems.Add(tool.Truncated, r.line, "the row of size %s is cut", fields[0])
		return
	}
	run := r.run()
	run.Latencies = append(run.Latencies, Latency{
		Size: int64(*size), Iterations: int64(*n), Min: at("t_min"), Max: at("t_max"), Typical: at("t_typical"), Average: at("t_avg"),
		Deviation: at("t_stdev"), P99: at("99% percentile"), P999: at("99.9% percentile"), PerSecond: at("tps average"),
	})
}

func (r *reader) bandwidth(size, n int64, at func(string) *float64) {
	run := r.run()
	peak, average := at("BW peak"), at("BW average")
	if peak == nil || average == nil {
		r.problems.Add(tool.Truncated, r.line, "the row of size %d is cut, or a figure in it is none", size)
		return
	}
	f := gbps[run.Unit]
	row := Row{Size: size, Iterations: n, Peak: *peak, Average: *average, PeakGbps: *peak * f, Gbps: *average * f, MsgRate: at("MsgRate"), SL: toServiceLevel(at("#sl"))}
	run.Rows = append(run.Rows, row)
	if row.MsgRate != nil {
		// The rate has six decimals and the average two or more.
		want, slack := *row.MsgRate*float64(size)*8/1e3, 0.5e-6*float64(size)*8/1e3+0.005*f
		if math.Abs(want-row.Gbps) > slack+0.01*row.Gbps {
			r.problems.Add(tool.Inconsistent, r.line, "size %d: %.2f Gb/s does not follow from %g million messages a second, which are %.2f", size, row.Gbps, *row.MsgRate, want)
		}
	}
}

// toServiceLevel returns a service level; nil when a table has none.
func toServiceLevel(f *float64) *int64 {
	if f == nil || *f > 15 {
		return nil
	}
	n := int64(*f)
	return &n
}

// parseNumber returns a figure of a table: not negative, and no more than any link has.
func parseNumber(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f >= 1e15 {
		return nil
	}
	return &f
}

func (r *reader) check(run *Run) {
	if len(run.Rows) == 0 && len(run.Latencies) == 0 {
		r.problems.Add(tool.Missing, 0, "there is no row of results")
	}
}
