// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Settings is what ethtool says of an interface without options. What it does not
// say, or not know, is empty or null.
type Settings struct {
	Interface string            `json:"interface"`
	Speed     *int64            `json:"speed_mbps"` // null: not known, as without a link
	Duplex    string            `json:"duplex,omitempty"`
	Port      string            `json:"port,omitempty"` // FIBRE, Direct Attach Copper
	AutoNeg   string            `json:"auto_negotiation,omitempty"`
	FEC       string            `json:"advertised_fec,omitempty"`
	Link      *bool             `json:"link_detected"`
	LinkNote  string            `json:"link_note,omitempty"` // why there is none: No cable
	Supported []string          `json:"supported_link_modes"`
	All       map[string]string `json:"settings"` // all lines, as printed
}

// SettingsFormat is what recognises and reads ethtool without options.
var SettingsFormat = tool.Format{
	Name: "ethtool",
	Is: func(data []byte) int {
		if settingsHead.Match(data) || isSettingsJSON(data) {
			return 90
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return ParseSettings(data) },
}

var (
	settingsHead = lazyregexp.New(`(?m)^[ \t]*Settings for (\S+):[ \t]*\r?$`)
	setting      = lazyregexp.New(`^([A-Z][A-Za-z0-9 -]*?): *(.*)$`)
	linkState    = lazyregexp.New(`^(yes|no)(?: \((.*)\))?$`)
	denied       = lazyregexp.New(`^(?:Cannot get|netlink error: ?)`)
	unlinked     = lazyregexp.New(`^Cannot get link status: (?:Operation not permitted|Permission denied)`)
	// unprivileged are what only root may ask for; all else is there without it.
	unprivileged = lazyregexp.New(`(?i)wake-on-lan|not permitted|msglvl|message level`)
)

// longest is how many bytes of a value over several lines are kept.
const longest = 64 << 10

// ParseSettings reads what ethtool says of one interface without options, also
// with --json.
func ParseSettings(data []byte) (*Settings, tool.Problems, error) {
	if isSettingsJSON(data) {
		return parseSettingsJSON(data)
	}
	r := settingsReader{content: Settings{Supported: []string{}, All: map[string]string{}}}
	for text := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(text))
	}
	s := &r.content
	if s.Interface == "" {
		return nil, nil, errors.New("it has no settings of an interface")
	}
	s.fill()
	if s.Link == nil && r.rootOnly > 0 {
		r.problems.Add(tool.Missing, r.rootOnly, "Whether there is a link is not known: ethtool ran without the rights of root.")
	} else if s.Link == nil {
		r.problems.Add(tool.Truncated, 0, "The line \"Link detected\" is not there.")
	}
	return s, r.problems, nil
}

// settingsReader goes through the lines of ethtool without options.
type settingsReader struct {
	content  Settings
	problems tool.Problems
	line     int
	last     string // the name whose value may go on
	rootOnly int    // the line that says that only root is told of the link; 0: none
}

func (r *settingsReader) read(text string) {
	s := &r.content
	switch m := settingsHead.FindStringSubmatch(text); {
	case text == "":
		r.last = "" // a value does not go on behind a blank line
	case m != nil && s.Interface != "":
		r.problems.Add(tool.Inconsistent, r.line, "The settings of a second interface begin here: %s.", m[1])
	case m != nil:
		s.Interface = m[1]
	case s.Interface == "" && !denied.MatchString(text):
	case denied.MatchString(text):
		if unlinked.MatchString(text) {
			r.rootOnly = r.line
		} else if !unprivileged.MatchString(text) {
			r.problems.Add(tool.Failed, r.line, "ethtool failed: %s", text)
		}
	case setting.MatchString(text):
		m := setting.FindStringSubmatch(text)
		r.last = m[1]
		s.All[r.last] = strings.TrimSpace(m[2])
	case (strings.HasSuffix(r.last, "modes") || r.last == "Current message level") && len(s.All[r.last]) < longest: // these go on over lines
		s.All[r.last] = strings.TrimSpace(s.All[r.last] + " " + text)
	}
}

// fill makes the typed fields of the lines.
func (s *Settings) fill() {
	known := func(name string) string {
		if v := s.All[name]; !strings.HasPrefix(v, "Unknown") && v != "Not reported" {
			return v
		}
		return ""
	}
	if v, err := strconv.ParseInt(strings.TrimSuffix(known("Speed"), "Mb/s"), 10, 64); err == nil {
		s.Speed = &v
	}
	s.Duplex, s.Port, s.AutoNeg, s.FEC = known("Duplex"), known("Port"), known("Auto-negotiation"), known("Advertised FEC modes")
	s.Supported = append(s.Supported, strings.Fields(known("Supported link modes"))...)
	if m := linkState.FindStringSubmatch(s.All["Link detected"]); m != nil {
		up := m[1] == "yes"
		s.Link, s.LinkNote = &up, m[2]
	}
}

// Summary is one line.
func (s *Settings) Summary() []string {
	line := s.Interface
	switch {
	case s.Link == nil:
		line += ": whether it has a link is not known"
	case !*s.Link:
		line += ": no link " + s.LinkNote
	default:
		line += ": link"
	}
	if s.Speed != nil {
		line += fmt.Sprintf(", %d Mb/s", *s.Speed)
	}
	return []string{strings.TrimSpace(line)}
}
