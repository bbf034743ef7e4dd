package mpi

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/provision/errkind"
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

// header is the first line of the script.
type header struct {
	Ranks int      `json:"ranks"`
	Hosts []string `json:"hosts"`
	MPI   string   `json:"mpi"`
}

// Parse reads the script's output and holds it against the job: as many ranks as
// members, each on a node of its own, every size there, and figures that fit
// together. A program that started once on each node without finding the others
// would otherwise report a splendid bandwidth.
func Parse(stdout []byte, j Job) (Output, error) {
	head, rows, err := scan(stdout)
	if err != nil {
		return Output{}, err
	}
	out := Output{Hosts: head.Hosts, MPI: head.MPI, Rows: rows}
	if err := check(out, head.Ranks, j); err != nil {
		return Output{}, err
	}
	slices.SortFunc(out.Rows, func(a, b Row) int { return cmp.Compare(a.Size, b.Size) })
	return out, nil
}

// scan reads the one header and the rows among lines that are something else.
func scan(stdout []byte) (head header, rows []Row, err error) {
	heads := 0
	s := bufio.NewScanner(bytes.NewReader(stdout))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		if bytes.Contains(line, []byte(`"hosts"`)) {
			heads++
			if err := json.Unmarshal(line, &head); err != nil {
				return head, nil, wrongRun("header: %v", err)
			}
			continue
		}
		var r Row
		if err := json.Unmarshal(line, &r); err != nil {
			return head, nil, wrongRun("row: %v", err)
		}
		rows = append(rows, r)
	}
	switch {
	case s.Err() != nil:
		return head, nil, wrongRun("%v", s.Err())
	case heads == 0:
		return head, nil, wrongRun("there is no header")
	case heads > 1:
		return head, nil, wrongRun("the program started %d times on its own", heads)
	}
	return head, rows, nil
}

func check(out Output, ranks int, j Job) error {
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
		if err := checkRow(r, ranks); err != nil {
			return err
		}
	}
	return nil
}

// checkRow recomputes the bandwidths: busbw of an all-reduce is algbw times
// 2(n-1)/n, as in nccl-tests.
func checkRow(r Row, ranks int) error {
	if r.Ranks != ranks || r.Size <= 0 || r.Iterations <= 0 || !(r.Time.Avg > 0) || r.Wrong < 0 || len(r.WrongByRank) != ranks {
		return wrongRun("row of size %d is incomplete", r.Size)
	}
	alg := float64(r.Size) / (r.Time.Avg / 1e6)
	bus := alg * 2 * float64(ranks-1) / float64(ranks)
	if !near(alg, r.AlgBW) || !near(bus, r.BusBW) {
		return wrongRun("row of size %d: %.0f B/s does not fit its time", r.Size, r.BusBW)
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(a) }

func wrongRun(format string, args ...any) error {
	return errkind.New(errkind.Internal, "output of the all-reduce: "+format, args...).Do("Read the attached output of mpirun.")
}

// telling are the words of Open MPI 4 and OpenSSH on lines that name a node
// which failed, as opposed to one which only noticed.
var telling = []string{
	"noticed that process", "exited on signal", "Remote daemon", "connect to host", "Permission denied", "connect() to", "Host key for", "lost connection", "Connection closed by", "on node ",
}

// ignoredInterface starts Open MPI's warning that a node has no interface in the
// data network. It then goes on over any other one, so that the run proves
// nothing about the rail.
const ignoredInterface = "invalid value was given for btl_tcp_if_include"

// Named returns the one member that the text of a failed run names, if exactly
// one is named where something failed.
func Named(text []byte, members []Member) (Member, bool) {
	var found []string
	noRail := false // within the warning that a node has no address on the rail
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, ignoredInterface):
			noRail = true
		case strings.HasPrefix(line, "-----"):
			noRail = false
		}
		tells := noRail && strings.Contains(line, "Local host:") ||
			slices.ContainsFunc(telling, func(w string) bool { return strings.Contains(line, w) }) && !strings.Contains(line, "HNP daemon")
		if !tells {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n,;()[]@'\"", r) }) {
			for _, m := range members {
				if m.is(strings.TrimSuffix(word, ".")) && !slices.Contains(found, m.Node) {
					found = append(found, m.Node)
				}
			}
		}
	}
	if len(found) != 1 {
		return Member{}, false
	}
	i := slices.IndexFunc(members, func(m Member) bool { return m.Node == found[0] })
	return members[i], true
}

// is reports whether a word is the member's name or one of its addresses, with
// or without a port or a colon behind.
func (m Member) is(word string) bool {
	word = strings.TrimSuffix(word, ":")
	if word == m.Node {
		return true
	}
	a, err := netip.ParseAddr(word)
	if err != nil {
		ap, err := netip.ParseAddrPort(word)
		if err != nil {
			return false
		}
		a = ap.Addr()
	}
	return a == m.Address || slices.Contains(m.Rails, a)
}
