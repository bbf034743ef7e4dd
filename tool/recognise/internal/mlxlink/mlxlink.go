// SPDX-License-Identifier: Apache-2.0

// Package mlxlink reads what mlxlink and mstlink print of one port of an NVIDIA
// NIC or switch: what its link runs at, why it does not, its error rates, and its
// module or cable, or of its PCI Express links (--port_type PCIE); as text and as
// JSON (--json). Source: mlxlink of
// Mellanox/mstflint, mlxlink_commander.cpp and mlxlink_enums.h.
package mlxlink

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "mlxlink"

// Link is the content. What the output does not say, or "N/A", is empty or null.
type Link struct {
	State          string   `json:"state,omitempty"`          // Active, Polling, Disable, ...
	Physical       string   `json:"physical_state,omitempty"` // LinkUp, Polling, Disabled, ETH_AN_FSM_ENABLE, ...
	Speed          string   `json:"speed,omitempty"`
	Width          string   `json:"width,omitempty"`
	FEC            string   `json:"fec,omitempty"`
	AutoNeg        string   `json:"auto_negotiation,omitempty"`
	Opcode         *int     `json:"status_opcode"`
	Recommendation string   `json:"recommendation,omitempty"`
	Firmware       string   `json:"firmware,omitempty"`
	SymbolBER      *float64 `json:"symbol_ber"` // of -c; 1.5e-254 where there was no error
	EffectiveBER   *float64 `json:"effective_physical_ber"`
	RawBER         *float64 `json:"raw_physical_ber"`
	LinkDown       *float64 `json:"link_down_counter"`
	Vendor         string   `json:"cable_vendor,omitempty"` // of -m
	Part           string   `json:"cable_part_number,omitempty"`
	Serial         string   `json:"cable_serial,omitempty"`
	PCIe           []PCIe   `json:"pcie,omitempty"` // of --port_type PCIE
	// Sections has the lines of each part of the output, as printed.
	Sections map[string]map[string]string `json:"sections"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if isJSON(data) || heading.Match(data) && state.Match(data) || pcieHeading.Match(data) {
			return 95
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

// The parts that every output has, and what is advised when all is well.
const (
	operational     = "Operational Info"
	troubleshooting = "Troubleshooting Info"
	noIssue         = "No issue was observed"
	reports         = "Errors" // what mlxlink could not do, each on a line
	reportsRule     = "------"
)

var (
	heading = lazyregexp.New(`(?m)^[ \t]*Operational Info(?: \([^)\n]*\))?[ \t]*\r?\n[ \t]*-{8,}`)
	state   = lazyregexp.New(`(?m)^[ \t]*Physical state[ \t]+:`)
	rule    = lazyregexp.New(`^-{8,}$`)
	pair    = lazyregexp.New(`^(\S[^:]*?)\s*:(?:\s(.*))?$`)
	failure = lazyregexp.New(`^-E- `)
	prompt  = lazyregexp.New(`^\[?[\w.-]+@[^$#]*[$#](?: |$)|^[$#](?: |$)`)
)

// mostLines is how many values are kept; a port has some 150.
const mostLines = 2000

// Parse reads either form.
func Parse(data []byte) (*Link, tool.Problems, error) {
	if isJSON(data) {
		return parseJSON(data)
	}
	l := &Link{Sections: map[string]map[string]string{}}
	r := reader{link: l}
	for text := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(text))
	}
	delete(l.Sections, reports)
	if l.Sections[operational] == nil && l.Sections[pcie] == nil {
		return nil, nil, errors.New("it has no link of mlxlink")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && !pair.MatchString(r.last) {
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line.")
	}
	l.finish(&r.problems)
	return l, r.problems, nil
}

// reader goes through the lines of the text form.
type reader struct {
	link     *Link
	problems tool.Problems
	line     int
	kept     int    // values that were kept
	last     string // the line above, blank ones left out
	section  string // the part that is read; empty: none
}

func (r *reader) read(text string) {
	l := r.link
	m := pair.FindStringSubmatch(text)
	switch {
	case text == "" || prompt.MatchString(text):
		if r.section == reports {
			r.section = ""
		}
	case failure.MatchString(text), r.section == reports && !rule.MatchString(text):
		r.problems.Add(tool.Failed, r.line, "mlxlink failed: %s", text)
	case rule.MatchString(text), r.last == reports && text == reportsRule:
		r.section = l.section(r.last)
		if l.Sections[r.section] != nil {
			r.problems.Add(tool.Inconsistent, r.line, "The part %q begins again: outputs of two ports are in one file.", r.section)
			r.section = ""
			return
		}
		l.Sections[r.section] = map[string]string{}
	case m != nil && r.section != "" && r.kept < mostLines:
		l.Sections[r.section][m[1]] = strings.TrimSpace(m[2])
		r.kept++
	}
	if text != "" {
		r.last = text
	}
}

// section is how the part under a title is called. Each PCI Express link has one
// of the same title.
func (l *Link) section(title string) string {
	if title != pcie {
		title, _, _ = strings.Cut(title, " (")
		return title
	}
	for n := 2; l.Sections[title] != nil && n <= mostPCIe; n++ {
		title = fmt.Sprintf("%s %d", pcie, n)
	}
	return title
}

// finish makes the typed fields of the lines.
func (l *Link) finish(problems *tool.Problems) {
	all := map[string]string{}
	for _, name := range []string{operational, troubleshooting, "Tool Information", "Module Info", "Physical Counters and BER Info"} {
		for key, value := range l.Sections[name] {
			if value != "N/A" {
				all[key] = value
			}
		}
	}
	l.State, l.Physical, l.Speed, l.Width, l.FEC, l.AutoNeg = all["State"], all["Physical state"], all["Speed"], all["Width"], all["FEC"], all["Auto Negotiation"]
	l.Recommendation, l.Firmware = all["Recommendation"], all["Firmware Version"]
	l.Vendor, l.Part, l.Serial = all["Vendor Name"], all["Vendor Part Number"], all["Vendor Serial Number"]
	if code, err := strconv.Atoi(all["Status Opcode"]); err == nil {
		l.Opcode = &code
	}
	l.SymbolBER, l.EffectiveBER, l.RawBER = parseNumber(all["Symbol BER"]), parseNumber(all["Effective Physical BER"]), parseNumber(all["Raw Physical BER"])
	l.LinkDown = parseNumber(all["Link Down Counter"])
	l.finishPCIe(problems)
	if l.Sections[operational] == nil {
		return
	}
	if l.Sections[troubleshooting] == nil {
		problems.Add(tool.Truncated, 0, "The part %q, which every output has, is not there.", troubleshooting)
	} else if l.Recommendation != "" && !strings.HasPrefix(l.Recommendation, noIssue) {
		problems.Add(tool.Failed, 0, "mlxlink says of this link: %s (status %s).", l.Recommendation, all["Status Opcode"])
	}
}

// parseNumber returns a figure; nil when it is none.
func parseNumber(text string) *float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f || f < 0 || f > 1e18 {
		return nil
	}
	return &f
}

// Summary says what the link runs at, its error rates, and its cable.
func (l *Link) Summary() []string {
	lines := []string{strings.Join(strings.Fields(fmt.Sprintf("%s/%s %s %s", l.State, l.Physical, l.Speed, l.Width)), " ")}
	if l.Sections[operational] == nil {
		lines = nil
	}
	for _, p := range l.PCIe {
		lines = append(lines, p.line())
	}
	if l.Recommendation != "" {
		lines = append(lines, l.Recommendation)
	}
	for _, b := range []struct {
		name  string
		value *float64
	}{{"effective", l.EffectiveBER}, {"symbol", l.SymbolBER}, {"raw", l.RawBER}} {
		if b.value != nil {
			lines = append(lines, fmt.Sprintf("%s BER %g", b.name, *b.value))
		}
	}
	if cable := strings.Join(strings.Fields(l.Vendor+" "+l.Part+" "+l.Serial), " "); cable != "" {
		lines = append(lines, cable)
	}
	return lines
}
