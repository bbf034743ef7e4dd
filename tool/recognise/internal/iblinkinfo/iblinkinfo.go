// SPDX-License-Identifier: Apache-2.0

// Package iblinkinfo reads what iblinkinfo prints about the ports of an InfiniBand
// subnet: by node (default, --switches-only, --cas-only, -d, -p) or a line for
// each port (-l). Source: the manual page iblinkinfo(8) and
// infiniband-diags/iblinkinfo.c of rdma-core.
package iblinkinfo

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
const Name = "iblinkinfo"

// Type is what a node is.
type Type string

// The types of nodes.
const (
	Switch Type = "switch"
	HCA    Type = "hca"
	Router Type = "router"
)

// Info is the ports of a subnet in the order of the output.
type Info struct {
	Ports []Port `json:"ports"`
}

// Node is the node of a port.
type Node struct {
	Type Type      `json:"type,omitempty"` // empty in the form of lines, which does not say it
	GUID addr.GUID `json:"guid,omitzero"`  // of a switch; HCAs have only those of their ports
	Name string    `json:"name"`           // the node description
}

// Port is one port. What a port that is down says about width and speed means
// nothing (C14-24.2.1 of the InfiniBand Architecture Specification), so that
// iblinkinfo leaves it out.
type Port struct {
	Node     Node      `json:"node"`
	GUID     addr.GUID `json:"guid,omitzero"`
	LID      int       `json:"lid"`
	Port     int       `json:"port"`
	External int       `json:"external,omitempty"` // the number on a director's panel
	Width    string    `json:"width,omitempty"`    // as printed, such as 4X
	Lane     float64   `json:"lane_gbps,omitempty"`
	Rate     float64   `json:"rate_gbps,omitempty"` // signalling of all lanes, Gb/s: 425 for 4X of 106.25
	Speed    string    `json:"speed,omitempty"`     // as printed, such as "106.25 Gbps"
	State    string    `json:"state"`               // Down, Initialize, Armed, Active
	Physical string    `json:"physical"`            // LinkUp, Polling, Disabled, ...
	Settings string    `json:"settings,omitempty"`  // of -p, such as "HOQ:17 VL_Stall:7"
	Peer     *Peer     `json:"peer,omitempty"`
	CouldBe  []string  `json:"could_be,omitempty"` // what both ends could do: "12X", "53.125 Gbps"

	line int
}

// Peer is the port at the other end.
type Peer struct {
	GUID     addr.GUID `json:"guid,omitzero"` // in the form of lines only
	LID      int       `json:"lid"`
	Port     int       `json:"port"`
	External int       `json:"external,omitempty"`
	Name     string    `json:"name"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name:  Name,
	Is:    matchFormat,
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	arrow = []byte(")==>")
	// linkInfo is what ibqueryerrors writes before the same line.
	linkInfo = []byte("Link info:")
	header   = lazyregexp.New(`^(?:Switch:? (0x[0-9a-fA-F]+) (.*)|(CA|Router|\?\?): (.*)):$`)
)

func matchFormat(data []byte) int {
	const head = 32 << 10
	start := data[:min(len(data), head)]
	for line := range bytes.Lines(start) {
		if bytes.Contains(line, arrow) && bytes.Contains(line, []byte("] ==(")) && !bytes.Contains(line, linkInfo) {
			return 95
		}
	}
	return ibdiags.FailureOf(Name, data)
}

// Line reads one line of a port, as ibqueryerrors writes it as well; false when it
// ends before its end, or is none.
func Line(text string) (Port, bool) {
	r := reader{info: Info{Ports: []Port{}}, few: ibdiags.Few{Limit: maxSame}, known: true, line: 1}
	r.read(strings.TrimSpace(text))
	if len(r.info.Ports) != 1 || r.cut > 0 {
		return Port{}, false
	}
	return r.info.Ports[0], true
}

// Parse reads either form. Its time and memory grow with the input.
func Parse(data []byte) (*Info, tool.Problems, error) {
	r := reader{info: Info{Ports: []Port{}}, few: ibdiags.Few{Limit: maxSame}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.info.Ports) == 0 && !r.failed && r.cut == 0 && r.differs == 0 {
		return nil, nil, errors.New("it has no line of a port and no failure of iblinkinfo")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && r.whole != r.line && r.cut != r.line {
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line.")
	}
	if r.differs > 0 {
		r.problems.Add(tool.Missing, r.differs, "This is what differs between two times (--diff), and not the subnet: marked lines, from this one on, are not read.")
	}
	if r.empty > 0 {
		r.problems.Add(tool.Truncated, r.empty, "No port follows the node %q.", r.node.Name)
	}
	r.compare()
	r.few.Rest(&r.problems)
	return &r.info, r.problems, nil
}
