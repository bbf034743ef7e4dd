// SPDX-License-Identifier: Apache-2.0

package ibstat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// StatusName is the name of the kind of ibstatus.
const StatusName = "ibstatus"

// Status is the content of ibstatus.
type Status struct {
	Ports []StatusPort `json:"ports"`
}

// StatusPort is a port of a device, from /sys/class/infiniband.
type StatusPort struct {
	Device   string  `json:"device"`
	Port     int     `json:"port"`
	GID      string  `json:"default_gid"`
	LID      int     `json:"lid"`
	SMLID    int     `json:"sm_lid"`
	State    string  `json:"state"`          // ACTIVE, DOWN, INIT, ARMED
	Physical string  `json:"physical_state"` // LinkUp, Polling, Disabled, ...
	Rate     float64 `json:"rate_gbps"`
	Width    string  `json:"width,omitempty"` // such as 4X
	Speed    string  `json:"speed,omitempty"` // such as NDR
	Layer    string  `json:"link_layer,omitempty"`

	line int
	seen map[string]bool
}

// StatusFormat is what recognises and reads the output of ibstatus.
var StatusFormat = tool.Format{
	Name: StatusName,
	Is: func(data []byte) int {
		if statusHead.Match(data) || statusFailed.Match(data) {
			return 95
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return ParseStatus(data) },
}

var (
	statusHead   = lazyregexp.New(`(?m)^[ \t]*Infiniband device '([^'\n]*)' port ([0-9]+) status:[ \t]*\r?$`)
	statusFailed = lazyregexp.New(`(?m)^[ \t]*Fatal error:[ \t]+device '[^'\n]*': sys files not found|^[ \t]*Fatal error:[ \t]+No devices`)
	statusRate   = lazyregexp.New(`^([0-9.]+) Gb/sec(?: \(([0-9]+X)? ?([A-Z0-9]*)\))?$`)
)

// statusKeys are what ibstatus says of every port; link_layer is missing in old
// versions.
var statusKeys = []string{"default gid", "base lid", "sm lid", "state", "phys state", "rate"}

// ParseStatus reads the output of ibstatus.
func ParseStatus(data []byte) (*Status, tool.Problems, error) {
	s, problems := Status{Ports: []StatusPort{}}, tool.Problems(nil)
	n, failed, last := 0, false, ""
	for line := range strings.SplitSeq(string(data), "\n") {
		n++
		text := strings.TrimSpace(line)
		if statusFailed.MatchString(text) {
			failed = true
			problems.Add(tool.Failed, n, "ibstatus failed: %s", text)
		} else if m := statusHead.FindStringSubmatch(text); m != nil {
			port, _ := strconv.Atoi(m[2])
			s.Ports = append(s.Ports, StatusPort{Device: m[1], Port: port, line: n, seen: map[string]bool{}})
		} else if key, value, found := strings.Cut(text, ":"); found && len(s.Ports) > 0 {
			last = text
			s.Ports[len(s.Ports)-1].set(key, strings.TrimSpace(value), n, &problems)
		} else if text != "" {
			last = text
		}
	}
	if len(s.Ports) == 0 && !failed {
		return nil, nil, errors.New("it has no port and no failure of ibstatus")
	}
	checkComplete(&s, &problems)
	if layer, found := strings.CutPrefix(last, "link_layer:"); len(data) > 0 && data[len(data)-1] != '\n' && len(s.Ports) > 0 && (!found || !strings.Contains(" InfiniBand Ethernet IB ", " "+strings.TrimSpace(layer)+" ")) {
		problems.Add(tool.Truncated, n, "The output ends within its last port.")
	}
	return &s, problems, nil
}

// checkComplete checks that every port has all its values, and is there once.
func checkComplete(s *Status, problems *tool.Problems) {
	at := map[string]int{}
	for _, p := range s.Ports {
		for _, key := range statusKeys {
			if !p.seen[key] {
				problems.Add(tool.Missing, p.line, "Port %d of %s has no %q.", p.Port, p.Device, key)
				break
			}
		}
		if isDown(p.State, p.Physical) {
			problems.Add(tool.Failed, p.line, "Port %d of %s is %s, its physical state is %s.", p.Port, p.Device, p.State, p.Physical)
		}
		name := fmt.Sprintf("%s port %d", p.Device, p.Port)
		if before, again := at[name]; again {
			problems.Add(tool.Inconsistent, p.line, "%s is here and on line %d: outputs of two nodes are in one file.", name, before)
		}
		at[name] = p.line
	}
}

func (p *StatusPort) set(key, value string, line int, problems *tool.Problems) {
	// "unknown" is what ibstatus writes of a file that it cannot read; a RoCE port
	// without an interface has no GID.
	p.seen[key] = value != "" && (value != "unknown" || key == "default gid")
	if value == "unknown" || !p.seen[key] {
		return
	}
	lid := func() int {
		n, err := strconv.ParseUint(value, 0, 16)
		if err != nil {
			problems.Add(tool.Inconsistent, line, "%s %q is no LID.", key, value)
		}
		return int(n)
	}
	switch key {
	case "default gid":
		p.GID = value
	case "base lid":
		p.LID = lid()
	case "sm lid":
		p.SMLID = lid()
	case "state":
		p.State = trimCode(value)
	case "phys state":
		p.Physical = trimCode(value)
	case "link_layer":
		p.Layer = value
	case "rate":
		m := statusRate.FindStringSubmatch(value)
		if m == nil {
			problems.Add(tool.Inconsistent, line, "Rate %q is not as \"400 Gb/sec (4X NDR)\".", value)
			return
		}
		var ok bool
		if p.Rate, ok = parseRate(m[1]); !ok {
			problems.Add(tool.Inconsistent, line, "Rate %q is no number of Gb/s.", value)
		}
		p.Width, p.Speed = m[2], m[3]
	}
}

// trimCode removes the number before a name: "4: ACTIVE".
func trimCode(value string) string {
	if _, name, found := strings.Cut(value, ":"); found {
		return strings.TrimSpace(name)
	}
	return value
}

// Summary says how many ports are active, and names those that are not.
func (s *Status) Summary() []string {
	active := 0
	var down []string
	for _, p := range s.Ports {
		if p.State == "ACTIVE" && p.Physical == "LinkUp" {
			active++
		} else {
			down = append(down, fmt.Sprintf("%s port %d is %s/%s", p.Device, p.Port, p.State, p.Physical))
		}
	}
	return append([]string{fmt.Sprintf("%d ports, %d active", len(s.Ports), active)}, down...)
}
