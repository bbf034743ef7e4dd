// SPDX-License-Identifier: Apache-2.0

package sonicshow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Module is what show interfaces transceiver eeprom, with -d, or status says of the
// module in a port.
type Module struct {
	Port     string             `json:"port"`
	Detected bool               `json:"detected"` // of eeprom
	Fields   map[string]string  `json:"fields"`   // "Vendor Name", "Vendor PN", "Vendor SN", as printed
	Values   map[string]float64 `json:"values,omitempty"`
	Limits   map[string]float64 `json:"limits,omitempty"` // dBm, mA, C, V
	Flags    []string           `json:"flags,omitempty"`  // of status, that are true

	line  int
	dark  []string // lanes that receive no light at all
	lines map[string]int
}

var (
	module  = lazyregexp.New(`(?m)^[ \t]*(Ethernet\S*|Eth\d\S*): SFP EEPROM (detected|Not detected)[ \t]*\r?$`)
	status  = lazyregexp.New(`(?m)^[ \t]*(Ethernet\S*|Eth\d\S*):[ \t]*\r?\n[ \t]+(?:CMIS State|Tx fault flag|Rx loss of signal)[^\n]*`)
	started = lazyregexp.New(`^(Ethernet\S*|Eth\d\S*):$`)
	entry   = lazyregexp.New(`^([A-Za-z0-9][^:]*?) *: *(.*)$`)
	reading = lazyregexp.New(`^(-?inf|-?\d+(?:\.\d+)?) ?(dBm|mA|C|Volts)$`)
)

// sections are the headings below which values stand, and the map that they are of.
var sections = map[string]string{"ChannelMonitorValues": "values", "ModuleMonitorValues": "values", "ChannelThresholdValues": "limits", "ModuleThresholdValues": "limits"}

// readModule reads a line of a module; false: it is none.
func (r *reader) readModule(text string) bool {
	if m := module.FindStringSubmatch(text); m != nil {
		r.startModule(m[1], m[2] == "detected")
		return true
	}
	if m := started.FindStringSubmatch(text); m != nil && r.at+1 < len(r.lines) && status.MatchString(text+"\n "+strings.TrimSpace(r.lines[r.at+1])) {
		r.startModule(m[1], true)
		return true
	}
	if r.module == nil {
		return false
	}
	if entry.MatchString(text) { // else it is more of the field above
		name, value, _ := strings.Cut(text, ":")
		r.moduleField(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return true
}

// moduleField takes a field of the module that is read.
func (r *reader) moduleField(name, value string) {
	switch {
	case sections[name] != "" && value == "":
		r.section = sections[name]
	case r.section != "" && reading.MatchString(value):
		r.value(name, value)
	case value == "True" && isFault(name):
		r.module.Flags = append(r.module.Flags, name)
		r.module.lines[name] = r.at + 1
	case value != "" && value != "False":
		r.module.Fields[name] = value
	}
}

func (r *reader) startModule(port string, detected bool) {
	r.report.Modules = append(r.report.Modules, Module{Port: port, Detected: detected, Fields: map[string]string{}, Values: map[string]float64{}, Limits: map[string]float64{}, line: r.at + 1, lines: map[string]int{}})
	r.module, r.section, r.title = &r.report.Modules[len(r.report.Modules)-1], "", ""
}

// value reads "RX1Power: -0.4871dBm". No light at all is -inf, which JSON does not have.
func (r *reader) value(name, text string) {
	m := reading.FindStringSubmatch(text)
	v, err := strconv.ParseFloat(m[1], 64)
	none := err != nil || math.IsInf(v, 0)
	switch {
	case r.section == "limits" && none: // a module that has no such limit
		return
	case r.section == "limits":
		r.module.Limits[name] = v
		return
	case none:
		r.module.dark = append(r.module.dark, name)
		return
	}
	r.module.Values[name], r.module.lines[name] = v, r.at+1
}

// isFault reports whether a flag of status, when it is true, is a fault: the others say
// what is switched off.
func isFault(name string) bool {
	lower := strings.ToLower(name)
	for _, w := range []string{"fault", "loss of", "alarm", "warning flag", "failure"} {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// limitOf names the limits of a value: those of lanes are the same for all.
func limitOf(value string) string {
	switch {
	case value == "Temperature":
		return "Temp"
	case value == "Vcc":
		return "Vcc"
	}
	for _, kind := range []string{"Power", "Bias"} {
		if strings.HasSuffix(value, kind) && len(value) > 2 {
			return strings.ToUpper(value[:1]) + "x" + kind
		}
	}
	return ""
}

// judgeModule compares its values with its own alarm limits.
func (r *reader) judgeModule(m *Module) {
	for _, name := range m.dark {
		r.few.Add(&r.problems, "lanes without light", tool.Failed, m.line, "%s of the module of %s is nothing: no light.", name, m.Port)
	}
	for _, f := range m.Flags {
		r.few.Add(&r.problems, "flags of modules", tool.Failed, m.lines[f], "The module of %s says: %s.", m.Port, f)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Values)) {
		v, prefix := m.Values[name], limitOf(name)
		high, hasHigh := m.Limits[prefix+"HighAlarm"]
		low, hasLow := m.Limits[prefix+"LowAlarm"]
		switch {
		case prefix == "" || !hasHigh || !hasLow || low >= high:
		case v > high:
			r.few.Add(&r.problems, "values above their alarm", tool.Failed, m.lines[name], "%s of the module of %s is %g, above its alarm of %g.", name, m.Port, v, high)
		case v < low:
			r.few.Add(&r.problems, "values below their alarm", tool.Failed, m.lines[name], "%s of the module of %s is %g, below its alarm of %g.", name, m.Port, v, low)
		}
	}
}

func (m Module) summary() string {
	if !m.Detected {
		return m.Port + ": no module"
	}
	text := strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", m.Port, m.Fields["Vendor Name"], m.Fields["Vendor PN"], m.Fields["Vendor SN"]))
	if len(m.Flags) > 0 {
		text += fmt.Sprintf(", %d flags", len(m.Flags))
	}
	return text
}
