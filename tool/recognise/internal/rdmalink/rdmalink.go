// SPDX-License-Identifier: Apache-2.0

// Package rdmalink reads what `rdma link` of iproute2 prints: the ports of a
// node's RDMA devices and the network interfaces that belong to them, as text of
// any version and as JSON (-j). Source: the manual page rdma-link(8) and
// rdma/link.c of iproute2.
package rdmalink

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// Name is the kind's name.
const Name = "rdma-link"

// Links is the content.
type Links struct {
	Links []Link `json:"links"`
}

// Link is a port. LIDs and the prefix are those of InfiniBand only.
type Link struct {
	Device   string `json:"device"`
	Port     int    `json:"port"`
	State    string `json:"state"`          // ACTIVE, DOWN, INIT, ARMED
	Physical string `json:"physical_state"` // LINK_UP, POLLING, DISABLED, ...
	NetDev   string `json:"netdev,omitempty"`
	Prefix   string `json:"subnet_prefix,omitempty"`
	LID      *int   `json:"lid,omitempty"`
	SMLID    *int   `json:"sm_lid,omitempty"`
	LMC      *int   `json:"lmc,omitempty"`

	line int
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if row.Match(data) || entry.Match(data[:min(len(data), 4096)]) {
			return 95
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	// row is "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0", or of
	// old versions "0/1: mlx5_0/1: state ACTIVE physical_state LINK_UP".
	row = lazyregexp.New(`(?m)^[ \t]*(?:link |[0-9]+/[0-9]+: )([^\s/]+)/([0-9]+):?((?: [a-z_]+ \S+)*? state \S+ physical_state \S+(?: [a-z_]+ \S+)*)[ \t]*(?:\\?[ \t]+caps: <.*)?\r?$`)
	cut = lazyregexp.New(`^(?:link |[0-9]+/[0-9]+: )([^\s/]+)/([0-9]+)`)
	// entry is how the array of -j begins: of iproute2 before 5.5, the port stands
	// before the name, and in it.
	entry = lazyregexp.New(`\[\s*\{\s*"ifindex"\s*:\s*[0-9]+\s*,\s*(?:"ifname"\s*:\s*"[^"]*"\s*,\s*"port"\s*:\s*[0-9]+|"port"\s*:\s*[0-9]+\s*,\s*"ifname"\s*:\s*"[^"]*")\s*,(?s:.{0,600}?)"physical_state"`)
)

// Parse reads either form.
func Parse(data []byte) (*Links, tool.Problems, error) {
	l, problems := &Links{Links: []Link{}}, tool.Problems(nil)
	if entry.Match(data[:min(len(data), 4096)]) {
		return parseJSON(data)
	}
	n := 0
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		text = strings.TrimSpace(text)
		if m := row.FindStringSubmatch(text); m != nil {
			l.Links = append(l.Links, parseLink(m, n, &problems))
		} else if cut.MatchString(text) {
			problems.Add(tool.Truncated, n, "The line of a port ends before its states.")
		}
	}
	if len(l.Links) == 0 {
		return nil, nil, errors.New("it has no line of a port")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && len(problems) == 0 && !isWhole(l.Links[len(l.Links)-1]) {
		problems.Add(tool.Truncated, n, "The output ends within its last line.")
	}
	l.twice(&problems)
	return l, problems, nil
}

// isWhole reports whether a line without its end has all that it can have.
func isWhole(l Link) bool {
	return l.NetDev == "" && (l.Physical == "LINK_UP" || l.Physical == "DISABLED" || l.Physical == "POLLING")
}

// parseLink reads one line: names with their values.
func parseLink(m []string, line int, problems *tool.Problems) Link {
	port, _ := strconv.Atoi(m[2])
	l := Link{Device: m[1], Port: port, line: line}
	number := func(value string) *int {
		n, err := strconv.ParseUint(value, 0, 31)
		if err != nil {
			problems.Add(tool.Inconsistent, line, "%q is no number.", value)
			return nil
		}
		i := int(n)
		return &i
	}
	words := strings.Fields(m[3])
	for i := 0; i+1 < len(words); i += 2 {
		switch value := words[i+1]; words[i] {
		case "state":
			l.State = value
		case "physical_state":
			l.Physical = value
		case "netdev":
			l.NetDev = value
		case "subnet_prefix":
			l.Prefix = value
		case "lid":
			l.LID = number(value)
		case "sm_lid":
			l.SMLID = number(value)
		case "lmc":
			l.LMC = number(value)
		}
	}
	return l
}

// parseJSON reads the array of -j.
func parseJSON(data []byte) (*Links, tool.Problems, error) {
	var problems tool.Problems
	text, ok := jsontext.Find(data)
	if !ok {
		return nil, nil, errors.New("it has no array of ports")
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "The array ends before its end: what it has so far was read.")
	}
	var all []struct {
		Device   string `json:"ifname"`
		Port     int    `json:"port"`
		State    string `json:"state"`
		Physical string `json:"physical_state"`
		NetDev   string `json:"netdev"`
		Prefix   string `json:"subnet_prefix"`
		LID      *int   `json:"lid"`
		SMLID    *int   `json:"sm_lid"`
		LMC      *int   `json:"lmc"`
	}
	if err := json.Unmarshal(text.Data, &all); err != nil {
		return nil, nil, fmt.Errorf("it is no array of ports: %w", err)
	}
	l := &Links{Links: []Link{}}
	for _, a := range all {
		a.Device = strings.TrimSuffix(a.Device, fmt.Sprintf("/%d", a.Port))
		l.Links = append(l.Links, Link{Device: a.Device, Port: a.Port, State: a.State, Physical: a.Physical, NetDev: a.NetDev, Prefix: a.Prefix, LID: a.LID, SMLID: a.SMLID, LMC: a.LMC})
	}
	l.twice(&problems)
	return l, problems, nil
}

// twice notes ports that are there twice.
func (l *Links) twice(problems *tool.Problems) {
	seen := map[string]bool{}
	for _, p := range l.Links {
		key := fmt.Sprintf("%s/%d", p.Device, p.Port)
		if seen[key] {
			problems.Add(tool.Inconsistent, p.line, "Port %s is there twice: outputs of two nodes are in one file.", key)
		}
		seen[key] = true
	}
}

// Summary says how many ports are active, and names those that are not.
func (l *Links) Summary() []string {
	active := 0
	var down []string
	for _, p := range l.Links {
		if p.State == "ACTIVE" && p.Physical == "LINK_UP" {
			active++
		} else {
			down = append(down, fmt.Sprintf("%s port %d is %s/%s", p.Device, p.Port, p.State, p.Physical))
		}
	}
	return append([]string{fmt.Sprintf("%d ports, %d active", len(l.Links), active)}, down...)
}
