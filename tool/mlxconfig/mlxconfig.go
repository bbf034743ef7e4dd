// SPDX-License-Identifier: Apache-2.0

// Package mlxconfig reads what mlxconfig (NVIDIA's MFT and DOCA) and mstconfig (the
// same program of mstflint) print of the settings in a NIC's flash: q or query, with
// -e also those that are in force and those of the factory. Source: mlxconfig/mlxcfg_ui.cpp
// of Mellanox/mstflint, which prints the tables of both.
package mlxconfig

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "mlxconfig"

// Cards is the content: one entry for each device that was asked for.
type Cards struct {
	Cards []Card `json:"cards"`
}

// Card is one device. Settings are those of the card as a whole, of all its ports.
type Card struct {
	Type        string    `json:"device_type"` // ConnectX7, BlueField3
	Part        string    `json:"name"`        // MCX75310AAS-NEA_Ax; N/A where the flash does not say
	Description string    `json:"description"`
	Device      string    `json:"device"`  // as it was asked for: 0000:18:00.0, /dev/mst/mt4129_pciconf0
	Current     bool      `json:"current"` // it reports what is in force: asked with -e, of a firmware that can
	Settings    []Setting `json:"settings"`
}

// Setting is one line. What has no column is empty.
type Setting struct {
	Name     string `json:"name"` // LINK_TYPE_P1
	Default  Value  `json:"default,omitempty"`
	Current  Value  `json:"current,omitempty"`
	Next     Value  `json:"next_boot,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Value is a value as it is printed: IB(1), True(1), 48, 0xff, per_mkey(0), Array[0..7], N/A.
type Value string

// Is reports whether a value is the one of a number: the number itself, decimal or with 0x
// before it, or a word with the number in parentheses.
func (v Value) Is(number int) bool {
	n, ok := v.number()
	return ok && n == number
}

func (v Value) number() (int, bool) {
	text := string(v)
	if _, inner, word := strings.Cut(text, "("); word {
		text, word = strings.CutSuffix(inner, ")")
		if !word {
			return 0, false
		}
	}
	if digits, hexadecimal := strings.CutPrefix(strings.ToLower(text), "0x"); hexadecimal {
		n, err := strconv.ParseUint(digits, 16, 31)
		return int(n), err == nil
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Setting returns the line of a name; false where the card does not have it.
func (c Card) Setting(name string) (Setting, bool) {
	for _, s := range c.Settings {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case header.Match(data) && deviceType.Match(data):
			return 95
		case header.Match(data):
			return 85
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	header     = lazyregexp.New(`(?m)^[ \t]*Configurations:[ \t]+(?:Default[ \t]+|Current[ \t]+)*(?:Next Boot|Default)(?:[ \t]+New)?[ \t]*\r?$`)
	deviceType = lazyregexp.New(`(?m)^[ \t]*Device type:[ \t]`)
	parameter  = lazyregexp.New(`^[A-Z][A-Za-z0-9_]*(?:\[[0-9]+(?:\.\.[0-9]+)?\])?$`)
	columnName = lazyregexp.New(`Default|Current|Next Boot|New`)
)

// Parse reads the answer to a query, or to a set, which shows what it is about to write.
func Parse(data []byte) (*Cards, tool.Problems, error) {
	r := reader{content: Cards{Cards: []Card{}}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.content.Cards) == 0 && len(r.problems) == 0 {
		return nil, nil, errors.New("it has no device of mlxconfig")
	}
	r.finish(len(data) > 0 && data[len(data)-1] == '\n')
	return &r.content, r.problems, nil
}

type reader struct {
	content  Cards
	problems tool.Problems
	line     int
	columns  []string // of the table that is read; nil: none
	seen     map[string]bool
	last     int // the line of the last setting
}

// card is the device that is read.
func (r *reader) card() *Card { return &r.content.Cards[len(r.content.Cards)-1] }

func (r *reader) read(text string) {
	if message, failed := strings.CutPrefix(text, "-E- "); failed {
		r.problems.Add(tool.Failed, r.line, "mlxconfig failed: %s", message)
		return
	}
	key, value, found := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	switch {
	case found && key == "Device type":
		r.begin(Card{Type: value, Settings: []Setting{}})
	case header.MatchString(text):
		if len(r.content.Cards) == 0 {
			r.begin(Card{Settings: []Setting{}})
		}
		r.columns = columnName.FindAllString(text, -1)
		r.card().Current = strings.Contains(text, "Current")
	case len(r.content.Cards) == 0:
	case r.columns == nil && found:
		r.about(key, value)
	case r.columns != nil:
		r.setting(text)
	}
}

// begin starts a device.
func (r *reader) begin(c Card) {
	r.content.Cards = append(r.content.Cards, c)
	r.columns, r.seen, r.last = nil, map[string]bool{}, 0
}

// about reads a line above the table.
func (r *reader) about(key, value string) {
	c := r.card()
	switch key {
	case "Name":
		c.Part = value
	case "Description":
		c.Description = value
	case "Device":
		c.Device = value
	}
}

// setting reads a line of the table: a star where the next boot brings another value, RO
// where nothing can be set, the name, and a value for each column.
func (r *reader) setting(text string) {
	words := strings.Fields(strings.TrimPrefix(text, "*"))
	s := Setting{}
	if len(words) > 0 && words[0] == "RO" {
		s.ReadOnly, words = true, words[1:]
	}
	if len(words) < 1 || !parameter.MatchString(words[0]) || len(words) > 1+len(r.columns) {
		return // a note below the table, or an empty line
	}
	s.Name = words[0]
	if len(words) != 1+len(r.columns) {
		r.problems.Add(tool.Truncated, r.line, "The line of %s has %d of %d values.", s.Name, len(words)-1, len(r.columns))
		return
	}
	if r.seen[s.Name] {
		r.problems.Add(tool.Inconsistent, r.line, "%s is there twice.", s.Name)
		return
	}
	r.seen[s.Name], r.last = true, r.line
	for i, name := range r.columns {
		s.put(name, Value(words[1+i]))
	}
	c := r.card()
	c.Settings = append(c.Settings, s)
}

// put keeps the value of a column. What a set is about to write is not there yet.
func (s *Setting) put(column string, v Value) {
	switch column {
	case "Default":
		s.Default = v
	case "Current":
		s.Current = v
	case "Next Boot":
		s.Next = v
	}
}

// finish looks at what only the whole shows.
func (r *reader) finish(whole bool) {
	if len(r.content.Cards) == 0 {
		return
	}
	c := r.card()
	switch {
	case len(c.Settings) == 0 && len(r.problems) == 0:
		r.problems.Add(tool.Truncated, 0, "The output ends before the settings of %s.", c.title())
	case !whole && r.last == r.line && len(r.problems) == 0:
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line.")
	}
}

// title is what a device is called.
func (c Card) title() string {
	switch {
	case c.Device != "":
		return c.Device
	case c.Type != "":
		return c.Type
	}
	return "a device"
}

// Summary implements tool.Summarizer.
func (l *Cards) Summary() []string {
	lines := make([]string, 0, len(l.Cards))
	for _, c := range l.Cards {
		waits := 0
		for _, s := range c.Settings {
			if c.Current && s.Next != s.Current {
				waits++
			}
		}
		line := fmt.Sprintf("%s (%s, %s): %d settings", c.title(), c.Type, c.Part, len(c.Settings))
		for _, name := range []string{"LINK_TYPE_P1", "LINK_TYPE_P2", "INTERNAL_CPU_OFFLOAD_ENGINE"} {
			if s, ok := c.Setting(name); ok {
				line += ", " + name + " " + string(s.Next)
			}
		}
		if waits > 0 {
			line += fmt.Sprintf("; %d wait for a power cycle", waits)
		}
		lines = append(lines, line)
	}
	return lines
}
