// SPDX-License-Identifier: Apache-2.0

// Package perftest runs nothing: it writes the command lines of the perftest
// programs, and makes of what tool/perftest reads of them what a check needs. It
// is pure.
package perftest

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/ironrail/ironrail/tool/perftest"
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

// Parse reads the output of ib_write_bw. Warnings between the lines, the two
// sides' outputs mixed into one, and trailing junk are survived; a table in a
// unit that is not known, or none, is an error.
func Parse(output []byte) (Result, error) {
	content, _, err := perftest.Parse(output)
	switch {
	case errors.Is(err, perftest.ErrNone):
		return Result{}, ErrNoTable
	case err != nil:
		return Result{}, fmt.Errorf("output of ib_write_bw: %w", err)
	}
	var r Result
	for _, run := range content.Runs() {
		r.Link, r.MTU = cmp.Or(r.Link, run.Link), cmp.Or(r.MTU, run.MTU)
		r.Notes = append(r.Notes, run.Notes...)
		for _, row := range run.Rows {
			r.Rows = append(r.Rows, Row{Size: row.Size, Iterations: row.Iterations, Peak: row.PeakGbps * bytesPer, Average: row.Gbps * bytesPer})
		}
	}
	if len(r.Rows) == 0 {
		return r, ErrNoTable
	}
	return r, nil
}

// bytesPer is how many bytes per second one Gb/s is.
const bytesPer = 1e9 / 8
