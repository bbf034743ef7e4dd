// SPDX-License-Identifier: Apache-2.0

// Package rpmdb reads which packages rpm has installed on a system, from rpm's own
// database in its form of SQLite: Fedora from 33, RHEL 9 and its rebuilds.
package rpmdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Files are where rpm keeps its database, below the root of a system.
var Files = []string{"usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite"}

// Log is what is added to the name of a database for that of the log of changes that are
// not in it yet. rpm empties it when it closes the database.
const Log = "-wal"

// maxPackages bounds a list: real ones have some 3,000.
const maxPackages = 50_000

// PublicKey is the name under which rpm keeps keys that it trusts: they are no software.
const PublicKey = "gpg-pubkey"

// Package is an installed package. A public key that was imported is one as well, of name
// PublicKey.
type Package struct {
	Name, Version, Arch string // the version is EPOCH:VERSION-RELEASE, without an epoch where there is none
	SourceRPM           string
	Vendor              string
	URL                 string
	License             string // as the packager wrote it
}

// Installed reads the database of size bytes, without its log.
func Installed(file io.ReaderAt, size int64) (list []Package, err error) {
	d, err := openDatabase(file, size)
	if err != nil {
		return nil, err
	}
	root, err := d.table("Packages")
	if err != nil {
		return nil, err
	}
	err = d.eachRow(root, 0, func(record []byte) error {
		c, err := columns(record) // hnum, blob
		if err != nil {
			return err
		}
		if len(c) != 2 || len(list) == maxPackages {
			return broken("%d columns in package %d", len(c), len(list)+1)
		}
		p, err := parseHeader(c[1].b)
		if err != nil {
			return fmt.Errorf("package %d: %w", len(list)+1, err)
		}
		list = append(list, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Tags of a header (rpm's include/rpm/rpmtag.h).
const (
	tagName      = 1000
	tagVersion   = 1001
	tagRelease   = 1002
	tagEpoch     = 1003
	tagVendor    = 1011
	tagLicense   = 1014
	tagURL       = 1020
	tagArch      = 1022
	tagSourceRPM = 1044
)

// Types of values.
const (
	typeInt32  = 4
	typeString = 6
	typeI18N   = 9
)

// maxValue bounds a value in bytes.
const maxValue = 4 << 10

// parseHeader reads a header: the number of entries, the length of the store, the entries
// (tag, type, offset, count) and the store, all numbers with the high byte first
// (rpm's docs/manual/format_header.md; without the magic that packages have before it).
func parseHeader(b []byte) (p Package, err error) {
	if len(b) < 8 {
		return p, broken("a header of %d bytes", len(b))
	}
	entries, length := int64(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))
	if 8+16*entries+length > int64(len(b)) {
		return p, broken("a header of %d bytes with %d entries and %d bytes of values", len(b), entries, length)
	}
	index, store := b[8:8+16*entries], b[8+16*entries:][:length]
	var version, release, epoch string
	texts := map[uint32]*string{
		tagName: &p.Name, tagVersion: &version, tagRelease: &release, tagVendor: &p.Vendor, tagLicense: &p.License, tagURL: &p.URL, tagArch: &p.Arch, tagSourceRPM: &p.SourceRPM,
	}
	for ; len(index) > 0; index = index[16:] {
		tag, kind, at := binary.BigEndian.Uint32(index), binary.BigEndian.Uint32(index[4:]), int64(binary.BigEndian.Uint32(index[8:]))
		to, text := texts[tag]
		switch {
		case text && *to == "" && (kind == typeString || kind == typeI18N):
			if *to, err = textAt(store, at); err != nil {
				return p, err
			}
		case tag == tagEpoch && kind == typeInt32 && at+4 <= length:
			epoch = fmt.Sprintf("%d:", binary.BigEndian.Uint32(store[at:]))
		}
	}
	if p.Name == "" || version == "" || release == "" {
		return p, broken("a header without a name or version")
	}
	p.Version = epoch + version + "-" + release
	return p, nil
}

// textAt is the text in a store at an offset, up to its zero byte.
func textAt(store []byte, at int64) (string, error) {
	if at >= int64(len(store)) {
		return "", broken("a value lies outside of its header")
	}
	end := bytes.IndexByte(store[at:], 0)
	if end < 0 || end > maxValue {
		return "", broken("a text without an end")
	}
	return string(store[at:][:end]), nil
}
