// SPDX-License-Identifier: Apache-2.0

// Package ibverbs reads what the examples of libibverbs print that everybody has:
// ibv_devinfo and ibv_devices, about the RDMA devices of one node. Source:
// libibverbs/examples/devinfo.c and device_list.c of rdma-core.
package ibverbs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Info is the content of ibv_devinfo.
type Info struct {
	Devices []Device `json:"devices"`
}

// Device is an RDMA device. What the output does not say is empty.
type Device struct {
	Name       string            `json:"name"`                // such as mlx5_0
	Transport  string            `json:"transport,omitempty"` // InfiniBand (also of RoCE), iWARP
	Firmware   string            `json:"firmware,omitempty"`
	NodeGUID   addr.GUID         `json:"node_guid,omitzero"`
	SystemGUID addr.GUID         `json:"system_guid,omitzero"`
	VendorID   string            `json:"vendor_id,omitempty"`
	PartID     int               `json:"vendor_part_id,omitempty"` // PCI device number, such as 4129
	Hardware   string            `json:"hardware,omitempty"`
	Board      string            `json:"board_id,omitempty"` // PSID, such as MT_0000000838
	Count      int               `json:"port_count,omitempty"`
	Ports      []Port            `json:"ports"`
	Limits     map[string]string `json:"limits,omitempty"` // of -v, as printed: "max_qp" and so on

	line int
	tags bool // the limits of tag matching follow
}

// Port is a port of a device. States are without their prefix and number.
type Port struct {
	Port      int     `json:"port"`
	State     string  `json:"state"` // ACTIVE, DOWN, INIT, ARMED
	MaxMTU    int     `json:"max_mtu"`
	ActiveMTU int     `json:"active_mtu"` // bytes
	SMLID     int     `json:"sm_lid"`
	LID       int     `json:"lid"`
	LMC       int     `json:"lmc"`
	Layer     string  `json:"link_layer,omitempty"`     // InfiniBand, Ethernet; missing in old versions
	Width     string  `json:"width,omitempty"`          // -v: 4X
	Lane      float64 `json:"lane_gbps,omitempty"`      // -v: of one lane, rounded by ibv_devinfo: 25, 50, 100
	Effective float64 `json:"effective_gbps,omitempty"` // -v: what the port reaches, of newer versions
	Physical  string  `json:"physical_state,omitempty"`
	GIDs      []GID   `json:"gids,omitempty"` // -v

	line  int
	whole bool // its port_lmc was there, the last line of every version
}

// GID is an entry of a port's table.
type GID struct {
	Index   int    `json:"index"`
	GID     string `json:"gid"`
	Version string `json:"version,omitempty"` // "RoCE v1", "RoCE v2"
}

// Formats are ibv_devinfo and ibv_devices.
var Formats = []tool.Format{Format, ListFormat}

// Format is what recognises and reads the output of ibv_devinfo.
var Format = tool.Format{
	Name: "ibv_devinfo",
	Is: func(data []byte) int {
		if head.Match(data) && known.Match(data) {
			return 95
		}
		if count.Match(data) || none.Match(data) && command.Match(data) {
			return 85
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	// count begins the names of -l, and none is all that there is without a device
	// or its driver, of other examples of libibverbs too: it is of ibv_devinfo below
	// its command.
	count   = lazyregexp.New(`(?m)^[ \t]*([0-9]+) HCAs? found:[ \t]*\r?$`)
	none    = lazyregexp.New(`(?m)^[ \t]*(?:No IB devices found|IB device '[^'\n]*' wasn't found|Failed to get IB devices list.*)[ \t]*\r?$`)
	command = lazyregexp.New(`(?m)[#$>] +(?:sudo +)?(?:/\S*/)?ibv_devinfo\b`)
	name    = lazyregexp.New(`^[A-Za-z][\w.-]*$`)
	head    = lazyregexp.New(`(?m)^[ \t]*hca_id:[ \t]+(\S+)[ \t]*\r?$`)
	known   = lazyregexp.New(`(?m)^[ \t]*(?:transport|node_guid|phys_port_cnt):[ \t]+\S`)
	port    = lazyregexp.New(`^port:\s+([0-9]+)$`)
	pair    = lazyregexp.New(`^([A-Za-z][\w ()]*?|GID\[ *[0-9]+\]):\s+(\S.*)$`)
	code    = lazyregexp.New(`^(.*?) \(([0-9]+)\)$`)
	fault   = lazyregexp.New(`^(?:Failed to |Invalid port requested|Unable to )`)
)

// mostLimits is how many limits of a device are kept; today there are some 50.
const mostLimits = 200

type reader struct {
	info     Info
	problems tool.Problems
	line     int
	failed   bool // the program said so
	list     int  // the line of the count of -l; 0: the devices are not a list
	counted  int  // that there are, as -l says
}

// Parse reads the output of ibv_devinfo. Its time and memory grow with the input.
func Parse(data []byte) (*Info, tool.Problems, error) {
	r := reader{info: Info{Devices: []Device{}}}
	for text := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(text))
	}
	if len(r.info.Devices) == 0 && !r.failed && r.list == 0 {
		return nil, nil, errors.New("it has no device, and no failure of ibv_devinfo")
	}
	if r.list > 0 {
		r.finishList()
	} else {
		r.finish()
	}
	return &r.info, r.problems, nil
}

func (r *reader) read(text string) {
	if fault.MatchString(text) || none.MatchString(text) {
		r.failed = r.failed || none.MatchString(text)
		r.problems.Add(tool.Failed, r.line, "ibv_devinfo failed: %s", text)
		return
	}
	if m := head.FindStringSubmatch(text); m != nil {
		if r.list > 0 { // a whole output stands below a list
			r.list, r.info.Devices = 0, nil
		}
		r.info.Devices = append(r.info.Devices, Device{Name: m[1], Ports: []Port{}, line: r.line})
		return
	}
	if m := count.FindStringSubmatch(text); m != nil && len(r.info.Devices) == 0 {
		r.list, r.counted = r.line, r.number(m[1])
		return
	}
	if r.list > 0 && name.MatchString(text) && len(r.info.Devices) < r.counted {
		r.info.Devices = append(r.info.Devices, Device{Name: text, Ports: []Port{}, line: r.line})
	}
	if len(r.info.Devices) == 0 || r.list > 0 {
		return
	}
	r.detail(&r.info.Devices[len(r.info.Devices)-1], text)
}

// detail reads a line of a device: a port that begins, or a value of the last port
// or, above the first one, of the device.
func (r *reader) detail(d *Device, text string) {
	if m := port.FindStringSubmatch(text); m != nil {
		d.Ports = append(d.Ports, Port{Port: r.number(m[1]), line: r.line})
		return
	}
	m := pair.FindStringSubmatch(text)
	switch {
	case m == nil:
	case len(d.Ports) > 0:
		r.port(&d.Ports[len(d.Ports)-1], m[1], m[2])
	default:
		r.device(d, m[1], m[2])
	}
}

func (r *reader) device(d *Device, key, value string) {
	switch key {
	case "transport":
		d.Transport = trimCode(value)
	case "fw_ver":
		d.Firmware = value
	case "node_guid":
		d.NodeGUID = r.guid(value)
	case "sys_image_guid":
		d.SystemGUID = r.guid(value)
	case "vendor_id":
		d.VendorID = value
	case "vendor_part_id":
		d.PartID = r.number(value)
	case "hw_ver":
		d.Hardware = value
	case "board_id":
		d.Board = value
	case "phys_port_cnt":
		d.Count = r.number(value)
	default:
		if d.Limits == nil {
			d.Limits = map[string]string{}
		}
		// Tag matching has a max_sge of its own, below that of the device.
		d.tags = d.tags || key == "max_rndv_hdr_size"
		if d.tags && key == "max_sge" {
			key = "tag matching max_sge"
		}
		if len(d.Limits) < mostLimits {
			d.Limits[key] = value
		}
	}
}

func (r *reader) port(p *Port, key, value string) {
	switch key {
	case "state":
		p.State = strings.TrimPrefix(trimCode(value), "PORT_")
	case "max_mtu":
		p.MaxMTU = r.number(trimCode(value))
	case "active_mtu":
		p.ActiveMTU = r.number(trimCode(value))
	case "sm_lid":
		p.SMLID = r.number(value)
	case "port_lid":
		p.LID = r.number(value)
	case "port_lmc":
		p.LMC, p.whole = r.number(value), true
	case "link_layer":
		p.Layer = value
	case "active_width":
		p.Width = trimCode(value)
	case "active_speed":
		if lane, ok := parseGbps(value, 1e4); ok {
			p.Lane = lane
		}
	case "effective_speed":
		if speed, ok := parseGbps(value, 1e6); ok {
			p.Effective = speed
		}
	case "phys_state":
		p.Physical = trimCode(value)
	default:
		if index, found := strings.CutPrefix(key, "GID["); found {
			gid, version, _ := strings.Cut(value, ", ")
			p.GIDs = append(p.GIDs, GID{Index: r.number(strings.TrimSuffix(strings.TrimSpace(index), "]")), GID: gid, Version: version})
		}
	}
}

// parseGbps reads "25.0 Gbps (32)"; false where it is no speed below a bound.
func parseGbps(value string, bound float64) (float64, bool) {
	speed, _, _ := strings.Cut(value, " Gbps")
	f, err := strconv.ParseFloat(speed, 64)
	return f, err == nil && f > 0 && f < bound
}

// trimCode removes the number behind a name: "PORT_ACTIVE (4)".
func trimCode(value string) string {
	if m := code.FindStringSubmatch(value); m != nil {
		return m[1]
	}
	return value
}

func (r *reader) number(value string) int {
	n, err := strconv.ParseUint(value, 0, 31)
	if err != nil {
		r.problems.Add(tool.Inconsistent, r.line, "%q is no number.", value)
	}
	return int(n)
}

// guid reads a GUID in groups of four digits.
func (r *reader) guid(value string) addr.GUID {
	n, err := strconv.ParseUint(strings.ReplaceAll(value, ":", ""), 16, 64)
	if err != nil || len(value) != len("0000:0000:0000:0000") {
		r.problems.Add(tool.Inconsistent, r.line, "%q is no GUID such as 946d:ae03:00be:6ed4.", value)
		return 0
	}
	return addr.GUID(n)
}

// finishList compares the names of -l with their count.
func (r *reader) finishList() {
	if r.info.Devices == nil {
		r.info.Devices = []Device{}
	}
	switch {
	case r.counted == 0:
		r.problems.Add(tool.Missing, r.list, "No device was found: the driver is not loaded, or there is none.")
	case len(r.info.Devices) != r.counted:
		r.problems.Add(tool.Truncated, r.list, "%d devices were found, and %d are here.", r.counted, len(r.info.Devices))
	}
}

// finish checks that every device and port is whole.
func (r *reader) finish() {
	at := map[string]int{}
	for i, d := range r.info.Devices {
		if before, again := at[d.Name]; again {
			r.problems.Add(tool.Inconsistent, d.line, "Device %s is here and on line %d: outputs of two nodes are in one file.", d.Name, before)
		}
		at[d.Name] = d.line
		last := i == len(r.info.Devices)-1
		switch {
		case d.Count == 0 && len(d.Ports) == 0, len(d.Ports) == 0 && last:
			r.problems.Add(tool.Truncated, d.line, "Device %s ends before its ports.", d.Name)
		case len(d.Ports) > d.Count:
			r.problems.Add(tool.Inconsistent, d.line, "Device %s has %d ports, and %d are here.", d.Name, d.Count, len(d.Ports))
		case len(d.Ports) < d.Count && len(r.info.Devices) > 1:
			r.problems.Add(tool.Missing, d.line, "Device %s has %d ports, and %d are here.", d.Name, d.Count, len(d.Ports))
		}
		for _, p := range d.Ports {
			if !p.whole {
				r.problems.Add(tool.Truncated, p.line, "Port %d of %s ends before its end.", p.Port, d.Name)
			}
		}
	}
}

// Summary says how many ports are active, and names those that are not.
func (i *Info) Summary() []string {
	ports, active := 0, 0
	var down []string
	for _, d := range i.Devices {
		for _, p := range d.Ports {
			if ports++; p.State == "ACTIVE" {
				active++
			} else {
				down = append(down, fmt.Sprintf("%s port %d is %s", d.Name, p.Port, p.State))
			}
		}
	}
	return append([]string{fmt.Sprintf("%d devices, %d ports, %d active", len(i.Devices), ports, active)}, down...)
}
