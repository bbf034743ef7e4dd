// SPDX-License-Identifier: Apache-2.0

// Package lldpctl reads what lldpctl and `lldpcli show neighbors` of lldpd print: who is
// at the other end of each cable, as text, with -f json or json0, or with -f keyvalue.
// Source: lldpd/lldpd, src/client/display.c and its writers.
package lldpctl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "lldpctl"

// Report is the content.
type Report struct {
	Neighbors []Neighbor `json:"neighbors"`
}

// Neighbor is what one interface hears of the other end of its cable.
type Neighbor struct {
	Interface string   `json:"interface"`
	Via       string   `json:"via,omitempty"` // LLDP, CDPv2
	Age       string   `json:"age,omitempty"` // as printed: "0 day, 00:01:00"
	Chassis   ID       `json:"chassis"`
	Name      string   `json:"name,omitempty"`        // of the system
	Descr     string   `json:"description,omitempty"` // of the system, its first line
	Addresses []string `json:"management_addresses,omitempty"`
	Port      ID       `json:"port"`
	PortDescr string   `json:"port_description,omitempty"`

	line int
}

// ID is an identifier with its kind: mac, ifname, local.
type ID struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case heading.Match(data), pair.Match(data), documentHead.Match(data):
			return 95
		case title.Match(data):
			return 85
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	title   = lazyregexp.New(`(?m)^[ \t]*LLDP neighbors:[ \t]*\r?$`)
	heading = lazyregexp.New(`(?m)^[ \t]*Interface: +(\S+), via: (\S+?)(?:, RID: \d+)?(?:, Time: (.*?))?[ \t]*\r?$`)
	rule    = lazyregexp.New(`^-{20,}$`)
	key     = lazyregexp.New(`^(ChassisID|SysName|SysDescr|MgmtIP|PortID|PortDescr|TTL): *(.*)$`)
	begun   = lazyregexp.New(`^Interface:`)
)

// mostShown is how many problems of a sort are written out.
const mostShown = 10

// Parse reads the output. An interface with several neighbours and a port that two
// interfaces hear are problems, and so is that there is no neighbour.
func Parse(data []byte) (*Report, tool.Problems, error) {
	r := reader{report: Report{Neighbors: []Neighbor{}}}
	var err error
	switch {
	case documentHead.Match(data):
		err = r.document(data)
	case pair.Match(data):
		r.pairs(data)
	default:
		err = r.text(data)
	}
	if err != nil {
		return nil, nil, err
	}
	r.compare()
	return &r.report, r.problems, nil
}

type reader struct {
	report   Report
	problems tool.Problems
	line     int
}

// text reads the plain form. A rule stands below the last neighbour.
func (r *reader) text(data []byte) error {
	found, closed := false, false
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		found = found || title.MatchString(text)
		m := heading.FindStringSubmatch(text)
		switch {
		case m != nil:
			r.report.Neighbors = append(r.report.Neighbors, Neighbor{Interface: m[1], Via: m[2], Age: m[3], line: r.line})
			found = true
		case begun.MatchString(text):
			r.problems.Add(tool.Truncated, r.line, "The line of an interface ends before its end.")
		case !rule.MatchString(text) && len(r.report.Neighbors) > 0 && !closed:
			r.field(text)
			continue
		}
		closed = rule.MatchString(text)
	}
	switch {
	case !found:
		return errors.New("it has no neighbour of lldpctl")
	case len(r.report.Neighbors) > 0 && !closed:
		r.problems.Add(tool.Truncated, 0, "The line below the last neighbour is not there.")
	}
	return nil
}

// field reads a line of a neighbour.
func (r *reader) field(text string) {
	n := &r.report.Neighbors[len(r.report.Neighbors)-1]
	m := key.FindStringSubmatch(text)
	if m == nil {
		return // another field, or the rest of a description
	}
	value := strings.TrimSpace(m[2])
	switch m[1] {
	case "ChassisID":
		n.Chassis = parseID(value)
	case "PortID":
		n.Port = parseID(value)
	case "SysName":
		n.Name = value
	case "SysDescr":
		n.Descr = value
	case "PortDescr":
		n.PortDescr = value
	case "MgmtIP":
		n.Addresses = append(n.Addresses, value)
	}
}

// parseID reads "mac 08:00:27:73:60:cf".
func parseID(s string) ID {
	t, v, _ := strings.Cut(s, " ")
	return ID{t, strings.TrimSpace(v)}
}

// pair is a line of -f keyvalue. Names of interfaces may have dots themselves.
var pair = lazyregexp.New(`(?m)^[ \t]*lldp\.(\S+?)\.(via|rid|age|chassis|port|vlan|ppvid|pi|lldp-med|unknown-tlvs|custom)(?:\.([^=\s]*))?=(.*?)\r?$`)

// pairs reads -f keyvalue: the key via is the first of each neighbour.
func (r *reader) pairs(data []byte) {
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		text := strings.TrimSpace(line)
		m := pair.FindStringSubmatch(text)
		if m == nil {
			if strings.HasPrefix(text, "lldp.") {
				r.problems.Add(tool.Truncated, r.line, "The line ends before its value.")
			}
			continue // the rest of a description
		}
		all := r.report.Neighbors
		if len(all) == 0 || all[len(all)-1].Interface != m[1] || m[2] == "via" {
			r.report.Neighbors = append(all, Neighbor{Interface: m[1], line: r.line})
		}
		r.report.Neighbors[len(r.report.Neighbors)-1].set(m[2], m[3], strings.TrimSpace(m[4]))
	}
}

// set takes a value of -f keyvalue.
func (n *Neighbor) set(section, name, value string) {
	switch {
	case section == "via":
		n.Via = value
	case section == "age":
		n.Age = value
	case section == "chassis" && name == "name":
		n.Name = value
	case section == "chassis" && name == "descr":
		n.Descr = value
	case section == "chassis" && name == "mgmt-ip":
		n.Addresses = append(n.Addresses, value)
	case section == "chassis" && idTypes[name]:
		n.Chassis = ID{name, value}
	case section == "port" && name == "descr":
		n.PortDescr = value
	case section == "port" && idTypes[name]:
		n.Port = ID{name, value}
	}
}

// idTypes are the kinds of identifiers (IEEE 802.1AB, 8.5.2.2 and 8.5.3.2), as lldpd
// names them.
var idTypes = map[string]bool{"mac": true, "ifname": true, "ifalias": true, "local": true, "ip": true, "port": true, "chassis": true, "circuit ID": true, "unhandled": true}

// compare says what cannot be with one cable an interface.
func (r *reader) compare() {
	few := ibdiags.Few{Limit: mostShown}
	if len(r.report.Neighbors) == 0 {
		r.problems.Add(tool.Missing, 0, "No interface hears a neighbour: look whether the far end sends LLDP.")
	}
	heard, by := map[string]int{}, map[string]string{}
	for _, n := range r.report.Neighbors {
		if n.Chassis.Value == "" || n.Port.Value == "" {
			few.Add(&r.problems, "neighbours without a chassis or a port", tool.Truncated, n.line, "The neighbour of %s has no chassis ID or no port ID.", n.Interface)
			continue
		}
		if heard[n.Interface]++; heard[n.Interface] == 2 {
			few.Add(&r.problems, "interfaces with several neighbours", tool.Inconsistent, n.line, "%s has more than one neighbour: a second sender, such as a NIC's own LLDP agent, or a device between that forwards LLDP.", n.Interface)
		}
		end := n.Chassis.Value + " " + n.Port.Value
		if other := by[end]; other != "" && other != n.Interface {
			few.Add(&r.problems, "ports that two interfaces hear", tool.Inconsistent, n.line, "%s and %s hear the same port, %s of %s: a device between them forwards LLDP.", other, n.Interface, n.Port.Value, n.title())
		}
		by[end] = n.Interface
	}
	few.Rest(&r.problems)
}

// title is the neighbour's name, or the ID of its chassis.
func (n Neighbor) title() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Chassis.Value
}

// Summary has a line for each neighbour.
func (r *Report) Summary() []string {
	lines := []string{fmt.Sprintf("%d neighbours", len(r.Neighbors))}
	for _, n := range r.Neighbors {
		port := n.Port.Value
		if n.PortDescr != "" && n.PortDescr != port {
			port += " (" + n.PortDescr + ")"
		}
		lines = append(lines, fmt.Sprintf("%s: %s port %s", n.Interface, n.title(), port))
	}
	return lines
}
