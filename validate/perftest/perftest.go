// Package perftest runs nothing: it writes the command lines of the perftest
// programs and reads what they print. It is pure.
package perftest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// WriteBW describes one run of ib_write_bw.
type WriteBW struct {
	Device     string
	GIDIndex   int
	Size       int64 // bytes of one message
	Iterations int
	Port       int // TCP port on which the two sides find each other
}

// Argv returns the command line. server is the address of the other side for
// the client, and empty for the server. --report_gbits is left out on purpose:
// two decimals of Gb/s are too coarse for slow links. -F: a changing CPU clock
// is a warning only.
func (w WriteBW) Argv(server string) []string {
	argv := []string{"ib_write_bw", "-d", w.Device, "-x", strconv.Itoa(w.GIDIndex), "-s", strconv.FormatInt(w.Size, 10),
		"-n", strconv.Itoa(w.Iterations), "-p", strconv.Itoa(w.Port), "-F"}
	if server != "" {
		argv = append(argv, server)
	}
	return argv
}

// Row is one line of the table of results. Rates are in bytes per second.
type Row struct {
	Size       int64
	Iterations int64
	Peak       float64 // 0 in runs by duration
	Average    float64
}

// Result is what one run printed.
type Result struct {
	Link  string // "Ethernet" or "IB"; empty when not printed
	MTU   int    // active RDMA MTU in bytes; 0 when not printed
	Rows  []Row
	Notes []string // warnings and errors among the output
}

// Largest returns the row of the largest size.
func (r Result) Largest() (Row, bool) {
	var best Row
	for _, row := range r.Rows {
		if row.Size > best.Size {
			best = row
		}
	}
	return best, best.Size > 0
}

// ErrNoTable says that the output holds no table of results.
var ErrNoTable = errors.New("ib_write_bw printed no result")

// bytesPer is how many bytes per second one of the unit in the table's header
// is. perftest's MB is 2^20 bytes and its Gb 10^9 bits (its own help says so).
var bytesPer = map[string]float64{
	"[MB/sec]": 1 << 20, "[MiB/sec]": 1 << 20, "[Gb/sec]": 125e6, "[GB/sec]": 1e9,
}

// Parse reads the output of ib_write_bw. Warnings between the lines, the two
// sides' outputs mixed into one, and trailing junk are survived; a table in a
// unit that is not known, or none, is an error.
func Parse(output []byte) (Result, error) {
	var r Result
	unit := 0.0
	s := bufio.NewScanner(bytes.NewReader(output))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#bytes"):
			u, err := headerUnit(line)
			if err != nil {
				return r, err
			}
			unit = u
		case strings.HasPrefix(line, "Link type"):
			r.Link = value(line)
		case strings.HasPrefix(line, "Mtu "):
			r.MTU, _ = strconv.Atoi(strings.TrimSuffix(value(line), "[B]"))
		case notable(line):
			r.Notes = append(r.Notes, line)
		case unit > 0 && len(fields) >= 4:
			if row, ok := parseRow(fields, unit); ok {
				r.Rows = append(r.Rows, row)
			}
		}
	}
	if err := s.Err(); err != nil {
		return r, fmt.Errorf("output of ib_write_bw: %w", err)
	}
	if len(r.Rows) == 0 {
		return r, ErrNoTable
	}
	return r, nil
}

// headerUnit finds the unit of the average in the table's header.
func headerUnit(line string) (float64, error) {
	_, rest, ok := strings.Cut(line, "BW average")
	if !ok {
		return 0, fmt.Errorf("table of ib_write_bw has no average: %q", line)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(rest), "]")
	u, ok := bytesPer[word+"]"]
	if !ok {
		return 0, fmt.Errorf("table of ib_write_bw is in a unit that is not known: %q", line)
	}
	return u, nil
}

// value returns what stands after the first colon of "name : value  other : x".
func value(line string) string {
	_, v, _ := strings.Cut(line, ":")
	f := strings.Fields(v)
	if len(f) == 0 {
		return ""
	}
	return f[0]
}

// notable reports whether a line is a complaint of the program.
func notable(line string) bool {
	for _, w := range []string{"WARNING", "Couldn't", "Failed", "Unable", "error", "Completion with error", "Conflicting", "syndrom"} {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}

// parseRow reads size, iterations, peak and average; the message rate that
// follows is not needed.
func parseRow(f []string, unit float64) (Row, bool) {
	size, err1 := strconv.ParseInt(f[0], 10, 64)
	n, err2 := strconv.ParseInt(f[1], 10, 64)
	peak, err3 := strconv.ParseFloat(f[2], 64)
	avg, err4 := strconv.ParseFloat(f[3], 64)
	if errors.Join(err1, err2, err3, err4) != nil || size <= 0 || n <= 0 || !sane(peak) || !sane(avg) {
		return Row{}, false
	}
	return Row{Size: size, Iterations: n, Peak: peak * unit, Average: avg * unit}, true
}

// sane refuses what no link carries: NaN, infinities, negative numbers and more
// than a petabyte per second.
func sane(v float64) bool { return !math.IsNaN(v) && v >= 0 && v < 1e9 }
