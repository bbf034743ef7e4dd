// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// What ethtool --json has at the beginning of its object: of an interface, and of
// a module. Source: netlink/settings.c and module-common.c of ethtool 6.10 to 6.15.
var (
	settingsJSON = lazyregexp.New(`\[\s*\{\s*"ifname"\s*:\s*"[^"\n]*"\s*,\s*"(?:supported-|advertised-|speed"|auto-negotiation"|port"|link-detected")`)
	moduleJSON   = lazyregexp.New(`\[\s*\{\s*"identifier"\s*:\s*[0-9]+\s*,\s*"identifier_description"\s*:\s*"`)
	flagKey      = lazyregexp.New(`(?i)[_ ](?:alarm|warning)$`)
)

// beginning is how much of a text is looked at for these.
const beginning = 16 << 10

func isSettingsJSON(data []byte) bool {
	return settingsJSON.Match(data[:min(len(data), beginning)])
}

func isModuleJSON(data []byte) bool { return moduleJSON.Match(data[:min(len(data), beginning)]) }

// member is a key with its value. Keys may be there twice: the temperature of a
// module, and its limits.
type member struct {
	key   string
	value any
}

// decodeMembers returns those of the first object of the list that --json prints, in their
// order.
func decodeMembers(data []byte, problems *tool.Problems) ([]member, error) {
	text, ok := jsontext.Find(data)
	if !ok {
		return nil, errors.New("it has no list of ethtool")
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "The list ends before its end: what it has so far was read.")
	}
	dec := json.NewDecoder(bytes.NewReader(text.Data))
	dec.UseNumber()
	for _, want := range []json.Delim{'[', '{'} {
		if t, err := dec.Token(); err != nil || t != want {
			return nil, errors.New("it is no list of objects")
		}
	}
	var all []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if _, err := dec.Token(); err == nil && dec.More() {
		problems.Add(tool.Inconsistent, 0, "What is said of a second interface is here, and was not read.")
	}
	return all, nil
}

// formatPlain makes text of a value, as the other form has it.
func formatPlain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		var words []string
		for _, e := range v {
			words = append(words, formatPlain(e))
		}
		return strings.Join(words, " ")
	case map[string]any:
		out, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(out)
	}
	return fmt.Sprint(value)
}

// collectFigures returns the numbers of a value: one, or one of each lane; nil where an
// element is none.
func collectFigures(value any) []*float64 {
	list, several := value.([]any)
	if !several {
		list = []any{value}
	}
	var all []*float64
	for _, e := range list {
		var f *float64
		if n, ok := e.(json.Number); ok {
			f = leadingNumber(n.String())
		}
		all = append(all, f)
	}
	return all
}

// parseSettingsJSON reads ethtool --json of one interface.
func parseSettingsJSON(data []byte) (*Settings, tool.Problems, error) {
	s, problems := Settings{Supported: []string{}, All: map[string]string{}}, tool.Problems(nil)
	all, err := decodeMembers(data, &problems)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range all {
		s.member(m)
	}
	if s.Interface == "" {
		return nil, nil, errors.New("it has no settings of an interface")
	}
	if s.Link == nil {
		problems.Add(tool.Truncated, 0, "The key \"link-detected\" is not there.")
	}
	return &s, problems, nil
}

// member takes one key of an interface.
func (s *Settings) member(m member) {
	text := formatPlain(m.value)
	s.All[m.key] = text
	switch m.key {
	case "ifname":
		s.Interface = text
	case "speed":
		if n, ok := m.value.(json.Number); ok {
			if speed, err := n.Int64(); err == nil {
				s.Speed = &speed
			}
		}
	case "duplex":
		s.Duplex = text
	case "port":
		s.Port = text
	case "auto-negotiation":
		s.AutoNeg = map[string]string{"yes": "on", "no": "off"}[text]
	case "advertised-fec-modes":
		s.FEC = text
	case "supported-link-modes":
		s.Supported = append(s.Supported, strings.Fields(text)...)
	case "link-detected":
		if up, ok := m.value.(bool); ok {
			s.Link = &up
		}
	}
}

// parseModuleJSON reads ethtool --json -m of one interface.
func parseModuleJSON(data []byte) (*Module, tool.Problems, error) {
	m, problems := Module{Lanes: []Lane{}, Flags: []string{}, All: map[string][]string{}}, tool.Problems(nil)
	all, err := decodeMembers(data, &problems)
	if err != nil {
		return nil, nil, err
	}
	for _, x := range all {
		m.All[x.key] = append(m.All[x.key], formatPlain(x.value))
		m.member(x, &problems)
	}
	if m.Identifier == "" {
		return nil, nil, errors.New("it has no module")
	}
	return &m, problems, nil
}

// member takes one key of a module.
func (m *Module) member(x member, problems *tool.Problems) {
	text := formatPlain(x.value)
	switch x.key {
	case "identifier":
		if n := collectFigures(x.value)[0]; n != nil {
			m.Identifier = fmt.Sprintf("0x%02x", int(*n))
		}
	case "identifier_description":
		m.Identifier += " (" + text + ")"
	case "vendor_name":
		m.Vendor = text
	case "vendor_pn":
		m.Part = text
	case "vendor_sn":
		m.Serial = text
	case "module_temperature":
		m.Temperature = firstFigure(m.Temperature, x.value)
	case "module_voltage":
		m.Voltage = firstFigure(m.Voltage, x.value)
	case "laser_tx_bias_current", "laser_bias_current":
		m.lanes(x.value, func(l *Lane, f *float64) { l.Bias = f })
	case "transmit_avg_optical_power", "laser_output_power":
		m.lanes(x.value, func(l *Lane, f *float64) { l.Send = toDecibels(f) })
	case "rcvr_signal_avg_optical_power", "receiver_signal_average_optical_power", "rx_power":
		if power, ok := x.value.(map[string]any); ok {
			x.value = power["values"]
		}
		m.lanes(x.value, func(l *Lane, f *float64) { l.Receive = toDecibels(f) })
	default:
		m.flag(x, problems)
	}
}

// firstFigure returns a figure that was there before, or the first one of a value.
func firstFigure(before *float64, value any) *float64 {
	if before != nil {
		return before
	}
	return collectFigures(value)[0]
}

// lanes notes a reading of each lane. An object of the same key has its limits.
func (m *Module) lanes(value any, set func(*Lane, *float64)) {
	if _, limits := value.(map[string]any); limits || value == nil {
		return
	}
	for i, f := range collectFigures(value) {
		if i >= mostLanes {
			return
		}
		if i == len(m.Lanes) {
			m.Lanes = append(m.Lanes, Lane{Lane: i + 1})
		}
		set(&m.Lanes[i], f)
	}
}

// flag notes an alarm or a warning that is on, of the module or of a lane.
func (m *Module) flag(x member, problems *tool.Problems) {
	if !flagKey.MatchString(x.key) {
		return
	}
	on := func(name string) {
		m.Flags = append(m.Flags, name)
		problems.Add(tool.Failed, 0, "The module says: %s.", name)
	}
	switch v := x.value.(type) {
	case bool:
		if v {
			on(x.key)
		}
	case []any:
		for i, e := range v {
			if e == true && i < mostLanes {
				on(fmt.Sprintf("%s (Channel %d)", x.key, i+1))
			}
		}
	}
}

// toDecibels makes dBm of mW, with the two places that ethtool prints; nil where
// there is no light.
func toDecibels(milliwatts *float64) *float64 {
	if milliwatts == nil || *milliwatts <= 0 {
		return nil
	}
	dbm := math.Round(1000*math.Log10(*milliwatts)) / 100
	return &dbm
}
