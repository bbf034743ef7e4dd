// SPDX-License-Identifier: Apache-2.0

// Package ibdev2netdev reads what ibdev2netdev prints: which network interface
// belongs to which RDMA device, in the short form and that of -v. Source:
// sbin/ibdev2netdev of Mellanox/mlnx-tools.
package ibdev2netdev

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "ibdev2netdev"

// Devices is the content.
type Devices struct {
	Ports []Port `json:"ports"`
}

// Port is a port of an RDMA device and its interface.
type Port struct {
	Device   string `json:"device"`
	Port     int    `json:"port"`
	NetDev   string `json:"netdev"`
	State    string `json:"state"`                // of the interface: Up or Down
	PCI      string `json:"pci,omitempty"`        // -v
	Model    string `json:"model,omitempty"`      // -v: such as "MT4129 - MCX75310AAS-NEAT"
	Firmware string `json:"firmware,omitempty"`   // -v
	Link     string `json:"port_state,omitempty"` // -v: ACTIVE, DOWN, INIT

	line int
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if line.Match(data) {
			return 95
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	line    = lazyregexp.New(`(?m)^[ \t]*(\S.*?)[ \t]+port[ \t]+([0-9]+)[ \t]+(?:\((\w+)[ \t]*\)[ \t]+)?==>[ \t]+(\S*)[ \t]*\((Up|Down)\)[ \t]*(?:#.*)?\r?$`)
	foreign = lazyregexp.New(`^[ \t]*(?:ibwarn: \[|(?:logout|exit)[ \t]*\r?$)`) // of other programs
	verbose = lazyregexp.New(`^(?:([0-9a-fA-F]{4,}:[0-9a-fA-F:.]+)\s+)?(\S+)\s*\(([^)]*)\)(?:.*?\sfw\s+(\S+))?`)
)

// Parse reads either form.
func Parse(data []byte) (*Devices, tool.Problems, error) {
	d, problems := Devices{Ports: []Port{}}, tool.Problems(nil)
	n, at := 0, map[string]int{}
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		m := line.FindStringSubmatch(text)
		if m == nil {
			if foreign.MatchString(text) {
				continue
			}
			if strings.Contains(text, " ==> ") || strings.Contains(text, " port ") && strings.TrimSpace(text) != "" {
				problems.Add(tool.Truncated, n, "The line of a device ends before its end.")
			} else if strings.TrimSpace(text) != "" && len(d.Ports) > 0 && !strings.ContainsAny(text, "#$") && len(strings.Fields(text)) < 3 {
				problems.Add(tool.Truncated, n, "The line of a device ends before its end.")
			}
			continue
		}
		p := parsePort(m, n)
		if p.NetDev == "" {
			problems.Add(tool.Missing, n, "Port %d of %s has no interface.", p.Port, p.Device)
		}
		key := fmt.Sprintf("%s/%d", p.Device, p.Port)
		if before, again := at[key]; again && d.has(p) {
			problems.Add(tool.Inconsistent, n, "Port %d of %s is here and on line %d.", p.Port, p.Device, before)
		}
		at[key] = n
		d.Ports = append(d.Ports, p)
	}
	if len(d.Ports) == 0 {
		return nil, nil, errors.New("it has no line of a device")
	}
	return &d, problems, nil
}

// has reports whether a port and interface are there already; a port can have
// several interfaces, such as VLANs.
func (d *Devices) has(p Port) bool {
	for _, o := range d.Ports {
		if o.Device == p.Device && o.Port == p.Port && o.NetDev == p.NetDev {
			return true
		}
	}
	return false
}

func parsePort(m []string, n int) Port {
	number, _ := strconv.Atoi(m[2])
	p := Port{Device: m[1], Port: number, NetDev: m[4], State: m[5], Link: m[3], line: n}
	if v := verbose.FindStringSubmatch(m[1]); v != nil {
		p.PCI, p.Device, p.Model, p.Firmware = v[1], v[2], strings.TrimSpace(v[3]), v[4]
	} else if words := strings.Fields(m[1]); len(words) > 0 {
		p.Device = words[len(words)-1]
	}
	return p
}

// Summary names every port.
func (d *Devices) Summary() []string {
	lines := []string{fmt.Sprintf("%d ports", len(d.Ports))}
	for _, p := range d.Ports {
		lines = append(lines, fmt.Sprintf("%s port %d is %s (%s)", p.Device, p.Port, p.NetDev, p.State))
	}
	return lines
}
