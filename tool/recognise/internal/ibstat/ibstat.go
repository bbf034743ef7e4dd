// SPDX-License-Identifier: Apache-2.0

// Package ibstat reads what ibstat and ibstatus print about the RDMA devices of
// one node: InfiniBand and RoCE. Source: the manual pages ibstat(8), ibstatus(8),
// and infiniband-diags of rdma-core.
package ibstat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "ibstat"

// Devices is the content of ibstat.
type Devices struct {
	Devices []Device `json:"devices"`
}

// Device is an RDMA device.
type Device struct {
	Name     string    `json:"name"`           // such as mlx5_0
	Kind     string    `json:"kind"`           // CA, Switch, Router, "iWARP RNIC", or "???" of a kind that ibstat does not know
	Type     string    `json:"type,omitempty"` // such as MT4129
	Count    int       `json:"port_count"`
	Firmware string    `json:"firmware,omitempty"`
	Hardware string    `json:"hardware,omitempty"`
	NodeGUID addr.GUID `json:"node_guid,omitzero"`
	System   addr.GUID `json:"system_guid,omitzero"`
	Ports    []Port    `json:"ports"`

	line  int
	whole bool // its last line before the ports was there
}

// Port is a port of a device. A port that is down reports the rate that it would
// have, or 40: only that of an active port means something.
type Port struct {
	Port       int       `json:"port"`
	State      string    `json:"state"`          // Down, Initializing, Armed, Active
	Physical   string    `json:"physical_state"` // LinkUp, Polling, Disabled, ...
	Rate       float64   `json:"rate_gbps"`
	RateNote   string    `json:"rate_note,omitempty"`      // such as FDR10
	Effective  float64   `json:"effective_gbps,omitempty"` // what the port reaches with its virtual ports or planes; rdma-core from 2026
	LID        int       `json:"lid"`
	LMC        int       `json:"lmc"`
	SMLID      int       `json:"sm_lid"`
	Capability string    `json:"capability_mask,omitempty"`
	GUID       addr.GUID `json:"guid,omitzero"`
	Layer      string    `json:"link_layer,omitempty"` // InfiniBand, Ethernet

	line int
	seen map[string]bool
}

// Formats are ibstat and ibstatus.
var Formats = []tool.Format{Format, StatusFormat}

// Format is what recognises and reads the output of ibstat.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if head.Match(data) && detail.Match(data) {
			return 95
		}
		if deviceFailed.Match(data) {
			return 90
		}
		return ibdiags.FailureOf(Name, data)
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	head         = lazyregexp.New(`(?m)^[ \t]*(CA|Switch|Router|iWARP RNIC|\?\?\?):? '([^'\n]*)'[ \t]*\r?$`)
	detail       = lazyregexp.New(`(?m)^[ \t]*(Number of ports|Node GUID|State): `)
	deviceFailed = lazyregexp.New(`ibpanic: \[[0-9]+\] main: (?:stat of (?:IB device|umad port)|can't list |'[^'\n]*' IB device can't be found)|ibwarn: \[[0-9]+\] (?:main: stat of IB device|ca_stat: .* has no port number)`)
	lastLine     = lazyregexp.New(`^(Link layer: (InfiniBand|Ethernet|IB)|(System image|Port) GUID: 0x[0-9a-f]{16})$|ib(?:panic|warn): `)
	portHead     = lazyregexp.New(`^Port ([0-9]+):$`)
)

// portKeys are what ibstat says of every port.
var portKeys = []string{"State", "Physical state", "Rate", "Base lid", "LMC", "SM lid", "Capability mask", "Port GUID"}

// Parse reads the output of ibstat, also of one device and of -s.
func Parse(data []byte) (*Devices, tool.Problems, error) {
	r := reader{content: Devices{Devices: []Device{}}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.content.Devices) == 0 && !r.failed {
		return nil, nil, errors.New("it has no device and no failure of ibstat")
	}
	r.finish(len(data) > 0 && data[len(data)-1] == '\n')
	return &r.content, r.problems, nil
}

type reader struct {
	content  Devices
	problems tool.Problems
	line     int
	failed   bool
	device   *Device
	port     *Port
	last     string
}

func (r *reader) read(text string) {
	if ibdiags.IsFailure(text) || deviceFailed.MatchString(text) {
		r.failed = true
		r.problems.Add(tool.Failed, r.line, "ibstat failed: %s", text)
		return
	}
	if text != "" {
		r.last = text
	}
	if m := head.FindStringSubmatch(text); m != nil {
		r.content.Devices = append(r.content.Devices, Device{Name: m[2], Kind: m[1], Ports: []Port{}, line: r.line})
		r.device, r.port = &r.content.Devices[len(r.content.Devices)-1], nil
		return
	}
	if r.device == nil || text == "" {
		return
	}
	if m := portHead.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		r.device.Ports = append(r.device.Ports, Port{Port: n, line: r.line, seen: map[string]bool{}})
		r.port = &r.device.Ports[len(r.device.Ports)-1]
		return
	}
	key, value, found := strings.Cut(text, ":")
	if value = strings.TrimSpace(value); !found || value == "" {
		return
	}
	if r.port != nil {
		r.portValue(key, value)
	} else {
		r.deviceValue(key, value)
	}
}

func (r *reader) deviceValue(key, value string) {
	d := r.device
	switch key {
	case d.Kind + " type":
		d.Type = value
	case "Number of ports":
		d.Count = r.number(key, value)
	case "Firmware version":
		d.Firmware = value
	case "Hardware version":
		d.Hardware = value
	case "Node GUID":
		d.NodeGUID = r.guid(value)
	case "System image GUID":
		d.System, d.whole = r.guid(value), true
	}
}

func (r *reader) portValue(key, value string) {
	p := r.port
	p.seen[key] = true
	switch key {
	case "State":
		p.State = value
	case "Physical state":
		p.Physical = value
	case "Rate":
		p.Rate, p.RateNote = r.rate(value)
	case "Effective speed":
		if speed, err := strconv.ParseFloat(value, 64); err == nil && speed >= 0 && speed <= 1e6 {
			p.Effective = speed
		} else {
			r.problems.Add(tool.Inconsistent, r.line, "Effective speed %q is no number of Gb/s.", value)
		}
	case "Base lid":
		p.LID = r.number(key, value)
	case "LMC":
		p.LMC = r.number(key, value)
	case "SM lid":
		p.SMLID = r.number(key, value)
	case "Capability mask":
		p.Capability = value
	case "Port GUID":
		p.GUID = r.guid(value)
	case "Link layer":
		p.Layer = value
	}
}

// rate reads "400", or "40 (FDR10)" with a note.
func (r *reader) rate(value string) (gbps float64, note string) {
	number, note, _ := strings.Cut(value, " ")
	gbps, ok := parseRate(number)
	if !ok {
		r.problems.Add(tool.Inconsistent, r.line, "Rate %q is no number of Gb/s.", value)
	}
	return gbps, strings.Trim(note, " ()")
}

// parseRate reads a number of Gb/s that a link can have.
func parseRate(text string) (gbps float64, ok bool) {
	gbps, err := strconv.ParseFloat(text, 64)
	if err != nil || !(gbps >= 0 && gbps <= 1e6) { // also where it is no number
		return 0, false
	}
	return gbps, true
}

func (r *reader) number(key, value string) int {
	n, err := strconv.ParseUint(value, 0, 31)
	if err != nil {
		r.problems.Add(tool.Inconsistent, r.line, "%s %q is no number.", key, value)
	}
	return int(n)
}

func (r *reader) guid(value string) addr.GUID {
	g, err := addr.ParseGUID(value)
	if err != nil {
		r.problems.Add(tool.Truncated, r.line, "%s.", err)
	}
	return g
}

// finish checks that every device and port is whole.
func (r *reader) finish(newline bool) {
	names := map[string]int{}
	for i := range r.content.Devices {
		d := &r.content.Devices[i]
		if before, again := names[d.Name]; again {
			r.problems.Add(tool.Inconsistent, d.line, "Device %s is here and on line %d: outputs of two nodes are in one file.", d.Name, before)
		}
		names[d.Name] = d.line
		for _, p := range d.Ports {
			for _, key := range portKeys {
				if !p.seen[key] {
					r.problems.Add(tool.Missing, p.line, "Port %d of %s has no %q.", p.Port, d.Name, key)
					break
				}
			}
			if isDown(p.State, p.Physical) {
				r.problems.Add(tool.Failed, p.line, "Port %d of %s is %s, its physical state is %s.", p.Port, d.Name, p.State, p.Physical)
			}
		}
	}
	r.counts()
	if !newline && !lastLine.MatchString(r.last) && len(r.content.Devices) > 0 {
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line.")
	}
}

// isDown reports whether a port that is switched on carries nothing: no cable, a far end
// that is off, a link that does not come up (Polling, Training), or one that no subnet
// manager has brought up. A port that is disabled is off on purpose. "" is not told.
func isDown(state, physical string) bool {
	if strings.EqualFold(physical, "Disabled") || strings.EqualFold(physical, "Sleep") {
		return false
	}
	return state != "" && !strings.EqualFold(state, "Active") || physical != "" && !strings.EqualFold(physical, "LinkUp")
}

// counts compares the number of ports that each device says it has with those
// that follow: none of all devices is what -s prints, and one is a query of it.
func (r *reader) counts() {
	any := slices.ContainsFunc(r.content.Devices, func(d Device) bool { return len(d.Ports) > 0 })
	for i, d := range r.content.Devices {
		last := i == len(r.content.Devices)-1
		single := len(r.content.Devices) == 1 && len(d.Ports) == 1 && d.Count != 1
		virtual := d.Kind == "Switch" // has port 0 alone
		switch {
		case !d.whole && last && !single:
			r.problems.Add(tool.Truncated, d.line, "Device %s ends before its ports.", d.Name)
		case any && len(d.Ports) < d.Count && !single && !virtual:
			r.problems.Add(tool.Truncated, d.line, "Device %s has %d ports, and %d are here.", d.Name, d.Count, len(d.Ports))
		case len(d.Ports) > d.Count && !single && !virtual:
			r.problems.Add(tool.Inconsistent, d.line, "Device %s has %d ports, and %d are here.", d.Name, d.Count, len(d.Ports))
		}
	}
}

// Summary says how many ports are active, and names those that are not.
func (d *Devices) Summary() []string {
	ports, active := 0, 0
	var down []string
	for _, dev := range d.Devices {
		for _, p := range dev.Ports {
			ports++
			if p.State == "Active" && p.Physical == "LinkUp" {
				active++
			} else {
				down = append(down, fmt.Sprintf("%s port %d is %s/%s", dev.Name, p.Port, p.State, p.Physical))
			}
		}
	}
	return append([]string{fmt.Sprintf("%d devices, %d ports, %d active", len(d.Devices), ports, active)}, down...)
}
