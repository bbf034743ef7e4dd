// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Module is what ethtool -m says of a module or cable. What it does not say is
// empty or null.
type Module struct {
	Identifier  string   `json:"identifier,omitempty"`
	Vendor      string   `json:"vendor,omitempty"`
	Part        string   `json:"part_number,omitempty"`
	Serial      string   `json:"serial,omitempty"`
	Temperature *float64 `json:"temperature_c"`
	Voltage     *float64 `json:"voltage_v"`
	Lanes       []Lane   `json:"lanes"` // empty without diagnostics, as of copper
	Flags       []string `json:"flags"` // alarms and warnings that are on
	// All has the lines as printed; of a name that is there several times, all values.
	All map[string][]string `json:"all"`
}

// Lane is the light of one lane.
type Lane struct {
	Lane    int      `json:"lane"` // from 1
	Receive *float64 `json:"rx_dbm"`
	Send    *float64 `json:"tx_dbm"`
	Bias    *float64 `json:"tx_bias_ma"`
}

// ModuleFormat is what recognises and reads ethtool -m.
var ModuleFormat = tool.Format{
	Name: "ethtool-m",
	Is: func(data []byte) int {
		if moduleHead.Match(data) && vendorLine.Match(data) || isModuleJSON(data) {
			return 90
		}
		if moduleFailed.Match(data) {
			return 60
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return ParseModule(data) },
}

var (
	moduleHead = lazyregexp.New(`(?m)^[ \t]*Identifier[ \t]+: 0x[0-9a-f]{2} \(`)
	// moduleFailed is said of an interface without a module, and of a driver that cannot read one.
	moduleFailed = lazyregexp.New(`(?im)^[ \t]*Cannot get module (?:EEPROM (?:information|data)|info(?:rmation)?): .*$`)
	vendorLine   = lazyregexp.New(`(?m)^[ \t]*(?:Vendor (?:name|PN|OUI)|Connector)[ \t]+: `)
	property     = lazyregexp.New(`^(\S.*?)\s+: ?(.*)$`)
	// reading is a value of a lane; a module of one lane has no channel.
	reading = lazyregexp.New(`^(Laser (?:tx )?bias current|Laser output power|Transmit avg optical power|Rcvr signal avg optical power|Receiver signal (?:average optical power|OMA))(?: ?\(Channel (\d+)\))?$`)
	dbm     = lazyregexp.New(`/ (-?[\d.]+) dBm`)
	flag    = lazyregexp.New(`(?:alarm|warning)\s*(?:\([^)]*\))?$`)
)

// mostLanes is how many lanes a module may have; today there are at most 16.
const mostLanes = 64

// ParseModule reads what ethtool -m says of one interface, also with --json.
func ParseModule(data []byte) (*Module, tool.Problems, error) {
	if isModuleJSON(data) {
		return parseModuleJSON(data)
	}
	m, problems := Module{Lanes: []Lane{}, Flags: []string{}, All: map[string][]string{}}, tool.Problems(nil)
	n, last, failed := 0, "", false
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		text = strings.TrimSpace(text)
		if moduleFailed.MatchString(text) && len(problems) < mostFailures {
			failed = true
			problems.Add(tool.Failed, n, "ethtool failed: %s", text)
		}
		if text != "" {
			last = text
		}
		if x := property.FindStringSubmatch(text); x != nil {
			m.line(x[1], x[2], n, &problems)
		}
	}
	if m.Identifier == "" && failed {
		return &m, problems, nil
	}
	if m.Identifier == "" {
		return nil, nil, errors.New("it has no module")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && !property.MatchString(last) {
		problems.Add(tool.Truncated, n, "The output ends within its last line.")
	}
	slices.SortFunc(m.Lanes, func(a, b Lane) int { return a.Lane - b.Lane })
	return &m, problems, nil
}

// line takes one line, if the module has begun: its first one is the identifier.
func (m *Module) line(name, value string, n int, problems *tool.Problems) {
	if name == "Identifier" {
		if m.Identifier != "" {
			problems.Add(tool.Inconsistent, n, "A second module begins here.")
			return
		}
		m.Identifier = value
	}
	if m.Identifier != "" {
		m.property(name, strings.TrimSpace(value), n, problems)
	}
}

// property takes one line of a module that has begun.
func (m *Module) property(name, value string, line int, problems *tool.Problems) {
	m.All[name] = append(m.All[name], value)
	if x := reading.FindStringSubmatch(name); x != nil {
		m.lane(x[1], x[2], value)
		return
	}
	switch name {
	case "Vendor name":
		m.Vendor = value
	case "Vendor PN":
		m.Part = value
	case "Vendor SN":
		m.Serial = value
	case "Module temperature":
		m.Temperature = leadingNumber(value)
	case "Module voltage":
		m.Voltage = leadingNumber(value)
	default:
		if value == "On" && flag.MatchString(name) {
			m.Flags = append(m.Flags, name)
			problems.Add(tool.Failed, line, "The module says: %s.", name)
		}
	}
}

// lane notes a reading of a lane.
func (m *Module) lane(what, channel, value string) {
	number := 1
	if channel != "" {
		number, _ = strconv.Atoi(channel)
	}
	if number < 1 || number > mostLanes {
		return
	}
	i := slices.IndexFunc(m.Lanes, func(l Lane) bool { return l.Lane == number })
	if i < 0 {
		i = len(m.Lanes)
		m.Lanes = append(m.Lanes, Lane{Lane: number})
	}
	var power *float64
	if x := dbm.FindStringSubmatch(value); x != nil {
		power = leadingNumber(x[1])
	}
	switch l := &m.Lanes[i]; {
	case strings.Contains(what, "bias"):
		l.Bias = leadingNumber(value)
	case strings.HasPrefix(what, "R"):
		l.Receive = power
	default:
		l.Send = power
	}
}

// leadingNumber returns the number that a value begins with; nil when it begins with none.
func leadingNumber(value string) *float64 {
	word, _, _ := strings.Cut(value, " ")
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || f != f || f > 1e9 || f < -1e9 {
		return nil
	}
	return &f
}

// Summary says what it is, and which alarms are on.
func (m *Module) Summary() []string {
	line := strings.Join(strings.Fields(m.Vendor+" "+m.Part+" "+m.Serial), " ")
	if line == "" {
		line = m.Identifier
	}
	if line == "" {
		line = "the module is not known"
	}
	if m.Temperature != nil {
		line += fmt.Sprintf(", %g C", *m.Temperature)
	}
	lines := []string{line}
	for _, l := range m.Lanes {
		if l.Receive != nil && l.Send != nil {
			lines = append(lines, fmt.Sprintf("lane %d receives %g dBm and sends %g dBm", l.Lane, *l.Receive, *l.Send))
		}
	}
	return append(lines, m.Flags...)
}
