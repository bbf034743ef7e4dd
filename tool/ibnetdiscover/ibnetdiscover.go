// SPDX-License-Identifier: Apache-2.0

// Package ibnetdiscover reads what ibnetdiscover prints about an InfiniBand
// subnet: the topology (default, -f, -g), the list of ports (-p), and the list of
// nodes (-l, -H, -S, -R; also ibhosts, ibswitches and ibrouters). Source: the
// manual page ibnetdiscover(8) and infiniband-diags/ibnetdiscover.c of rdma-core.
package ibnetdiscover

import (
	"bytes"
	"errors"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "ibnetdiscover"

// Form is which of its outputs this is.
type Form string

// The forms.
const (
	Records Form = "topology" // default: a record of each node, every cable twice
	Ports   Form = "ports"    // -p: a line for each port
	List    Form = "list"     // -l and others: a line for each node, no cables
)

// Topology is a subnet as it was found.
type Topology struct {
	Form      Form      `json:"form"`
	Generated string    `json:"generated,omitempty"` // the time as printed, without a zone
	From      addr.GUID `json:"from,omitzero"`       // the node that looked; its GUID
	Switches  []Switch  `json:"switches"`
	HCAs      []HCA     `json:"hcas"`
	Routers   []HCA     `json:"routers"`
	Links     []Link    `json:"links"` // each cable once
}

// Switch is a switch. GUIDs are of the node, but in the list of ports, which
// knows only those of ports.
type Switch struct {
	GUID       addr.GUID `json:"guid"`
	ID         string    `json:"id"`    // as in the output, such as S-2c5eab0300b87b40
	Name       string    `json:"name"`  // the node description, blanks included
	Ports      int       `json:"ports"` // of the device; in the list of ports the highest that is listed
	LID        int       `json:"lid"`
	LMC        int       `json:"lmc"`
	Enhanced   bool      `json:"enhanced,omitempty"` // an enhanced port 0
	PortGUID   addr.GUID `json:"port_guid,omitzero"`
	SystemGUID addr.GUID `json:"system_guid,omitzero"`
	VendorID   string    `json:"vendor_id,omitempty"`
	DeviceID   string    `json:"device_id,omitempty"`
	Chassis    int       `json:"chassis,omitempty"` // number of a director's chassis (-g)
	Slot       string    `json:"slot,omitempty"`    // such as "Line 3 Chip 1" (-g)
	Free       []int     `json:"free,omitempty"`    // ports without a cable, in the list of ports only

	line int
}

// HCA is a host channel adapter or a router.
type HCA struct {
	GUID       addr.GUID `json:"guid"`
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Count      int       `json:"port_count"` // of the device, with or without a cable
	Ports      []Port    `json:"ports"`      // that have a cable
	SystemGUID addr.GUID `json:"system_guid,omitzero"`
	VendorID   string    `json:"vendor_id,omitempty"`
	DeviceID   string    `json:"device_id,omitempty"`

	line int
}

// Port is a port of an HCA or a router.
type Port struct {
	Port int       `json:"port"`
	GUID addr.GUID `json:"guid"`
	LID  int       `json:"lid"`
	LMC  int       `json:"lmc"`
}

// End is one end of a cable.
type End struct {
	ID   string    `json:"id"`
	GUID addr.GUID `json:"guid"`
	Name string    `json:"name"`
	Port int       `json:"port"`
}

// Link is a cable with what it runs at. Width and speed are as printed ("4x",
// "NDR"), which is "??" and "???" where ibnetdiscover does not know them.
type Link struct {
	From  End            `json:"from"`
	To    End            `json:"to"`
	Width string         `json:"width,omitempty"`
	Speed string         `json:"speed,omitempty"`
	Codes map[string]int `json:"codes,omitempty"` // s, w, v, e of -f
	Line  int            `json:"-"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is:   matchFormat,
	Parse: func(data []byte) (any, tool.Problems, error) {
		return Parse(data)
	},
}

var (
	recordLine = lazyregexp.New(`(?m)^[ \t]*(Switch|Ca|Rt)[ \t]+[0-9]+[ \t]+"[SHR]-`)
	portsLine  = lazyregexp.New(`(?m)^[ \t]*(CA|SW|RT)[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+0x[0-9a-fA-F]{16}[ \t]`)
	listLine   = lazyregexp.New(`(?m)^[ \t]*(Ca|Switch|Router)[ \t]*:[ \t]*0x[0-9a-fA-F]+ ports [0-9]+ `)
)

func matchFormat(data []byte) int {
	const head = 32 << 10
	start := data[:min(len(data), head)]
	if bytes.Contains(start, []byte("# Topology file: generated on")) {
		return 100
	}
	if recordLine.Match(start) || portsLine.Match(start) || listLine.Match(start) {
		return 95
	}
	return ibdiags.FailureOf(Name, data)
}

// Parse reads any of the forms. Its time and memory grow with the input.
func Parse(data []byte) (*Topology, tool.Problems, error) {
	b := newBuilder()
	for line := range strings.SplitSeq(string(data), "\n") {
		b.line++
		b.read(strings.TrimSuffix(line, "\r"))
	}
	if b.t.Form == "" && !b.failed {
		return nil, nil, errors.New("it has no record of a node, no line of a port and no failure of ibnetdiscover")
	}
	b.finish(len(data) > 0 && data[len(data)-1] == '\n')
	return &b.t, b.problems, nil
}
