// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Topology is the matrix of nvidia-smi topo -m or of topo -p2p.
type Topology struct {
	Devices []TopologyDevice `json:"devices"`
	// Links has, for each device and in the order of Devices, how it reaches the
	// others: X, NV18, PIX, PXB, PHB, NODE, SYS; of topo -p2p whether it can: OK,
	// CNS (chipset), GNS (GPU), TNS (topology), NS, DR (disabled), U. A row that is
	// not there is nil.
	Links [][]string `json:"links"`
}

// TopologyDevice is a row of the matrix.
type TopologyDevice struct {
	Name        string `json:"name"`                   // GPU0, NIC0
	Device      string `json:"device,omitempty"`       // of a NIC, by the legend: mlx5_0
	CPUs        string `json:"cpu_affinity,omitempty"` // 0-31,64-95
	NUMA        string `json:"numa_affinity,omitempty"`
	NUMAOfGPU   string `json:"gpu_numa_id,omitempty"`
	IsGPU       bool   `json:"gpu"`
	rowWasFound bool
}

// errTopology says that there is no matrix.
var errTopology = errors.New("no matrix of nvidia-smi topo -m in it")

var (
	topoDevice = lazyregexp.New(`^(?:GPU\d+|NIC\d+|[a-z][A-Za-z0-9_]*\d+)$`)
	topoLink   = lazyregexp.New(`^(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB|C2C|N/A|ERR!|OK|CNS|GNS|TNS|NS|DR|U)$`)
	topoLegend = lazyregexp.New(`^\s*(NIC\d+): (\S+)\s*$`)
	topoInline = lazyregexp.New(`(NIC\d+)=([A-Za-z0-9_.-]+)`)
	topoWord   = lazyregexp.New(`^[A-Za-z][\w.-]*$`) // an administrator may name a device anything
	topoRule   = lazyregexp.New(`^[|:\s-]+$`)
)

// topoCells are the words of a line; of a row of Markdown, its cells.
func topoCells(line string) []string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "|") {
		if topoRule.MatchString(line) {
			return nil
		}
		line = strings.ReplaceAll(line, "|", " ")
	}
	return strings.Fields(line)
}

// topoHeading returns the devices of a heading; nil if the line is none.
func topoHeading(line string) []string {
	var devices []string
	name := topoDevice
	if strings.Contains(line, "CPU Affinity") { // beyond doubt
		name = topoWord
	}
	for _, w := range topoCells(line) {
		if w == "CPU" || w == "NUMA" {
			break
		}
		if !name.MatchString(w) {
			return nil
		}
		devices = append(devices, w)
	}
	if len(devices) == 0 || !strings.HasPrefix(devices[0], "GPU") {
		return nil
	}
	return devices
}

// topoRow reports whether words are a row of the matrix: a device, also one of the
// heading, and a link.
func topoRow(words []string, at map[string]int) bool {
	if len(words) < 2 || !topoLink.MatchString(words[1]) {
		return false
	}
	_, known := at[words[0]]
	return known || topoDevice.MatchString(words[0])
}

func isTopology(b []byte) int {
	headed, sure := false, 0
	eachLine(b[:min(len(b), 64<<10)], func(_ int, line string) {
		headed = headed || topoHeading(line) != nil
		if headed && topoRow(topoCells(line), nil) {
			sure = 90
		}
	})
	return sure
}

// ParseTopology reads nvidia-smi topo -m, also as a table of Markdown, in which
// documents show it.
func ParseTopology(b []byte) (Topology, tool.Problems, error) {
	var t Topology
	var p tool.Problems
	at := map[string]int{}
	eachLine(b, func(n int, line string) {
		words := topoCells(line)
		switch {
		case len(t.Devices) == 0:
			for _, name := range topoHeading(line) {
				if _, twice := at[name]; twice {
					p.Add(tool.Inconsistent, n, "%s has two columns", name)
					continue
				}
				at[name] = len(t.Devices)
				t.Devices = append(t.Devices, TopologyDevice{Name: name, IsGPU: strings.HasPrefix(name, "GPU")})
			}
			t.Links = make([][]string, len(t.Devices))
		case topoRow(words, at):
			t.row(n, words, at, &p)
			if i, known := at[words[0]]; known {
				t.affinity(line, i)
			}
		default:
			readLegend(t.Devices, at, line)
		}
	})
	if len(t.Devices) == 0 || len(at) == 0 {
		return Topology{}, p, errTopology
	}
	t.check(&p)
	return t, p, nil
}

// row reads "GPU0  X  NV18  PXB  0-31,64-95  0  N/A".
func (t *Topology) row(n int, words []string, at map[string]int, p *tool.Problems) {
	i, known := at[words[0]]
	switch {
	case !known:
		p.Add(tool.Inconsistent, n, "%s has a row and no column", words[0])
		return
	case t.Devices[i].rowWasFound:
		p.Add(tool.Inconsistent, n, "%s has two rows", words[0])
		return
	}
	cells, rest := words[1:], []string(nil)
	if len(cells) > len(t.Devices) {
		cells, rest = cells[:len(t.Devices)], cells[len(t.Devices):]
	}
	if len(cells) < len(t.Devices) {
		p.Add(tool.Truncated, n, "%s has %d of %d columns", words[0], len(cells), len(t.Devices))
	}
	for _, c := range cells {
		if !topoLink.MatchString(c) {
			p.Add(tool.Inconsistent, n, "%s: %q is no way to reach a device", words[0], c)
		} else if c == "ERR!" {
			p.Add(tool.Failed, n, "%s: ERR!", words[0])
		}
	}
	d := &t.Devices[i]
	d.rowWasFound, t.Links[i] = true, cells
	for k, v := range rest {
		v, _ = readValue(v)
		switch k {
		case 0:
			d.CPUs = v
		case 1:
			d.NUMA = v
		case 2:
			d.NUMAOfGPU = v
		}
	}
}

// affinity reads the columns behind the matrix once more where tabs part them: then
// one of them may be blank.
func (t *Topology) affinity(line string, i int) {
	cells := strings.Split(strings.TrimRight(strings.TrimSpace(line), "\r"), "\t")
	if at := len(t.Devices) + 1; len(cells) > at && strings.TrimSpace(cells[at]) == "" && len(t.Links[i]) == len(t.Devices) {
		d := &t.Devices[i]
		d.CPUs, d.NUMA, d.NUMAOfGPU = "", "", ""
		for k, v := range cells[at+1:] {
			switch v, ok := readValue(v); {
			case ok && k == 0:
				d.NUMA = v
			case ok:
				d.NUMAOfGPU = v
			}
		}
	}
}

// readLegend reads which device a NIC is.
func readLegend(devices []TopologyDevice, at map[string]int, line string) {
	if m := topoLegend.FindStringSubmatch(line); m != nil {
		if i, ok := at[m[1]]; ok {
			devices[i].Device = m[2]
		}
		return
	}
	for _, m := range topoInline.FindAllStringSubmatch(line, -1) {
		if i, ok := at[m[1]]; ok {
			devices[i].Device = m[2]
		}
	}
}

// check notes missing GPU rows and pairs whose two ends differ. Documents often
// leave the rows of NICs out.
func (t *Topology) check(p *tool.Problems) {
	for i, d := range t.Devices {
		if !d.rowWasFound && (d.IsGPU || i < len(t.Devices)-1 && t.Devices[i+1].rowWasFound) {
			p.Add(tool.Truncated, 0, "%s has a column and no row", d.Name)
		}
		for k := range t.Links[i] {
			switch {
			case k == i && t.Links[i][k] != "X":
				p.Add(tool.Inconsistent, 0, "%s reaches itself by %s", d.Name, t.Links[i][k])
			case k > i && i < len(t.Links[k]) && t.Links[k][i] != t.Links[i][k]:
				p.Add(tool.Inconsistent, 0, "%s reaches %s by %s, and the other way round by %s", d.Name, t.Devices[k].Name, t.Links[i][k], t.Links[k][i])
			}
		}
	}
}

// Summary is a line for each GPU: its NVLinks and its nearest NICs.
func (t Topology) Summary() []string {
	out := []string{fmt.Sprintf("%d devices", len(t.Devices))}
	for i, d := range t.Devices {
		if !d.IsGPU {
			continue
		}
		peers, near := map[string]int{}, []string{}
		var order []string
		for k, how := range t.Links[i] {
			if k >= len(t.Devices) || k == i {
				continue
			}
			if t.Devices[k].IsGPU {
				if peers[how]++; peers[how] == 1 {
					order = append(order, how)
				}
			} else if how == "PIX" || how == "PXB" {
				near = append(near, textOr(t.Devices[k].Device, t.Devices[k].Name))
			}
		}
		line := d.Name + ":"
		for _, how := range order {
			line += fmt.Sprintf(" %d GPUs by %s", peers[how], how)
		}
		if len(near) > 0 {
			line += ", near " + strings.Join(near, " ")
		}
		out = append(out, line)
	}
	return out
}
