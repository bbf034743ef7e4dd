// SPDX-License-Identifier: Apache-2.0

package language

import "unicode/utf8"

// sizes is what the files of a site take together, before they are parsed.
type sizes struct {
	bytes, tokens int
}

// countTokens estimates how many tokens a source has, which is what its parser
// takes memory for: some 400 bytes each, so that a file of 10 MB of brackets fills
// 4 GB. Words and numbers, every sign and line break, and both quotes of a string
// count one; what is within a string counts by its interpolations only, and by bytes
// that are no UTF-8, each of which is a token of its own.
func countTokens(src []byte, isJSON bool) int {
	c := tokenCounter{src: src, json: isJSON}
	for c.at < len(src) {
		if c.quoted {
			c.inString()
		} else {
			c.inCode()
		}
	}
	if !utf8.Valid(src) {
		c.n += countInvalid(src)
	}
	return c.n
}

// countInvalid counts the bytes that are no UTF-8.
func countInvalid(src []byte) int {
	n := 0
	for len(src) > 0 {
		r, size := utf8.DecodeRune(src)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		src = src[size:]
	}
	return n
}

type tokenCounter struct {
	src    []byte
	json   bool
	at, n  int
	quoted bool
	open   []int // braces that are open in each interpolation around this place
}

// inString passes one byte of a string.
func (c *tokenCounter) inString() {
	b := c.src[c.at]
	c.at++
	switch {
	case b == '\\':
		c.at++
	case b == '"', b == '\n':
		c.quoted = false
		c.n++
	case !c.json && (b == '$' || b == '%') && c.peek('{'):
		c.at++
		c.n++
		c.quoted = false
		c.open = append(c.open, 0)
	}
}

// inCode passes one token, or a space.
func (c *tokenCounter) inCode() {
	b := c.src[c.at]
	c.at++
	switch {
	case b == ' ', b == '\t', b == '\r', b == '\n' && c.json:
		return
	case !c.json && (b == '#' || b == '/' && c.peek('/')):
		for c.at < len(c.src) && c.src[c.at] != '\n' {
			c.at++
		}
	case isWord(b):
		for c.at < len(c.src) && isWord(c.src[c.at]) {
			c.at++
		}
	}
	c.n++
	if b == '"' {
		c.quoted = true
	}
	c.braces(b)
}

// braces finds the end of an interpolation, after which its string goes on.
func (c *tokenCounter) braces(b byte) {
	last := len(c.open) - 1
	if last < 0 {
		return
	}
	switch {
	case b == '{':
		c.open[last]++
	case b == '}' && c.open[last] > 0:
		c.open[last]--
	case b == '}':
		c.open, c.quoted = c.open[:last], true
	}
}

func (c *tokenCounter) peek(b byte) bool { return c.at < len(c.src) && c.src[c.at] == b }

func isWord(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b >= 0x80
}
