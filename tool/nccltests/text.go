// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/nccllog"
)

// Lines of the output that are no rows.
var (
	// log is a line of NCCL's own log, which may stand anywhere, also behind the
	// begun half of a row: a row is printed in pieces.
	log = lazyregexp.New(`(?:[A-Za-z0-9][\w.-]*:\d+:\d+ |\[[\d: .-]+\] )?(?:[A-Za-z0-9][\w.-]*:\d+:\d+ )?(?:\[-?\w*\] )?(?:[\w/.]+\.\w+:\d+ (?:\(\S+\) )?|\d+\.\d+ \w+:\d+ )?NCCL (?:INFO|WARN|TRACE|CALL|ABORT|ERROR) .*`)
	// labelled is a line with a label before a row or a comment, which other
	// launchers than the usual ones put there.
	labelled = lazyregexp.New(`^\s*[^\s#]{1,120}?(?: \d+)?[:>|\]]\s*(#.*|\d+\s+\d+\s+[a-z]\w*\s.*)$`)
	device   = lazyregexp.New(`^#\s*Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?(?:Pid\s+(\d+)\s+)?on\s+(\S+)\s+device\s+(\d+)\s+\[([^\]]*)\]\s*(.*?)\s*$`)
	program  = lazyregexp.New(`\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|gather|scatter|sendrecv|hypercube|all_reduce_bias)_perf(?:_mpi)?\b`)
	asked    = lazyregexp.New(`^#\s*nThread (\d+) nGpus (\d+) minBytes (\d+) maxBytes (\d+) step: (\d+)\((\w+)\) warmup iters: (\d+) iters: (\d+)(.*)$`)
	option   = lazyregexp.New(`(agg iters|validation|graph): (\d+)`)
	reduced  = lazyregexp.New(`^#\s*Reducing maxBytes to (\d+)`)
	version  = lazyregexp.New(`^#?\s*(?:[nr]ccl-tests version |rccl-tests: Version )(\S+)(?:.*[nr]ccl-library=(\d+))?`)
	library  = lazyregexp.New(`^\s*(?:NCCL|RCCL) version\s*:?\s+(\d\S*)`)
	jsonFile = lazyregexp.New(`^#\s*Writing JSON output to (\S+)`)
	bounds   = lazyregexp.New(`^#\s*Out of bounds values\s*:\s*(\d+)\s*(\S*)`)
	average  = lazyregexp.New(`^#\s*Avg bus bandwidth\s*:\s*(\S+)\s*(\S*)`)
	// unmarked is a comment whose # Markdown has made a heading of.
	unmarked = lazyregexp.New(`^(?:nThread \d+ nGpus \d+ minBytes|Rank +\d+ +(?:Group +\d+ +)?Pid +\d+ on |Out of bounds values +:|Avg bus bandwidth +:)`)
	elided   = lazyregexp.New(`^[\s#|]*(?:\.{2,}|…)\s*$`)
)

// failures are lines that say that a run failed, each with the group of what is
// quoted. Echoes, which only repeat that something called failed, are not here.
var failures = []*lazyregexp.Regexp{
	lazyregexp.New(`(?:\S+: )?Test (?:NCCL|CUDA) failure .*`),
	lazyregexp.New(`(?:\S+: )?Test timeout \(\d+s\).*`),
	lazyregexp.New(`\[ERROR\] The number of requested GPUs .*`),
	lazyregexp.New(`invalid sizes? (?:specified )?for 'minbytes'.*|invalid size specified for '\w+'`),
	lazyregexp.New(`This test requires (?:GIN|multimem) support.*`),
	lazyregexp.New(`Incompatible NCCL versions\..*`),
	lazyregexp.New(`There are not enough slots available in the system.*`),
	lazyregexp.New(`(?:mpirun|mpiexec|prterun) (?:noticed that|detected that|was unable to|has exited).*`),
	lazyregexp.New(`(?:ORTE|PRTE|PMIX) (?:was unable|has lost|daemon|does not know).*`),
	lazyregexp.New(`Invalid number of GPUs: \d+ requested but only \d+ were found.*`),
	lazyregexp.New(`\S*_perf: error while loading shared libraries.*`),
	lazyregexp.New(`^#\s*error: \S.*`),
	lazyregexp.New(`srun: error: .*`),
	lazyregexp.New(`slurmstepd: error: .*`),
}

// reader reads a text line by line.
type reader struct {
	tests    []Test
	problems *tool.Problems
	named    string // the collective that was named last, for the test that comes
	columns  columns
	inFirst  bool     // the line above the columns has "in-place" first, or alone
	pending  []string // the beginning of a row whose end has not come yet
	at       int      // line of pending
	line     int
	warnings int // of the library, those included that were not noted
	failures int // the same of other programs
}

// mostNoted is how many warnings and how many failures are noted one by one: every
// rank of a run may print the same one.
const mostNoted = 1000

func parseText(data []byte, problems *tool.Problems) []Test {
	r := &reader{problems: problems}
	for line := range strings.Lines(string(data)) {
		r.line++
		r.read(strings.TrimRight(line, " \t\r\n"))
	}
	r.drop()
	r.finish()
	return r.tests
}

// finish counts what was not noted one by one.
func (r *reader) finish() {
	if more := r.warnings - mostNoted; more > 0 {
		r.problems.Add(tool.Failed, 0, "NCCL warns %d more times", more)
	}
	if more := r.failures - mostNoted; more > 0 {
		r.problems.Add(tool.Failed, 0, "%d more lines say that the run failed", more)
	}
}

// test is the test that lines belong to; one begins when there is none.
func (r *reader) test() *Test {
	if len(r.tests) == 0 {
		r.open()
	}
	return &r.tests[len(r.tests)-1]
}

// open adds a test, of the collective that was named before it.
func (r *reader) open() {
	r.tests = append(r.tests, Test{Ranks: []Rank{}, Rows: []Row{}, Collective: r.named})
	r.named = ""
}

// read reads one line.
func (r *reader) read(line string) {
	if _, _, ok := nccllog.ParseInfo(line); ok {
		return
	}
	logged := strings.Contains(line, "NCCL ")
	if !logged {
		if m := labelled.FindStringSubmatch(line); m != nil {
			line = m[1]
		}
	} else if i := log.FindStringIndex(line); i != nil {
		r.warning(line[i[0]:])
		if line[i[0]] == '1' && strings.HasSuffix(line[:i[0]], " -") { // the root -1 and the log's host in one word
			i[0]++
		}
		line = line[:i[0]]
	}
	if i := r.failure(line); i >= 0 {
		line = line[:i]
	}
	text := strings.TrimSpace(line)
	switch {
	case text == "":
	case strings.HasPrefix(text, "#"):
		r.comment(text)
	case unmarked.MatchString(text):
		r.comment("# " + text)
	case r.row(line):
	default:
		r.other(text)
	}
}

// warning notes a failure that NCCL's own log tells of.
func (r *reader) warning(line string) {
	for _, level := range []string{"NCCL WARN ", "NCCL ERROR ", "NCCL ABORT "} {
		if _, text, ok := strings.Cut(line, level); ok && len(r.tests) > 0 {
			if r.warnings++; r.warnings <= mostNoted {
				r.problems.Add(tool.Failed, r.line, "NCCL warns: %s", strings.TrimSpace(text))
			}
			return
		}
	}
}

// failure notes a line that says that the run failed, and returns where that
// begins in it; -1 when it says no such thing.
func (r *reader) failure(line string) int {
	if !speaksOfFailure(line) {
		return -1
	}
	for _, f := range failures {
		if i := f.FindStringIndex(line); i != nil {
			r.test()
			if r.failures++; r.failures <= mostNoted {
				r.problems.Add(tool.Failed, r.line, "%s", strings.TrimSpace(line[i[0]:i[1]]))
			}
			return i[0]
		}
	}
	return -1
}

// speaksOfFailure is a cheap look for what every failure has a word of.
func speaksOfFailure(line string) bool {
	for _, word := range []string{"failure", "timeout", "invalid size", "This test requires", "Incompatible", "slots", "mpirun", "mpiexec", "prterun", "ORTE", "PRTE", "PMIX", "GPUs", "error"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// other reads a line that is neither a row nor a comment.
func (r *reader) other(text string) {
	switch m := library.FindStringSubmatch(text); {
	case m != nil:
		r.test().Library = m[1]
	case version.MatchString(text):
		r.test().Version = version.FindStringSubmatch(text)[1]
	case elided.MatchString(text) && len(r.tests) > 0:
		r.leftOut()
	case program.MatchString(text):
		r.name(program.FindStringSubmatch(text)[1])
	}
}

// leftOut notes that somebody cut lines out.
func (r *reader) leftOut() {
	switch t := r.test(); {
	case t.ended:
	case len(t.Rows) > 0:
		t.elided = true
		r.problems.Add(tool.Truncated, r.line, "rows were left out here")
	case len(t.Ranks) > 0:
		t.partial = true
		r.problems.Add(tool.Truncated, r.line, "devices were left out here: over how many ranks this ran is not known")
	}
}

// name notes which collective the test that comes is of; a test that has begun
// and does not know it takes it as well.
func (r *reader) name(collective string) {
	if len(r.tests) > 0 && !r.test().ended && len(r.test().Rows) == 0 {
		r.test().Collective = collective
		return
	}
	r.named = collective
}

// comment reads a line that begins with #.
func (r *reader) comment(text string) {
	if in, out := strings.Index(text, "in-place"), strings.Index(text, "out-of-place"); in >= 0 || out >= 0 {
		r.inFirst = out < 0 || in >= 0 && in < out
	}
	if c, ok := readColumns(text); ok {
		r.header(c)
		return
	}
	switch m := device.FindStringSubmatch(text); {
	case m != nil:
		r.device(m)
	case asked.MatchString(text):
		r.begin()
		r.test().Config = parseConfig(asked.FindStringSubmatch(text))
	case strings.Contains(text, "Collective test starting:"), strings.HasPrefix(text, "# nccl-tests version"), strings.HasPrefix(text, "# rccl-tests version"):
		r.opening(text)
	case bounds.MatchString(text):
		r.bounds(bounds.FindStringSubmatch(text))
	case average.MatchString(text):
		r.average(average.FindStringSubmatch(text))
	case reduced.MatchString(text):
		r.test().Config.ReducedTo = parseInteger(reduced.FindStringSubmatch(text)[1])
	case jsonFile.MatchString(text):
		r.test().JSONFile = jsonFile.FindStringSubmatch(text)[1]
	case strings.Contains(text, "Collective test concluded:"):
		if m := program.FindStringSubmatch(text); m != nil {
			r.test().Collective = m[1]
		}
	default:
		r.other(strings.TrimLeft(text, "# "))
	}
}

// header begins a table of these columns, of another test where the last one has
// ended or has rows.
func (r *reader) header(c columns) {
	c.inFirst, r.inFirst = r.inFirst, false
	if len(r.tests) > 0 && (r.test().ended || len(r.test().Rows) > 0) {
		r.begin()
	}
	r.columns = c
	r.test().cpuTime = c.cpuTime
}

// opening reads the lines that new versions begin with, before that of what was
// asked for.
func (r *reader) opening(text string) {
	if len(r.tests) > 0 && (r.test().ended || len(r.test().Rows) > 0) {
		r.begin()
	}
	if m := version.FindStringSubmatch(text); m != nil {
		r.test().Version, r.test().Library = m[1], decodeVersion(m[2])
	}
	if m := program.FindStringSubmatch(text); m != nil {
		r.test().Collective = m[1]
	}
}

// begin begins a test, when the one before has ended or has rows. A program that
// starts before another has a single row runs beside it.
func (r *reader) begin() {
	r.drop()
	switch {
	case len(r.tests) == 0, r.test().ended, len(r.test().Rows) > 0:
		r.open()
	case r.test().Config.MaximumBytes != nil:
		r.test().copies++
	}
}

func (r *reader) device(m []string) {
	t := r.test()
	if t.ended || len(t.Rows) > 0 {
		r.begin()
		t = r.test()
	}
	rank := Rank{Rank: parseSmall(m[1]), PID: parseSmall(m[3]), Host: m[4], Device: parseSmall(m[5]), BusID: m[6], Name: m[7]}
	if m[2] != "" {
		g := parseSmall(m[2])
		rank.Group = &g
	}
	t.Ranks = append(t.Ranks, rank)
}

func (r *reader) bounds(m []string) {
	r.drop()
	t := r.test()
	t.ended = true
	if n := parseInteger(m[1]); t.OutOfBounds == nil || n != nil && *n > *t.OutOfBounds {
		t.OutOfBounds = n
	}
	if m[1] != "0" || m[2] != "OK" && m[2] != "" {
		r.problems.Add(tool.Failed, r.line, "%s values were out of bounds", m[1])
	}
}

func (r *reader) average(m []string) {
	r.drop()
	t := r.test()
	t.ended = true
	t.AvgBusBW = parseNumber(m[1])
	if strings.HasPrefix(m[2], "FAIL") {
		r.problems.Add(tool.Failed, r.line, "the average bus bandwidth %s GB/s is below what NCCL_TESTS_MIN_BW asks for", m[1])
	}
}

// parseConfig reads what was asked for.
func parseConfig(m []string) Config {
	c := Config{Threads: parseInteger(m[1]), GPUs: parseInteger(m[2]), MinimumBytes: parseInteger(m[3]), MaximumBytes: parseInteger(m[4]), Warmups: parseInteger(m[7]), Iterations: parseInteger(m[8])}
	if m[6] == "factor" {
		c.StepFactor = parseInteger(m[5])
	} else {
		c.StepBytes = parseInteger(m[5])
	}
	for _, o := range option.FindAllStringSubmatch(m[9], -1) {
		switch o[1] {
		case "agg iters":
			c.Aggregated = parseInteger(o[2])
		case "validation":
			c.Validation = parseInteger(o[2])
		case "graph":
			c.Graph = parseInteger(o[2])
		}
	}
	return c
}

// decodeVersion returns a version of NCCL as its header writes it since 2.9: 22706 is 2.27.6.
func decodeVersion(s string) string {
	n, err := strconv.Atoi(s)
	if err != nil || n < 20900 {
		return s
	}
	return strconv.Itoa(n/10000) + "." + strconv.Itoa(n/100%100) + "." + strconv.Itoa(n%100)
}

// parseInteger returns a whole number, also one that %g wrote as 1e+06; nil when it is none.
func parseInteger(s string) *int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return &n
	}
	if f := parseNumber(s); f != nil && *f == float64(int64(*f)) && *f > -1e18 && *f < 1e18 {
		n := int64(*f)
		return &n
	}
	return nil
}

// parseSmall returns a number of a few digits; 0 when it is none.
func parseSmall(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
