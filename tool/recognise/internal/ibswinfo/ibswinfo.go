// SPDX-License-Identifier: Apache-2.0

// Package ibswinfo reads what ibswinfo prints about an InfiniBand switch without
// a management processor: what it is, its power supplies, temperatures and fans.
// Source: README of stanford-rc/ibswinfo.
package ibswinfo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "ibswinfo"

// Switch is the content.
type Switch struct {
	Name        string         `json:"name"` // the node description
	PartNumber  string         `json:"part_number,omitempty"`
	Serial      string         `json:"serial_number,omitempty"`
	Product     string         `json:"product_name,omitempty"`
	Revision    string         `json:"revision,omitempty"`
	Ports       int            `json:"ports,omitempty"`
	PSID        string         `json:"psid,omitempty"`
	GUID        addr.GUID      `json:"guid,omitzero"`
	Firmware    string         `json:"firmware_version,omitempty"`
	CPLD        string         `json:"cpld,omitempty"`
	Modules     int            `json:"modules,omitempty"` // cages
	Uptime      string         `json:"uptime,omitempty"`  // as printed: days-hours:minutes:seconds
	Seconds     int64          `json:"uptime_s,omitempty"`
	Supplies    []Supply       `json:"psus"`
	Temperature *float64       `json:"temperature_c,omitempty"`
	Hottest     *float64       `json:"max_temperature_c,omitempty"`
	Warn        string         `json:"warn_threshold_c,omitempty"` // as printed: low/high
	FanStatus   string         `json:"fan_status,omitempty"`
	Fans        map[string]int `json:"fans_rpm"` // by number

	ModuleTemperatures map[string]float64 `json:"module_temperatures_c,omitempty"` // of transceivers, by cage
}

// Supply is a power supply.
type Supply struct {
	Name       string   `json:"name"` // PSU0
	Status     string   `json:"status"`
	PartNumber string   `json:"part_number,omitempty"`
	Serial     string   `json:"serial_number,omitempty"`
	DC         string   `json:"dc_power,omitempty"`
	Fan        string   `json:"fan_status,omitempty"`
	Watts      *float64 `json:"power_w,omitempty"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if rule.Match(data) && row.Match(data) {
			return 95
		}
		if row.Match(data) && guid.Match(data) || len(short.FindAll(data, 2)) == 2 {
			return 85
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	rule   = lazyregexp.New(`(?m)^[ \t]*[=-]{20,}[ \t]*\r?$`)
	row    = lazyregexp.New(`(?m)^[ \t]*(part number|serial number|PSID|uptime \(d-h:m:s\)|PSU[0-9]+ status|fan status|fan#[0-9]+ \(rpm\)|temperature \(C\))[ \t]+\|`)
	guid   = lazyregexp.New(`(?m)^[ \t]*(GUID|fan#1 \(rpm\)|firmware version)[ \t]+\|`)
	uptime = lazyregexp.New(`^(?:([0-9]+)d-)?([0-9]+):([0-9]+):([0-9]+)$`)
	fan    = lazyregexp.New(`^fan#([0-9]+)(?:\.speed)? \(rpm\)$`)
	module = lazyregexp.New(`^module#([0-9]+)(?:\.temp)? \(C\)$`)
	// short are rows of -o inventory, status and vitals, which have no heading.
	short = lazyregexp.New(`(?m)^[ \t]*(node_description|part_number|psu[0-9]+\.(?:status|dc|part_number|power \(W\))|cur\.temp \(C\)|uptime \(sec\))[ \t]+[:|] `)
	ofPSU = lazyregexp.New(`^psu([0-9]+)\.(status|dc|fan|part_number|serial|power \(W\))$`)
	split = lazyregexp.New(`[ \t]+[:|](?:[ \t]+|$)`)
)

// names are the names of rows in the short outputs, as in the full one.
var names = map[string]string{
	"node_description": "name", "part_number": "part number", "serial": "serial number", "product_name": "product name", "fw_version": "firmware version",
	"cpld": "CPLD", "cur.temp (C)": "temperature (C)", "max.temp (C)": "max temp (C)", "max ports": "ports",
}

// Parse reads the output for one switch.
func Parse(data []byte) (*Switch, tool.Problems, error) {
	r := reader{content: Switch{Supplies: []Supply{}, Fans: map[string]int{}}}
	for text := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(text))
	}
	if r.rows == 0 {
		return nil, nil, errors.New("it has no row of ibswinfo")
	}
	if !r.ruled && r.rules > 0 {
		r.problems.Add(tool.Truncated, r.line, "The output ends without its last rule.")
	}
	return &r.content, r.problems, nil
}

type reader struct {
	content           Switch
	problems          tool.Problems
	line, rows, rules int
	ruled             bool // the last line that is not empty is a rule
}

func (r *reader) read(text string) {
	if text == "" {
		return
	}
	if r.ruled = rule.MatchString(text) && len(text) >= 40; r.ruled {
		r.rules++
		return
	}
	at := split.FindStringIndex(text)
	if at == nil {
		// Some versions name the device above the node description, which others
		// print bare.
		if r.rules == 1 && r.rows == 0 && !strings.HasPrefix(text, "Device: ") {
			r.content.Name = strings.TrimPrefix(text, "Current node description: ")
		}
		return
	}
	r.rows++
	key, value := text[:at[0]], text[at[1]:]
	if name := names[key]; name != "" {
		key = name
	}
	if m := ofPSU.FindStringSubmatch(key); m != nil {
		r.shortSupply("PSU"+m[1], m[2], value)
		return
	}
	if status, isSupply := strings.CutSuffix(key, " status"); isSupply && strings.HasPrefix(status, "PSU") {
		r.content.Supplies = append(r.content.Supplies, Supply{Name: status, Status: value})
		r.status(status, value)
		return
	}
	if !r.supply(key, value) {
		r.value(key, value)
	}
}

// supply reads a row of the power supply before it.
func (r *reader) supply(key, value string) bool {
	if len(r.content.Supplies) == 0 || r.content.Temperature != nil || r.content.Hottest != nil || len(r.content.Fans) > 0 {
		return false
	}
	s := &r.content.Supplies[len(r.content.Supplies)-1]
	switch key {
	case "P/N":
		s.PartNumber = value
	case "S/N":
		s.Serial = value
	case "DC power":
		s.DC = value
		r.status(s.Name+" DC power", value)
	case "fan status":
		s.Fan = value
		r.status(s.Name+" fan", value)
	case "power (W)":
		s.Watts = r.number(s.Name+" power", value)
	default:
		return false
	}
	return true
}

// shortSupply reads a row such as "psu0.dc".
func (r *reader) shortSupply(name, key, value string) {
	list := &r.content.Supplies
	if len(*list) == 0 || (*list)[len(*list)-1].Name != name {
		*list = append(*list, Supply{Name: name})
	}
	s := &(*list)[len(*list)-1]
	switch key {
	case "status":
		s.Status = value
		r.status(name, value)
	case "dc":
		s.DC = value
		r.status(name+" DC power", value)
	case "fan":
		s.Fan = value
		r.status(name+" fan", value)
	case "part_number":
		s.PartNumber = value
	case "serial":
		s.Serial = value
	case "power (W)":
		s.Watts = r.number(name+" power", value)
	}
}

// texts are the rows that are kept as printed.
var texts = map[string]func(*Switch) *string{
	"name":               func(s *Switch) *string { return &s.Name },
	"part number":        func(s *Switch) *string { return &s.PartNumber },
	"serial number":      func(s *Switch) *string { return &s.Serial },
	"product name":       func(s *Switch) *string { return &s.Product },
	"revision":           func(s *Switch) *string { return &s.Revision },
	"PSID":               func(s *Switch) *string { return &s.PSID },
	"firmware version":   func(s *Switch) *string { return &s.Firmware },
	"CPLD":               func(s *Switch) *string { return &s.CPLD },
	"warn threshold (C)": func(s *Switch) *string { return &s.Warn },
}

// value reads a row that is of no power supply.
func (r *reader) value(key, value string) {
	c := &r.content
	if field := texts[key]; field != nil {
		*field(c) = value
		return
	}
	switch key {
	case "modules":
		if n := r.number(key, value); n != nil {
			c.Modules = int(*n)
		}
	case "uptime (sec)":
		if n := r.number(key, value); n != nil {
			c.Uptime, c.Seconds = value, int64(*n)
		}
	case "ports":
		if n := r.number(key, value); n != nil {
			c.Ports = int(*n)
		}
	case "GUID":
		g, err := addr.ParseGUID(value)
		if err != nil {
			r.problems.Add(tool.Inconsistent, r.line, "%s.", err)
		}
		c.GUID = g
	case "uptime (d-h:m:s)":
		r.uptime(value)
	case "temperature (C)":
		c.Temperature = r.number(key, value)
	case "max temp (C)":
		c.Hottest = r.number(key, value)
	case "fan status", "fans":
		c.FanStatus = value
		r.status("fans", value)
	default:
		r.numbered(key, value)
	}
}

// numbered reads a row of one fan or of one cage: "fan#1 (rpm)", "module#1 (C)".
func (r *reader) numbered(key, value string) {
	if m := fan.FindStringSubmatch(key); m != nil {
		if n := r.number(key, value); n != nil {
			r.content.Fans[m[1]] = int(*n)
		}
	} else if m := module.FindStringSubmatch(key); m != nil {
		r.moduleTemperature(m[1], value)
	}
}

// moduleTemperature reads that of a cage; an empty one says so in words.
func (r *reader) moduleTemperature(cage, value string) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < -1e3 || n > 1e3 || n != n {
		return
	}
	if r.content.ModuleTemperatures == nil {
		r.content.ModuleTemperatures = map[string]float64{}
	}
	r.content.ModuleTemperatures[cage] = n
}

// status notes what the switch itself says is broken.
func (r *reader) status(what, value string) {
	switch {
	case value == "":
		r.problems.Add(tool.Missing, r.line, "The status of %s is not there.", what)
	case value != "OK":
		r.problems.Add(tool.Failed, r.line, "The switch says of %s: %s.", what, value)
	}
}

func (r *reader) number(key, value string) *float64 {
	if value == "" {
		r.problems.Add(tool.Missing, r.line, "%s has no value.", key)
		return nil
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < -1e6 || n > 1e9 || n != n {
		r.problems.Add(tool.Inconsistent, r.line, "%s is %q, which is no number.", key, value)
		return nil
	}
	return &n
}

func (r *reader) uptime(value string) {
	r.content.Uptime = value
	m := uptime.FindStringSubmatch(value)
	if m == nil {
		r.problems.Add(tool.Inconsistent, r.line, "Uptime %q is not as 67d-04:19:16.", value)
		return
	}
	days, _ := strconv.ParseUint("0"+m[1], 10, 31)
	for i, scale := range []int64{3600, 60, 1} {
		n, _ := strconv.ParseUint(m[2+i], 10, 31)
		r.content.Seconds += int64(n) * scale
	}
	r.content.Seconds += int64(days) * 86400
}

// Summary says which switch it is and how its parts are.
func (s *Switch) Summary() []string {
	lines := []string{fmt.Sprintf("%s %s, serial %s, firmware %s", s.Name, s.PartNumber, s.Serial, s.Firmware)}
	for _, p := range s.Supplies {
		lines = append(lines, fmt.Sprintf("%s %s, DC power %s, fan %s", p.Name, p.Status, p.DC, p.Fan))
	}
	if s.Temperature != nil {
		lines = append(lines, fmt.Sprintf("%g °C, fans %s", *s.Temperature, s.FanStatus))
	}
	return lines
}
