// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// watcher collects what is seen of the GPUs.
type watcher struct {
	Burner
	vendor string
	result wire.BurnResult
	gpus   map[string]*wire.BurnGPU // by address

	sensors []sensors // of GPUs of AMD, found at the first look

	query int    // index into queries: the newest that the driver knows
	last  []byte // what nvidia-smi printed, and what it meant: often the same again
	rows  []row
}

// row is what one look says of one GPU. Values that are not said are missing.
type row struct {
	address string
	value   map[string]float64
	held    []string
}

// sample takes one sample. It is not counted when the load ends meanwhile.
func (w *watcher) sample(running context.Context) {
	ctx, cancel := w.Clock.WithTimeout(running, lookLimit)
	defer cancel()
	var rows []row
	why := ""
	if w.vendor == "nvidia" {
		rows, why = w.nvidia(ctx)
	} else {
		rows = w.amd()
	}
	if running.Err() != nil {
		return
	}
	w.result.Looks++
	if len(rows) == 0 {
		w.result.Blind++
		w.without(why)
	}
	for _, r := range rows {
		w.add(r)
	}
}

// without notes a reason once.
func (w *watcher) without(why string) {
	if why != "" && len(w.result.Without) < 4 && !slices.Contains(w.result.Without, why) {
		w.result.Without = append(w.result.Without, why)
	}
}

func (w *watcher) add(r row) {
	g := w.gpus[r.address]
	if g == nil {
		g = &wire.BurnGPU{Address: r.address}
		w.gpus[r.address] = g
	}
	add := func(to *wire.Span, name string) {
		if v, ok := r.value[name]; ok {
			to.Add(v)
		}
	}
	add(&g.Core, coreC)
	add(&g.Memory, memoryC)
	add(&g.Power, watts)
	add(&g.Clock, clockMHz)
	add(&g.Left, leftC)
	add(&g.MemLeft, memLeftC)
	for _, reason := range r.held {
		if g.Held == nil {
			g.Held = map[string]int{}
		}
		g.Held[reason]++
	}
}

// done returns all that was seen.
func (w *watcher) done() wire.BurnResult {
	for _, at := range slices.Sorted(maps.Keys(w.gpus)) {
		w.result.GPUs = append(w.result.GPUs, *w.gpus[at])
	}
	if w.vendor == "amd" {
		w.result.KFD = w.kfd()
	}
	return w.result
}

// Names of values in a row.
const (
	coreC    = "core"
	memoryC  = "memory"
	watts    = "power"
	clockMHz = "clock"
	leftC    = "left"
	memLeftC = "memory left"
)

// column is a field of nvidia-smi --query-gpu, and the value that it gives; for
// a reason that holds clocks down, value is empty and held its name.
type column struct{ field, value, held string }

// columns are common to all drivers.
var columns = []column{
	{"pci.bus_id", "", ""}, {"temperature.gpu", coreC, ""}, {"temperature.memory", memoryC, ""}, {"power.draw", watts, ""}, {"clocks.sm", clockMHz, ""},
}

// reasons are why clocks are held down (nvidia-smi --help-query-gpu).
var reasons = []string{"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown", "sw_power_cap"}

// queries are what is asked, the newest first: one field that a driver does not
// know makes it refuse them all. Reasons have been called so since driver 535;
// tlimit is the distance to the slowdown.
var queries = [][]column{
	slices.Concat(columns, []column{{"temperature.gpu.tlimit", leftC, ""}}, reasonsAs("clocks_event_reasons.")),
	slices.Concat(columns, reasonsAs("clocks_event_reasons.")),
	slices.Concat(columns, reasonsAs("clocks_throttle_reasons.")),
}

func reasonsAs(prefix string) (list []column) {
	for _, r := range reasons {
		list = append(list, column{field: prefix + r, held: r})
	}
	return list
}

// nvidia asks nvidia-smi for all GPUs at once.
func (w *watcher) nvidia(ctx context.Context) ([]row, string) {
	for ; ; w.query++ {
		var fields []string
		for _, c := range queries[w.query] {
			fields = append(fields, c.field)
		}
		out, err := w.Run(ctx, []string{"nvidia-smi", "--query-gpu=" + strings.Join(fields, ","), "--format=csv,noheader,nounits"})
		switch {
		case err != nil:
			return nil, err.Error()
		case out.Exit == 0 && bytes.Equal(out.Stdout, w.last) && w.rows != nil:
			return w.rows, ""
		case out.Exit == 0:
			w.last, w.rows = out.Stdout, parseQuery(out.Stdout, queries[w.query])
			return w.rows, "nvidia-smi --query-gpu listed no GPU"
		case bytes.Contains(out.Stdout, []byte("not a valid field")) && w.query+1 < len(queries):
		default:
			return nil, fmt.Sprintf("nvidia-smi --query-gpu: exit status %d: %s", out.Exit, wire.FirstLine(slices.Concat(out.Stdout, out.Stderr)))
		}
	}
}

// parseQuery reads the lines of nvidia-smi --query-gpu with csv,noheader,nounits.
// What a GPU cannot say is [N/A] or [Not Supported].
func parseQuery(text []byte, of []column) (rows []row) {
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if len(cells) != len(of) {
			continue
		}
		r := row{value: map[string]float64{}}
		for i, c := range of {
			cell := strings.TrimSpace(cells[i])
			switch {
			case i == 0:
				r.address = address(cell)
			case c.held != "":
				if cell == "Active" {
					r.held = append(r.held, c.held)
				}
			default:
				if v, err := strconv.ParseFloat(cell, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
					r.value[c.value] = v
				}
			}
		}
		if r.address != "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// address is a PCI address as sysfs has it: NVIDIA writes eight digits of domain.
func address(bus string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(bus), ":")
	if !ok || len(domain) < 4 {
		return ""
	}
	return domain[len(domain)-4:] + ":" + rest
}
