// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// jsonKeys are what the file of --out_json has together (perftest_parameters.c).
var jsonKeys = lazyregexp.New(`(?s)"test_info"\s*:\s*\{.{0,900}"Transport_type"\s*:`)

func isJSON(data []byte) bool { return jsonKeys.Match(data[:min(len(data), 64<<10)]) }

// file is what --out_json writes: one size of one run. It does not say in which
// unit its bandwidths are.
type file struct {
	Info struct {
		Test       string `json:"test"` // RDMA_Write_BW_Test
		Device     string `json:"Device"`
		QPs        int    `json:"Number_of_qps"`
		Connection string `json:"Connection_type"`
		MTU        int    `json:"Mtu"`
		Link       string `json:"Link_type"`
		GIDIndex   *int   `json:"GID_index"`
		GPU        *int   `json:"cuda_device"`
	} `json:"test_info"`
	Results *struct {
		Size       int64    `json:"MsgSize"`
		Iterations int64    `json:"n_iterations"`
		Peak       *float64 `json:"BW_peak"`
		Average    *float64 `json:"BW_average"`
		MsgRate    *float64 `json:"MsgRate"`
		Min        *float64 `json:"t_min"`
		Max        *float64 `json:"t_max"`
		Typical    *float64 `json:"t_typical"`
		TAverage   *float64 `json:"t_avg"`
		Deviation  *float64 `json:"t_stdev"`
		P99        *float64 `json:"percentile_99"`
		P999       *float64 `json:"percentile_99.9"`
		PerSecond  *float64 `json:"tps_average"`
	} `json:"results"`
}

// parseJSON reads the file of --out_json.
func parseJSON(data []byte) (Content, tool.Problems, error) {
	var f file
	var problems tool.Problems
	text, ok := jsontext.Find(data)
	if !ok {
		return Content{}, nil, ErrNone
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "the file ends before its end: what it has so far was read")
	}
	if err := json.Unmarshal(text.Data, &f); err != nil {
		return Content{}, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	i := f.Info
	run := Run{
		Test: strings.TrimSuffix(strings.NewReplacer("_BW_", " BW ", "_Latency_", " Latency ", "_Bidirectional", " Bidirectional").Replace(i.Test), " Test"), Bidirectional: strings.Contains(i.Test, "Bidirectional"),
		Device: i.Device, Link: i.Link, Connection: i.Connection, MTU: i.MTU, QPs: i.QPs, GIDIndex: i.GIDIndex,
		Rows: []Row{}, Latencies: []Latency{}, Notes: []string{},
	}
	if i.GPU != nil {
		run.GPU = fmt.Sprint(*i.GPU)
	}
	f.result(&run, &problems)
	if len(run.Rows)+len(run.Latencies) == 0 {
		problems.Add(tool.Missing, 0, "there is no row of results")
	}
	return Content{Run: run}, problems, nil
}

// result adds the row, if there is a whole one.
func (f file) result(run *Run, problems *tool.Problems) {
	x := f.Results
	switch {
	case x == nil || x.Size <= 0 || x.Iterations <= 0:
	case x.TAverage != nil:
		run.Latencies = append(run.Latencies, Latency{
			Size: x.Size, Iterations: x.Iterations, Min: x.Min, Max: x.Max, Typical: x.Typical, Average: x.TAverage,
			Deviation: x.Deviation, P99: x.P99, P999: x.P999, PerSecond: x.PerSecond,
		})
	case x.Peak != nil && x.Average != nil:
		run.Unit = unitOf(*x.Average, x.MsgRate, x.Size)
		per, known := gbps[run.Unit]
		if !known {
			problems.Add(tool.Inconsistent, 0, "size %d: the average %g follows from the rate of messages in no unit: neither in Gb/sec nor in MiB/sec", x.Size, *x.Average)
			return
		}
		run.Rows = append(run.Rows, Row{Size: x.Size, Iterations: x.Iterations, Peak: *x.Peak, Average: *x.Average, PeakGbps: *x.Peak * per, Gbps: *x.Average * per, MsgRate: x.MsgRate})
	}
}

// unitOf returns that in which an average follows from the rate of messages; empty when
// it does in none.
func unitOf(average float64, rate *float64, size int64) string {
	if rate == nil {
		return ""
	}
	want := *rate * float64(size) * 8 / 1e3 // Gb/s
	for _, name := range []string{"Gb/sec", "MiB/sec"} {
		got := average * gbps[name]
		if math.Abs(got-want) <= 0.5e-6*float64(size)*8/1e3+0.005*gbps[name]+0.01*got {
			return name
		}
	}
	return ""
}
