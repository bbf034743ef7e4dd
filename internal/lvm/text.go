// SPDX-License-Identifier: Apache-2.0

package lvm

import (
	"slices"
	"strconv"
	"strings"
)

// section is a part of the metadata in braces: its values are int64, string, []any and
// section.
type section map[string]any

func (s section) section(name string) section {
	v, _ := s[name].(section)
	return v
}

// number is a number; -1 where there is none.
func (s section) number(name string) int64 {
	if v, ok := s[name].(int64); ok {
		return v
	}
	return -1
}

func (s section) text(name string) string {
	v, _ := s[name].(string)
	return v
}

func (s section) list(name string) []any {
	v, _ := s[name].([]any)
	return v
}

// names are those of a section, sorted, segment10 behind segment9.
func (s section) names() (names []string) {
	for name := range s {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names
}

// deepest bounds sections within sections: metadata has five.
const deepest = 16

// parse reads the configuration format of LVM2 (lvm.conf(5)), as far as metadata use it.
func parse(text string) (section, error) {
	p := parser{rest: text}
	return p.section(0)
}

type parser struct{ rest string }

// next is the next token: a brace, bracket, comma, equals sign, a text with its quotes,
// or a word; "" at the end.
func (p *parser) next() string {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\r\n\x00")
		if !strings.HasPrefix(p.rest, "#") {
			break
		}
		_, p.rest, _ = strings.Cut(p.rest, "\n")
	}
	if p.rest == "" {
		return ""
	}
	n := 1
	switch c := p.rest[0]; {
	case strings.IndexByte("{}[],=", c) >= 0:
	case c == '"':
		for n < len(p.rest) && p.rest[n] != '"' {
			if p.rest[n] == '\\' {
				n++
			}
			n++
		}
		n = min(n+1, len(p.rest))
	default:
		if n = strings.IndexAny(p.rest, " \t\r\n\x00{}[],=\"#"); n < 0 {
			n = len(p.rest)
		}
	}
	token := p.rest[:n]
	p.rest = p.rest[n:]
	return token
}

// section reads what stands between braces, or all.
func (p *parser) section(depth int) (section, error) {
	s := section{}
	for {
		name := p.next()
		switch {
		case name == "" && depth == 0, name == "}" && depth > 0:
			return s, nil
		case name == "" || strings.ContainsAny(name[:1], "{}[],=\"") || depth > deepest:
			return nil, errCorrupt
		}
		var err error
		switch p.next() {
		case "{":
			s[name], err = p.section(depth + 1)
		case "=":
			s[name], err = p.value()
		default:
			err = errCorrupt
		}
		if err != nil {
			return nil, err
		}
	}
}

// value reads a number, a text, or a list of these.
func (p *parser) value() (any, error) {
	token := p.next()
	if token != "[" {
		return scalar(token)
	}
	list := []any{}
	for {
		switch token = p.next(); token {
		case "]":
			return list, nil
		case ",":
			continue
		}
		v, err := scalar(token)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

func scalar(token string) (any, error) {
	if n := len(token); n >= 2 && token[0] == '"' && token[n-1] == '"' {
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(token[1 : n-1]), nil
	}
	if v, err := strconv.ParseInt(token, 10, 64); err == nil {
		return v, nil
	}
	if v, err := strconv.ParseFloat(token, 64); err == nil {
		return v, nil
	}
	return nil, errCorrupt
}
