// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/ironrail/ironrail/internal/gpt"
)

// Probe says what stands on a disk: "" when it is blank, else such as
// "GPT; p1 BIOS boot; p3 ext4 label ironrail-root". Labels are text from outside.
//
// A disk is blank when no signature of the tables in signatures.go is on it, when
// every place that scan looks at is erased, and when all of it could be read. What
// is not known by name is "unknown data at byte N"; what does not read is
// "unreadable at byte N", whatever else was found. It reads at most some 50 MiB,
// of a disk of any size.
func Probe(r io.ReaderAt, size int64) string {
	p := &prober{r: r, size: size, blocks: map[int64][]byte{}}
	p.sparse, _ = r.(Sparse)
	var found []string
	if table, err := gpt.Read(p, size); err == nil {
		found = append(p.partitions(table), p.named(ends, 0, size)...)
	} else {
		found = append(p.named(starts, 0, size), p.named(tables, 0, size)...)
		if len(found) == 0 {
			found = p.mbr()
		}
		found = append(found, p.named(ends, 0, size)...)
	}
	if len(found) == 0 {
		found = p.scan()
	}
	if p.failed {
		found = append(found, fmt.Sprintf("%s%d", unreadableAt, p.bad))
	}
	return strings.Join(distinct(found), "; ")
}

// unreadableAt begins the last part of what Probe says of a disk that fails reads.
const unreadableAt = "unreadable at byte "

// Unreadable reports whether what Probe said is of a disk that fails reads.
func Unreadable(content string) bool {
	return strings.HasPrefix(content[strings.LastIndex(content, ";")+1:], " "+unreadableAt) || strings.HasPrefix(content, unreadableAt)
}

// distinct drops what is named twice, as the two copies of a label are.
func distinct(texts []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// prober reads one disk for one Probe. Reads of a few bytes go through blocks, so
// that a block is asked for once, also one that cannot be read: a disk takes
// seconds to say so.
type prober struct {
	r      io.ReaderAt
	sparse Sparse // r; nil: it does not know
	size   int64
	blocks map[int64][]byte // by number; nil: it cannot be read
	zeroes []byte           // a block of a range that is known to be zero
	failed bool
	bad    int64 // the first byte that could not be read, when failed
}

const (
	blockSize = 64 * kib
	mostKept  = 64 // blocks
)

// ReadAt is io.ReaderAt and keeps in mind that a read failed.
func (p *prober) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > p.size-int64(len(b)) {
		return 0, io.EOF // a table may say so
	}
	n, err := p.r.ReadAt(b, off)
	if n == len(b) {
		return n, nil // io.EOF may come with the last byte
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if at := off + int64(n); !p.failed || at < p.bad {
		p.failed, p.bad = true, at
	}
	return n, err
}

// zeroed reports whether a range is known to be zero without a read.
func (p *prober) zeroed(off, length int64) bool {
	return p.sparse != nil && p.sparse.Zeroed(off, length)
}

// read returns n bytes at an offset, or nil when they are not there or do not read.
func (p *prober) read(off int64, n int) []byte {
	if n <= 0 || off < 0 || off > p.size-int64(n) {
		return nil
	}
	out := make([]byte, 0, n)
	for len(out) < n {
		at := off + int64(len(out))
		b := p.block(at / blockSize)
		if b == nil {
			return nil
		}
		b = b[at%blockSize:]
		out = append(out, b[:min(len(b), n-len(out))]...)
	}
	return out
}

// block returns a block of the disk, the last one as far as it goes.
func (p *prober) block(number int64) []byte {
	if b, ok := p.blocks[number]; ok {
		return b
	}
	length := min(blockSize, p.size-number*blockSize)
	if p.zeroed(number*blockSize, length) {
		if p.zeroes == nil {
			p.zeroes = make([]byte, blockSize)
		}
		return p.zeroes[:length]
	}
	b := make([]byte, length)
	if _, err := p.ReadAt(b, number*blockSize); err != nil {
		b = nil
	}
	if len(p.blocks) >= mostKept {
		clear(p.blocks)
	}
	p.blocks[number] = b
	return b
}

// Types of partition that have a name of their own.
const (
	typeBIOSBoot = "21686148-6449-6e6f-744e-656564454649"
	typeESP      = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
)

// within names what a partition holds, "" when nothing is known by name.
func (p *prober) within(start, size int64) string {
	if start < 0 || size <= 0 || start > p.size-size {
		return "beyond the end of the disk"
	}
	return strings.Join(distinct(append(p.named(starts, start, size), p.named(ends, start, size)...)), ", ")
}

// partitions names what a GPT holds.
func (p *prober) partitions(table *gpt.Table) []string {
	parts := []string{"GPT"}
	if table.Backup {
		parts[0] = "GPT, backup only"
	}
	for _, e := range table.Partitions() {
		what := p.within(e.Offset(), e.Size())
		switch {
		case e.Type == typeBIOSBoot:
			what = "BIOS boot"
		case e.Type == typeESP && what != "":
			what = "ESP " + what
		case what == "":
			what = "no known file system"
		}
		parts = append(parts, fmt.Sprintf("p%d %s", e.Number, what))
	}
	return parts
}

// mbr knows a PC partition table by its mark.
func (p *prober) mbr() []string {
	b := p.read(0, 512)
	if b == nil || b[510] != 0x55 || b[511] != 0xAA {
		return nil
	}
	parts := []string{"MBR"}
	for i := range 4 {
		e := b[446+16*i:]
		start, length := int64(binary.LittleEndian.Uint32(e[8:]))*512, int64(binary.LittleEndian.Uint32(e[12:]))*512
		if e[4] == 0 || length == 0 {
			continue
		}
		what := ""
		if e[4] != 0xee { // the protective entry of a GPT that is gone
			what = p.within(start, length)
		}
		if what == "" {
			what = fmt.Sprintf("type %02x", e[4])
		}
		parts = append(parts, fmt.Sprintf("p%d %s", i+1, what))
	}
	return parts
}

// AllZero reports whether b holds nothing but zeroes.
func AllZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	return len(bytes.Trim(b, "\x00")) == 0
}
