// SPDX-License-Identifier: Apache-2.0

// Package keystroke divides what is typed at a remote console into keys for it and commands behind an
// escape character, as ssh(1) and ipmitool do. It is a leaf.
package keystroke

import "fmt"

// Command is what stands behind the escape character at the beginning of a line.
type Command byte

// The commands.
const (
	None  Command = iota // keys
	End                  // "." ends the connection
	Break                // "B" sends a break
	Help                 // "?" lists the commands
)

// Stroke is keys for the console, or a command.
type Stroke struct {
	Keys    string
	Command Command
}

// Parser finds commands in what is typed. The zero Parser has no escape character: all are keys.
type Parser struct {
	Escape byte // 0: there is none

	inLine bool // something was typed since the last end of a line
	began  bool // the escape character was typed at the beginning of a line
}

// ParseEscape reads an escape character as a user writes it: one printable character, ^X for a control
// character, or "none".
func ParseEscape(text string) (byte, error) {
	switch {
	case text == "none":
		return 0, nil
	case len(text) == 1 && text[0] > ' ' && text[0] < 0x7f:
		return text[0], nil
	case len(text) == 2 && text[0] == '^' && text[1] >= '@' && text[1] <= '_' && text[1] != '@':
		return text[1] & 0x1f, nil
	}
	return 0, fmt.Errorf("%q is no escape character: give one character such as ~, ^] for a control character, or none", text)
}

// Name writes an escape character as ParseEscape reads it.
func Name(escape byte) string {
	switch {
	case escape == 0:
		return "none"
	case escape < ' ':
		return "^" + string(rune(escape|0x40))
	}
	return string(rune(escape))
}

// Parse takes typed bytes and returns what they mean, in order. A command is recognised at the beginning
// of a line alone; the escape character twice is one for the console, and before anything that is no
// command both are keys.
func (p *Parser) Parse(typed []byte) (out []Stroke) {
	var keys []byte
	command := func(c Command) {
		if len(keys) > 0 {
			out = append(out, Stroke{Keys: string(keys)})
			keys = nil
		}
		out = append(out, Stroke{Command: c})
	}
	for _, b := range typed {
		switch {
		case !p.began && p.Escape != 0 && b == p.Escape && !p.inLine:
			p.began = true
			continue
		case !p.began:
		case b == '.':
			command(End)
		case b == 'B':
			command(Break)
		case b == '?':
			command(Help)
		case b == p.Escape:
			keys, p.inLine = append(keys, b), true
		default:
			keys = append(keys, p.Escape)
			p.began = false
		}
		if p.began {
			p.began = false
			continue
		}
		keys, p.inLine = append(keys, b), b != '\r' && b != '\n'
	}
	if len(keys) > 0 {
		out = append(out, Stroke{Keys: string(keys)})
	}
	return out
}
