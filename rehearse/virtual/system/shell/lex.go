package shell

import (
	"fmt"
	"strings"
)

// token is one piece of a script: an operator, a line's end or a word.
type token struct {
	op   string // ";", "\n", "&&", "||", "|", "(", ")", "<", ">", ">>", ">&"; "" for a word
	fd   int    // of a redirection; -1: the default
	word word
}

// word is what one argument is made of.
type word []part

// part is a piece of a word.
type part struct {
	kind   partKind
	text   string // literal, name of a parameter, or script of a substitution
	alt    string // of ${name:-alt}
	quoted bool   // the result is not split into fields
}

type partKind uint8

const (
	literal partKind = iota
	parameter
	substitution
)

// lexer takes a script apart.
type lexer struct {
	src string
	pos int
}

// ErrSyntax is the error of a script that cannot be read.
type ErrSyntax struct{ What string }

// Error says it as dash does.
func (e ErrSyntax) Error() string { return "Syntax error: " + e.What }

func syntax(format string, args ...any) error { return ErrSyntax{fmt.Sprintf(format, args...)} }

// maxTokens bounds a script; ours have some dozen.
const maxTokens = 20_000

func lex(src string) ([]token, error) {
	l := lexer{src: src}
	var list []token
	for {
		t, ok, err := l.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return list, nil
		}
		if list = append(list, t); len(list) > maxTokens {
			return nil, syntax("script is too long")
		}
	}
}

// blank skips spaces, comments and escaped line ends.
func (l *lexer) blank() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case c == '\\' && strings.HasPrefix(l.src[l.pos:], "\\\n"):
			l.pos += 2
		case c == '#':
			end := strings.IndexByte(l.src[l.pos:], '\n')
			if end < 0 {
				end = len(l.src) - l.pos
			}
			l.pos += end
		default:
			return
		}
	}
}

func (l *lexer) next() (token, bool, error) {
	l.blank()
	if l.pos >= len(l.src) {
		return token{}, false, nil
	}
	if t, ok := l.operator(); ok {
		return t, true, nil
	}
	w, err := l.word()
	return token{word: w}, true, err
}

// operators in the order in which they are tried.
var operators = []string{"&&", "||", ">>", ">&", ";;", "\n", ";", "|", "&", "(", ")", "<", ">"}

func (l *lexer) operator() (token, bool) {
	fd, rest := -1, l.src[l.pos:]
	if len(rest) > 1 && rest[0] >= '0' && rest[0] <= '9' && (rest[1] == '<' || rest[1] == '>') {
		fd, rest = int(rest[0]-'0'), rest[1:]
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.pos = len(l.src) - len(rest) + len(op)
			return token{op: op, fd: fd}, true
		}
	}
	return token{}, false
}

// word reads up to the next character that ends one.
func (l *lexer) word() (word, error) {
	var w word
	add := func(p part) { w = append(w, p) }
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			return w, nil
		case c == '\'':
			end := strings.IndexByte(l.src[l.pos+1:], '\'')
			if end < 0 {
				return nil, syntax("Unterminated quoted string")
			}
			add(part{text: l.src[l.pos+1 : l.pos+1+end], quoted: true})
			l.pos += end + 2
		case c == '"':
			l.pos++
			if err := l.double(add); err != nil {
				return nil, err
			}
		case c == '\\' && l.pos+1 < len(l.src):
			if l.src[l.pos+1] != '\n' {
				add(part{text: l.src[l.pos+1 : l.pos+2], quoted: true})
			}
			l.pos += 2
		case c == '$':
			if err := l.dollar(add, false); err != nil {
				return nil, err
			}
		case c == '`':
			return nil, syntax("backquotes are not known")
		default:
			start := l.pos
			for l.pos++; l.pos < len(l.src) && strings.IndexByte(" \t\r\n;&|()<>'\"\\$`", l.src[l.pos]) < 0; l.pos++ {
			}
			add(part{text: l.src[start:l.pos]})
		}
	}
	return w, nil
}

// double reads to the closing double quote.
func (l *lexer) double(add func(part)) error {
	add(part{quoted: true}) // "" is a word too
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == '"':
			l.pos++
			return nil
		case c == '\\' && l.pos+1 < len(l.src) && strings.IndexByte("\\\"$`\n", l.src[l.pos+1]) >= 0:
			if l.src[l.pos+1] != '\n' {
				add(part{text: l.src[l.pos+1 : l.pos+2], quoted: true})
			}
			l.pos += 2
		case c == '$':
			if err := l.dollar(add, true); err != nil {
				return err
			}
		case c == '`':
			return syntax("backquotes are not known")
		default:
			start := l.pos
			for l.pos++; l.pos < len(l.src) && strings.IndexByte("\"\\$`", l.src[l.pos]) < 0; l.pos++ {
			}
			add(part{text: l.src[start:l.pos], quoted: true})
		}
	}
	return syntax("Unterminated quoted string")
}

// dollar reads a parameter or a substitution.
func (l *lexer) dollar(add func(part), quoted bool) error {
	rest := l.src[l.pos+1:]
	switch {
	case strings.HasPrefix(rest, "("):
		end, err := closing(rest[1:])
		if err != nil {
			return err
		}
		add(part{kind: substitution, text: rest[1 : 1+end], quoted: quoted})
		l.pos += end + 3
	case strings.HasPrefix(rest, "{"):
		end := strings.IndexByte(rest, '}')
		name, alt, _ := strings.Cut(rest[1:max(end, 1)], ":-")
		if end < 0 || nameLen(name) != len(name) || name == "" {
			return syntax("Bad substitution")
		}
		add(part{kind: parameter, text: name, alt: alt, quoted: quoted})
		l.pos += end + 2
	case nameLen(rest) > 0:
		n := nameLen(rest)
		add(part{kind: parameter, text: rest[:n], quoted: quoted})
		l.pos += 1 + n
	default:
		add(part{text: "$", quoted: quoted})
		l.pos++
	}
	return nil
}

// nameLen is the length of the parameter's name that s begins with: letters,
// digits and underscores, one digit, or one special character.
func nameLen(s string) int {
	if s == "" {
		return 0
	}
	if strings.IndexByte("0123456789@*#?$!", s[0]) >= 0 {
		return 1
	}
	n := 0
	for n < len(s) && (s[n] == '_' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || n > 0 && s[n] >= '0' && s[n] <= '9') {
		n++
	}
	return n
}

// closing finds the parenthesis that ends a substitution.
func closing(s string) (int, error) {
	depth := 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return 0, syntax("Unterminated quoted string")
			}
			i += end + 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i, nil
			}
		}
	}
	return 0, syntax("end of file unexpected (expecting \")\")")
}
