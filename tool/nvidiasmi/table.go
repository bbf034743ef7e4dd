// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// errTable says that there is no table of nvidia-smi.
var errTable = errors.New("no table of nvidia-smi in it")

var (
	tableHead = lazyregexp.New(`NVIDIA-SMI\s+([0-9][0-9.]*)(?:\s+(?:Driver|KMD) Version: *([0-9][0-9.]*|N/A))?(?:\s+CUDA (?:UMD )?Version: *([0-9][0-9.]*|N/A|ERR!))?`)
	tableIn   = lazyregexp.New(`\|\s*NVIDIA-SMI\s+[0-9]`)
	rowGPU    = lazyregexp.New(`^\s*(\d+)\s+(.*?)\s+(On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*$`)                           // Windows has the model of the driver there
	rowNamed  = lazyregexp.New(`^\s*(\d+)\.?\s+(\S.*?)()\s*$`)                                                      // before driver 319: no persistence, and once a dot
	rowBus    = lazyregexp.New(`^\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]|N/A)\s+(\S+)\s*$`) // Tegra has no address
	rowState  = lazyregexp.New(`^\s*(\S+)\s+(\S+)(?: C)?\s+(P\d+|N/A|ERR!|Unknown)\s+(\S+)\s*/\s*(\S+)\s*$`)
	rowMemory = lazyregexp.New(`^\s*(?:\d+%\s+)?(\S+)\s*/\s*(\S+)\s*$`)
	rowUse    = lazyregexp.New(`^\s*(\S+)\s+(\S.*?)\s*$`)
	rowTask   = lazyregexp.New(`^\|\s+(\d+)\s+(?:\S+\s+\S+\s+)?(\d+)\s+([CGM]\S*)\s+(\S.*?)\s+(\d+MiB|N/A)\s*\|\s*$`)
	rowProg   = lazyregexp.New(`^\|\s+(\d+)\s+(\d+)()\s+(\S.*?)\s+(\d+MB)\s*\|\s*$`) // before driver 334
	// onlyName is a heading without a column of the mode, which is the driver's on Windows.
	onlyName = lazyregexp.New(`^\|\s*(?:GPU|Nb\.)\s+Name\s*\|`)
	rowMIG   = lazyregexp.New(`^\|\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\|\s*(\d+)MiB\s*/\s*(\d+)MiB\s*\|\s*(\d+)\s+(\S+)\s*\|`)
	// version is a line of --version, of driver 550 and later.
	version   = lazyregexp.New(`^\s*(NVIDIA-SMI|NVML|DRIVER|KMD|CUDA|CUDA UMD) [Vv]ersion\s*: (.*?)\s*$`)
	versionIn = lazyregexp.New(`(?m)^\s*NVIDIA-SMI version\s*: `)
)

func isTable(b []byte) int {
	switch {
	case tableIn.Match(b[:min(len(b), 8192)]):
		return 90
	case anyComplaint(b):
		return 60
	case versionIn.Match(b[:min(len(b), 8192)]):
		return 55
	}
	return 0
}

// ParseTable reads what nvidia-smi prints without options, and the lines of
// --version. Names that are too long for the table are cut by it, with three dots.
func ParseTable(b []byte) (Log, tool.Problems, error) {
	var p tool.Problems
	t := tableReader{p: &p, byIndex: map[int]int{}}
	eachLine(b, t.read)
	if t.log.Driver == "" && !t.inTable && len(p) == 0 {
		return Log{}, nil, errTable
	}
	t.end(b)
	return t.log, p, nil
}

// tableReader goes through the lines of a table.
type tableReader struct {
	log      Log
	p        *tool.Problems
	byIndex  map[int]int // index into log.GPUs
	inTable  bool        // below the heading
	inGPUs   bool        // below the line of ===
	inMIG    bool        // in the table of MIG devices, which stands between the two
	inTasks  bool
	noMode   bool // the heading has no persistence mode
	bits     bool // errors of a single bit and of two stand beside one another: driver 290
	noDriver bool // the heading says that there is no version of it: Tegra
	row      int  // of the GPU that is being read, from 1; 0: none
	lastLine string
}

func (t *tableReader) read(n int, line string) {
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	t.lastLine = line
	if !strings.HasPrefix(line, "|") && noteComplaint(n, line, t.p) {
		return
	}
	if m := tableHead.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, "|") {
		t.log.Driver, _ = readValue(m[2])
		t.log.CUDA, _ = readValue(m[3])
		t.inTable, t.noDriver = true, m[2] == "N/A"
		return
	}
	if m := version.FindStringSubmatch(line); m != nil && !t.inTable {
		t.version(m[1], m[2])
		return
	}
	if !t.inTable && t.log.Time == "" && !strings.HasPrefix(line, "+") {
		t.log.Time = parseClock(line)
		return
	}
	t.body(n, line)
}

// body reads a line of a table: that of GPUs, of MIG devices or of processes.
func (t *tableReader) body(n int, line string) {
	switch {
	case strings.Contains(line, "Processes:") || strings.Contains(line, "Compute processes:"):
		t.inTasks, t.inMIG, t.inGPUs, t.row = true, false, false, 0
	case strings.HasPrefix(line, "|="):
		t.inGPUs, t.row = !t.inTasks && !t.inMIG, 0
	case strings.HasPrefix(line, "+") || strings.HasPrefix(line, "|--"):
		t.row = 0
	case t.inTasks:
		t.task(line)
	case t.inMIG && strings.HasPrefix(line, "|"):
		t.part(line)
	case !t.inGPUs && onlyName.MatchString(line):
		t.noMode, t.bits = true, strings.Contains(line, "SB / DB")
	case strings.Contains(line, "MIG devices:"):
		t.inMIG, t.inGPUs = true, false
	case t.inGPUs && strings.HasPrefix(line, "|"):
		t.gpu(n, line)
	}
}

// version reads a line of --version. New drivers say in it which other one is meant.
func (t *tableReader) version(what, v string) {
	if v == "" || v[0] < '0' || v[0] > '9' {
		return
	}
	switch what {
	case "DRIVER", "KMD":
		t.log.Driver = v
	case "CUDA", "CUDA UMD":
		t.log.CUDA = v
	}
}

// part reads a row of the table of MIG devices.
func (t *tableReader) part(line string) {
	m := rowMIG.FindStringSubmatch(line)
	if m == nil {
		return
	}
	var n [8]int64
	for i := range 7 {
		v, err := strconv.ParseInt(m[i+1], 10, 64)
		if err != nil {
			return
		}
		n[i] = v
	}
	at, known := t.byIndex[int(n[0])]
	if !known {
		return
	}
	used, total := float64(n[4]), float64(n[5])
	g := &t.log.GPUs[at]
	g.MIGDevices = append(g.MIGDevices, MIGDevice{Index: int(n[3]), Instance: &n[1], Compute: &n[2], Used: &used, Total: &total, SMs: &n[6]})
}

// parseClock returns the line above the table if it is a date, "Mon Jan 20 10:18:26 2025".
func parseClock(line string) string {
	if f := strings.Fields(line); len(f) >= 5 && strings.Count(f[3], ":") == 2 {
		return line
	}
	return ""
}

// unreadable is what stands in place of a value that something is wrong with.
var unreadable = lazyregexp.New(`(?i)ERR!|requires reset|unknown error|gpu is lost`)

// gpu reads one of the three lines of a GPU.
func (t *tableReader) gpu(n int, line string) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) < 3 {
		t.p.Add(tool.Truncated, n, "the line has %d of 3 columns", len(cells))
		return
	}
	if !strings.HasSuffix(line, "|") {
		t.p.Add(tool.Truncated, n, "the line ends before its end")
	}
	named := rowGPU
	if t.noMode {
		named = rowNamed
	}
	if m, bus := named.FindStringSubmatch(cells[0]), rowBus.FindStringSubmatch(cells[1]); m != nil && bus != nil {
		t.begin(n, m, bus, cells[2])
	} else if t.row == 1 && len(t.log.GPUs) > 0 {
		t.second(&t.log.GPUs[len(t.log.GPUs)-1], cells)
	} else if t.row == 2 && len(t.log.GPUs) > 0 {
		t.log.GPUs[len(t.log.GPUs)-1].MIG.Current, _ = parseYes(cells[2])
	}
	if t.row++; len(t.log.GPUs) > 0 && unreadable.MatchString(line) {
		g := t.log.GPUs[len(t.log.GPUs)-1]
		t.p.Add(tool.Failed, n, "GPU %d at %s has a value that cannot be read: %s", g.Index, g.BusID, strings.Join(strings.Fields(strings.Trim(line, "|")), " "))
	}
}

// begin reads "|   0  NVIDIA H100 80GB HBM3  On | 00000000:19:00.0 Off | 0 |".
func (t *tableReader) begin(n int, name, bus []string, ecc string) {
	i, err := strconv.Atoi(name[1])
	if err != nil {
		return
	}
	if _, twice := t.byIndex[i]; twice {
		t.p.Add(tool.Inconsistent, n, "GPU %d is there twice", i)
	} else if i != len(t.log.GPUs) {
		t.p.Add(tool.Missing, n, "GPU %d follows %d GPUs: one is left out", i, len(t.log.GPUs))
	}
	g := GPU{Index: i}
	if address, ok := readValue(bus[1]); ok {
		g.BusID = BusID(address)
	}
	g.Name, _ = readValue(name[2])
	g.Persistence, _ = parseYes(name[3])
	if single, double, ok := strings.Cut(strings.TrimSpace(ecc), " "); t.bits && ok {
		if v, err := parseNumber(single); err == nil && v != nil {
			count := int64(*v)
			g.ECC.Volatile.Correctable = &count
		}
		ecc = double
	}
	if v, err := parseNumber(ecc); err == nil && v != nil {
		count, on := int64(*v), true
		g.ECC.Volatile.Uncorrectable, g.ECC.Current = &count, &on
	} else if on, err := parseYes(ecc); err == nil { // Off, and On of a GPU with MIG devices
		g.ECC.Current = on
	}
	t.byIndex[i] = len(t.log.GPUs)
	t.log.GPUs = append(t.log.GPUs, g)
	t.row = 0
}

// second reads "| N/A 27C P0 72W / 700W | 1MiB / 81559MiB | 0% Default |".
func (t *tableReader) second(g *GPU, cells []string) {
	quantity := func(s, unit string) *float64 {
		v, err := parseNumber(strings.TrimSuffix(strings.TrimSuffix(s, unit), "MB")) // as drivers before 319 wrote MiB
		if err != nil {
			return nil
		}
		return v
	}
	if m := rowState.FindStringSubmatch(cells[0]); m != nil {
		g.Temperature.GPU = quantity(m[2], "C")
		g.State, _ = readValue(m[3])
		g.Power.Draw, g.Power.Limit = quantity(m[4], "W"), quantity(m[5], "W")
	}
	if m := rowMemory.FindStringSubmatch(cells[1]); m != nil {
		g.Memory.Used, g.Memory.Total = quantity(m[1], "MiB"), quantity(m[2], "MiB")
	}
	if m := rowUse.FindStringSubmatch(cells[2]); m != nil {
		g.Utilization = quantity(m[1], "%")
		g.ComputeMode, _ = readValue(m[2])
	}
}

// task reads a line of the list of processes.
func (t *tableReader) task(line string) {
	m := rowTask.FindStringSubmatch(line)
	if m == nil {
		m = rowProg.FindStringSubmatch(line)
	}
	if m == nil {
		return
	}
	i, _ := strconv.Atoi(m[1])
	pid, err := strconv.ParseInt(m[2], 10, 64)
	at, known := t.byIndex[i]
	if err != nil || !known {
		return
	}
	memory, _ := parseNumber(strings.TrimRight(m[5], "MiB"))
	t.log.GPUs[at].Processes = append(t.log.GPUs[at].Processes, Process{PID: pid, Type: m[3], Name: m[4], Memory: memory})
}

// end checks that the table was there whole.
func (t *tableReader) end(b []byte) {
	switch {
	case !t.inTable:
		return
	case len(t.log.GPUs) == 0 && !bytes.Contains(b, []byte("No devices")):
		t.p.Add(tool.Truncated, 0, "the table ends before its first GPU")
	case !strings.HasPrefix(t.lastLine, "+") && strings.HasPrefix(t.lastLine, "|"), strings.HasPrefix(t.lastLine, "+-") && !strings.HasSuffix(t.lastLine, "+"):
		t.p.Add(tool.Truncated, 0, "the table ends without its last line")
	}
	if t.log.Driver == "" && !t.noDriver {
		t.p.Add(tool.Missing, 0, "the driver version")
	}
}
