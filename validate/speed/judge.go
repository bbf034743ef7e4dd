// SPDX-License-Identifier: Apache-2.0

// Package speed is the check that measures the memory, the CPUs and the disks of a node's host,
// and the comparison of what the nodes of a role made of it.
package speed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/scatter"
)

const (
	// Fewest is how many figures make a median.
	Fewest = 4
	// memoryShare is the share of the median that a memory reaches at least. Hosts of one
	// model differ by 3 % in STREAM (SuperBench and azurehpc-health-checks hold them to that);
	// one channel of twelve is 8 %.
	memoryShare = 0.95
	// cpuShare is the share of the median that CPUs reach at least. Chips of one model differ by
	// some percent in the clock that they hold; twice of that is belief, as of GPUs.
	cpuShare = 0.9
	// coreShare is the same of one core, against those of its own NUMA node: interrupts and
	// whatever else a system does take their part of single cores. Belief.
	coreShare = 0.85
	// diskShare is the same of disks of one model. What was never written is read faster than
	// what was, and the start of a disk that turns faster than its end. Belief.
	diskShare = 0.85
	// work is how many rounds the time of a core is told of.
	work = 1e9
)

const (
	doMemory = "Compare the slots and the labels of its modules, and the BIOS settings of its memory (interleaving, mirroring, power), with those of another node; reseat the modules, then the CPU."
	doCPU    = "Compare its BIOS settings of power and of performance, its power limits (RAPL, the BMC's power cap) and its cooling with those of another node; look at its power supplies and both feeds."
	doCore   = "Look at what else runs on it (interrupts, a service, an isolated or offlined thread), then at the BIOS settings and the log of machine checks; exchange the CPU if it stays slow."
	doDisk   = "Look at its temperature and its health log (smartctl -a), its slot, cable and PCIe link, and its firmware; exchange it if it stays slow."
	doRead   = "Look at its health log and the kernel's log, reseat it, and exchange it."
)

// Record is what was measured of a node.
type Record struct {
	CPU     string           `json:"cpu"`             // what its CPUs are: nodes with the same are compared
	Modules string           `json:"modules"`         // what its memory is made of: the same
	Memory  []wire.NUMASpeed `json:"memory"`          //
	CPUs    []CPUs           `json:"cpus"`            // of each NUMA node
	Disks   []Disk           `json:"disks,omitempty"` //
	Least   float64          `json:"least,omitempty"` // bytes a second that the memory has to reach; 0: nothing is known
	Rule    string           `json:"rule,omitempty"`  // where that is from
	Faults  []judge.Fault    `json:"faults,omitempty"`
	Notes   []string         `json:"notes,omitempty"` // what was not measured, and why
}

// CPUs are the cores of a NUMA node.
type CPUs struct {
	Node    int     `json:"node"`
	Cores   int     `json:"cores"`
	Rate    float64 `json:"rate"`    // rounds a second, the median
	Slowest float64 `json:"slowest"` // of them
	Least   float64 `json:"least"`   // that is good; 0: they scatter too much to tell
	Core    int     `json:"core"`    // that is it
}

// Disk is one disk that was read.
type Disk struct {
	Part  string  `json:"part"`  // what it is called
	Model string  `json:"model"` // those of the same are compared
	Rate  float64 `json:"rate"`  // bytes a second; 0: it was not read
}

// Limits are what a site asks for; nothing where it is 0.
type Limits struct {
	memory, disk float64           // bytes a second
	cpu          float64           // seconds
	text         map[string]string // as the site has them, by measure
}

// NewRecord judges what was measured of a node by itself.
func NewRecord(s wire.Speed, l Limits) Record {
	r := Record{CPU: describeCPU(s.CPU), Modules: describeModules(s), Memory: s.NUMA, CPUs: cpusOf(s.Cores), Notes: s.Gaps}
	for _, d := range s.Disks {
		r.disk(d, l)
	}
	if len(s.Cores) > 0 && len(s.Cores) < s.CPU.Cores {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d cores were measured", len(s.Cores), s.CPU.Cores))
	}
	r.memory(s, l)
	r.cores(s.Cores, l)
	return r
}

func (r *Record) fail(part, action, evidence, format string, args ...any) {
	r.Faults = append(r.Faults, judge.Fault{Part: part, Cause: part + ": " + fmt.Sprintf(format, args...), Evidence: []string{evidence}, Action: action})
}

// hasFault reports whether a part was found by itself.
func (r Record) hasFault(part string) bool {
	return slices.ContainsFunc(r.Faults, func(f judge.Fault) bool { return f.Part == part })
}

func describeCPU(c wire.CPU) string {
	return fmt.Sprintf("%s, %d cores in %d sockets, %d NUMA nodes", cmp.Or(c.Model, "CPUs of a model that is not known"), c.Cores, c.Sockets, max(c.NUMA, 1))
}

// describeModules is what the memory is made of, and how it is split.
func describeModules(s wire.Speed) string {
	count := map[string]int{}
	for _, m := range s.DIMMs {
		if m.Size > 0 {
			count[fmt.Sprintf("%s at %d MT/s", unit.Bytes(m.Size), m.Speed)]++
		}
	}
	var list []string
	for _, what := range sortedKeys(count) {
		list = append(list, fmt.Sprintf("%d x %s", count[what], what))
	}
	return fmt.Sprintf("%s; %d NUMA nodes", cmp.Or(strings.Join(list, ", "), "modules that the firmware does not report"), max(len(s.NUMA), 1))
}

// cpusOf are the cores by their NUMA nodes, in the order of these.
func cpusOf(cores []wire.CoreSpeed) (list []CPUs) {
	by := map[int][]wire.CoreSpeed{}
	for _, c := range cores {
		by[c.Node] = append(by[c.Node], c)
	}
	for _, node := range sortedKeys(by) {
		of := by[node]
		slices.SortStableFunc(of, func(a, b wire.CoreSpeed) int { return cmp.Compare(a.Rate, b.Rate) })
		rates := make([]float64, len(of))
		for i, c := range of {
			rates[i] = c.Rate
		}
		one := CPUs{Node: node, Cores: len(of), Slowest: of[0].Rate, Core: of[0].CPU}
		ok := false
		if one.Rate, one.Least, ok = scatter.Bound(rates, coreShare); !ok {
			one.Least = 0
		}
		list = append(list, one)
	}
	return list
}

// total is what all NUMA nodes reach together.
func (r Record) total() (sum float64) {
	for _, n := range r.Memory {
		sum += n.Rate
	}
	return sum
}

// memory holds the whole of it against the limit of the site, or else what its modules give.
func (r *Record) memory(s wire.Speed, l Limits) {
	if len(r.Memory) == 0 {
		return
	}
	modules, slowest := 0, 0
	for _, m := range s.DIMMs {
		if m.Size > 0 {
			if modules++; modules == 1 || m.Speed < slowest {
				slowest = m.Speed
			}
		}
	}
	r.Least, r.Rule = floor.OfMemory(s.CPU.Model, s.CPU.Sockets, modules, slowest)
	if l.memory > 0 {
		r.Least, r.Rule = l.memory, "the limit of the site, "+l.text[floor.HostMemory]
	}
	if sum := r.total(); sum < r.Least {
		r.fail("memory", doMemory, r.Modules, "all cores together reach %s in it, and %s is %s", result.FormatRate(sum), result.FormatRate(r.Least), r.Rule)
	}
}

// isCompared reports whether its cores are held against one another.
func (c CPUs) isCompared() bool { return c.Cores >= Fewest && c.Least > 0 }

// cores holds each core against those of its NUMA node, and against the limit of the site.
func (r *Record) cores(cores []wire.CoreSpeed, l Limits) {
	for _, c := range cores {
		i := slices.IndexFunc(r.CPUs, func(x CPUs) bool { return x.Node == c.Node })
		of, part := r.CPUs[i], fmt.Sprintf("CPU core %d", c.CPU)
		evidence := fmt.Sprintf("NUMA node %d, %d cores: median %s; this one: %s", c.Node, of.Cores, formatWork(of.Rate), formatWork(c.Rate))
		switch {
		case l.cpu > 0 && workTime(c.Rate) > l.cpu:
			r.fail(part, doCPU, evidence, "it takes %s for a billion operations, and the limit of the site is %s", formatWork(c.Rate), l.text[floor.HostCPU])
		case of.isCompared() && c.Rate < of.Least:
			r.fail(part, doCore, evidence, "it computes at %.0f%% of the median of its NUMA node's cores", 100*c.Rate/of.Rate)
		}
	}
	for _, c := range r.CPUs {
		if c.Cores >= Fewest && !c.isCompared() {
			r.Notes = append(r.Notes, fmt.Sprintf("host.cpu of NUMA node %d: its %d cores scatter too much to be compared", c.Node, c.Cores))
		}
	}
	r.joinCores()
}

// mostCores is how many cores are faults of their own.
const mostCores = 4

// joinCores makes one fault of many cores.
func (r *Record) joinCores() {
	isCore := func(f judge.Fault) bool { return strings.HasPrefix(f.Part, "CPU core ") }
	var evidence []string
	for _, f := range r.Faults {
		if isCore(f) {
			evidence = append(evidence, f.Cause)
		}
	}
	if len(evidence) <= mostCores {
		return
	}
	r.Faults = slices.DeleteFunc(r.Faults, isCore)
	text := fmt.Sprintf("%d cores are slow", len(evidence))
	r.Faults = append(r.Faults, judge.Fault{Part: "CPU", Cause: "CPU: " + text + ": " + strings.TrimPrefix(evidence[0], "CPU "), Evidence: evidence[:mostCores], Action: doCPU})
}

// disk takes one disk in, and holds it against the limit of the site.
func (r *Record) disk(d wire.DiskSpeed, l Limits) {
	one := Disk{Part: diskName(d.Disk), Model: cmp.Or(d.Model, fmt.Sprintf("%s disk of %s", d.Type, unit.Bytes(d.Size))), Rate: d.Rate()}
	r.Disks = append(r.Disks, one)
	evidence := fmt.Sprintf("%s %s, serial %s: %d MiB in %.2f s", d.Path, one.Model, cmp.Or(d.Serial, "not told"), d.Read>>20, d.Seconds)
	switch {
	case d.Failed:
		r.fail(one.Part, doRead, d.Path+": "+d.Why, "it cannot be read: %s", d.Why)
	case one.Rate == 0:
		r.Notes = append(r.Notes, fmt.Sprintf("%s was not read: %s", one.Part, cmp.Or(d.Why, "the node does not say why")))
	case l.disk > 0 && one.Rate < l.disk:
		r.fail(one.Part, doDisk, evidence, "it is read at %s, and the limit of the site is %s", result.FormatRate(one.Rate), l.text[floor.DiskRead])
	}
}

// diskName is what a disk is called in the comparison of parts as well.
func diskName(d wire.Disk) string {
	name := "disk at " + cmp.Or(d.ByPath, d.PCI, d.Name)
	if d.Bay != "" {
		name += " (bay " + d.Bay + ")"
	}
	return name
}

// workTime is how long a core takes for a billion rounds, seconds.
func workTime(rate float64) float64 {
	if rate <= 0 {
		return 1e9
	}
	return work / rate
}

func formatWork(rate float64) string { return fmt.Sprintf("%.2f s", workTime(rate)) }
