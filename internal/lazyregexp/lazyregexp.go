// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp compiles regular expressions when they are first used. A program
// that knows the output of forty tools has hundreds of them, and needs few in one run. A
// text that lacks what every match of an expression has is not searched by it.
package lazyregexp

import "sync"

// Regexp is a regular expression that is compiled at its first use. It may be used by
// several goroutines.
type Regexp struct {
	compiled func() program
}

// New returns the regular expression of a pattern. A pattern that does not compile
// panics at its first use; a test of the repository compiles all of them.
func New(pattern string) *Regexp {
	return &Regexp{sync.OnceValue(func() program { return compile(pattern) })}
}

// The methods of Regexp are those of the same name of regexp.Regexp.

// MatchString is regexp.Regexp.MatchString.
func (r *Regexp) MatchString(s string) bool {
	p := r.compiled()
	return p.may(s) && p.MatchString(s)
}

// Match is regexp.Regexp.Match.
func (r *Regexp) Match(b []byte) bool { return r.compiled().match(b) }

// FindIndex is regexp.Regexp.FindIndex.
func (r *Regexp) FindIndex(b []byte) []int {
	p := r.compiled()
	if !p.mayBytes(b) {
		return nil
	}
	return p.FindIndex(b)
}

// FindSubmatch is regexp.Regexp.FindSubmatch.
func (r *Regexp) FindSubmatch(b []byte) [][]byte {
	p := r.compiled()
	if !p.mayBytes(b) {
		return nil
	}
	return p.FindSubmatch(b)
}

// FindSubmatchIndex is regexp.Regexp.FindSubmatchIndex.
func (r *Regexp) FindSubmatchIndex(b []byte) []int {
	p := r.compiled()
	if !p.mayBytes(b) {
		return nil
	}
	return p.FindSubmatchIndex(b)
}

// FindAll is regexp.Regexp.FindAll.
func (r *Regexp) FindAll(b []byte, n int) [][]byte {
	p := r.compiled()
	if !p.mayBytes(b) {
		return nil
	}
	return p.FindAll(b, n)
}

// FindAllSubmatch is regexp.Regexp.FindAllSubmatch.
func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	p := r.compiled()
	if !p.mayBytes(b) {
		return nil
	}
	return p.FindAllSubmatch(b, n)
}

// Find is regexp.Regexp.Find.
func (r *Regexp) Find(b []byte) []byte {
	p := r.compiled()
	if !p.mayBytes(b) {
		return nil
	}
	return p.Find(b)
}

// FindString is regexp.Regexp.FindString.
func (r *Regexp) FindString(s string) string {
	p := r.compiled()
	if !p.may(s) {
		return ""
	}
	return p.FindString(s)
}

// FindStringIndex is regexp.Regexp.FindStringIndex.
func (r *Regexp) FindStringIndex(s string) []int {
	p := r.compiled()
	if !p.may(s) {
		return nil
	}
	return p.FindStringIndex(s)
}

// FindStringSubmatch is regexp.Regexp.FindStringSubmatch.
func (r *Regexp) FindStringSubmatch(s string) []string {
	p := r.compiled()
	if !p.may(s) {
		return nil
	}
	return p.FindStringSubmatch(s)
}

// FindAllString is regexp.Regexp.FindAllString.
func (r *Regexp) FindAllString(s string, n int) []string {
	p := r.compiled()
	if !p.may(s) {
		return nil
	}
	return p.FindAllString(s, n)
}

// FindAllStringIndex is regexp.Regexp.FindAllStringIndex.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	p := r.compiled()
	if !p.may(s) {
		return nil
	}
	return p.FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is regexp.Regexp.FindAllStringSubmatch.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	p := r.compiled()
	if !p.may(s) {
		return nil
	}
	return p.FindAllStringSubmatch(s, n)
}

// ReplaceAll is regexp.Regexp.ReplaceAll.
func (r *Regexp) ReplaceAll(src, to []byte) []byte { return r.compiled().ReplaceAll(src, to) }

// ReplaceAllString is regexp.Regexp.ReplaceAllString.
func (r *Regexp) ReplaceAllString(src, to string) string {
	return r.compiled().ReplaceAllString(src, to)
}

// ReplaceAllStringFunc is regexp.Regexp.ReplaceAllStringFunc.
func (r *Regexp) ReplaceAllStringFunc(src string, to func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(src, to)
}

// Split is regexp.Regexp.Split.
func (r *Regexp) Split(s string, n int) []string { return r.compiled().Split(s, n) }

// SubexpIndex is regexp.Regexp.SubexpIndex.
func (r *Regexp) SubexpIndex(name string) int { return r.compiled().SubexpIndex(name) }

// String is regexp.Regexp.String: the pattern.
func (r *Regexp) String() string { return r.compiled().String() }
