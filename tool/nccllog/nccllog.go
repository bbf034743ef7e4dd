// SPDX-License-Identifier: Apache-2.0

// Package nccllog reads the log that NCCL and RCCL write with NCCL_DEBUG: which
// networks and devices they use, whether GPUs are reached directly, over which
// transports ranks are connected, which algorithm was taken, and what the warnings
// mean. It is pure.
//
// Source: the INFO and WARN calls of github.com/NVIDIA/nccl, from 2.7 on, and of
// github.com/ROCm/rccl.
package nccllog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Content is what a log says.
type Content struct {
	Version    string            `json:"version"` // of NCCL or RCCL
	Ranks      int               `json:"ranks"`   // of the largest communicator; 0 when it is not said
	Ready      int               `json:"ready"`   // ranks that say that a communicator is complete
	Hosts      []string          `json:"hosts"`   // that wrote lines, sorted
	Networks   []string          `json:"networks"`
	Devices    []Device          `json:"devices"`
	GDR        GDR               `json:"gdr"`
	Transports map[string]int    `json:"transports"` // connections, such as "NET/IB/GDRDMA" or "P2P/CUMEM"
	Channels   *Channels         `json:"channels"`
	NVLS       bool              `json:"nvls"`            // multicast of the NVSwitches is available to a rank
	MNNVL      map[string]int    `json:"mnnvl,omitempty"` // by host: GPUs of the NVLink domain that its ranks use between nodes
	Tuning     []Choice          `json:"tuning"`          // algorithms that were taken; needs NCCL_DEBUG_SUBSYS=TUNING
	Settings   map[string]string `json:"settings"`        // NCCL_* that the log says were set
	Warnings   []Warning         `json:"warnings"`
	// Of are the connections by the host that wrote of them, and NoGDR how often each
	// said that a NIC does not reach GPU memory.
	Of    map[string]map[string]int `json:"-"`
	NoGDR map[string]int            `json:"-"`
}

// Device is an interface that a host's ranks use.
type Device struct {
	Host    string `json:"host"`
	Network string `json:"network"` // IB or Socket
	Name    string `json:"name"`    // such as "mlx5_0:1" or "eth0:10.0.0.1"
	Link    string `json:"link"`    // IB or RoCE; empty of Socket
}

// GDR is whether the network reads and writes GPU memory directly.
type GDR struct {
	Enabled  int `json:"enabled"`  // statements of ranks that it is
	Disabled int `json:"disabled"` // and that it is not
}

// Channels are those of the last communicator that says so.
type Channels struct {
	Collective int `json:"collective"`
	CollNet    int `json:"collnet"`
	NVLS       int `json:"nvls"`
	P2P        int `json:"p2p"`
}

// Choice is an algorithm and a protocol that were taken for a size.
type Choice struct {
	Collective string `json:"collective"`
	Bytes      int64  `json:"bytes"`
	Algorithm  string `json:"algorithm"` // Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT; Symmetric, Copy Engine
	Protocol   string `json:"protocol"`  // LL, LL128, Simple; of the last two the kernel or the call
	Times      int    `json:"times"`
}

// Warning is a distinct NCCL WARN.
type Warning struct {
	Text    string   `json:"text"`
	Line    int      `json:"line"` // the first one
	Times   int      `json:"times"`
	Hosts   []string `json:"hosts"`
	Meaning string   `json:"meaning,omitempty"`
	Do      string   `json:"do,omitempty"`
}

// Format is the format of NCCL's log.
func Format() tool.Format {
	return tool.Format{Name: "nccl-log", Is: matchFormat, Parse: parseAny, Merged: true, Stream: stream}
}

// entry is the head of a line of the log: host, process and thread, device, and,
// of a warning, the source and, since 2.30, the function. Newer versions put the
// time before it.
var entry = lazyregexp.New(`(?:([A-Za-z0-9][\w.-]*):\d+:\d+ (?:\[-?\w*\] )?(?:\S+:\S+ (?:\(\S+\) )?)?)?NCCL (INFO|WARN|ABORT|ERROR) (.*)$`)

// sign is what only this log has; a whole head makes it sure.
var sign = lazyregexp.New(`(?m)[\w.-]+:\d+:\d+ \[-?\w*\] (?:[\w/.-]+:\d+ (?:\(\S+\) )?)?NCCL (?:INFO|WARN|ABORT)|^(?:\[-?\w*\] )?(?:[\w/.-]+:\d+ (?:\(\S+\) )?)?NCCL (?:INFO|WARN) `)

func matchFormat(data []byte) int {
	if sign.Match(data) {
		return 50
	}
	return 0
}

func parseAny(data []byte) (any, tool.Problems, error) {
	c, problems, err := Parse(data)
	return c, problems, err
}

// reader collects what the lines say.
type reader struct {
	c        Content
	devices  map[Device]bool
	hosts    map[string]bool
	networks map[string]bool
	choices  map[Choice]int
	ready    map[string]bool
	begun    map[string]bool
	warnings map[string]int // place in c.Warnings by text without what differs between ranks
	line     int
}

// Parse reads a log, also one within the output of another program. An error means
// that no line of NCCL is in it.
func Parse(data []byte) (Content, tool.Problems, error) {
	s := NewStream()
	for line := range strings.Lines(string(data)) {
		s.Line(line)
	}
	return s.End()
}

// entry reads one line of the log.
func (r *reader) entry(m []string) {
	host, level, text := m[1], m[2], m[3]
	if level == "INFO" {
		r.info(host, text)
		return
	}
	if host != "" {
		r.hosts[host] = true
	}
	r.warn(host, text)
}

// info reads what a rank says that is no warning.
func (r *reader) info(host, text string) {
	if host != "" {
		r.hosts[host] = true
	}
	for _, p := range patterns {
		if !strings.Contains(text, p.has) {
			continue
		}
		if f := p.at.FindStringSubmatch(text); f != nil {
			p.read(r, host, f)
			return
		}
	}
}

// differs are the parts of a warning in which ranks differ: addresses and numbers
// of ports and processes.
var differs = lazyregexp.New(`0x[0-9a-f]+|<\d+>|\d{4,}`)

// mostWarnings is how many distinct warnings are kept.
const mostWarnings = 200

func (r *reader) warn(host, text string) {
	text = strings.TrimSpace(text)
	key := differs.ReplaceAllString(text, "#")
	i, ok := r.warnings[key]
	if !ok {
		if len(r.c.Warnings) == mostWarnings {
			return
		}
		i = len(r.c.Warnings)
		r.warnings[key] = i
		w := Warning{Text: text, Line: r.line, Hosts: []string{}}
		w.Meaning, w.Do = ExplainWarning(text)
		r.c.Warnings = append(r.c.Warnings, w)
	}
	w := &r.c.Warnings[i]
	w.Times++
	if host != "" && !slices.Contains(w.Hosts, host) && len(w.Hosts) < mostWarnings {
		w.Hosts = append(w.Hosts, host)
	}
}

// finish puts what was collected into its order.
func (r *reader) finish() {
	c := &r.c
	c.Hosts, c.Networks, c.Ready = sortedNames(r.hosts), sortedNames(r.networks), len(r.ready)
	c.Devices = slices.SortedFunc(maps.Keys(r.devices), func(a, b Device) int {
		return strings.Compare(fmt.Sprint(a.Host, "\x00", a.Network, "\x00", a.Name), fmt.Sprint(b.Host, "\x00", b.Network, "\x00", b.Name))
	})
	c.Tuning = []Choice{}
	for choice, times := range r.choices {
		choice.Times = times
		c.Tuning = append(c.Tuning, choice)
	}
	slices.SortFunc(c.Tuning, func(a, b Choice) int {
		return strings.Compare(fmt.Sprintf("%s %20d %s %s", a.Collective, a.Bytes, a.Algorithm, a.Protocol), fmt.Sprintf("%s %20d %s %s", b.Collective, b.Bytes, b.Algorithm, b.Protocol))
	})
	if c.Warnings == nil {
		c.Warnings = []Warning{}
	}
	if c.Devices == nil {
		c.Devices = []Device{}
	}
}

// sortedNames returns the members of a set.
func sortedNames(set map[string]bool) []string {
	all := slices.Sorted(maps.Keys(set))
	if all == nil {
		return []string{}
	}
	return all
}

// checkContent says what is wrong; begun is how many ranks began to make a communicator.
func checkContent(c *Content, begun int, problems *tool.Problems) {
	for _, w := range c.Warnings {
		text := w.Text
		if w.Times > 1 {
			text += fmt.Sprintf(" (%d times)", w.Times)
		}
		if w.Meaning != "" {
			text += ": " + w.Meaning
		}
		problems.Add(tool.Failed, w.Line, "%s", text)
	}
	if direct, through := countDirect(c.Transports); direct > 0 && through > 0 {
		problems.Add(tool.Inconsistent, 0, "%d connections of the network reach GPU memory directly and %d do not: GPUs or NICs are not alike", direct, through)
	}
	if c.GDR.Enabled > 0 && c.GDR.Disabled > 0 {
		problems.Add(tool.Inconsistent, 0, "GPUDirect RDMA is enabled for some NICs and disabled for others")
	}
	if len(c.Networks) > 1 {
		problems.Add(tool.Inconsistent, 0, "ranks use different networks: %s", strings.Join(c.Networks, ", "))
	}
	if begun > c.Ready && c.Ready > 0 {
		problems.Add(tool.Truncated, 0, "%d ranks began to connect and only %d say that they are", begun, c.Ready)
	} else if begun > 0 && c.Ready == 0 {
		problems.Add(tool.Truncated, 0, "no rank says that its communicator is complete")
	}
	checkUniform(c, problems)
}

// countDirect counts the connections of the network that reach GPU memory directly,
// and those over InfiniBand or RoCE that go through host memory.
func countDirect(transports map[string]int) (direct, through int) {
	for name, n := range transports {
		switch {
		case strings.HasPrefix(name, "NET/") && strings.Contains(name, "GDRDMA"):
			direct += n
		case strings.HasPrefix(name, "NET/IB"):
			through += n
		}
	}
	return direct, through
}

// ThroughHost returns the hosts whose connections over InfiniBand or RoCE all go
// through host memory, by name. Of a GPU that reads slowly over PCIe the library
// sends so and receives directly: one direct connection is enough.
func (c Content) ThroughHost() (hosts []string) {
	for host, ways := range c.Of {
		if direct, through := countDirect(ways); host != "" && direct == 0 && through > 0 {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// checkUniform looks for hosts with fewer devices of InfiniBand or RoCE than others.
func checkUniform(c *Content, problems *tool.Problems) {
	count := map[string]int{}
	for _, d := range c.Devices {
		if d.Network == "IB" && d.Host != "" {
			count[d.Host]++
		}
	}
	most := 0
	for _, n := range count {
		most = max(most, n)
	}
	for _, host := range slices.Sorted(maps.Keys(count)) {
		if count[host] < most {
			problems.Add(tool.Inconsistent, 0, "%s uses %d devices of the network and others use %d", host, count[host], most)
		}
	}
}

// Summary says what is used and what was warned of.
func (c Content) Summary() []string {
	line := "NCCL"
	if c.Version != "" {
		line += " " + c.Version
	}
	line += fmt.Sprintf(", %d ranks, %d hosts, network: %s", c.Ranks, len(c.Hosts), strings.Join(c.Networks, ", "))
	lines := []string{line}
	var names []string
	for _, d := range c.Devices {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	if len(names) > 0 {
		lines = append(lines, "devices: "+strings.Join(names[:min(len(names), 16)], ", "))
	}
	var ways []string
	for _, name := range slices.Sorted(maps.Keys(c.Transports)) {
		ways = append(ways, fmt.Sprintf("%s %d", name, c.Transports[name]))
	}
	if len(ways) > 0 {
		lines = append(lines, "connections: "+strings.Join(ways, ", "))
	}
	for _, w := range c.Warnings {
		if w.Do != "" {
			lines = append(lines, "do: "+w.Do)
		}
	}
	return lines
}
