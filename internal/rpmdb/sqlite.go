// SPDX-License-Identifier: Apache-2.0

package rpmdb

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Bounds of a database. Each page is read at most once, so that a hostile file costs no
// more than its size.
const (
	maxDepth   = 20       // levels of a b-tree
	maxPayload = 64 << 20 // bytes of a row; headers of kernels have some 3 MB
	schemaPage = 1        // root of the table that names the others
)

// magic begins every database of SQLite 3 (sqlite.org/fileformat2.html, section 1.3).
const magic = "SQLite format 3\x00"

// Types of pages that tables are made of (section 1.6).
const (
	interiorPage = 0x05
	leafPage     = 0x0d
)

// database reads tables of a file of SQLite, without its log of changes.
type database struct {
	file     io.ReaderAt
	pageSize int
	usable   int // bytes of a page that hold data
	pages    int64
	seen     map[int64]bool
}

// broken is a file that is not as SQLite writes it.
func broken(format string, args ...any) error { return errkind.New(errkind.Invalid, format, args...) }

// openDatabase reads the header of a file of size bytes.
func openDatabase(file io.ReaderAt, size int64) (*database, error) {
	head := make([]byte, 100)
	if _, err := file.ReadAt(head, 0); err != nil || string(head[:len(magic)]) != magic {
		return nil, broken("it is no database of SQLite 3")
	}
	d := &database{file: file, pageSize: int(binary.BigEndian.Uint16(head[16:])), seen: map[int64]bool{}}
	if d.pageSize == 1 {
		d.pageSize = 1 << 16
	}
	d.usable = d.pageSize - int(head[20])
	if d.pageSize < 512 || d.pageSize&(d.pageSize-1) != 0 || d.usable < 480 {
		return nil, broken("pages of %d bytes, %d of them usable", d.pageSize, d.usable)
	}
	d.pages = size / int64(d.pageSize)
	return d, nil
}

// page reads a page, once: one that is asked for again is part of a loop.
func (d *database) page(n int64) ([]byte, error) {
	if n < 1 || n > d.pages || d.seen[n] {
		return nil, broken("page %d of %d is not there, or is in two places", n, d.pages)
	}
	d.seen[n] = true
	p := make([]byte, d.pageSize)
	if _, err := d.file.ReadAt(p, (n-1)*int64(d.pageSize)); err != nil {
		return nil, broken("page %d: %w", n, err)
	}
	return p, nil
}

// eachRow calls row with the record of each row of the table with this root.
func (d *database) eachRow(root int64, depth int, row func(record []byte) error) error {
	if depth > maxDepth {
		return broken("a table of more than %d levels", maxDepth)
	}
	p, err := d.page(root)
	if err != nil {
		return err
	}
	head := p
	if root == schemaPage {
		head = p[100:]
	}
	kind, count, first := head[0], int(binary.BigEndian.Uint16(head[3:])), 8
	if kind == interiorPage {
		first = 12
	}
	if kind != interiorPage && kind != leafPage || first+2*count > len(head) {
		return broken("page %d is of no table", root)
	}
	for i := range count {
		at := int(binary.BigEndian.Uint16(head[first+2*i:]))
		if at+4 > d.usable {
			return broken("a cell of page %d lies outside", root)
		}
		if kind == interiorPage {
			err = d.eachRow(int64(binary.BigEndian.Uint32(p[at:])), depth+1, row)
		} else {
			err = d.eachCell(p[at:d.usable], row)
		}
		if err != nil {
			return err
		}
	}
	if kind == interiorPage {
		return d.eachRow(int64(binary.BigEndian.Uint32(head[8:])), depth+1, row)
	}
	return nil
}

// eachCell calls row with the record of one cell of a leaf: length, row number, and what
// of the record fits; the rest lies on a chain of pages (section 1.6, 1.7).
func (d *database) eachCell(cell []byte, row func(record []byte) error) error {
	length, n := varint(cell)
	if length > maxPayload || n == 0 {
		return broken("a row of %d bytes", length)
	}
	cell = cell[n:]
	_, n = varint(cell)
	if n == 0 {
		return broken("a row without a number")
	}
	cell = cell[n:]
	local := d.local(int(length))
	if local > len(cell) {
		return broken("a row lies outside of its page")
	}
	if local == int(length) {
		return row(cell[:local])
	}
	if local+4 > len(cell) {
		return broken("a row lies outside of its page")
	}
	var record bytes.Buffer
	record.Write(cell[:local])
	for next := int64(binary.BigEndian.Uint32(cell[local:])); record.Len() < int(length); {
		p, err := d.page(next)
		if err != nil {
			return err
		}
		next = int64(binary.BigEndian.Uint32(p))
		record.Write(p[4:min(d.usable, 4+int(length)-record.Len())])
	}
	return row(record.Bytes())
}

// local is how many bytes of a record of a length are in its cell.
func (d *database) local(length int) int {
	most := d.usable - 35
	if length <= most {
		return length
	}
	least := (d.usable-12)*32/255 - 23
	if k := least + (length-least)%(d.usable-4); k <= most {
		return k
	}
	return least
}

// varint reads a number of 1 to 9 bytes, the first of the highest worth; 0 bytes: there is
// none.
func varint(b []byte) (v uint64, n int) {
	for i, c := range b[:min(len(b), 9)] {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// columns splits a record into the bytes of its columns (section 2.1). Numbers are as they
// are stored; 0, 1 and NULL have no bytes, so that schema 4's constants are given by type.
func columns(record []byte) (all []column, err error) {
	length, n := varint(record)
	if n == 0 || length > uint64(len(record)) || length < uint64(n) {
		return nil, broken("a record without a head")
	}
	head, body := record[n:length], record[length:]
	for len(head) > 0 {
		kind, n := varint(head)
		if n == 0 {
			return nil, broken("the head of a record is cut off")
		}
		head = head[n:]
		size := sizeOf(kind)
		if size > uint64(len(body)) {
			return nil, broken("a record is cut off")
		}
		all = append(all, column{kind, body[:size]})
		body = body[size:]
	}
	return all, nil
}

// column is a value of a record.
type column struct {
	kind uint64 // serial type
	b    []byte
}

// sizeOf is how many bytes a value of a serial type takes.
func sizeOf(kind uint64) uint64 {
	switch {
	case kind >= 12:
		return (kind - 12) / 2
	case kind <= 4:
		return kind
	case kind == 5:
		return 6
	case kind <= 7:
		return 8
	}
	return 0
}

// number is the value of a column that is a whole number.
func (c column) number() (v int64, ok bool) {
	switch {
	case c.kind == 8 || c.kind == 9:
		return int64(c.kind - 8), true
	case c.kind < 1 || c.kind > 6:
		return 0, false
	}
	v = int64(int8(c.b[0])) // two's complement
	for _, b := range c.b[1:] {
		v = v<<8 | int64(b)
	}
	return v, true
}

// table finds the root page of a table by its name.
func (d *database) table(name string) (root int64, err error) {
	err = d.eachRow(schemaPage, 0, func(record []byte) error {
		c, err := columns(record) // type, name, tbl_name, rootpage, sql
		if err != nil {
			return err
		}
		if len(c) >= 4 && string(c[0].b) == "table" && string(c[1].b) == name {
			root, _ = c[3].number()
		}
		return nil
	})
	if err == nil && root == 0 {
		err = broken("there is no table %s", name)
	}
	return root, err
}
