// SPDX-License-Identifier: Apache-2.0

// Package amdsmi reads what amd-smi prints: the table that it prints without a
// command, version, list, static, metric, monitor, firmware, bad-pages, topology and
// xgmi, as text, JSON and CSV.
//
// amd-smi writes "N/A" where a GPU has no such value; that is null here and never
// 0. The JSON of ROCm 6 is a list of GPUs, that of ROCm 7 an object with the
// lists gpu_data, xgmi_metric and link_status; text is the same tree, in capitals
// and indented; CSV is the same tree flattened (amdsmi_logger.py of ROCm/amdsmi).
package amdsmi

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Formats is the output of amd-smi.
var Formats = []tool.Format{{
	Name: "amd-smi", Is: matchFormat,
	Parse: func(b []byte) (any, tool.Problems, error) {
		r, p, err := Parse(b)
		if err != nil {
			return nil, p, err
		}
		return r, p, nil
	},
}}

// errNone says that there is no output of amd-smi.
var errNone = errors.New("no GPU and no table of amd-smi in it")

var (
	jsonGPU  = lazyregexp.New(`"gpu"\s*:\s*\d+`)
	jsonKeys = lazyregexp.New(`"(?:kfd_id|asic|pcie|ecc|ecc_blocks|fw_list|retired|un_res|link_metrics|link_status|links|power|usage|vbios|process_list|limit|bus|temperature|mem_usage|throttle|clock|driver|board|numa|vram|ras|cache|partition|fan|voltage|voltage_curve|overdrive|perf_level|ifwi|process_info|link_accessibility|link_type|weight|hops|cache_info|soc_pstate|xgmi_plpd|energy|pcie_bw|power_usage)"\s*:`)
	textGPU  = lazyregexp.New(`(?m)^\s*GPU: \d+\s*$`)
	textKey  = lazyregexp.New(`(?m)^\s*GPU: \d+[ \t]*\r?\n\s+[A-Z][A-Z0-9_]*:`)
	table    = lazyregexp.New(`(?m)^\s*(ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW|LINK METRIC|XGMI LINK STATUS|GPU LINK PORT STATUS|CACHE COHERANCY|ATOMICS|DMA|BI-DIRECTIONAL)(?: TABLE)?:\s*$`)
	monitor  = lazyregexp.New(`(?m)^\s*(?:TIMESTAMP +)?GPU +(?:XCP +)?(?:[A-Z][A-Z0-9_]* +)*(?:POWER|GPU_T(?:EMP)?|MEM_TEMP|MEM_T|GFX_UTIL|GFX%|GFX_CLK|MEM_UTIL|VRAM_USED|VRAM_TOTAL|PVIOL|TVIOL|PCIE_BW|SINGLE_ECC)(?: +[A-Z][A-Z0-9_%]*)*\s*$`)
	box      = lazyregexp.New(`(?m)^\s*\| AMD-SMI \S+ +amdgpu version: `)
	csvHead  = lazyregexp.New(`(?m)^\s*(?:timestamp,)?"?gpu"?,[a-z0-9_,"]+\s*$`) // a watch puts the time first
	failure  = lazyregexp.New(`(?i)unable to (?:detect any gpu|get devices)|driver not initialized|AmdSmiLibraryException|AMDSMI_STATUS_(?:NOT_INIT|NO_DRV|DRIVER_NOT_LOADED|DRM_ERROR|INIT_ERROR|NOT_FOUND)\b`)
)

func matchFormat(b []byte) int {
	begin := b[:min(len(b), 64<<10)]
	switch {
	case containsText(begin, `"gpu"`) && jsonGPU.Match(begin) && jsonKeys.Match(begin):
		return 90
	case containsText(begin, "GPU: ") && textGPU.Match(begin) && textKey.Match(begin):
		return 90
	case table.Match(begin), containsText(begin, "AMD-SMI") && box.Match(begin), containsText(begin, "GPU ") && monitor.Match(begin):
		return 90
	case csvHead.Match(begin):
		return 80
	case versionLine.Match(begin), versionJSON.Match(begin):
		return 70
	case failure.Match(begin):
		return 60
	}
	return 0
}

func containsText(b []byte, text string) bool { return bytes.Contains(b, []byte(text)) }

// Parse reads one output of amd-smi, or several of one node after another: what
// each says of a GPU is put together.
func Parse(b []byte) (Report, tool.Problems, error) {
	var p tool.Problems
	findFailures(b, &p)
	r := &Report{Versions: readVersions(b)}
	switch {
	case jsonGPU.Match(b):
		for _, g := range fromJSON(b, &p) {
			r.add(g, &p)
		}
	case table.Match(b):
		r.tables(b, &p)
	case box.Match(b):
		r.box(b, &p)
	case monitor.Match(b):
		r.monitor(b, &p)
	case textGPU.Match(b):
		for _, g := range fromText(b, &p) {
			r.add(g, &p)
		}
	case csvHead.Match(b):
		for _, g := range fromCSV(b, &p) {
			r.add(g, &p)
		}
	case len(p) == 0 && r.Versions == nil:
		return Report{}, nil, errNone
	}
	if len(r.GPUs) == 0 && notJSON(p) {
		return Report{}, nil, errNone
	}
	r.check(&p)
	return *r, p, nil
}

// notJSON reports whether what looked like JSON was none, such as an example in
// which somebody put dots.
func notJSON(p tool.Problems) bool {
	return slices.ContainsFunc(p, func(x tool.Problem) bool { return strings.HasPrefix(x.Text, "not JSON: ") })
}

// findFailures notes the lines with which amd-smi says that it cannot work.
func findFailures(b []byte, p *tool.Problems) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if failure.Match(line) {
			p.Add(tool.Failed, n, "amd-smi says: %s", bytes.TrimSpace(line))
		}
	}
}

// readValue returns a value, and whether there is one.
func readValue(s string) (string, bool) {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "", "n/a", "na", "none", "null", "unknown":
		return "", false
	}
	if strings.HasPrefix(s, "AMDSMI_STATUS_") {
		return "", false
	}
	return s, true
}

// unread is what the library writes into 32 bits that it could not read; amd-smi
// prints it as it is where it does not look for it.
const unread = 1<<32 - 1

// parseNumber returns the number that a value begins with, "32 GT/s"; false if it begins
// with none.
func parseNumber(s string) (float64, bool) {
	word, _, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(word, 64)
	return v, err == nil && v == v && v < 1e18 && v > -1e18 && v != unread
}

// parseKilobytes returns an amount of data in units of 1024 bytes: "1259 KB", and from ROCm
// 7 on "39.61 TB", as convert_bytes_to_readable of amdsmi_helpers.py writes it.
func parseKilobytes(s string) *float64 {
	v, ok := parseNumber(s)
	_, unit, _ := strings.Cut(s, " ")
	if !ok {
		return nil
	}
	switch strings.TrimSpace(unit) {
	case "B":
		v /= 1 << 10
	case "", "KB":
	case "MB":
		v *= 1 << 10
	case "GB":
		v *= 1 << 20
	case "TB":
		v *= 1 << 30
	case "PB":
		v *= 1 << 40
	case "EB":
		v *= 1 << 50
	default:
		return nil
	}
	return &v
}
