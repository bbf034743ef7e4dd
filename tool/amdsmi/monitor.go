// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"bytes"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// monitorCell is a cell and the gap behind it: a value and its unit have one blank
// between them, "182 W"; what is of each part of a GPU is a list, "[0 %, N/A]", and
// what is in use of something stands before it, "2.9/ 15.9 GB".
var monitorCell = lazyregexp.New(`^(\[[^\]]*\]|\d\S*/ *\d\S*|\S+)(?: (W|%|°C|C|MHz|MB|GB|Mb/s|MB/s|GB/s|mV|J))?(?:\s+|$)`)

// violations are the columns of monitor -V, by their names in metric.
var violations = map[string]string{"PVIOL": "ppt", "TVIOL": "socket_thermal", "PHOT_TVIOL": "prochot", "VR_TVIOL": "vr_thermal", "HBM_TVIOL": "hbm_thermal"}

// monitor reads the table of amd-smi monitor: a row for each GPU, of which a
// watch prints one after another. The last row of a GPU stands.
func (r *Report) monitor(b []byte, p *tool.Problems) {
	var head []string
	n := 0
	for raw := range bytes.Lines(b) {
		n++
		line := strings.TrimSpace(string(raw))
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case monitor.MatchString(line):
			head = words
		case strings.HasSuffix(line, ":"): // PROCESS INFO: another table follows
			head = nil
		case head != nil && strings.Trim(words[0], "0123456789") == "":
			r.monitored(head, line, n, p)
		}
	}
}

// monitored reads one row.
func (r *Report) monitored(head []string, line string, n int, p *tool.Problems) {
	row := &branch{line: n}
	for _, name := range head {
		m := monitorCell.FindStringSubmatch(line)
		if m == nil {
			p.Add(tool.Truncated, n, "the row has %d of %d columns", len(row.sub), len(head))
			return
		}
		cell := &branch{name: name, value: m[1]}
		if name == "VRAM_USAGE" {
			cell.value += " " + m[2]
		}
		row.sub = append(row.sub, cell)
		line = line[len(m[0]):]
	}
	if line != "" {
		p.Add(tool.Inconsistent, n, "the row has more than its %d columns, so which value is of which is not known", len(head))
		return
	}
	number := row.int("GPU")
	if number == nil || *number < 0 || *number >= mostGPUs {
		p.Add(tool.Inconsistent, n, "a GPU without a number")
		return
	}
	if part := row.int("XCP"); part != nil && *part > 0 {
		r.gpu(int(*number)) // what is of the whole GPU stands in the row of its first part
		return
	}
	m := &Metric{
		Power: row.float("POWER", "POWER_USAGE"), Hotspot: row.float("GPU_TEMP", "GPU_T"), MemoryTemp: row.float("MEM_TEMP", "MEM_T"),
		GFX: row.float("GFX_UTIL", "GFX%"), Replays: row.int("PCIE_REPLAY"), VRAMUsed: row.float("VRAM_USED"), VRAMTotal: row.float("VRAM_TOTAL"),
		ECC: ECC{Correctable: row.int("SINGLE_ECC"), Uncorrectable: row.int("DOUBLE_ECC")},
	}
	if used, total, ok := strings.Cut(row.text("VRAM_USAGE"), "/"); ok { // rounded: "0.3/192.0 GB"
		_, unit, _ := strings.Cut(strings.TrimSpace(total), " ")
		m.VRAMUsed, m.VRAMTotal = parseMegabytes(used, unit), parseMegabytes(strings.TrimSpace(total), unit)
	}
	for _, column := range row.sub {
		if name := violations[column.name]; name != "" {
			m.violation(name, column.value)
		}
	}
	g := r.gpu(int(*number))
	g.Metric = m
	if limit := row.float("PWR_CAP"); limit != nil {
		g.Static = &Static{PowerLimit: limit}
	}
}

// parseMegabytes returns an amount in MB, of which a GB has 1024.
func parseMegabytes(s, unit string) *float64 {
	v, ok := parseNumber(s)
	switch {
	case ok && unit == "GB":
		v *= 1024
	case !ok || unit != "MB":
		return nil
	}
	return &v
}
