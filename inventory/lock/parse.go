// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
)

// header is the first word of the first line.
const header = "ironrail.lock"

// MaxBytes bounds a lock file: 300,000 addresses have some 20 MiB.
const MaxBytes = 256 << 20

// maxFindings is how many wrong lines are shown: what is wrong a hundred times is
// another file.
const maxFindings = 10

// Parse reads a lock file. With a finding the lock is what could be read, and
// must not be used.
func Parse(src []byte) (*Lock, diag.List) {
	p := parser{lock: &Lock{}, closures: map[[2]string]int{}, images: map[string]Place{}, packages: map[[4]string]Place{}}
	if p.merging(src) {
		return p.lock, p.found
	}
	// One copy: all texts of the records are parts of it.
	lines := bytes.Count(src, []byte("\n"))
	p.lock.Addresses = make([]Address, 0, lines)
	rest := string(src)
	for rest != "" && len(p.found) < maxFindings {
		line, after, _ := strings.Cut(rest, "\n")
		p.number++
		if !p.line(strings.TrimSuffix(line, "\r")) {
			break
		}
		p.at += len(rest) - len(after)
		rest = after
	}
	if p.number == 0 {
		p.wrongHeader("")
	}
	return p.lock, p.found
}

type owner struct{ fabric, name string }

// parser reads one file. It belongs to one goroutine.
type parser struct {
	lock   *Lock
	found  diag.List
	number int // of the line, from 1
	at     int // byte where the line begins

	owners   map[owner]Place // of addresses; nil while they come in order
	images   map[string]Place
	closures map[[2]string]int // place in lock.Closures
	packages map[[4]string]Place
}

// here is the place of the line that is being read.
func (p *parser) here(line string) Place {
	return Place{Line: int32(p.number), Byte: int32(p.at), Width: int32(len(line))}
}

// place is a stretch of the line that is being read.
func (p *parser) place(line string, from, to int) hcl.Range {
	pos := func(i int) hcl.Pos {
		return hcl.Pos{Line: p.number, Column: utf8.RuneCountInString(line[:i]) + 1, Byte: p.at + i}
	}
	return hcl.Range{Filename: File, Start: pos(from), End: pos(to)}
}

// merging reports the marks that git leaves of two versions that it could not
// join (git-merge(1), "How conflicts are presented").
func (p *parser) merging(src []byte) bool {
	marks := 0
	var first hcl.Range
	number, at := 0, 0
	for line := range bytes.Lines(src) {
		number++
		if conflictMark(line) {
			if marks++; marks == 1 {
				first = hcl.Range{Filename: File, Start: hcl.Pos{Line: number, Column: 1, Byte: at}, End: hcl.Pos{Line: number, Column: 8, Byte: at + 7}}
			}
		}
		at += len(line)
	}
	if marks == 0 {
		return false
	}
	p.found.Add("lock.syntax", first, "Merge conflict in the lock file",
		fmt.Sprintf("%s holds %d lines that git left where it could not join two versions. Keep the lines of both sides, remove the marks (<<<<<<<, =======, >>>>>>>) and run `ironrail check`: it says which of two entries cannot stay.", File, marks))
	return true
}

func conflictMark(line []byte) bool {
	if len(line) < 7 {
		return false
	}
	switch c := line[0]; c {
	case '<', '>', '|', '=':
		return bytes.Count(line[:7], line[:1]) == 7 && (len(line) == 7 || line[7] == ' ' || line[7] == '\n' || line[7] == '\r')
	}
	return false
}

// line reads one line; false when what follows means nothing.
func (p *parser) line(line string) bool {
	if p.number == 1 {
		return p.header(line)
	}
	if line == "" || line[0] == '#' {
		return true
	}
	var f [8]string
	n := cutFields(line, &f)
	switch {
	case f[0] == "address" && n == 4:
		p.address(line, f[1], f[2], f[3])
	case f[0] == "image" && n == 4:
		p.image(line, f[1], f[2], f[3])
	case f[0] == "closure" && n == 4:
		p.closure(line, f[1], f[2], f[3])
	case f[0] == "package" && n == 7:
		p.pkg(line, f[1], f[2], Package{Name: f[3], Version: f[4], Arch: f[5], Digest: f[6], At: p.here(line)})
	default:
		p.wrong(line, 0, len(line), "Unknown record in the lock file", fmt.Sprintf("%q is no record of format %d: those are address FABRIC OWNER PREFIX, image NAME INPUTS DIGEST, closure DRIVER IMAGE INPUTS and package DRIVER IMAGE NAME VERSION ARCH DIGEST, with one blank between words.", clipText(line), Format))
	}
	return true
}

// cutFields cuts a line at single blanks; 0 when it has too many words or an empty
// one.
func cutFields(line string, to *[8]string) int {
	n := 0
	for {
		word, rest, more := strings.Cut(line, " ")
		if word == "" || n == len(to) {
			return 0
		}
		to[n], n = word, n+1
		if !more {
			return n
		}
		line = rest
	}
}

func (p *parser) header(line string) bool {
	word, version, ok := strings.Cut(line, " ")
	n, err := strconv.Atoi(version)
	switch {
	case word != header || !ok || err != nil || n < 1:
		p.wrongHeader(line)
		return false
	case n > Format:
		p.found.Add("lock.version", p.place(line, len(word)+1, len(line)), "Lock file of a newer ironrail",
			fmt.Sprintf("%s has format %d, and this version reads up to format %d. Use the ironrail that wrote it, or a newer one.", File, n, Format))
		return false
	}
	return true
}

func (p *parser) wrongHeader(line string) {
	p.number = max(p.number, 1)
	p.wrong(line, 0, len(line), "Not a lock file", fmt.Sprintf("The first line of %s is %q, and it must be \"%s %d\". Take the file from git, or remove it and run `ironrail lock`, which gives new addresses.", File, clipText(line), header, Format))
}

func (p *parser) wrong(line string, from, to int, summary, detail string) {
	p.found.Add("lock.syntax", p.place(line, from, to), summary, detail)
}

// word is the place of a word of the line that is a part of it.
func (p *parser) wrongWord(line, word, summary, detail string) {
	from := strings.LastIndex(line, word)
	p.wrong(line, from, from+len(word), summary, detail)
}

func (p *parser) twice(line, what string, first Place) {
	p.found.Add("lock.duplicate", p.place(line, 0, len(line)), "Two entries of one thing", fmt.Sprintf("Lines %d and %d are both for %s. Remove one of them; where they differ, keep what nodes and switches have already.", first.Line, p.number, what)).Also("the first one", first.Range())
}

func (p *parser) address(line, fabric, name, prefix string) {
	a, err := netip.ParsePrefix(prefix)
	if err != nil || a.Addr().Zone() != "" {
		p.wrongWord(line, prefix, "Wrong address in the lock file", fmt.Sprintf("%q is no address with the length of its network, such as 10.200.0.1/31. Take the line from git.", clipText(prefix)))
		return
	}
	if first, again := p.earlierEntry(fabric, name); again {
		p.twice(line, fmt.Sprintf("%s of fabric %s", name, fabric), first)
		return
	}
	p.lock.Addresses = append(p.lock.Addresses, Address{Fabric: fabric, Owner: name, Prefix: a, At: p.here(line)})
	if p.owners != nil {
		p.owners[owner{fabric, name}] = p.here(line)
	}
}

// earlierEntry finds an earlier entry of an owner. While the lines are in the order in
// which they are written, the last one tells; the map is made when they are not.
func (p *parser) earlierEntry(fabric, name string) (Place, bool) {
	if p.owners == nil {
		all := p.lock.Addresses
		if len(all) == 0 {
			return Place{}, false
		}
		last := &all[len(all)-1]
		if c := strings.Compare(last.Fabric, fabric); c < 0 || c == 0 && last.Owner < name {
			return Place{}, false
		}
		p.owners = make(map[owner]Place, cap(all))
		for _, a := range all {
			p.owners[owner{a.Fabric, a.Owner}] = a.At
		}
	}
	at, again := p.owners[owner{fabric, name}]
	return at, again
}

// digest checks one digest of a line.
func (p *parser) digest(line, d string) bool {
	hex, ok := strings.CutPrefix(d, "sha256:")
	if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		p.wrongWord(line, d, "Wrong digest in the lock file", fmt.Sprintf("%q is no digest: \"sha256:\" and 64 hex digits. Take the line from git.", clipText(d)))
		return false
	}
	return true
}

func (p *parser) image(line, name, inputs, digest string) {
	if !p.digest(line, inputs) || !p.digest(line, digest) {
		return
	}
	if first, again := p.images[name]; again {
		p.twice(line, "image "+name, first)
		return
	}
	p.images[name] = p.here(line)
	p.lock.Images = append(p.lock.Images, Image{Name: name, Inputs: inputs, Digest: digest, At: p.here(line)})
}

func (p *parser) closure(line, driver, image, inputs string) {
	if !p.digest(line, inputs) {
		return
	}
	i, known := p.closures[[2]string{driver, image}]
	if known && p.lock.Closures[i].At.Line != 0 {
		p.twice(line, fmt.Sprintf("driver %s for image %s", driver, image), p.lock.Closures[i].At)
		return
	}
	if !known {
		i = p.stack(driver, image)
	}
	p.lock.Closures[i].Inputs, p.lock.Closures[i].At = inputs, p.here(line)
}

// stack adds a closure of which no line was read yet.
func (p *parser) stack(driver, image string) int {
	i := len(p.lock.Closures)
	p.closures[[2]string{driver, image}] = i
	p.lock.Closures = append(p.lock.Closures, Closure{Driver: driver, Image: image})
	return i
}

func (p *parser) pkg(line, driver, image string, k Package) {
	if !p.digest(line, k.Digest) {
		return
	}
	i, known := p.closures[[2]string{driver, image}]
	if !known {
		i = p.stack(driver, image)
	}
	key := [4]string{driver, image, k.Name, k.Arch}
	if first, again := p.packages[key]; again {
		p.twice(line, fmt.Sprintf("package %s of driver %s for image %s", k.Name, driver, image), first)
		return
	}
	p.packages[key] = p.here(line)
	p.lock.Closures[i].Packages = append(p.lock.Closures[i].Packages, k)
}

// clipText bounds what is quoted.
func clipText(s string) string {
	const most = 80
	if len(s) <= most {
		return strings.ToValidUTF8(s, "�")
	}
	return strings.ToValidUTF8(s[:most], "�") + "..."
}
