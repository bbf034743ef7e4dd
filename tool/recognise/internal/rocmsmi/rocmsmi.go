// SPDX-License-Identifier: Apache-2.0

// Package rocmsmi reads what rocm-smi prints: its concise table, its sections of
// lines "GPU[0] : name: value", the matrices of --showtopo, --json and --csv.
// amd-smi has taken its place; clusters with older ROCm still have it.
package rocmsmi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Formats is the output of rocm-smi.
var Formats = []tool.Format{{
	Name: "rocm-smi", Is: matchFormat,
	Parse: func(b []byte) (any, tool.Problems, error) {
		r, p, err := Parse(b)
		if err != nil {
			return nil, p, err
		}
		return r, p, nil
	},
}}

// mostGPUs is how many GPUs or partitions of them are read; a node has at most 64.
const mostGPUs = 512

// Report is what rocm-smi said of a node.
type Report struct {
	Driver string `json:"driver,omitempty"`
	GPUs   []GPU  `json:"gpus"`
	Links  []Link `json:"links,omitempty"` // each direction where it says both
}

// GPU is one GPU. Pointers are nil and strings empty where it says nothing.
type GPU struct {
	GPU         int      `json:"gpu"`
	Bus         string   `json:"bus,omitempty"` // PCI address as in sysfs
	Name        string   `json:"name,omitempty"`
	DeviceID    string   `json:"device_id,omitempty"`
	UniqueID    string   `json:"unique_id,omitempty"`
	Serial      string   `json:"serial,omitempty"`
	VBIOS       string   `json:"vbios,omitempty"`
	Temperature *float64 `json:"temperature_c"` // junction, or edge where that is all
	MemoryTemp  *float64 `json:"memory_c"`
	Power       *float64 `json:"power_w"`
	PowerCap    *float64 `json:"power_cap_w"`
	Use         *float64 `json:"use_percent"`
	VRAMUse     *float64 `json:"vram_percent"`
	VRAMTotal   *float64 `json:"vram_total_bytes"`
	VRAMUsed    *float64 `json:"vram_used_bytes"`
	Replays     *int64   `json:"pcie_replays"`
	NUMA        *int64   `json:"numa_node"`
	MemoryMode  string   `json:"memory_partition,omitempty"`
	ComputeMode string   `json:"compute_partition,omitempty"`
	RAS         []RAS    `json:"ras,omitempty"`
	XGMIErrors  *int64   `json:"xgmi_errors,omitempty"` // since the last read: 0 none, 1 one, 2 several
	Pages       []Page   `json:"pages,omitempty"`       // of memory that are out of use
	Partition   *int64   `json:"partition,omitempty"`   // of one physical GPU, with --showhw
	values      map[string]string
}

// RAS is the state of error correction of one block.
type RAS struct {
	Block         string `json:"block"`
	Status        string `json:"status"`
	Correctable   *int64 `json:"correctable"`
	Uncorrectable *int64 `json:"uncorrectable"`
}

// Page is one page of memory.
type Page struct {
	Address string `json:"address"`
	Size    string `json:"size"`
	Status  string `json:"status"` // reserved, pending, unreservable
}

// Link is what one GPU has to another.
type Link struct {
	From       int    `json:"from"`
	To         int    `json:"to"`
	Type       string `json:"type,omitempty"` // XGMI, PCIE
	Weight     *int64 `json:"weight"`
	Hops       *int64 `json:"hops"`
	Bandwidth  string `json:"bandwidth,omitempty"` // least and most, as printed, in MB/s
	Accessible *bool  `json:"accessible"`
}

// errNone says that there is no output of rocm-smi.
var errNone = errors.New("no GPU of rocm-smi in it")

var (
	jsonCard = lazyregexp.New(`"card\d+"\s*:`)
	banner   = lazyregexp.New(`=+ *(?:ROCm System Management Interface|End of ROCm SMI Log) *=+`)
	// matrixIn is one section of --showtopo, which people quote alone.
	matrixIn = lazyregexp.New(`(?m)^[ \t]*=+ *[A-Z][\w ]* between two GPUs *=+[ \t]*\r?$`)
	gpuLine  = lazyregexp.New(`(?m)^\s*GPU\[\d+\]\s*:`)
	failure  = lazyregexp.New(`(?i)driver not initialized|no AMD GPUs specified|amdgpu not found in modules|rsmi_init.*(?:fail|error)|RSMI_STATUS_INIT_ERROR|unable to detect any GPU|Expected integer value from monitor`)
	// failed is an error of one GPU or of all; unable says that it is only what the GPU
	// does not have (printErrLog and rsmi_ret_ok of rocm_smi.py).
	failed = lazyregexp.New(`^\s*ERROR:\s+(?:\d+\s+)?(?:GPU\[|[A-Z])`)
	unable = lazyregexp.New(`(?i)not[ _]supported|unsupported|not[ _]found|not available|not been implemented|no such file`)
)

func matchFormat(b []byte) int {
	begin := b[:min(len(b), 64<<10)]
	switch {
	case banner.Match(begin):
		return 92
	case jsonCard.Match(begin):
		return 85
	case csvIn.Match(begin):
		return 85
	case matrixIn.Match(begin):
		return 80
	case gpuLine.Match(begin):
		return 60
	case bytes.Contains(begin, []byte("amdgpu not found in modules")):
		return 40
	}
	return 0
}

// Parse reads one output of rocm-smi.
func Parse(b []byte) (Report, tool.Problems, error) {
	r := &reader{links: map[[2]int]int{}}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if failure.Match(line) || failed.Match(line) && !unable.Match(line) {
			r.p.Add(tool.Failed, n, "rocm-smi says: %s", bytes.TrimSpace(line))
		}
	}
	switch {
	case jsonCard.Match(b):
		r.json(b)
	case csvIn.Match(b):
		r.csv(b)
	case banner.Match(b) || gpuLine.Match(b) || matrixIn.Match(b):
		r.text(b)
	case len(r.p) == 0:
		return Report{}, nil, errNone
	}
	if len(r.GPUs) == 0 && r.notJSON {
		return Report{}, nil, errNone
	}
	r.end()
	return r.Report, r.p, nil
}

// reader collects what is read.
type reader struct {
	Report
	p     tool.Problems
	links map[[2]int]int // index into Links

	notJSON bool // what looked like it, such as an example in which somebody put dots
}

// gpu returns the GPU of a number, made if it is new; nil if there are too many.
func (r *reader) gpu(n int) *GPU {
	if n < 0 || n >= mostGPUs {
		return nil
	}
	for i := range r.GPUs {
		if r.GPUs[i].GPU == n {
			return &r.GPUs[i]
		}
	}
	r.GPUs = append(r.GPUs, GPU{GPU: n, values: map[string]string{}})
	return &r.GPUs[len(r.GPUs)-1]
}

// link returns the link between two GPUs, made if it is new.
func (r *reader) link(from, to int) *Link {
	key := [2]int{from, to}
	i, ok := r.links[key]
	if !ok {
		i = len(r.Links)
		r.links[key] = i
		r.Links = append(r.Links, Link{From: from, To: to})
	}
	return &r.Links[i]
}

var (
	cardName = lazyregexp.New(`^card(\d+)$`)
	pairName = lazyregexp.New(`^\(Topology\) (.+?) between DRM devices (\d+) and (\d+)$`)
)

// document is the begin of the object on a line: warnings may stand above it.
var document = lazyregexp.New(`(?m)^\s*\{\s*"`)

// json reads --json: an object of cards and one of the system.
func (r *reader) json(b []byte) {
	at := document.FindIndex(b)
	if at == nil {
		r.notJSON = true
		return
	}
	from := at[0]
	d := json.NewDecoder(bytes.NewReader(b[from:]))
	d.UseNumber()
	cards := map[string]map[string]any{}
	if err := d.Decode(&cards); err != nil {
		line := 1 + bytes.Count(b[:min(len(b), from+int(d.InputOffset()))], []byte("\n"))
		if errors.Is(err, io.ErrUnexpectedEOF) {
			r.p.Add(tool.Truncated, line, "the JSON ends before its end")
		} else {
			r.notJSON = true
			r.p.Add(tool.Inconsistent, line, "not the JSON of rocm-smi: %v", err)
		}
		return
	}
	for _, name := range sortedKeys(cards) {
		if name == "system" {
			r.system(cards[name])
			continue
		}
		m := cardName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		g := r.gpu(n)
		if g == nil {
			continue
		}
		for _, key := range sortedKeys(cards[name]) {
			g.set(key, fmt.Sprint(cards[name][key]))
		}
	}
	slices.SortFunc(r.GPUs, func(a, b GPU) int { return a.GPU - b.GPU })
}

// system reads what is said of the node: the driver, and the links.
func (r *reader) system(values map[string]any) {
	for _, key := range sortedKeys(values) {
		r.ofSystem(key, fmt.Sprint(values[key]))
	}
}

func (r *reader) ofSystem(key, value string) {
	if strings.EqualFold(key, "driver version") {
		r.Driver, _ = readValue(value)
	}
	m := pairName.FindStringSubmatch(key)
	if m == nil {
		return
	}
	from, err := strconv.Atoi(m[2])
	to, err2 := strconv.Atoi(m[3])
	if err != nil || err2 != nil || from >= mostGPUs || to >= mostGPUs || from == to {
		return
	}
	r.link(from, to).set(m[1], value)
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// set takes one property of a link; the names are those of the matrices.
func (l *Link) set(what, value string) {
	v, ok := readValue(value)
	if !ok {
		return
	}
	n, err := strconv.ParseInt(v, 10, 64)
	switch what = strings.ToLower(what); {
	case strings.HasPrefix(what, "weight") && err == nil:
		l.Weight = &n
	case strings.HasPrefix(what, "hops") && err == nil:
		l.Hops = &n
	case strings.HasPrefix(what, "link type"):
		l.Type = v
	case strings.HasPrefix(what, "bandwidth"):
		l.Bandwidth = v
	case strings.HasPrefix(what, "link accessib"):
		yes := strings.EqualFold(v, "true")
		l.Accessible = &yes
	}
}

// readValue returns a value, and whether there is one.
func readValue(s string) (string, bool) {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "", "n/a", "none", "<nil>", "unknown", "not supported", "unsupported":
		return "", false
	}
	return s, true
}

// set notes a value by its name; the first word stays if it is there twice.
func (g *GPU) set(name, value string) {
	name = strings.ToLower(strings.TrimSpace(name))
	v, ok := readValue(value)
	if _, twice := g.values[name]; ok && !twice {
		g.values[name] = v
	}
}

func (g *GPU) text(names ...string) string {
	for _, n := range names {
		if v := g.values[n]; v != "" {
			return v
		}
	}
	return ""
}

func (g *GPU) float(names ...string) *float64 {
	v, err := strconv.ParseFloat(strings.TrimRight(g.text(names...), "%WcC°"), 64)
	if err != nil || v != v || v > 1e18 || v < -1e18 {
		return nil
	}
	return &v
}

func (g *GPU) int(names ...string) *int64 {
	f := g.float(names...)
	if f == nil {
		return nil
	}
	n := int64(*f)
	return &n
}

// count is the number that a text begins with: "0 (No errors detected since last read)".
func (g *GPU) count(name string) *int64 {
	word, _, _ := strings.Cut(g.text(name), " ")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// end makes the typed fields of the values, and checks the whole.
func (r *reader) end() {
	for i := range r.GPUs {
		r.GPUs[i].fill()
	}
	if len(r.GPUs) == 0 && len(r.Links) == 0 && r.Driver == "" {
		r.p.Add(tool.Missing, 0, "no GPU in it")
	}
	at := map[string]int{}
	for _, g := range r.GPUs {
		if other, twice := at[g.Bus]; twice && g.Bus != "" && !g.shares() {
			r.p.Add(tool.Inconsistent, 0, "GPU %d and GPU %d are both at %s", other, g.GPU, g.Bus)
		}
		at[g.Bus] = g.GPU
		if g.GPU >= len(r.GPUs) {
			r.p.Add(tool.Missing, 0, "there is GPU %d, and only %d GPUs are described", g.GPU, len(r.GPUs))
		}
	}
	if r.GPUs == nil {
		r.GPUs = []GPU{}
	}
}

func (g *GPU) fill() {
	g.Bus = strings.ToLower(g.text("pci bus"))
	g.Name = g.text("card series", "device name", "card model")
	g.DeviceID = g.text("device id", "gpu id")
	g.UniqueID, g.Serial, g.VBIOS = g.text("unique id"), g.text("serial number"), g.text("vbios version")
	if g.Serial == "0" {
		g.Serial = "" // what the library writes for none
	}
	g.Temperature = g.float("temperature (sensor junction) (c)", "temperature (sensor edge) (c)", "temperature")
	g.MemoryTemp = g.float("temperature (sensor memory) (c)", "temperature (sensor mem) (c)")
	g.Power = g.float("current socket graphics package power (w)", "average graphics package power (w)", "power")
	g.PowerCap = g.float("max graphics package power (w)", "power cap")
	g.Use, g.VRAMUse = g.float("gpu use (%)", "use"), g.float("gpu memory allocated (vram%)", "vram use")
	g.VRAMTotal, g.VRAMUsed = g.float("vram total memory (b)"), g.float("vram total used memory (b)")
	g.Replays, g.XGMIErrors = g.int("pcie replay count"), g.count("xgmi error count")
	g.NUMA = g.int("(topology) numa node")
	g.Partition = g.int("partition id")
	g.MemoryMode, g.ComputeMode = g.text("memory partition"), g.text("compute partition")
}

// shares reports whether a GPU may be at the address of another: several
// partitions of one physical GPU are, some at functions other than 0.
func (g GPU) shares() bool {
	return g.Partition != nil && *g.Partition > 0 || g.ComputeMode != "" && g.ComputeMode != "SPX" || !strings.HasSuffix(g.Bus, ".0")
}

// Summary is a line for each GPU.
func (r Report) Summary() []string {
	out := []string{fmt.Sprintf("%d GPUs, %d links", len(r.GPUs), len(r.Links))}
	if r.Driver != "" {
		out[0] += ", driver " + r.Driver
	}
	for _, g := range r.GPUs {
		words := []string{fmt.Sprintf("GPU %d", g.GPU)}
		for _, w := range []string{g.Bus, g.Name, g.Serial} {
			if w != "" {
				words = append(words, w)
			}
		}
		if g.Temperature != nil {
			words = append(words, fmt.Sprintf("%g C", *g.Temperature))
		}
		if g.Power != nil {
			words = append(words, fmt.Sprintf("%g W", *g.Power))
		}
		out = append(out, strings.Join(words, ", "))
	}
	return out
}
