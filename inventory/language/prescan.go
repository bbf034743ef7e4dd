// SPDX-License-Identifier: Apache-2.0

package language

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/ironrail/ironrail/inventory/diag"
)

// HCL's parser and evaluator recurse once for every bracket and operator, and a
// Go stack that runs out cannot be caught. prescan refuses such a source before
// it is parsed: a quick look at the bytes, and a careful one at the tokens when
// the quick one finds too much (it also counts what stands in strings).
func prescanSource(name string, src []byte, lim Limits, diags *diag.List) bool {
	quick := depth{lim: lim}
	for _, c := range src {
		quick.byte(c)
	}
	if quick.over == "" {
		return true
	}
	careful := depth{lim: lim}
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	for _, t := range tokens {
		if careful.token(t.Type); careful.over != "" {
			tooDeep(diags, t.Range, careful.over)
			return false
		}
	}
	return true
}

func tooDeep(diags *diag.List, at hcl.Range, what string) {
	diags.Add("language.limit", at, "Too deeply nested", fmt.Sprintf("This is past the limit of %s. Divide it with locals.", what))
}

// depth counts brackets within brackets, and operators since the last comma, or
// since the last line break that ends an expression.
type depth struct {
	lim   Limits
	stack []open
	chain int // operators of the current expression and those around it
	over  string
}

type open struct {
	kind byte // of the bracket
	base int  // chain where it was opened
}

func (d *depth) push(kind byte) {
	d.chain++
	d.stack = append(d.stack, open{kind, d.chain})
	if len(d.stack) > d.lim.Nesting {
		d.over = fmt.Sprintf("%d nested brackets", d.lim.Nesting)
	}
}

func (d *depth) pop() {
	if n := len(d.stack); n > 0 {
		d.stack = d.stack[:n-1]
	}
}

func (d *depth) operator() {
	if d.chain++; d.chain > d.lim.Chain {
		d.over = fmt.Sprintf("%d operators in one expression", d.lim.Chain)
	}
}

// next starts an element: what was counted since the bracket is forgotten.
func (d *depth) next() {
	d.chain = 0
	if n := len(d.stack); n > 0 {
		d.chain = d.stack[n-1].base
	}
}

func (d *depth) newline() {
	if n := len(d.stack); n == 0 || d.stack[n-1].kind == '{' {
		d.next()
	}
}

func (d *depth) byte(c byte) {
	switch c {
	case '{', '[', '(':
		d.push(c)
	case '}', ']', ')':
		d.pop()
	case ',':
		d.next()
	case '\n':
		d.newline()
	case '+', '-', '*', '/', '%', '!', '?', ':', '&', '|', '<', '>', '=', '.':
		d.operator()
	}
}

func (d *depth) token(t hclsyntax.TokenType) {
	switch t {
	case hclsyntax.TokenOBrace:
		d.push('{')
	case hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		d.push('(')
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
		d.pop()
	case hclsyntax.TokenComma:
		d.next()
	case hclsyntax.TokenNewline:
		d.newline()
	case hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenBang, hclsyntax.TokenQuestion,
		hclsyntax.TokenColon, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenLessThan, hclsyntax.TokenGreaterThan, hclsyntax.TokenLessThanEq,
		hclsyntax.TokenGreaterThanEq, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenDot, hclsyntax.TokenEqual:
		d.operator()
	}
}

// prescanJSON refuses JSON whose arrays and objects nest too deeply.
func prescanJSON(name string, src []byte, lim Limits, diags *diag.List) bool {
	level, inString := 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{', c == '[':
			if level++; level > lim.Nesting {
				tooDeep(diags, byteRange(name, src, i), fmt.Sprintf("%d nested brackets", lim.Nesting))
				return false
			}
		case c == '}', c == ']':
			level--
		}
	}
	return true
}

// byteRange is the range of the byte at i.
func byteRange(name string, src []byte, i int) hcl.Range {
	line := bytes.Count(src[:i], []byte{'\n'}) + 1
	col := i - bytes.LastIndexByte(src[:i], '\n')
	return hcl.Range{Filename: name, Start: hcl.Pos{Line: line, Column: col, Byte: i}, End: hcl.Pos{Line: line, Column: col + 1, Byte: i + 1}}
}
